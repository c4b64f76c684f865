package picture

import (
	"cmp"
	"fmt"
	"slices"
)

// A Symbol is the shape of points, so that series do not differ by color alone.
type Symbol uint8

// The symbols.
const (
	Square Symbol = iota
	Cross
	Diamond
	Dot // small
	symbols
)

// paths are the lines of a symbol; none: it is filled.
func (s Symbol) paths(at point) [][]point {
	const r = 4.5
	switch s {
	case Cross:
		return [][]point{{{at.x - r, at.y - r}, {at.x + r, at.y + r}}, {{at.x - r, at.y + r}, {at.x + r, at.y - r}}}
	case Diamond:
		return [][]point{{{at.x, at.y - r}, {at.x + r, at.y}, {at.x, at.y + r}, {at.x - r, at.y}, {at.x, at.y - r}}}
	}
	return nil
}

// rect is the area of a symbol that is filled.
func (s Symbol) rect(at point) (rect, bool) {
	switch s {
	case Square:
		return rect{at.x - 4, at.y - 4, 8, 8}, true
	case Dot:
		return rect{at.x - 2.5, at.y - 2.5, 5, 5}, true
	}
	return rect{}, false
}

// Sample is a path of the symbol for a legend, and whether it is filled.
func (s Symbol) Sample() (path string, filled bool) {
	at := point{14, 6}
	if r, ok := s.rect(at); ok {
		return rectText([]rect{r}), true
	}
	return pathText(s.paths(at)), false
}

// symbol draws symbols at points.
func (d *drawing) symbol(s *Series, points ...point) {
	var lines [][]point
	var dots []rect
	for _, at := range points {
		lines = append(lines, s.Symbol.paths(at)...)
		if r, ok := s.Symbol.rect(at); ok {
			dots = append(dots, r)
		}
	}
	if len(lines) > 0 {
		d.add(shape{kind: curve, class: "line", tone: s.Tone, paths: lines})
	}
	if len(dots) > 0 {
		d.add(shape{kind: fill, class: "bar", tone: s.Tone, rects: dots})
	}
}

// ranges draws each point on its interval of Y.
func (d *drawing) ranges(s *Series, x, y scale) {
	var lines [][]point
	var points []point
	for i, v := range s.Y {
		if !drawable(v, y.axis.Log) {
			continue
		}
		at := point{x.at(s.X[i]), y.at(v)}
		lo, hi := y.at(s.Lo[i]), y.at(s.Hi[i])
		lines = append(lines, []point{{at.x, lo}, {at.x, hi}}, []point{{at.x - 3, lo}, {at.x + 3, lo}}, []point{{at.x - 3, hi}, {at.x + 3, hi}})
		points = append(points, at)
	}
	d.add(shape{kind: curve, class: "line", tone: s.Tone, paths: lines})
	d.symbol(s, points...)
}

// rangesOf are the points of a series with ranges.
func (f *Figure) rangesOf(s *Series) []string {
	var out []string
	for i, x := range s.X {
		out = append(out, fmt.Sprintf("%s at %s (%s to %s)", Format(s.Y[i], f.Y.Unit), Format(x, f.X.Unit), Format(s.Lo[i], f.Y.Unit), Format(s.Hi[i], f.Y.Unit)))
	}
	return out
}

// hasRanges reports whether points of the figure have intervals of Y.
func (f *Figure) hasRanges() bool {
	return slices.ContainsFunc(f.Series, func(s Series) bool { return s.Style == Ranges })
}

// rangesTable has a row for each point with an interval.
func (f *Figure) rangesTable() Table {
	t := Table{Head: []string{f.X.Label, "", f.Y.Label, "from", "to"}}
	type at struct {
		x   float64
		row []string
	}
	var all []at
	for i := range f.Series {
		s := &f.Series[i]
		if s.Style != Ranges {
			continue
		}
		for k, x := range s.X {
			all = append(all, at{x, []string{Format(x, f.X.Unit), s.Name, Format(s.Y[k], f.Y.Unit), Format(s.Lo[k], f.Y.Unit), Format(s.Hi[k], f.Y.Unit)}})
		}
	}
	slices.SortStableFunc(all, func(a, b at) int { return cmp.Compare(a.x, b.x) })
	for _, a := range all {
		t.Rows = append(t.Rows, a.row)
	}
	return t
}
