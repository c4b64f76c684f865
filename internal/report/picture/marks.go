package picture

import (
	"slices"

	"carronade/internal/layout"
)

// marks draws the marks, behind everything else.
func (f *Figure) marks(d *drawing, x scale, box rect) {
	var written [][2]float64 // where texts are
	for _, m := range f.Marks {
		from, to := max(x.at(m.From), box.x), min(x.at(m.To), box.x+box.w)
		switch {
		case to < box.x || from > box.x+box.w:
			continue
		case m.From == m.To:
			d.line("mark", point{from, box.y}, point{from, box.y + box.h})
		default:
			d.stretch(m.Kind, rect{from, box.y, max(to-from, 1), box.h})
		}
		if m.Text == "" || f.Shared { // those of a time axis are numbered
			continue
		}
		text := measureText(m.Text, fontSize)
		begin := max(min(from, box.x+box.w-text), 0)
		if slices.ContainsFunc(written, func(w [2]float64) bool { return begin < w[1] && begin+text > w[0] }) {
			continue
		}
		written = append(written, [2]float64{begin, begin + text + 6})
		d.text("note", atStart, begin, box.y-5, m.Text)
	}
	for _, l := range numbersAt(f.Numbered(), x, box) {
		d.pill(l.x, box.y-16, l.text)
	}
	for _, m := range f.Marks { // a stall covers the fault that caused it
		from, to := max(x.at(m.From), box.x), min(x.at(m.To), box.x+box.w)
		if m.Kind == Fault && to >= from {
			d.faultEdge(rect{from, box.y, max(to-from, 1), box.h})
		}
	}
}

// A number is the number of a mark, or the numbers of several that are too close for their own.
type number struct {
	x           float64 // its left end
	first, last int
	text        string
}

// mostNumbered limits the texts of marks in the legend of a picture.
const mostNumbered = 12

// numbersAt places the numbers of marks above a plot. Where they would overlap they are joined: "3-5".
func numbersAt(marks []Mark, x scale, box rect) []number {
	var out []number
	for i, m := range marks {
		at := x.at(m.From)
		if at < box.x || at > box.x+box.w {
			continue
		}
		n := number{first: i + 1, last: i + 1}
		for {
			n.text = plain(n.first)
			if n.last > n.first {
				n.text += "-" + plain(n.last)
			}
			w := pillWidth(n.text)
			n.x = max(min((x.at(marks[n.first-1].From)+at-w)/2, box.x+box.w-w), box.x-w/2)
			k := len(out) - 1
			if k < 0 || out[k].x+pillWidth(out[k].text)+3 <= n.x {
				break
			}
			n.first, out = out[k].first, out[:k]
		}
		out = append(out, n)
	}
	return out
}

func pillWidth(text string) float64 { return measureText(text, fontSize) + 6 }

// pill draws a number on a small shape, and returns its width.
func (d *drawing) pill(x, y float64, text string) float64 {
	w := pillWidth(text)
	d.add(shape{kind: fill, class: "pill", rects: []rect{{x, y, w, 14}}})
	d.text("inverse", atMiddle, x+w/2, y+11, text)
	return w
}

// edge is the height of a stretch's edge.
const edge = 4

// stretch draws a stretch of time, with its edge.
func (d *drawing) stretch(k MarkKind, r rect) {
	if k == Freeze { // below the edge of a stall around it
		r.w, r.y, r.h = max(r.w, 2), r.y+edge, r.h-edge
	}
	d.add(shape{kind: fill, class: k.Class(), rects: []rect{r}})
	switch k {
	case Stall:
		d.add(shape{kind: fill, class: "bar", tone: k.Tone(), rects: []rect{{r.x, r.y, r.w, edge}}})
	case Freeze:
		d.add(shape{kind: fill, class: "bar", tone: k.Tone(), rects: []rect{{r.x, r.y + r.h - edge, r.w, edge}}})
	case Fault:
		d.faultEdge(r)
	}
}

// faultEdge draws the edge of a fault, below that of a stall.
func (d *drawing) faultEdge(r rect) {
	d.add(shape{kind: fill, class: "bar", tone: Fault.Tone(), rects: []rect{{r.x, r.y + edge, r.w, edge}}})
}

// drawLimits draws the limits with their texts, which stand next to each other where their lines are close.
func (f *Figure) drawLimits(d *drawing, x, y scale, box rect) {
	var placed []rect
	for _, l := range f.Limits {
		text := layout.Cut(l.Text, 40)
		w := measureText(text, fontSize)
		var at rect
		if l.OnX {
			v := x.at(l.Value)
			if v < box.x || v > box.x+box.w {
				continue
			}
			d.line("limit", point{v, box.y}, point{v, box.y + box.h})
			at = rect{v + 5, box.y + 14, w, 13}
			if at.x+w > box.x+box.w {
				at.x = v - 5 - w
			}
			for slices.ContainsFunc(placed, at.meets) {
				at.y += 14
			}
		} else {
			v := y.at(l.Value)
			if v < box.y-1 || v > box.y+box.h+1 {
				continue
			}
			d.line("limit", point{box.x, v}, point{box.x + box.w, v})
			at = rect{box.x + box.w - w - 4, v - 5, w, 13}
			if at.y-10 < box.y {
				at.y = v + 13
			}
			for slices.ContainsFunc(placed, at.meets) {
				at.x -= 8
			}
		}
		placed = append(placed, at)
		d.text("label", atStart, at.x, at.y, text)
	}
}

func (r rect) meets(o rect) bool {
	return r.x < o.x+o.w+6 && o.x < r.x+r.w+6 && r.y < o.y+o.h && o.y < r.y+r.h
}
