package trust

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// The bounds of an outage. docs/method.md explains each.
const (
	MostSilent = 0.10            // of the complete intervals, in which the system accepted nothing, or refused most
	LongOutage = 5 * time.Second // of such intervals, without an answer between them
	slowAnswer = 10              // silence up to this many times the usual answer time is not an outage
	fewEvents  = 10              // an interval with fewer completed events counts only next to another such interval
)

// Dead reports whether no event was accepted during the measurement, although some were
// due: the system refused everything or did not answer. The generator was then not the
// limit. The text says so, and after a colon what happened to the events.
func Dead(r *load.Result) (text string, dead bool) {
	c := r.Measurement.Counts
	if r.Stopped == load.Interrupted && r.Measurement.Length() < LeastMeasurement {
		return "", false // before an answer could come
	}
	// Without a schedule, no event is due while none can be sent.
	due := c.Offered+c.Sent > 0 || r.Mode != load.OpenLoop && r.Stall.Share > 0
	if r.Mode == load.Consuming || !due || r.Measurement.Arrived > 0 || taken(r, c) > 0 {
		return "", false
	}
	if c.Sent == 0 && generatorFroze(r, r.Measurement.Start, r.Measurement.End) {
		return "", false // the system received nothing that it could answer
	}
	if bad := refused(r, c); bad > 0 {
		return "the system accepted no event: " + outcomeText(c), true
	}
	return "the system answered nothing: " + outcomeText(c), true
}

// taken returns how many events the system accepted. If nothing is acknowledged, events
// that were sent and did not fail count.
func taken(r *load.Result, c measure.Counts) uint64 {
	if r.Unanswered {
		return c.Acked + c.Unknown
	}
	return c.Acked
}

// refused returns how many events were completed and not accepted.
func refused(r *load.Result, c measure.Counts) uint64 {
	if r.Unanswered {
		return c.Failed
	}
	return c.Failed + c.Unknown
}

// outcomeText returns what became of events that were not accepted.
func outcomeText(c measure.Counts) string {
	var parts []string
	for _, n := range []struct {
		n    uint64
		name string
	}{{c.Failed, "failed"}, {c.Unknown, "unknown"}, {c.Dropped, "dropped"}, {c.Unsent, "unsent"}} {
		if n.n > 0 {
			parts = append(parts, units.FormatCount(n.n)+" "+n.name)
		}
	}
	if len(parts) == 0 {
		return "nothing could be sent"
	}
	return strings.Join(parts, ", ")
}

// A combinedInterval is an interval over all phases: an answer to an event of the
// warm-up also shows that the system is there.
type combinedInterval struct {
	start, end time.Duration
	measure.Counts
	before, after bool // whether something waited for the system at its start and at its end
}

// combinedIntervals returns the intervals within the span, without incomplete ones.
func combinedIntervals(r *load.Result, start, end time.Duration) []combinedInterval {
	var all, in []combinedInterval
	var backlog int64 // due, and neither sent nor dropped
	waits := r.Mode != load.OpenLoop
	for i := range r.Intervals {
		iv := &r.Intervals[i]
		backlog += int64(iv.Offered) - int64(iv.Sent) - int64(iv.Dropped) - int64(iv.Unsent)
		n := len(all)
		if n == 0 || all[n-1].start != iv.Start {
			all = append(all, combinedInterval{start: iv.Start, end: iv.End, before: waits})
			n++
		}
		m := &all[n-1]
		m.Counts.Add(iv.Counts)
		m.after = r.Mode != load.OpenLoop || iv.InFlight > 0 || backlog > 0
		waits = m.after
	}
	longest := time.Duration(0)
	for _, m := range all {
		if m.start >= start && m.end <= end {
			longest = max(longest, m.end-m.start)
			in = append(in, m)
		}
	}
	whole := in[:0]
	for _, m := range in {
		if float64(m.end-m.start) >= shortInterval*float64(longest) {
			whole = append(whole, m)
		}
	}
	return whole
}

// A stretch is a part of a span in which the system did not accept what it was sent. Its
// intervals follow each other, or nothing was answered between them. An interval in which
// the generator did not run adds to its length. It is not evidence: the generator sent
// nothing that the system could answer.
type stretch struct {
	start, end     time.Duration
	silent         time.Duration // the total length of the intervals that are evidence
	taken, refused uint64
	intervals      int // that are evidence
	quiet          int // those of them without even a refusal
}

