package picture

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Describe describes the figure in text, for readers who cannot see it.
func (f *Figure) Describe() string {
	var b strings.Builder
	b.WriteString(f.Note)
	part := func(format string, a ...any) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, format, a...)
	}
	if h := f.Heat; h != nil {
		lo, hi := h.Edges[0], h.Edges[len(h.Edges)-1]
		part("%s in %d columns, from %s to %s.", Format(float64(h.Count), Events), len(h.Columns), Format(lo, f.Y.Unit), Format(hi, f.Y.Unit))
	}
	for _, l := range f.Limits {
		part("Limit: %s.", l.Text)
	}
	for i, m := range f.Numbered() {
		part("Mark %d at %s: %s.", i+1, Format(m.From, Seconds), m.Text)
	}
	stalls := 0
	for _, m := range f.Marks {
		switch m.Kind {
		case OtherPhase:
			if !f.Shared && m.Text != "" {
				part("%s.", m.Text)
			}
		case Stall:
			if stalls++; stalls <= maxStalls {
				part("The system answered nothing from %s to %s.", Format(m.From, Seconds), Format(m.To, Seconds))
			}
		case Fault:
			part("A fault was there from %s to %s.", Format(m.From, Seconds), Format(m.To, Seconds))
		case Freeze:
			part("The generator did not run from %s to %s.", Format(m.From, Seconds), Format(m.To, Seconds))
		}
	}
	if n := stalls - maxStalls; n > 0 {
		part("There were %d more stalls.", n)
	}
	for i := range f.Series {
		s := &f.Series[i]
		lo, hi, ok := s.extent(false)
		if !ok {
			continue
		}
		name := s.Name
		if name != "" {
			name += ": "
		}
		switch {
		case s.Style == Intervals:
			part("%s%s.", name, strings.Join(f.intervalsOf(s), ", "))
		case s.Style == Ranges:
			part("%s%s.", name, strings.Join(f.rangesOf(s), ", "))
		case f.X.Unit == Percentile:
			part("%s%s.", name, strings.Join(f.percentilesOf(s), ", "))
		case f.X.Labels != nil:
			var each []string
			for k, v := range s.Y {
				if n := int(s.X[k]); n >= 0 && n < len(f.X.Labels) && k < 20 {
					each = append(each, f.X.Labels[n]+" "+Format(v, f.Y.Unit))
				}
			}
			part("%s%s.", name, strings.Join(each, ", "))
		default:
			part("%s%s to %s.", name, Format(lo, f.Y.Unit), Format(hi, f.Y.Unit))
		}
	}
	return b.String()
}

// intervalsOf are the points of a series with intervals, by their names.
func (f *Figure) intervalsOf(s *Series) []string {
	var out []string
	for i, v := range s.X {
		if n := int(s.Y[i]); n >= 0 && n < len(f.Y.Labels) {
			text := f.Y.Labels[n] + " " + Format(v, f.X.Unit)
			if s.Lo[i] < s.Hi[i] {
				text += fmt.Sprintf(" (%s to %s)", Format(s.Lo[i], f.X.Unit), Format(s.Hi[i], f.X.Unit))
			}
			out = append(out, text)
		}
	}
	return out
}

// maxStalls is how many stalls are listed individually.
const maxStalls = 10

// statedPercentiles are percentiles, as 1/(1-p).
var statedPercentiles = []float64{2, 10, 100, 1000, 10_000}

// exactPercentiles are those of tables.
var exactPercentiles = append(slices.Clone(statedPercentiles), 1e5, 1e6)

// rounding is how far, as a share, the place of a percentile on the axis may be off.
const rounding = 1e-9

func (f *Figure) percentilesOf(s *Series) []string {
	var out []string
	for _, x := range statedPercentiles {
		if text, ok := f.percentileOf(s, x); ok {
			out = append(out, percentile(x)+" "+text)
		}
	}
	if n := len(s.Y); n > 0 && s.Style == Steps {
		out = append(out, "max "+Format(s.Y[n-1], f.Y.Unit))
	}
	return out
}

// percentileOf is a line's value at a percentile: the value of a curve's step, or
// of a point exactly there.
func (f *Figure) percentileOf(s *Series, x float64) (string, bool) {
	if s.Style == Steps {
		v, ok := s.stepAt(x * (1 - rounding))
		return Format(v, f.Y.Unit), ok
	}
	for i, at := range s.X {
		if math.Abs(at-x) > 1e-9*x || !drawable(s.Y[i], false) {
			continue
		}
		text := Format(s.Y[i], f.Y.Unit)
		if s.AtLeast != nil && s.AtLeast[i] {
			text = ">= " + text
		}
		return text, true
	}
	return "", false
}

// stepAt is the value of a line of steps at x: that of the last point before it,
// since a step extends to the right of its point.
func (s *Series) stepAt(x float64) (float64, bool) {
	if len(s.X) == 0 || x < s.X[0] || x > s.X[len(s.X)-1] {
		return 0, false
	}
	i, found := slices.BinarySearch(s.X, x)
	if !found || i > 0 && found {
		i--
	}
	return s.Y[max(i, 0)], true
}

