package report

import (
	"math"
	"slices"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A Backlog follows, over the rows of a series, the events that were due and not
// done, and how long the oldest of them had been waiting at least. In a stall
// nothing is answered, so that no time is measured until it is over: what waits
// is all there is to see of it.
//
// Whatever the order in which events were done, of those due the k-th oldest
// that is not (from 0) is no later in the schedule than number done + k: else
// more than were done would be before it. So it was due by the end of the row in
// which that number was offered. It is a lower bound, to the length of a row.
type Backlog struct {
	ends    []float64
	offered []uint64 // up to the end of each row
	done    uint64
}

// Add appends a row, which ends so many seconds after the start of the run. Rows
// of the same moment, where phases meet, are appended one after another.
func (b *Backlog) Add(end float64, c *measure.Counts) {
	all := c.Offered
	if n := len(b.offered); n > 0 {
		all += b.offered[n-1]
	}
	b.ends, b.offered = append(b.ends, end), append(b.offered, all)
	b.done += c.Acked + c.Failed + c.Unknown + c.Dropped + c.Unsent
}

// At returns percentile p of response times as somebody sees them at the end of
// the last row that was added: of the answers that came in it, and of what was
// waiting at its end, at its age. That is what the row says, where it is more
// than that; false where neither says anything.
func (b *Backlog) At(p float64, row *measure.Summary) (measure.Value, bool) {
	v, ok := row.At(p)
	if p == 100 && !row.IsEmpty() && row.Count > 0 {
		v, ok = measure.Value{P: p, D: time.Duration(row.Max * 1e3)}, true
	}
	if row == nil || len(b.ends) == 0 {
		return v, ok
	}
	last := len(b.ends) - 1
	waiting := b.offered[last] - min(b.done, b.offered[last])
	all := row.Count + row.Censored + waiting
	// How many are at or beyond the percentile: its rank, from the top.
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

// responses are percentile p of the response times of each interval, with what
// waited at its end, by when it began; nil where nothing is due, or answered.
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
