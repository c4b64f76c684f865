package picture

import (
	"fmt"
	"math"

	"carronade/internal/layout"
)

// Sizes in a picture, in pixels.
const (
	width         = 960.0
	plotHeight    = 240.0
	mapHeight     = 300.0
	minPlotHeight = 40.0

	fontSize    = 12.0
	titleSize   = 16.0
	lineWidth   = 1.6
	marginSide  = 16.0
	sampleWidth = 26.0 // of a sample line in the legend
)

// A drawing is a figure's layout: shapes from back to front.
type drawing struct {
	w, h   float64
	grain  float64 // points within this many pixels are joined
	shapes []shape
}

// A shape is one element of a drawing. Its classes determine its style: they are
// the SVG's classes and select the PNG's colors.
type shape struct {
	class string
	kind  kind
	paths [][]point // of lines and areas
	rects []rect    // of cells
	at    point     // of text: on its baseline
	text  string
	turn  bool // upwards
	dash  Dash
	tone  Tone
	level int // of cells
}

type kind uint8

const (
	stroke kind = iota // paths, a pixel wide
	curve              // paths of a series
	fill               // rects
	cells              // rects of a heat map, on whole pixels
	textShape
)

type point struct{ x, y float64 }

type rect struct{ x, y, w, h float64 }

// Classes of text, by anchor.
const (
	atStart  = "start"
	atMiddle = "middle"
	atEnd    = "end"
)

// parts selects the parts of a picture and its resolution: a page has a separate
// title and legend, and redraws the picture.
type parts struct {
	title, legend bool
	height        float64 // of the whole picture; 0: by the plot's default height
	grain         float64 // points within this many pixels are joined; 0: 1
}

// layOut makes the drawing of a figure.
func (f *Figure) layOut(w float64, with parts) *drawing {
	d := &drawing{w: w, grain: max(with.grain, 1)}
	y := 10.0
	if with.title {
		y += titleSize + 2
		d.text("title", atStart, marginSide, y, f.Title)
		y += 8
	}
	if with.legend {
		y = d.legend(f, y)
	}
	box := f.box(w, y)
	below := 46.0
	if f.X.Labels == nil && f.X.Label == "" {
		below -= 14
	}
	if with.height > 0 {
		box.h = max(with.height-box.y-below, minPlotHeight)
	}
	d.h = math.Ceil(box.y + box.h + below)
	f.draw(d, box)
	return d
}

func (f *Figure) box(w, y float64) rect {
	h := plotHeight
	if f.Heat != nil {
		h = mapHeight
	}
	left := 84.0
	if n := len(f.Y.Labels); n > 0 { // names are longer than numbers, and each has a row
		h = max(float64(n)*nameRow, 3*nameRow)
		for _, name := range f.Y.Labels {
			left = max(left, measureText(layout.Cut(name, maxName), fontSize)+marginSide+7)
		}
		left = min(left, w/2)
	}
	return rect{left, y + 18, w - left - marginSide, h} // room for the names of marks
}

// A row of a figure with names next to it: its height, and the most characters of its name.
const (
	nameRow = 24.0
	maxName = 60
)

func (d *drawing) add(s shape) { d.shapes = append(d.shapes, s) }

func (d *drawing) text(class, anchor string, x, y float64, text string) {
	d.add(shape{kind: textShape, class: class + " " + anchor, at: point{x, y}, text: text})
}

func (d *drawing) line(class string, a, b point) {
	d.add(shape{kind: stroke, class: class, paths: [][]point{{a, b}}})
}

// legend draws the names of the series or the colors of a heat map, and returns its
// lower end.
func (d *drawing) legend(f *Figure, y float64) float64 {
	if h := f.Heat; h != nil {
		x, top := marginSide, y
		d.text("label", atStart, x, top+11, "1")
		x += measureText("1", fontSize) + 6
		for i := range heatLevels {
			d.add(shape{kind: cells, class: "cells", level: i, rects: []rect{{math.Round(x), math.Round(top + 1), 18, 12}}})
			x += 18
		}
		text := "most in a cell, " + Format(float64(h.Count), Events) + " in all"
		d.text("label", atStart, x+6, top+11, text)
		return d.legendOfMarks(f, x+6+measureText(text, fontSize)+18, y) + 18
	}
	x := marginSide
	if len(f.Series) == 1 && f.Series[0].Name == "" {
		if len(f.MarkKinds())+len(f.Numbered()) == 0 {
			return y
		}
		return d.legendOfMarks(f, x, y) + 18
	}
	for i := range f.Series {
		s := &f.Series[i]
		name := layout.Cut(s.Name, 64)
		need := sampleWidth + 6 + measureText(name, fontSize)
		if x > marginSide && x+need > d.w-marginSide {
			x, y = marginSide, y+18
		}
		switch s.Style {
		case Bars:
			d.add(shape{kind: fill, class: "bar", tone: s.Tone, rects: []rect{{x + 6, y + 2, 12, 10}}})
		case Ranges:
			d.symbol(s, point{x + sampleWidth/2, y + 7})
		default:
			d.add(shape{kind: curve, class: "line", tone: s.Tone, dash: s.Dash, paths: [][]point{{{x, y + 7}, {x + sampleWidth, y + 7}}}})
		}
		d.text("label", atStart, x+sampleWidth+6, y+11, name)
		x += need + 18
	}
	return d.legendOfMarks(f, x, y) + 18
}

