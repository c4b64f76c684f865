package picture

import (
	"bytes"
	"strings"
	"testing"

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
