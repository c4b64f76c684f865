// Package trust judges a finished run: whether the generator itself was what
// limited it (Judge), and whether the run had settled (Steady).
//
// It answers for the rules and their words and refuses to know protocols,
// reports and exit codes. Its invariant: a verdict is a pure function of what
// was measured, and it blames the generator alone. What the system did -
// failures, drops, a response time that climbs - is a result and never a
// reason for distrust.
package trust

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// The bounds of the rules. docs/method.md explains each.
const (
	MostLag      = time.Millisecond // lag p99 beyond it matters ...
	MostLagShare = 0.10             // ... when it is also more than this share of response p99
	MostBusy     = 0.95             // of a sending thread, or of all processors
	LeastFull    = 0.90             // of the hold, without a schedule ...
	LeastHold    = time.Second      // ... and where there was one of this length: the bound takes a moment to fill and to empty, and what the process used is known by the interval
	MostPaused   = 0.01             // of the hold, stopped by the garbage collector
	MostClock    = time.Second      // by which the two clocks of a run may differ
)

// Input is what is judged.
type Input struct {
	Result *load.Result

	// Nowhere says that the target discards what it gets (null://, a
	// discarding stand-in): that the generator is the limit is the point then.
	Nowhere bool

	// Processors is how many the generator may use; 0 when that is not known.
	Processors int

	// Clock is what was seen of clock trouble, such as steps of the wall
	// clock; each becomes a reason.
	Clock []string

	// System is how the system under test ended, where it did so by itself in
	// the middle of the run; "" else.
	System string
}

// Judge says whether the generator was the limit. Reasons are sentences that
// end with what to do.
func Judge(in Input) measure.Trust {
	r := in.Result
	t := measure.Trust{Reasons: []string{}, Notes: []string{}}
	reason := func(s string) {
		if s != "" {
			t.Reasons = append(t.Reasons, s)
		}
	}
	note := func(s string) {
		if s != "" {
			t.Notes = append(t.Notes, s)
		}
	}

	if in.System != "" {
		reason("the system under test ended by itself in the middle of the run: " + in.System)
	}
	note(idleThreads(r))
	more := moreThreads(r, in.Processors)
	scheduled := r.Mode == load.OpenLoop
	if scheduled {
		for _, s := range spans(r) {
			reason(late(s, more))
		}
		reason(busy(r, more))
	}
	switch cpu := saturated(r, in.Processors); {
	case scheduled:
		reason(cpu)
	default:
		note(cpu)
	}
	switch text := paused(r); r.Mode {
	case load.Consuming: // no times are measured, and the rate is what the client took
		note(text)
	default:
		reason(text)
	}
	for _, c := range in.Clock {
		reason(c)
	}
	if len(in.Clock) == 0 { // else it was seen already, and closer
		reason(clock(r))
	}
	switch {
	case r.Mode != load.FullSpeed:
	case in.Nowhere:
		note("nothing takes these events in, so the rate is what this generator can do, and says nothing about a system")
	case r.Hold.Shots > 0 && r.Full < LeastFull && r.Hold.Length() < LeastHold:
		note(fmt.Sprintf("the hold of %s was too short to tell whether the generator or the system was its limit: give it %s or more",
			units.FormatDuration(r.Hold.Length()), units.FlagDuration(LeastHold)))
	case r.Hold.Shots > 0 && r.Full < LeastFull:
		reason(fmt.Sprintf("the in-flight bound was full for %s of the hold only (at least %s): the generator was the limit and not the system; %s",
			units.FormatPercent(r.Full), units.FormatPercent(LeastFull), way(more, "lower --max-in-flight", "use a faster machine")))
	}
	t.OK = len(t.Reasons) == 0
	return t
}

// spans are what is reported on its own: the steps where there are several,
// else the hold.
func spans(r *load.Result) []*measure.Tally {
	if len(r.Steps) < 2 {
		return []*measure.Tally{&r.Hold}
	}
	out := make([]*measure.Tally, len(r.Steps))
	for i := range r.Steps {
		out[i] = &r.Steps[i]
	}
	return out
}

// moreThreads is how to have more sending threads, "" where that is no way: each
// client is driven by one thread, and more than processors would only share them.
func moreThreads(r *load.Result, processors int) string {
	switch {
	case r.Threads == 0 || processors <= r.Threads:
		return ""
	case r.Clients > r.Threads:
		return "allow more --threads"
	case r.MostThreads == r.Threads: // both hold it back
		return "add --clients and allow more --threads"
	}
	return "add --clients"
}

// way puts together what may be done, "" being nothing, as the end of a sentence.
func way(ways ...string) string {
	ways = slices.DeleteFunc(ways, func(s string) bool { return s == "" })
	last := len(ways) - 1
	switch last {
	case 0:
		return ways[0]
	case 1:
		return ways[0] + ", or " + ways[1]
	}
	return strings.Join(ways[:last], ", ") + ", or " + ways[last]
}

