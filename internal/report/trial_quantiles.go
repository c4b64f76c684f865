package report

import (
	"math"
	"slices"
	"sort"
	"time"

	"carronade/internal/verdict/find"
	"carronade/measure"
)

// quantiles are p50 and the limited percentiles of the limited times of a trial. Events that
// were lost count as longer than all others.
func quantiles(o *find.Options, t find.Trial, d *Document) []find.Quantile {
	var out []find.Quantile
	var of distribution
	for _, l := range o.Times {
		name := timeOf(l, d)
		if of.name != name {
			of = distributionOf(name, t, d)
		}
		for _, q := range []float64{0.5, l.Quantile} {
			seen := slices.ContainsFunc(out, func(have find.Quantile) bool { return have.Of == name && have.P == percent(q) })
			if v, ok := of.quantile(q); ok && !seen {
				out = append(out, v)
			}
		}
	}
	return out
}

// timeOf is the name of the time of a limit.
func timeOf(l find.TimeLimit, d *Document) string {
	if l.Of == "" {
		return d.MainTime().Name
	}
	return l.Of
}

// A distribution is that of a time in a trial, by slots.
type distribution struct {
	name  string
	trial find.Trial
	slots []slotValues
	all   []time.Duration // the values of all slots, rising and each once
}

// slotValues are the values of a slot.
type slotValues struct {
	events, lost uint64
	tops         []time.Duration // rising
	upTo         []uint64        // how many events are at most the top
}

func distributionOf(name string, t find.Trial, d *Document) distribution {
	out := distribution{name: name, trial: t, slots: make([]slotValues, slotsOf(t))}
	values := make([]*measure.Histogram, len(out.slots))
	eachSlot(t, d, func(i int, iv *Interval, lost uint64) {
		out.slots[i].events += iv.Offered
		out.slots[i].lost += lostOf(name, iv, lost)
		if h := iv.Histogram(name); h != nil {
			if values[i] == nil {
				values[i] = measure.NewHistogram()
			}
			values[i].Merge(h)
		}
	})
	for i, h := range values {
		if h == nil {
			continue
		}
		s, n := &out.slots[i], uint64(0)
		h.EachBucket(func(top time.Duration, k uint64) {
			if n += k; k > 0 {
				s.tops, s.upTo = append(s.tops, top), append(s.upTo, n)
			}
		})
		out.all = append(out.all, s.tops...)
	}
	slices.Sort(out.all)
	out.all = slices.Compact(out.all)
	return out
}

// over is the number of events that took longer than a time.
func (s *slotValues) over(x time.Duration) uint64 {
	if len(s.tops) == 0 {
		return s.lost
	}
	all := s.upTo[len(s.upTo)-1]
	if i := sort.Search(len(s.tops), func(i int) bool { return s.tops[i] > x }); i > 0 {
		all -= s.upTo[i-1]
	}
	return all + s.lost
}

// quantile is a quantile with its interval: the limits at which the trial would just not fail
// and just hold.
func (d *distribution) quantile(q float64) (v find.Quantile, ok bool) {
	if len(d.all) == 0 {
		return v, false
	}
	o := &find.Options{Times: []find.TimeLimit{{Quantile: q}}}
	slots, over := make([]find.Slot, len(d.slots)), make([]uint64, len(d.slots))
	first := func(enough func(share, least, most float64) bool) time.Duration {
		i := sort.Search(len(d.all)-1, func(i int) bool {
			for k := range d.slots {
				over[k] = d.slots[k].over(d.all[i])
				slots[k] = find.Slot{Events: d.slots[k].events, Over: over[k : k+1]}
			}
			return enough(o.Late(0, find.Outcome{Trial: d.trial, Slots: slots}))
		})
		return d.all[i] // the largest one if none is enough
	}
	allowed := 1 - q
	v = find.Quantile{Of: d.name, P: percent(q)}
	v.At = first(func(share, _, _ float64) bool { return share <= allowed })
	v.Least = first(func(_, least, _ float64) bool { return least <= allowed })
	v.Most = first(func(_, _, most float64) bool { return most <= allowed })
	return v, true
}

// percent is a quantile as a percentile, without the error of the multiplication.
func percent(q float64) float64 { return math.Round(q*1e8) / 1e6 }