// legendOfMarks draws the names of the stretches of time behind the series, and
// returns the y of its last line.
func (d *drawing) legendOfMarks(f *Figure, x, y float64) float64 {
	for i, m := range f.Numbered()[:min(len(f.Numbered()), mostNumbered)] {
		text := layout.Cut(m.Text, 40)
		need := pillWidth(plain(i+1)) + 6 + measureText(text, fontSize)
		if x > marginSide && x+need > d.w-marginSide {
			x, y = marginSide, y+18
		}
		w := d.pill(x, y, plain(i+1))
		d.text("label", atStart, x+w+6, y+11, text)
		x += need + 18
	}
	for _, k := range f.MarkKinds() {
		need := sampleWidth + 6 + measureText(k.Name(), fontSize)
		if x > marginSide && x+need > d.w-marginSide {
			x, y = marginSide, y+18
		}
		d.stretch(k, rect{x, y + 1, sampleWidth, 13})
		d.text("label", atStart, x+sampleWidth+6, y+11, k.Name())
		x += need + 18
	}
	return y
}

// draw draws the plot.
func (f *Figure) draw(d *drawing, box rect) {
	x, y := f.scales(box)
	f.marks(d, x, box)

	below := box.y + box.h
	for _, t := range ticks(f.Y, y.lo, y.hi, max(int(box.h/40), len(f.Y.Labels))) {
		at := y.at(t.at)
		t.text = layout.Cut(t.text, maxName)
		if t.text == "" {
			d.line("axis", point{box.x - 3, at}, point{box.x, at})
			continue
		}
		d.line("grid", point{box.x, at}, point{box.x + box.w, at})
		d.text("label", atEnd, box.x-7, at+4, t.text)
	}
	end := math.Inf(-1)
	for _, t := range ticks(f.X, x.lo, x.hi, int(box.w/90)) {
		at := x.at(t.at)
		d.line("axis", point{at, below}, point{at, below + 4})
		text := layout.Cut(t.text, 24)
		half := measureText(text, fontSize) / 2
		// Omit a text that would overlap its neighbour or exceed the picture.
		if text == "" || at-half < end+6 || at+half > d.w {
			continue
		}
		end = at + half
		d.text("label", atMiddle, at, below+17, text)
	}
	d.line("axis", point{box.x, below}, point{box.x + box.w, below})
	d.line("axis", point{box.x, box.y}, point{box.x, below})
	if f.X.Label != "" && f.X.Labels == nil {
		d.text("note", atMiddle, box.x+box.w/2, below+36, f.X.Label)
	}
	if f.Y.Label != "" {
		d.add(shape{kind: textShape, class: "note middle", at: point{14, box.y + box.h/2}, text: f.Y.Label, turn: true})
	}
	if f.Heat != nil {
		f.drawHeat(d, x, y, box)
		f.drawLimits(d, x, y, box)
		return
	}
	f.drawSeries(d, x, y, box)
	f.drawLimits(d, x, y, box)
}

