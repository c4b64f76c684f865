package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"carronade/internal/report"
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

// waitedAtStart says that the rate of a run that read includes a long wait for the first event. The time without an
// assignment is in the report already.
func waitedAtStart(r *load.Result, first time.Duration) []string {
	if r == nil {
		return nil
	}
	length := r.Measurement.Length()
	wait := first - r.Measurement.Start
	if r.Measurement.Consumed == 0 || wait <= 0 || wait >= length || float64(wait-min(r.Rebalance, wait)) < muchWaiting*float64(length) {
		return nil
	}
	return []string{fmt.Sprintf("the first event came after %s of the measurement: the rate includes that wait (without it %s)",
		units.FormatDuration(wait.Round(time.Millisecond)), units.FormatRate(float64(r.Measurement.Consumed)/(length-wait).Seconds()))}
}

// noteNothing says why a run that read got nothing. It fails if events were expected. Of several generators one
// alone fails nothing: others may have read something.
func (e *execution) noteNothing(out *outcome, src load.Source) {
	r := out.result
	if r == nil || r.Measurement.Consumed > 0 {
		return
	}
	text := nothingRead
	switch why := whyNothing(src); {
	case r.Warmup.Consumed > 0:
		text += ": everything had been read in the warm-up"
	case why != "":
		text += ": " + why
	case disconnected(src.Capabilities().Connected):
		text += ": no connection was open at the end"
	}
	if e.Share != nil {
		out.warnings = append(out.warnings, text)
		return
	}
	e.judgeNothing(out, text)
}

// nothingRead is the notice of a run that read nothing.
const nothingRead = "nothing was read"

// judgeNothing adds to the outcome of a run that nothing was read.
func (e *execution) judgeNothing(out *outcome, text string) {
	out.notice = joinNotices(out.notice, nothingRead)
	w := e.Workload
	if slices.ContainsFunc(w.Settings(), func(s workload.Resolved) bool { return s.Name == untilEnd && s.Text() == "true" }) || w.Count("count") > 0 {
		out.checks = append(out.checks, report.Check{Name: "consumed", Text: text})
		return
	}
	out.warnings = append(out.warnings, text)
}

// askWhy bounds what a target asks the system for after a run that got nothing.
const askWhy = 3 * time.Second

func whyNothing(src load.Source) string {
	why := src.Capabilities().WhyNothing
	if why == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWhy)
	defer cancel()
	return why(ctx)
}

// waitedAtEnd judges the time from the last event that a run read until its end. If the system said
// that there were no more events, that time is not its stall, and the rate includes waiting, which a
// warning says.
func (e *execution) waitedAtEnd(r *load.Result, src load.Source) []string {
	answering := src.Capabilities().Answering
	if answering == nil || r == nil || len(r.Stall.Spans) == 0 {
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
