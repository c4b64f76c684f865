package report

import (
	"math"
	"slices"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A Backlog tracks, over the rows of a series, the events that were due and not done, and the
// minimum age of the oldest one. During a stall nothing is answered, so no times are measured
// until it ends, and only the backlog shows it.
//
// In whatever order events were done, the k-th oldest event that is due and not done (from 0)
// is at most number done + k of the schedule, since otherwise more events than done would
// precede it. So it was due by the end of the row in which that number was offered. The bound
// is accurate to the length of a row.
type Backlog struct {
	ends    []float64
	offered []uint64 // up to the end of each row
	done    uint64
}

// Add appends a row that ends at end, in seconds after the start of the run. Rows of the same
// moment, where phases meet, are appended one after another.
func (b *Backlog) Add(end float64, c *measure.Counts) {
	all := c.Offered
	if n := len(b.offered); n > 0 {
		all += b.offered[n-1]
	}
	b.ends, b.offered = append(b.ends, end), append(b.offered, all)
	b.done += c.Acked + c.Failed + c.Unknown + c.Dropped + c.Unsent
}

// At returns percentile p of response times at the end of the last row, over the answers of
// the row and the events waiting at its end, at their age. It is never less than the row's own
// value; false if there is neither.
func (b *Backlog) At(p float64, row *measure.Summary) (measure.Value, bool) {
	v, ok := row.At(p)
	if p == 100 {
		v, ok = row.Largest()
	}
	if row == nil || len(b.ends) == 0 {
		return v, ok
	}
	last := len(b.ends) - 1
	waiting := b.offered[last] - min(b.done, b.offered[last])
	all := row.Count + row.Censored + waiting
	// The number of values at or beyond the percentile: its rank, from the top.
	beyond := all - min(uint64(math.Ceil(p/100*float64(all)*(1-1e-14))), all) + 1
	if waiting == 0 || beyond > waiting {
		return v, ok
	}
	number := b.done + beyond - 1
	i, _ := slices.BinarySearch(b.offered, number+1)
	age := b.ends[last] - b.ends[min(i, last)]
	if d := units.Seconds(age); d > v.D {
		return measure.Value{P: p, D: d, AtLeast: true}, true
	}
	return v, ok
}

// Ages are the minimum ages, at the end of the last row, of the events that were due after a
// moment and are not done; nil if there are none.
func (b *Backlog) Ages(after float64) *measure.Histogram {
	if len(b.ends) == 0 {
		return nil
	}
	var h *measure.Histogram
	end, from := b.ends[len(b.ends)-1], b.done
	for i, offered := range b.offered {
		if offered <= from {
			continue
		}
		if b.ends[i] > after {
			if h == nil {
				h = measure.NewHistogram()
			}
			h.RecordN(units.Seconds(end-b.ends[i]), offered-from)
		}
		from = offered
	}
	return h
}

// responses are percentile p of the response times of each interval including waiting events,
// by the interval's start; nil if nothing is due or answered.
func (d *Document) responses(p float64) map[float64]measure.Value {
	if d.Mode != load.OpenLoop || d.Totals.RateOf != RateAcked {
		return nil
	}
	out := map[float64]measure.Value{}
	var b Backlog
	for i := 0; i < len(d.Intervals); {
		from := d.Intervals[i].StartS
		var row *measure.Summary // of those of one moment, that with more events
		for ; i < len(d.Intervals) && d.Intervals[i].StartS == from; i++ {
			iv := &d.Intervals[i]
			b.Add(iv.EndS, &iv.Counts)
			if r := iv.Response; r != nil && (row == nil || r.Count+r.Censored > row.Count+row.Censored) {
				row = r
			}
		}
		if v, ok := b.At(p, row); ok {
			out[from] = v
		}
	}
	return out
}
