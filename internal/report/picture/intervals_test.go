package picture

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
)

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

// The description of a line of points contains the percentiles at its points, marks
// lower bounds, and has no maximum.
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

// A fault is shaded until it was mended, or until the limit holds again, and its moments have names.
func TestFaultMarks(t *testing.T) {
	d := measured("a", 20, 1)
	mark := func(kind, name string, at float64) fault.Mark { return fault.Mark{Kind: kind, Name: name, AtS: at} }
	stop, kill := mark("fault", "stop", 4), mark("fault", "kill", 10)
	d.Faults = &report.Faults{
		Marks: []fault.Mark{stop, mark("heal", "stop", 6), kill},
		Scores: []fault.Score{
			{Mark: stop, ObservedS: 6},
			{Mark: kill, ObservedS: 10, Whole: fault.Numbers{Back: &fault.Time{S: 3}}},
		},
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
	assert.True(t, strings.Contains(f.Describe(), "A fault was there from 4"),
		"the description lacks the fault: %s", f.Describe())
}