// scales are the scales of both axes.
func (f *Figure) scales(box rect) (x, y scale) {
	xlo, xhi, ylo, yhi := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	if h := f.Heat; h != nil {
		for i := range h.Columns {
			xlo, xhi = min(xlo, h.Columns[i].From), max(xhi, h.Columns[i].To)
		}
		ylo, yhi = h.Edges[0], h.Edges[len(h.Edges)-1]
	}
	for i := range f.Series {
		s := &f.Series[i]
		if lo, hi, ok := s.extent(f.Y.Log); ok {
			ylo, yhi = min(ylo, lo), max(yhi, hi)
		}
		xs := [][]float64{s.X}
		if s.Style == Intervals {
			xs = append(xs, s.Lo, s.Hi)
		}
		for _, of := range xs {
			for _, v := range of {
				if drawable(v, f.X.Log) {
					xlo, xhi = min(xlo, v), max(xhi, v)
				}
			}
		}
	}
	for _, l := range f.Limits {
		if f.Heat == nil && !l.OnX && yhi >= ylo && drawable(l.Value, f.Y.Log) {
			ylo, yhi = min(ylo, l.Value), max(yhi, l.Value)
		}
		if l.OnX && xhi >= xlo && drawable(l.Value, f.X.Log) {
			xlo, xhi = min(xlo, l.Value), max(xhi, l.Value*1.05)
		}
	}
	fx, fy := f.X, f.Y
	x.axis, y.axis = fx, fy
	x.lo, x.hi = domain(fx, xlo, xhi)
	y.lo, y.hi = domain(fy, ylo, yhi)
	if fx.Log && xhi > xlo { // no margins to the left and right
		x.lo, x.hi = xlo, xhi
	}
	x.a, x.b = box.x, box.x+box.w
	y.a, y.b = box.y+box.h, box.y
	return x, y
}

func (f *Figure) drawSeries(d *drawing, x, y scale, box rect) {
	bars := 0
	for i := range f.Series {
		if f.Series[i].Style == Bars {
			bars++
		}
	}
	nth := 0
	for i := range f.Series {
		s := &f.Series[i]
		if s.Style == Bars {
			d.add(shape{kind: fill, class: "bar", tone: s.Tone, rects: barsOf(s, x, y, nth, bars)})
			nth++
			continue
		}
		if s.Style == Intervals {
			d.intervals(s, x, y)
			continue
		}
		if s.Style == Ranges {
			d.ranges(s, x, y)
			continue
		}
		if s.Filled {
			d.add(shape{kind: fill, class: fmt.Sprintf("area f%d", s.Tone), tone: s.Tone, rects: areaOf(s, x, y)})
		}
		paths := thin(pathsOf(s, x, y), box, d.grain)
		if len(paths) > 0 {
			d.add(shape{kind: curve, class: "line", tone: s.Tone, dash: s.Dash, paths: paths})
		}
		if s.Style == Dots {
			var dots []rect
			for _, p := range paths {
				for _, at := range p {
					dots = append(dots, rect{at.x - 3, at.y - 3, 6, 6})
				}
			}
			d.add(shape{kind: fill, class: "bar", tone: s.Tone, rects: dots})
		}
	}
}

// intervals draws each point on its interval.
func (d *drawing) intervals(s *Series, x, y scale) {
	var lines [][]point
	var dots []rect
	for i, v := range s.X {
		if !drawable(v, x.axis.Log) || !drawable(s.Y[i], false) {
			continue
		}
		at := point{x.at(v), y.at(s.Y[i])}
		lo, hi := point{x.at(s.Lo[i]), at.y}, point{x.at(s.Hi[i]), at.y}
		lines = append(lines, []point{lo, hi}, []point{{lo.x, at.y - 4}, {lo.x, at.y + 4}}, []point{{hi.x, at.y - 4}, {hi.x, at.y + 4}})
		dots = append(dots, rect{at.x - 4, at.y - 4, 8, 8})
	}
	d.add(shape{kind: curve, class: "line", tone: s.Tone, dash: s.Dash, paths: lines})
	d.add(shape{kind: fill, class: "bar", tone: s.Tone, rects: dots})
}

// barsOf are the bars of the nth of several series with bars.
func barsOf(s *Series, x, y scale, nth, of int) []rect {
	room := math.Abs(x.at(1)-x.at(0)) * 0.7
	w := min(room/float64(of), 64)
	var out []rect
	for i, v := range s.Y {
		if !drawable(v, false) {
			continue
		}
		left := x.at(s.X[i]) - w*float64(of)/2 + w*float64(nth)
		top := y.at(v)
		out = append(out, rect{left + 1, top, max(w-2, 1), y.at(0) - top})
	}
	return out
}

// areaOf is the area between a line of steps and zero.
func areaOf(s *Series, x, y scale) []rect {
	var out []rect
	for i, v := range s.Y {
		if i+1 < len(s.X) && drawable(v, false) && v > 0 {
			left, top := x.at(s.X[i]), y.at(v)
			out = append(out, rect{left, top, x.at(s.X[i+1]) - left, y.at(0) - top})
		}
	}
	return out
}

