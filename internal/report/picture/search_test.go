package picture

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/verdict/find"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// searched is the report of a search with trials of each result.
func searched(id string) *report.Document {
	trial := func(role find.Role, rate float64, result find.Result, p99 time.Duration) find.Tried {
		t := find.Tried{
			Trial: find.Trial{Role: role, Rate: rate},
			Times: []find.Quantile{{Of: "response", P: 50, At: p99 / 9, Least: p99 / 10, Most: p99 / 8}, {Of: "response", P: 99, At: p99, Least: p99 / 2, Most: 2 * p99}},
		}
		if result != "" {
			t.Verdict = &find.Verdict{Result: result}
		}
		return t
	}
	const ms = time.Millisecond
	return &report.Document{ID: id, Search: &report.Search{
		Within: []report.SearchLimit{{Name: "p99 < 50 ms", Of: "response", P: 99, Within: 50 * ms}},
		Answer: &find.Answer{Ending: find.Found, Holds: 800, HoldsConfirmed: true, Fails: 840, FailsConfirmed: true, Trials: []find.Tried{
			trial(find.Search, 500, find.Pass, 8*ms), trial(find.Confirm, 800, find.Pass, 24*ms), trial(find.Confirm, 800, find.Undecided, 40*ms),
			trial(find.Confirm, 840, find.Fail, 90*ms), trial(find.Beyond, 1000, "", 900*ms), trial(find.Search, 900, find.Invalid, 500*ms),
		}},
	}}
}

// Every trial that is valid is a point with its interval, and results differ by shape.
func TestLoadLatency(t *testing.T) {
	figures := Of(searched("f1234567"))
	assert.Must(t, len(figures) == 1 && figures[0].Name == "load-latency-response", "got %d figures", len(figures))
	f := &figures[0]
	points, shapes := map[string]int{}, map[Symbol]bool{}
	for i := range f.Series {
		s := &f.Series[i]
		if s.Style != Ranges {
			continue
		}
		points[s.Name] = len(s.X)
		assert.True(t, !shapes[s.Symbol], "%s has the symbol of another series", s.Name)
		shapes[s.Symbol] = true
		assert.True(t, len(s.Lo) == len(s.X) && len(s.Hi) == len(s.X), "%s has points without an interval", s.Name)
	}
	for name, want := range map[string]int{"p99 holds": 2, "p99 fails": 1, "p99 undecided or not judged": 2, "p50 of a trial": 5} {
		assert.Equal(t, points[name], want, "points of %s", name)
	}
	limit := slices.IndexFunc(f.Series, func(s Series) bool { return s.Name == "limit p99 < 50 ms" })
	assert.True(t, limit >= 0 && f.Series[limit].Y[0] == 50_000, "no line of the limit in %+v", f.Series)
	assert.True(t, len(f.Marks) == 2 && f.Marks[0].Text == "ceiling 800 to 840/s" && f.Marks[0].From == 800 &&
		f.Marks[0].To == 840 && f.Marks[1].Text == "knee" && f.Marks[1].From == 500, "marks: %+v", f.Marks)
	assert.Has(t, f.Describe(), "ceiling 800 to 840/s.", "p99 fails: 90 ms at 840/s (45 ms to 180 ms).")
	table := f.Table(40)
	assert.True(t, len(table.Rows) == 10 && len(table.Head) == 5 && table.Rows[0][0] == "500/s", "table: %+v", table)
	d := f.layOut(width, parts{title: true, legend: true})
	for _, s := range d.shapes {
		for _, p := range s.paths {
			for _, at := range p {
				assert.True(t, at.x >= 0 && at.x <= d.w && at.y >= 0 && at.y <= d.h, "%s reaches %v, outside of the picture", s.class, at)
			}
		}
	}
	var b bytes.Buffer
	err := f.PNG(&b, Light, 1)
	assert.True(t, err == nil && b.Len() != 0, "PNG: %v", err)
	b.Reset()
	err = f.SVG(&b, Auto)
	assert.True(t, err == nil && strings.Contains(b.String(), "limit p99 &lt; 50 ms"), "SVG: %v", err)
}

// Several searches are overlaid; a run next to one has its own figures.
func TestLoadLatencyOfSeveral(t *testing.T) {
	figures := Of(searched("f1"), searched("f2"), measured("r1", 5, 1))
	f, ok := ByName(figures, "load-latency-response")
	assert.Must(t, ok && len(f.Marks) == 0, "got %+v", f)
	if !slices.ContainsFunc(f.Series, func(s Series) bool { return s.Name == "f2: p99 fails" && s.Report == 1 }) {
		t.Errorf("got %+v", f.Series)
	}
	_, ok = ByName(figures, "throughput")
	assert.True(t, ok, "the run has no throughput")
}

// A knee next to the ceiling shares its text, and a ceiling that is not known has none.
func TestCeilingMarks(t *testing.T) {
	a := searched("f1").Search.Answer
	a.Trials = slices.DeleteFunc(a.Trials, func(t find.Tried) bool { return t.Rate == 500 })
	a.Trials = append(a.Trials, find.Tried{Trial: find.Trial{Role: find.Search, Rate: 400}, Times: []find.Quantile{{Of: "response", P: 99, At: 30 * time.Millisecond}}})
	for i := range a.Trials {
		a.Trials[i].Times = a.Trials[i].Times[len(a.Trials[i].Times)-1:]
	}
	if marks := ceilingMarks(a); len(marks) != 2 || marks[0].Text != "knee 800/s, ceiling 800 to 840/s" || marks[1].Text != "" {
		t.Errorf("got %+v", marks)
	}
	a.FailsConfirmed = false
	marks := ceilingMarks(a)
	assert.True(t, strings.Contains(marks[0].Text, "not confirmed: 800 to 840/s"), "got %+v", marks)
	marks = ceilingMarks(&find.Answer{})
	assert.True(t, len(marks) == 0, "got %+v", marks)
}

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

// Freezes of the generator and stalls of the system are distinguished in SVG, in PNG and in the description,
// and the legend names both. PICTURES=FOLDER writes the pictures for inspection.
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
