package picture

import (
	"cmp"
	"math"
	"slices"
	"time"

	"carronade/measure"
)

// heatRows is the number of rows of a heat map.
const heatRows = 100

// heat adds a map of a time for each report that has it. Maps of the same time have
// the same rows, so that they can be compared side by side.
// The rows' edges form a geometric sequence from the smallest to the largest
// observation, including both. A stretch of time without observations is empty, not
// zero, and the counts of all cells add up to the number of observations.
func (p *plot) heat(key string) {
	i := slices.IndexFunc(overTimes, func(t overTime) bool { return t.key == key })
	name, title := overTimes[i].name, overTimes[i].all
	type stack struct {
		run    int
		r      *run
		from   []float64
		to     []float64
		counts []*measure.Histogram
	}
	var stacks []stack
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, r := range p.runs {
		s := stack{run: i, r: r}
		for k := range r.Intervals {
			iv := &r.Intervals[k]
			if !(iv.EndS > iv.StartS) || math.IsInf(iv.EndS-iv.StartS, 0) {
				continue
			}
			h := iv.Histogram(key)
			if h.Count() == 0 {
				continue
			}
			s.from, s.to, s.counts = append(s.from, iv.StartS), append(s.to, iv.EndS), append(s.counts, h)
			h.EachBucket(func(top time.Duration, _ uint64) {
				v := heatValue(top, h)
				lo, hi = min(lo, v), max(hi, v)
			})
		}
		if len(s.counts) > 0 {
			stacks = append(stacks, s)
		}
	}
	if len(stacks) == 0 {
		return
	}
	edges := heatEdges(lo, hi)
	for n, s := range stacks {
		h := &Heat{Edges: edges}
		for k, counts := range s.counts {
			h.count(s.from[k], s.to[k], counts)
		}
		h.sort()
		f := p.overTime(name+"-map", title, "All of them: how many took how long, and when. Darker (in the dark theme: lighter) is more.",
			Axis{Label: "time", Unit: Micros, Log: true})
		f.Limits = p.limits(key, "", false)
		if p.several() {
			f.Title += ": " + s.r.name
			if n > 0 {
				f.Name += "-" + plain(n+1)
			}
		}
		f.Heat = h
		p.add(f)
	}
}

// heatValue is the value of an observation: the top of its histogram cell, at most
// the maximum and, since the axis is logarithmic, at least a microsecond.
func heatValue(top time.Duration, h *measure.Histogram) float64 {
	return max(measure.Micros(min(top, h.Max(), measure.Highest)), 1)
}

// heatEdges are the bounds of the rows from lo to hi. If all observations are equal
// there is one row.
func heatEdges(lo, hi float64) []float64 {
	if !(hi > lo) {
		return []float64{lo / 1.01, lo}
	}
	// The lowest row includes lo itself. If rows were narrower than the histograms'
	// cells, some of them would always be empty.
	rows := min(heatRows, max(1, int(math.Log(hi/lo)/math.Log(1.002))))
	ratio := math.Pow(hi/lo, 1/float64(rows))
	edges := make([]float64, rows+1)
	for i := range edges {
		edges[i] = lo * math.Pow(ratio, float64(i))
	}
	edges[rows] = hi
	return edges
}

// row is the row of v.
func (h *Heat) row(v float64) int {
	i, found := slices.BinarySearch(h.Edges, v)
	if !found || i > 0 {
		i-- // Edges[i] < v, or v is the upper edge of the row before
	}
	return min(max(i, 0), len(h.Edges)-2)
}

// count adds a histogram of a stretch of time.
func (h *Heat) count(from, to float64, of *measure.Histogram) {
	c := h.column(from, to)
	of.EachBucket(func(top time.Duration, n uint64) {
		r := h.row(heatValue(top, of))
		i, found := slices.BinarySearch(c.Rows, r)
		if !found {
			c.Rows, c.Counts = slices.Insert(c.Rows, i, r), slices.Insert(c.Counts, i, 0)
		}
		c.Counts[i] += n
		h.Count += n
		h.Most = max(h.Most, c.Counts[i])
	})
}

// column finds the column of a stretch of time, or adds it. Overlapping stretches
// of different phases share a column.
func (h *Heat) column(from, to float64) *Column {
	for i := len(h.Columns) - 1; i >= 0 && i >= len(h.Columns)-3; i-- {
		if c := &h.Columns[i]; from < c.To-1e-9 && to > c.From+1e-9 {
			c.From, c.To = min(c.From, from), max(c.To, to)
			return c
		}
	}
	h.Columns = append(h.Columns, Column{From: from, To: to})
	return &h.Columns[len(h.Columns)-1]
}

func (h *Heat) sort() {
	slices.SortFunc(h.Columns, func(a, b Column) int { return cmp.Compare(a.From, b.From) })
}

// HeatLevels is the number of colors of a heat map.
const HeatLevels = heatLevels

const heatLevels = 10

// level is the color of a count, from 0. It is logarithmic relative to the largest
// count, so that a count of one is visible next to a million.
func (h *Heat) level(n uint64) int {
	if h.Most <= 1 || n == 0 {
		return heatLevels - 1
	}
	l := int(math.Log(float64(n)) / math.Log(float64(h.Most)) * heatLevels)
	return min(max(l, 0), heatLevels-1)
}