// idleThreads says that more threads were allowed than there was use for, since
// who asks for them may believe that they ran.
func idleThreads(r *load.Result) string {
	if r.MostThreads <= r.Threads || r.Clients == 0 || r.Threads < r.Clients {
		return ""
	}
	return fmt.Sprintf("of %d --threads %d sent: a client is driven by one thread, and the run had %s",
		r.MostThreads, r.Threads, units.Plural(r.Clients, "client"))
}

// late judges the generator's own lateness against what a user would see.
// Where nothing is acknowledged there is no response time to set it against,
// and the first bound stands alone.
func late(s *measure.Tally, more string) string {
	if s.SendDelay.Count() == 0 {
		return ""
	}
	lag := s.SendDelay.Percentile(99)
	if lag <= MostLag {
		return ""
	}
	response := measure.Percentiles(s.Response, s.Censored, []float64{99})[0].D
	known := s.Response.Count()+s.Censored.Count() > 0
	if known && float64(lag) <= MostLagShare*float64(response) {
		return ""
	}
	where := ""
	if s.Name != "" && s.Name != measure.Hold {
		where = " in the step of " + s.Name
	}
	against := ""
	if known {
		against = fmt.Sprintf(", more than a tenth of the response p99 of %s", units.FormatDuration(response))
	}
	return fmt.Sprintf("lag p99 was %s%s%s: the generator fired late; %s",
		units.FormatDuration(lag), where, against, way("lower the rate", more, "use a faster or quieter machine"))
}

func busy(r *load.Result, more string) string {
	if r.Busy <= MostBusy {
		return ""
	}
	return fmt.Sprintf("a sending thread was at work for %s of the hold (at most %s): the schedule was near what one thread can send; %s",
		units.FormatPercent(r.Busy), units.FormatPercent(MostBusy), way(more, "lower the rate"))
}

// saturated judges what the process used of all processors. It is sampled at the
// ends of intervals, so that a hold shorter than one has what the process did
// before and after it.
func saturated(r *load.Result, processors int) string {
	length := r.Hold.Length()
	if length < LeastHold || processors <= 0 {
		return ""
	}
	share := min(1, r.Usage.CPU.Seconds()/(length.Seconds()*float64(processors)))
	if share <= MostBusy {
		return ""
	}
	who, so := "generator", "the rate is what it could fire; use a machine with more processors"
	switch r.Mode {
	case load.OpenLoop:
		so = "nothing was left for it to be on time; lower the rate, or use a machine with more processors"
	case load.Consuming:
		who, so = "clients", "the rate is what they could take; use a machine with more processors"
	}
	return fmt.Sprintf("the %s used %s of %s (at most %s): %s",
		who, units.FormatPercent(share), units.Plural(processors, "processor"), units.FormatPercent(MostBusy), so)
}

// paused judges the collector's pauses: they stop every thread, so they stand
// in the times that were measured. They can touch a p99 only when they fill a
// hundredth of the hold; the number of pauses times the longest is the most
// that they can have filled.
func paused(r *load.Result) string {
	u, length := r.Usage, r.Hold.Length()
	if length <= 0 || u.GCPauseMax <= MostLag {
		return ""
	}
	share := float64(u.GCPauses) * u.GCPauseMax.Seconds() / length.Seconds()
	if share <= MostPaused {
		return ""
	}
	measured := r.Hold.Response
	if measured.Count() == 0 {
		measured = r.Hold.Service
	}
	if measured.Count() > 0 && float64(u.GCPauseMax) <= MostLagShare*float64(measured.Percentile(99)) {
		return ""
	}
	if r.Mode == load.Consuming {
		return fmt.Sprintf("the garbage collector stopped the clients for up to %s, %d times: the rate is what they could take",
			units.FormatDuration(u.GCPauseMax), u.GCPauses)
	}
	return fmt.Sprintf("the generator's garbage collector stopped it for up to %s, %d times: those pauses stand in the times above; give it more memory (GOGC=400) or a smaller workload",
		units.FormatDuration(u.GCPauseMax), u.GCPauses)
}

// clock compares the clock of the wall with the monotonic one that everything
// is measured by. They part when the wall clock is set, which does no harm
// here, and when the machine slept or was moved, which does; from inside a
// process the two look the same.
func clock(r *load.Result) string {
	// Sub takes the monotonic readings; Round(0) strips them.
	return parted(r.Ended.Round(0).Sub(r.Started.Round(0)), r.Ended.Sub(r.Started))
}

func parted(wall, monotonic time.Duration) string {
	off := (wall - monotonic).Abs()
	if off <= MostClock || off <= wall/100 {
		return ""
	}
	return fmt.Sprintf("the wall clock and the monotonic clock differ by %s over the run: the machine slept or was moved, or its clock was set; run again, with time synchronization settled",
		units.FormatDuration(off))
}