// A Table contains the numbers of a figure.
type Table struct {
	Head []string
	Rows [][]string
	Note string // explains the rows if necessary
}

// Table returns the numbers of the figure in about most rows at most. Further rows
// are merged: rates by their mean, other values by their maximum. The head of the
// first column describes its times: the middles of intervals for values measured
// over intervals, otherwise the ends of rows.
func (f *Figure) Table(most int) Table {
	switch {
	case f.Heat != nil:
		return f.heatTable(most)
	case f.X.Unit == Percentile:
		return f.percentileTable()
	case f.hasRanges():
		return f.rangesTable()
	}
	t := Table{Head: []string{f.X.Label}}
	switch {
	case f.Middles:
		t.Head[0] = "middle of interval"
	case f.Shared:
		t.Head[0] = "until"
	}
	var xs []float64
	for i := range f.Series {
		t.Head = append(t.Head, f.Series[i].Name)
		if len(f.Series[i].X) > len(xs) {
			xs = f.Series[i].X
		}
	}
	if len(xs) == 0 {
		return t
	}
	bins := bin(xs, most)
	if len(bins) < len(xs) {
		t.Note = "Neighbours are merged: the mean of rates, the maximum of the rest."
		if f.Middles {
			t.Head[0] = "middle of the last interval"
		}
	}
	from := math.Inf(-1)
	for _, to := range bins {
		label := Format(to, f.X.Unit)
		if n := int(to); f.X.Labels != nil && n >= 0 && n < len(f.X.Labels) {
			label = f.X.Labels[n]
		}
		row := []string{label}
		some := false
		for i := range f.Series {
			v, least := f.Series[i].joined(from, to, rateUnit(f.Y.Unit))
			text := Format(v, f.Y.Unit)
			if math.IsNaN(v) {
				text = ""
			}
			some = some || text != ""
			if least {
				text = ">= " + text
			}
			row = append(row, text)
		}
		if some {
			t.Rows = append(t.Rows, row)
		}
		from = to
	}
	return t
}

func rateUnit(u Unit) bool { return u == Cores || strings.HasSuffix(string(u), "/s") }

// bin groups neighbours into at most most groups and returns their upper ends.
func bin(xs []float64, most int) []float64 {
	per := (len(xs) + most - 1) / most
	var out []float64
	for i := per - 1; i < len(xs); i += per {
		out = append(out, xs[i])
	}
	if n := len(xs); len(out) == 0 || out[len(out)-1] != xs[n-1] {
		out = append(out, xs[n-1])
	}
	// Other lines may have a point slightly after the last one.
	out[len(out)-1] = math.Nextafter(out[len(out)-1], math.Inf(1))
	return out
}

// joined is the merged value of a series after from and up to to.
func (s *Series) joined(from, to float64, mean bool) (v float64, least bool) {
	v = math.NaN()
	n := 0.0
	for i, x := range s.X {
		if !(x > from) || x > to || !drawable(s.Y[i], false) {
			continue
		}
		switch {
		case n == 0:
			v = s.Y[i]
		case mean:
			v += s.Y[i]
		default:
			v = max(v, s.Y[i])
		}
		least = least || s.AtLeast != nil && s.AtLeast[i]
		n++
	}
	if mean && n > 0 {
		v /= n
	}
	return v, least
}

func (f *Figure) percentileTable() Table {
	t := Table{Head: []string{"percentile"}}
	for i := range f.Series {
		t.Head = append(t.Head, f.Series[i].Name)
	}
	for _, x := range exactPercentiles {
		row, some := []string{percentile(x)}, false
		for i := range f.Series {
			text := ""
			if v, ok := f.percentileOf(&f.Series[i], x); ok {
				text, some = v, true
			}
			row = append(row, text)
		}
		if some {
			t.Rows = append(t.Rows, row)
		}
	}
	row, some := []string{"max"}, false
	for i := range f.Series {
		text := ""
		if n := len(f.Series[i].Y); n > 0 && f.Series[i].Style == Steps {
			text, some = Format(f.Series[i].Y[n-1], f.Y.Unit), true
		}
		row = append(row, text)
	}
	if some {
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (f *Figure) heatTable(most int) Table {
	h := f.Heat
	t := Table{Head: []string{"until", "count", "most of them near", "the longest up to"}}
	n := len(h.Columns)
	lo, hi := h.Columns[0].From, h.Columns[n-1].To
	for _, c := range h.coarse(lo, hi, most).Columns {
		count, mode := uint64(0), 0
		for k, v := range c.Counts {
			count += v
			if v > c.Counts[mode] {
				mode = k
			}
		}
		t.Rows = append(t.Rows, []string{
			Format(c.To, f.X.Unit), Format(float64(count), Events),
			Format(h.Edges[c.Rows[mode]+1], f.Y.Unit), Format(h.Edges[c.Rows[len(c.Rows)-1]+1], f.Y.Unit),
		})
	}
	return t
}
