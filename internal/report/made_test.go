package report

import (
	"time"

	"carronade/load"
	"carronade/measure"
)

// build makes the report of a made-up run, whose intervals lie in their phases, and that sends nothing in
// the drain.
func build(in Input) *Document {
	if r := in.Result; r != nil {
		madeWithin(r)
		madeSends(&r.Measurement)
		for i := range r.Steps {
			madeSends(&r.Steps[i])
		}
	}
	return Build(in)
}

func madeSends(t *measure.Tally) {
	if t.Sends == 0 {
		t.Sends, t.SendBytes, t.SendWire, t.Answers = t.Sent, t.Bytes, t.WireBytes, t.Answered
	}
}

func madeWithin(r *load.Result) {
	meet := map[time.Duration]int{} // rows of the same interval
	for i := range r.Intervals {
		meet[r.Intervals[i].Start]++
	}
	for i := range r.Intervals {
		iv := &r.Intervals[i]
		if iv.Within > 0 {
			continue
		}
		if iv.Within = iv.Length() / time.Duration(meet[iv.Start]); iv.Start >= r.Measurement.End && iv.Phase == measure.Measurement {
			iv.Within = 0 // the drain
			continue
		}
		switch {
		case r.Mode == load.Consuming:
			iv.Arrived = iv.Consumed
		case r.Unanswered:
			iv.Arrived = iv.Sent
		default:
			iv.Arrived = iv.Acked
		}
	}
}