// pathsOf are the points of a line in pixels, with a path for each part between
// gaps.
func pathsOf(s *Series, x, y scale) [][]point {
	var out [][]point
	var path []point
	for i, v := range s.Y {
		if !drawable(v, false) || !drawable(s.X[i], x.axis.Log) {
			if len(path) > 0 {
				out, path = append(out, path), nil
			}
			continue
		}
		at := point{x.at(s.X[i]), y.at(v)}
		if s.Style == Steps && len(path) > 0 {
			path = append(path, point{at.x, path[len(path)-1].y})
		}
		path = append(path, at)
	}
	if len(path) > 0 {
		out = append(out, path)
	}
	return out
}

// thin reduces the points within each column of grain pixels to the first, the
// extremes and the last, so that the line looks the same.
func thin(paths [][]point, box rect, grain float64) [][]point {
	for k, p := range paths {
		if float64(len(p)) < 2*box.w/grain {
			continue
		}
		out := p[:0]
		for i := 0; i < len(p); {
			column := math.Floor(p[i].x / grain)
			first, lo, hi, last := p[i], i, i, i
			for last+1 < len(p) && math.Floor(p[last+1].x/grain) == column {
				last++
				if p[last].y < p[lo].y {
					lo = last
				}
				if p[last].y > p[hi].y {
					hi = last
				}
			}
			a, b, end := p[min(lo, hi)], p[max(lo, hi)], p[last]
			next := last + 1
			for _, q := range [...]point{first, a, b, end} {
				if n := len(out); n == 0 || out[n-1] != q {
					out = append(out, q)
				}
			}
			i = next
		}
		paths[k] = out
	}
	return paths
}

// drawHeat draws the cells. If the picture is coarser than the map, columns are
// joined and their counts added.
func (f *Figure) drawHeat(d *drawing, x, y scale, box rect) {
	h := f.Heat
	most := max(int(box.w/(3*d.grain)), 1)
	grid := h.coarse(x.lo, x.hi, most)
	var levels [heatLevels][]rect
	for _, c := range grid.Columns {
		from, to := max(x.at(c.From), box.x), min(x.at(c.To), box.x+box.w)
		left, right := math.Round(from), math.Round(to)
		right = max(right, left+1)
		for k, r := range c.Rows {
			top, bottom := math.Round(y.at(h.Edges[r+1])), math.Round(y.at(h.Edges[r]))
			bottom = max(bottom, top+1)
			l := grid.level(c.Counts[k])
			levels[l] = append(levels[l], rect{left, top, right - left, bottom - top})
		}
	}
	for l, rects := range levels {
		if len(rects) > 0 {
			d.add(shape{kind: cells, class: "cells", level: l, rects: rects})
		}
	}
}

// coarse returns the map with at most most columns between two times.
func (h *Heat) coarse(lo, hi float64, most int) *Heat {
	if len(h.Columns) <= most {
		return h
	}
	out := &Heat{Edges: h.Edges}
	step := (hi - lo) / float64(most)
	for i := range h.Columns {
		c := &h.Columns[i]
		k := math.Floor(((c.From+c.To)/2 - lo) / step)
		from := lo + k*step
		n := len(out.Columns)
		if n == 0 || out.Columns[n-1].From != from {
			out.Columns = append(out.Columns, Column{From: from, To: from + step})
			n++
		}
		out.Columns[n-1].merge(c)
	}
	for i := range out.Columns {
		for _, n := range out.Columns[i].Counts {
			out.Most = max(out.Most, n)
			out.Count += n
		}
	}
	return out
}

// merge adds the counts of o.
func (c *Column) merge(o *Column) {
	rows, counts := make([]int, 0, len(c.Rows)+len(o.Rows)), make([]uint64, 0, len(c.Rows)+len(o.Rows))
	i, k := 0, 0
	for i < len(c.Rows) || k < len(o.Rows) {
		switch {
		case k == len(o.Rows) || i < len(c.Rows) && c.Rows[i] < o.Rows[k]:
			rows, counts = append(rows, c.Rows[i]), append(counts, c.Counts[i])
			i++
		case i == len(c.Rows) || o.Rows[k] < c.Rows[i]:
			rows, counts = append(rows, o.Rows[k]), append(counts, o.Counts[k])
			k++
		default:
			rows, counts = append(rows, c.Rows[i]), append(counts, c.Counts[i]+o.Counts[k])
			i++
			k++
		}
	}
	c.Rows, c.Counts = rows, counts
}
