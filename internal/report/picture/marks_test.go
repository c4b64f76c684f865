package picture

import (
	"bytes"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// frozen is a report of a run in which the system stalled, and the generator froze
// once within a stall and once briefly outside.
func frozen() *report.Document {
	d := measured("a", 20, 1)
	d.Stall = report.Stall{LongestS: 2, LongestAtS: 8, Count: 2, Spans: []report.Span{{AtS: 3, LengthS: 0.5}, {AtS: 8, LengthS: 2}}}
	d.Freezes = report.Freezes{Count: 2, TotalS: 1.02, Longest: []report.Freeze{
		{AtS: 8.2, LengthS: 1, Who: "process"}, {AtS: 15, LengthS: 0.02, Who: "sending thread"},
	}}
	return d
}

// Freezes of the generator and stalls of the system are distinguished in SVG, in
// PNG and in the description, and the legend names both. PICTURES=FOLDER writes the
// pictures for inspection.
func TestFreezesAndStalls(t *testing.T) {
	figures := Of(frozen())
	for _, name := range []string{"throughput", "response", "response-map"}[:testkit.Cases(3, 1)] {
		f, ok := ByName(figures, name)
		assert.Must(t, ok, "no figure %s", name)
		var drawing, pixels bytes.Buffer
		assert.OK(t, f.SVG(&drawing, Light))
		for class, want := range map[string]int{`class="stall"`: 3, `class="freeze"`: 3, ">generator froze<": 1, ">stall<": 1} { // one of each in the legend
			assert.Equal(t, strings.Count(drawing.String(), class), want, "%s of %s", name, class)
		}
		if got := f.Describe(); !strings.Contains(got, "The generator did not run from 8.2 s to 9.2 s.") || !strings.Contains(got, "The system answered nothing from 3 s to 3.5 s.") {
			t.Errorf("description of %s: got %q", name, got)
		}
		for _, theme := range []Theme{Light, Dark} {
			pixels.Reset()
			assert.OK(t, f.PNG(&pixels, theme, 1))
			if dir := os.Getenv("PICTURES"); dir != "" {
				assert.OK(t, os.WriteFile(filepath.Join(dir, name+[]string{"", "-light", "-dark"}[theme]+".png"), pixels.Bytes(), 0o600))
			}
			m := assert.Value(png.Decode(&pixels))(t)
			c := ColorsOf(theme)
			left := map[string]int{c.Stall: 0, c.Freeze: 0}
			for y := range m.Bounds().Dy() {
				for x := range m.Bounds().Dx() {
					for color := range left {
						if m.At(x, y) == rgba(color) {
							left[color]++
						}
					}
				}
			}
			for color, n := range left {
				assert.True(t, n >= 500, "%s, theme %d: %d pixels of %s", name, theme, n, color)
			}
		}
	}
	if f, _ := ByName(Of(measured("a", 20, 1)), "throughput"); slices.Contains(f.MarkKinds(), Freeze) || strings.Contains(f.Describe(), "did not run") {
		t.Errorf("nothing froze, and the legend has %v", f.MarkKinds())
	}
}

// TestNumbers: each mark of a time axis has its number above the plot, within the picture, and no two overlap.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	box := rect{84, 30, 500, 240}
	x := scale{axis: Axis{Unit: Seconds}, hi: 100, a: box.x, b: box.x + box.w}
	for n := range 60 {
		f := Figure{Shared: true, Marks: []Mark{{To: 5, Text: "warm-up"}, {From: 1, To: 1}}}
		for range n {
			at := math.Floor(r.Float64()*r.Float64()*100*8) / 8
			f.Marks = append(f.Marks, Mark{From: at, To: at, Text: "a long text of a mark"})
		}
		next, end := 1, 0.0
		for _, l := range numbersAt(f.Numbered(), x, box) {
			w := pillWidth(l.text)
			assert.True(t, l.first == next && l.x >= end && l.x >= 0 && l.x+w <= box.x+box.w+marginSide, "of %d marks, %q from %.1f to %.1f after %.1f", n, l.text, l.x, l.x+w, end)
			next, end = l.last+1, l.x+w
		}
		assert.Equal(t, next-1, n, "marks with a number")
	}
}

// TestLimits: a limit is a line in each picture of its result, and in no other.
func TestLimits(t *testing.T) {
	d := measured("a", 20, 1)
	bound := 0.005
	for _, name := range []string{"p99 < 5 ms", "service.max < 5 ms", "throughput >= 0.005/s"} {
		d.Checks = append(d.Checks, report.Check{Name: name, OK: true, Bound: &bound})
	}
	got := map[string]string{}
	for _, f := range Of(d) {
		for _, l := range f.Limits {
			got[f.Name] += l.Text + map[bool]string{true: " on x"}[l.OnX] + "."
		}
		if len(f.Limits) > 0 {
			var b bytes.Buffer
			assert.OK(t, f.SVG(&b, Light))
			assert.Has(t, b.String(), `class="limit"`)
			assert.Has(t, f.Describe(), "Limit: ")
		}
	}
	assert.Same(t, got, map[string]string{
		"throughput": "throughput >= 0.005/s.", "response": "p99 < 5 ms.", "distribution": "p99 < 5 ms on x.", "response-map": "p99 < 5 ms.",
		"percentiles": "p99 < 5 ms.", "service": "service.max < 5 ms.", "service-map": "service.max < 5 ms.",
	}, "limits by picture")
}

// The shades behind lines are distinguishable with each kind of color vision.
func TestShades(t *testing.T) {
	for name, c := range map[string]Colors{"light": light, "dark": dark} {
		for who, m := range blindness {
			if who == "without color" { // their edges distinguish them: one at the top, one at the bottom
				continue
			}
			got := distance(seenBy(m, c.Stall), seenBy(m, c.Freeze))
			assert.True(t, got >= 0.03, "%s, %s: got %.3f between a stall and a freeze, want 0.03", name, who, got)
		}
	}
}