// stretches returns the outages within a span, and the total length and number of the
// intervals in which the generator ran.
func stretches(r *load.Result, start, end time.Duration) (out []stretch, length time.Duration, intervals int) {
	var open *stretch
	usual := r.Measurement.Service.Percentile(50) + r.Measurement.Batching.Percentile(50)
	closeStretch := func() {
		s := open
		open = nil
		switch {
		case s == nil || s.intervals == 0:
		case s.refused == 0 && s.silent <= slowAnswer*usual: // no more than a slow answer
		case s.refused > 0 && s.intervals == 1 && s.taken+s.refused < fewEvents: // no more than chance
		default:
			out = append(out, *s)
		}
	}
	for _, m := range combinedIntervals(r, start, end) {
		frozen := generatorFroze(r, m.start, m.end)
		if !frozen {
			length += m.end - m.start
			intervals++
		}
		yes, no := taken(r, m.Counts), refused(r, m.Counts)
		silent := yes == 0 && (m.Dropped > 0 || m.before && m.after)
		switch {
		case silent || no > yes && !frozen:
			if open == nil {
				open = &stretch{start: m.start}
			}
			open.end = m.end
			if frozen {
				continue
			}
			open.silent += m.end - m.start
			open.taken += yes
			open.refused += no
			open.intervals++
			if yes+no == 0 {
				open.quiet++
			}
		case yes > 0:
			closeStretch()
		}
		// Else nothing was answered, and nothing waited: a stretch before it goes on if the next one follows.
	}
	closeStretch()
	return out, length, intervals
}

// generatorFroze reports whether the generator itself did not run for at least half of
// a span.
func generatorFroze(r *load.Result, start, end time.Duration) bool {
	var sum time.Duration
	for _, f := range r.Freezes.Process {
		sum += max(0, min(end, f.At+f.Length)-max(start, f.At))
	}
	return sum > 0 && 2*sum >= end-start
}

// An outage sums up the outages of a span of the run.
type outage struct {
	text    string
	share   float64 // of the complete intervals
	decided bool    // long enough to tell
	bad     bool
	longest stretch
}

func outageOf(r *load.Result, s *measure.Tally) outage {
	if r.Mode == load.Consuming {
		return outage{}
	}
	all, length, intervals := stretches(r, s.Start, s.End)
	if intervals == 0 || len(all) == 0 {
		return outage{decided: intervals >= LeastSeries}
	}
	var o outage
	var sum, silent, longest time.Duration
	for _, s := range all {
		sum += s.end - s.start
		silent += s.silent
		longest = max(longest, s.silent)
		if s.end-s.start > o.longest.end-o.longest.start {
			o.longest = s
		}
	}
	o.share = float64(silent) / float64(length)
	o.decided = intervals >= LeastSeries || o.share == 1
	o.bad = o.decided && (o.share > MostSilent || longest >= LongOutage)
	o.text = describe(all, sum, r.Unanswered)
	return o
}

// describe says what happened and when; of several stretches it names the longest.
func describe(all []stretch, sum time.Duration, unanswered bool) string {
	var of, most stretch // the sum, and the longest
	for _, s := range all {
		if s.end-s.start > most.end-most.start {
			most = s
		}
		of.taken += s.taken
		of.refused += s.refused
		of.intervals += s.intervals
		of.quiet += s.quiet
	}
	what := "nothing was answered"
	switch dead := 2*of.quiet > of.intervals; { // what was in flight at its beginning failed, too
	case of.taken > 0 && dead:
		what = "hardly anything was answered"
	case of.taken > 0:
		what = "most events were not accepted"
	case of.refused > 0 && !dead:
		what = "no event was accepted"
	case unanswered:
		what = "nothing could be sent"
	}
	when := fmt.Sprintf(" from second %s to second %s", second(most.start), second(most.end))
	if len(all) > 1 {
		when = fmt.Sprintf(" in %d stretches of %s together, the longest%s", len(all), units.FormatDuration(sum), when)
	}
	return what + when
}

func second(d time.Duration) string {
	return strconv.FormatFloat(d.Round(10*time.Millisecond).Seconds(), 'f', -1, 64)
}
