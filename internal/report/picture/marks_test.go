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
	"time"

	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/internal/verdict/find"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// frozen is a report of a run in which the system stalled, and the generator froze once within a stall and once briefly outside.
func frozen() *report.Document {
	d := measured("a", 20, 1)
	d.Stall = report.Stall{LongestS: 2, LongestAtS: 8, Count: 2, Spans: []report.Span{{AtS: 3, LengthS: 0.5}, {AtS: 8, LengthS: 2}}}
	d.Freezes = report.Freezes{Count: 2, TotalS: 1.02, Longest: []report.Freeze{
		{AtS: 8.2, LengthS: 1, Who: "process"}, {AtS: 15, LengthS: 0.02, Who: "sending thread"},
	}}
	return d
}

// Freezes of the generator and stalls of the system are distinguished in SVG, in PNG and in the description, and the legend names
// both. PICTURES=FOLDER writes the pictures for inspection.
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
	f, _ := ByName(Of(measured("a", 20, 1)), "throughput")
	assert.True(t, !slices.Contains(f.MarkKinds(), Freeze) && !strings.Contains(f.Describe(), "did not run"), "nothing froze, and the legend has %v", f.MarkKinds())
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

// effects is a figure of three effects with long names.
func effects() Figure {
	return Figure{
		Name: "effects", Title: "Effects", X: Axis{Unit: Share, Zero: true},
		Y:     Axis{Labels: []string{"linger 1ms to 5ms", "a setting with a long name 16KiB to 256KiB", "acks 1 to all"}},
		Marks: []Mark{{}},
		Series: []Series{
			{Name: "effect", Style: Intervals, X: []float64{18, -31}, Y: []float64{1, 2}, Lo: []float64{13, -35}, Hi: []float64{23, -27}},
			{Name: "none", Style: Intervals, Tone: Grey, X: []float64{1}, Y: []float64{0}, Lo: []float64{-2}, Hi: []float64{60}},
		},
	}
}

// Each point is a dot on a line from one end of its interval to the other, all in the picture,
// in the row of its name, and each name is there.
func TestIntervals(t *testing.T) {
	f := effects()
	d := f.layOut(width, parts{title: true, legend: true})
	names, dots := map[string]float64{}, 0
	var plotLeft float64
	for _, s := range d.shapes {
		switch {
		case s.kind == textShape && strings.Contains(s.class, "end"):
			names[s.text] = s.at.y
			plotLeft = s.at.x
			assert.True(t, s.at.x-measureText(s.text, fontSize) >= 0, "the name %q begins left of the picture", s.text)
		case s.kind == fill && s.class == "bar":
			dots += len(s.rects)
		case s.kind == curve && len(s.paths) > 1:
			for _, p := range s.paths {
				for _, at := range p {
					assert.True(t, at.x >= plotLeft && at.x <= d.w && at.y >= 0 && at.y <= d.h,
						"an interval reaches %v, outside of the plot", at)
				}
			}
		}
	}
	assert.Equal(t, dots, 3, "dots")
	for _, name := range f.Y.Labels {
		_, ok := names[name]
		assert.True(t, ok, "no name %q among %v", name, names)
	}
	assert.True(t, names["acks 1 to all"] < names["linger 1ms to 5ms"], "the last name is not at the top")
	said := f.Describe()
	assert.True(t, strings.Contains(said, "acks 1 to all -31% (-35% to -27%)"), "it is described as %q", said)
	var b bytes.Buffer
	err := f.PNG(&b, Light, 1)
	assert.True(t, err == nil && b.Len() != 0, "PNG: %v", err)
}

// The head of the table describes its times: the middles of intervals for values
// measured over intervals, otherwise the ends of rows.
func TestTableHead(t *testing.T) {
	figures := Of(measured("a", 100, 1)) // intervals of a second
	for _, tt := range []struct {
		figure      string
		most        int
		head, first string
	}{
		{"throughput", 100, "middle of interval", "500 ms"},
		{"response", 100, "middle of interval", "500 ms"},
		{"throughput", 10, "middle of the last interval", "9.5 s"},
		{"outstanding", 100, "until", "1 s"},
		{"outstanding", 10, "until", "10 s"},
		{"end-to-end-map", 10, "until", ""},
	} {
		table := figure(t, figures, tt.figure).Table(tt.most)
		if table.Head[0] != tt.head || tt.first != "" && table.Rows[0][0] != tt.first {
			t.Errorf("%s in %d: got %q from %q on, want %q from %q on", tt.figure, tt.most, table.Head[0], table.Rows[0][0], tt.head, tt.first)
		}
	}
}

