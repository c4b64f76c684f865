package picture

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
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
	if f, _ := ByName(Of(measured("a", 20, 1)), "throughput"); len(f.MarkKinds()) > 0 || strings.Contains(f.Describe(), "did not run") {
		t.Errorf("nothing froze, and the legend has %v", f.MarkKinds())
	}
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
