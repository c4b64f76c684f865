package run

import (
	"sort"
	"time"

	"carronade/internal/run/ledger"
	"carronade/internal/verdict/fault"
	"carronade/load"
)

// deliver adds to the scores of faults what the check of the delivery found of the events due
// around each.
func (m *marking) deliver(out *outcome, all readers, of load.Partitioner) {
	if m == nil || out.faults == nil || out.ledger == nil || len(out.faults.Scores) == 0 {
		return
	}
	due := dueOf(m.plan, of)
	if due == nil {
		out.faults.Notes = append(out.faults.Notes, "without a schedule it is not known which fault lost, duplicated or reordered an event")
		return
	}
	scores, places := out.faults.Scores, all.places()
	from, to := fault.Windows(scores)
	rest := fault.Delivery{Lost: out.ledger.Lost, Duplicated: out.ledger.Duplicated, Reordered: out.ledger.Reordered}
	for i := range scores {
		if scores[i].Kind != fault.MarkFault {
			continue
		}
		d := &fault.Delivery{
			Lost:       dueIn(places.Lost, due, from[i], to[i]),
			Duplicated: dueIn(places.Duplicated, due, from[i], to[i]),
			Reordered:  dueIn(places.Reordered, due, from[i], to[i]),
		}
		scores[i].Delivery = d
		rest.Lost -= min(rest.Lost, d.Lost)
		rest.Duplicated -= min(rest.Duplicated, d.Duplicated)
		rest.Reordered -= min(rest.Reordered, d.Reordered)
	}
	out.faults.Elsewhere = &rest
}

// dueIn counts the events of spans that were due between two moments. Later events of a stream are
// not due earlier.
func dueIn(spans []ledger.Span, due func(stream int32, index uint64) time.Duration, from, to time.Duration) (n uint64) {
	for _, s := range spans {
		before := func(t time.Duration) uint64 {
			return uint64(sort.Search(int(s.Hi-s.Lo), func(i int) bool { return due(s.Stream, s.Lo+uint64(i)) >= t }))
		}
		n += before(to) - before(from)
	}
	return n
}