// The description of a line of points contains the percentiles at its points, marks lower bounds, and has no maximum.
func TestPointsOfPercentiles(t *testing.T) {
	f := Figure{
		X: Axis{Unit: Percentile, Log: true}, Y: Axis{Unit: Micros, Log: true},
		Series: []Series{{Name: "a", X: []float64{1, 2, 10, 1 / (1 - 0.99)}, Y: []float64{100, 200, 300, 400}, AtLeast: []bool{false, false, false, true}}},
	}
	assert.Equal(t, f.Describe(), "a: p50 200 us, p90 300 us, p99 >= 400 us.")
	var rows []string
	for _, r := range f.Table(10).Rows {
		rows = append(rows, strings.Join(r, " "))
	}
	want := []string{"p50 200 us", "p90 300 us", "p99 >= 400 us"}
	assert.True(t, slices.Equal(rows, want), "got %q, want %q", rows, want)
}

// A fault is shaded until it was repaired, or until the limit holds again, and its moments have names.
func TestFaultMarks(t *testing.T) {
	d := measured("a", 20, 1)
	mark := func(kind, name string, at float64) fault.Mark { return fault.Mark{Kind: kind, Name: name, AtS: at} }
	stop, kill := mark("fault", "stop", 4), mark("fault", "kill", 10)
	d.Faults = &report.Faults{
		Marks:  []fault.Mark{stop, mark("heal", "stop", 6), kill},
		Scores: []fault.Score{{Mark: stop, ObservedS: 6}, {Mark: kill, ObservedS: 10, Whole: fault.Numbers{Back: &fault.Time{S: 3}}}},
	}
	f, ok := ByName(Of(d), "throughput")
	assert.Must(t, ok, "the throughput is missing")
	var shaded, moments []Mark
	for _, m := range f.Marks {
		switch {
		case m.Kind == Fault:
			shaded = append(shaded, m)
		case strings.HasPrefix(m.Text, "fault ") || strings.HasPrefix(m.Text, "heal "):
			moments = append(moments, m)
		}
	}
	assert.True(t, len(shaded) == 2 && shaded[0].From == 4 && shaded[0].To == 6 && shaded[1].From == 10 &&
		shaded[1].To == 13, "shaded: %+v", shaded)
	assert.True(t, len(moments) == 3 && moments[0].From == 4 && moments[0].To == 4 && moments[0].Text == "fault stop",
		"moments: %+v", moments)
	assert.True(t, strings.Contains(f.Describe(), "A fault was there from 4"), "the description lacks the fault: %s", f.Describe())
}

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
	assert.Same(t, f.Limits, []Limit{{Value: 50_000, Text: "p99 < 50 ms"}}, "limits")
	assert.True(t, len(f.Marks) == 2 && f.Marks[0].Text == "ceiling 800 to 840/s" && f.Marks[0].From == 800 && f.Marks[0].To == 840 && f.Marks[1].Text == "knee" && f.Marks[1].From == 500,
		"marks: %+v", f.Marks)
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
	assert.True(t, err == nil && strings.Contains(b.String(), ">p99 &lt; 50 ms<"), "SVG: %v", err)
}

// Several searches are overlaid; a run next to one has its own figures.
func TestLoadLatencyOfSeveral(t *testing.T) {
	figures := Of(searched("f1"), searched("f2"), measured("r1", 5, 1))
	f, ok := ByName(figures, "load-latency-response")
	assert.Must(t, ok && len(f.Marks) == 0, "got %+v", f)
	assert.True(t, slices.ContainsFunc(f.Series, func(s Series) bool { return s.Name == "f2: p99 fails" && s.Report == 1 }), "got %+v", f.Series)
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
