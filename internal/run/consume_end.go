package run

import (
	"fmt"
	"slices"
	"time"

	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// untilEnd is the setting of targets whose runs can end at the end of their logs.
const untilEnd = "until-end"

const (
	lateWord    = 200 * time.Millisecond // by how much a system may exceed its patience before it says again that there is nothing
	muchWaiting = 0.1                    // of the measurement: less does not change the rate much
)

// waitedAtEnd judges the time from the last event that a run read until its end. If the system said
// that there were no more events, that time is not its stall, and the rate includes waiting, which a
// warning says.
func (e *execution) waitedAtEnd(r *load.Result, src load.Source) []string {
	answering, ok := src.(load.Answering)
	if !ok || r == nil || len(r.Stall.Spans) == 0 {
		return nil
	}
	end, length := r.Measurement.End, r.Measurement.Length()
	tail := r.Stall.Spans[len(r.Stall.Spans)-1]
	emptied := answering.Emptied()
	if tail.At+tail.Length != end || len(emptied) == 0 {
		return nil
	}
	first, patience := slices.Min(emptied), answering.Patience()+lateWord
	if first <= 0 {
		return nil
	}
	word := max(first, tail.At) // one log may be silent while others are read
	if end-word <= patience {
		word = end
	}
	moveLastStall(&r.Stall, tail, word, end, length)
	if silent := tail.At-first > patience; silent || float64(tail.Length) < muchWaiting*float64(length) {
		return nil
	}
	text := fmt.Sprintf("the end of the logs was reached at %s, and nothing came in the %s after it: the rate includes that wait", units.FormatDuration(tail.At.Round(time.Millisecond)), units.FormatDuration(tail.Length.Round(time.Millisecond)))
	if before := (length - tail.Length).Seconds(); before > 0 && r.Measurement.Consumed > 0 {
		text += " (without it " + units.FormatRate(float64(r.Measurement.Consumed)/before) + ")"
	}
	if slices.ContainsFunc(e.Workload.Settings(), func(s workload.Resolved) bool { return s.Name == untilEnd }) {
		text += "; --" + untilEnd + " ends a run there"
	}
	return []string{text}
}

// moveLastStall lets the last stall of a reading, which lasted until its end, begin when the system last
// said that there is nothing. Of the other gaps only those that are stalls are known, so the longest one
// is 0 if there is none.
func moveLastStall(s *measure.Stall, tail measure.Span, word, end, length time.Duration) {
	s.Spans = s.Spans[:len(s.Spans)-1]
	s.Count--
	s.Share = max(0, s.Share-float64(tail.Length)/float64(length))
	if end-word > load.StallAfter {
		s.Add(word, end)
		s.Share += float64(end-word) / float64(length)
	}
	if s.LongestAt != tail.At {
		return
	}
	s.Longest, s.LongestAt = 0, 0
	for _, x := range s.Spans {
		if x.Length > s.Longest {
			s.Longest, s.LongestAt = x.Length, x.At
		}
	}
}
