// Package trust says whether measurements can be trusted. It rates a finished run: whether
// the generator itself was its limit (Judge), and whether the run was steady (Steady). And it
// judges whether a machine is fit to measure on: it turns plain facts about the machine into
// findings (MachineFindings), each with its effect on a measurement and what changes it, and
// prints them together with those about a target (Examination).
//
// It contains the rules and their texts, and does not depend on protocols, reports or
// exit codes: a kind of target finds out itself what is wrong with a system. How facts
// about a machine are read is in package system.
//
// Its invariant: a verdict is a pure function of what was measured, and a finding one of the
// facts; a fact that is not known is a finding of its own and never a good one. Trust
// concerns only the generator. The system's behaviour (failures, drops, a response time
// that climbs) is a result and does not affect it, with one exception: if the system
// under test ended by itself, the rest was not measured.
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
	MostBusy         = 0.95        // of a sending thread, or of all processors
	LeastFull        = 0.90        // of the measurement, without a schedule
	LeastMeasurement = time.Second // shortest measurement for LeastFull: the bound takes a moment to fill and to empty, and CPU use is known only by interval
	MostClock        = time.Second // largest allowed difference between the two clocks of a run
)

// Input is what Judge rates.
type Input struct {
	Result *load.Result

	// Discards says that the target discards what it gets (null://, a discarding
	// stand-in): the generator is then supposed to be the limit.
	Discards bool

	// Processors is the number of processors that the generator may use; 0: not known.
	Processors int

	// Percentiles are those that the report prints in addition to the standard ones.
	Percentiles []float64

	// Limited are percentiles that a limit is on: they decide whether the run is trusted,
	// however large they are.
	Limited []float64

	// Clock lists clock problems that were observed, such as steps of the wall clock;
	// each becomes a reason.
	Clock []string

	// NoWaits says that the kernel does not report how long threads wait for a
	// processor, so that answers that are read too late cannot be detected.
	NoWaits bool

	// System says how the system under test ended, if it ended in the middle of the
	// run; "" otherwise.
	System string

	// Connections says what became of the connections, if a fault of the run left none; "" otherwise.
	Connections string
}

// Judge decides whether the generator was the limit. Reasons are sentences that end
// with advice.
func Judge(in Input) measure.Trust {
	r := in.Result
	t := measure.Trust{Level: measure.Trusted, Reasons: []string{}, Doubts: []string{}, Notes: []string{}, Bounds: []measure.Bound{}}
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
	at := func(l measure.Level, s string) {
		switch l {
		case measure.NotTrusted:
			reason(s)
		case measure.Noisy:
			t.Doubts = append(t.Doubts, s)
		}
	}

	if in.System != "" {
		reason("the system under test ended by itself in the middle of the run: " + in.System)
	}
	if in.Connections != "" {
		reason("a fault of the run left no connection in the middle of it: " + in.Connections)
	}
	note(idleThreads(r))
	more := moreThreads(r, in.Processors)
	// Events that were not accepted cannot have been sent too late.
	if _, dead := Dead(r); !dead {
		t.Bounds = bounds(in)
		for _, s := range statements(t.Bounds, in, more) {
			at(s.level, s.text)
		}
		at(unanswered(r, more))
		at(frozen(r))
		at(paused(r))
	}
	if r.Mode == load.OpenLoop {
		note(busy(r, more))
	}
	note(saturated(r, in.Processors))
	if in.NoWaits && !in.Discards && !r.Unanswered {
		note("this kernel does not report how long threads wait for a processor (schedstat): a late reading thread is not seen")
	}
	for _, c := range in.Clock {
		reason(c)
	}
	if len(in.Clock) == 0 { // otherwise it has been observed already, more precisely
		reason(clock(r))
	}
	switch {
	case r.Mode != load.FullSpeed:
	case in.Discards:
		note("no system receives these events, so the rate is what this generator can do")
	case r.Measurement.Batches > 0 && r.Full < LeastFull && r.Measurement.Length() < LeastMeasurement:
		note(fmt.Sprintf("a measurement of %s is too short to tell whether the generator or the system was its limit: give it %s or more",
			units.FormatDuration(r.Measurement.Length()), units.FlagDuration(LeastMeasurement)))
	case r.Measurement.Batches > 0 && r.Full < LeastFull:
		reason(fmt.Sprintf("the in-flight limit was reached for only %s of the measurement (at least %s): the generator was the limit and not the system; %s",
			units.FormatPercent(r.Full), units.FormatPercent(LeastFull), orList(more, "lower --max-in-flight", "use a faster machine")))
	}
	switch {
	case len(t.Reasons) > 0:
		t.Level = measure.NotTrusted
	case len(t.Doubts) > 0:
		t.Level = measure.Noisy
	}
	t.OK = t.Level != measure.NotTrusted
	return t
}

// spans returns what is reported separately: the steps if there are several, else the
// measurement.
func spans(r *load.Result) []*measure.Tally {
	if len(r.Steps) < 2 {
		return []*measure.Tally{&r.Measurement}
	}
	out := make([]*measure.Tally, len(r.Steps))
	for i := range r.Steps {
		out[i] = &r.Steps[i]
	}
	return out
}

// moreThreads returns advice how to get more sending threads, "" if that would not
// help: each client is driven by one thread, and more threads than processors would
// only share them.
func moreThreads(r *load.Result, processors int) string {
	switch {
	case r.Threads == 0 || processors <= r.Threads:
		return ""
	case r.Clients > r.Threads:
		return "allow more --threads"
	case r.MostThreads == r.Threads: // both are limits
		return "add --clients and allow more --threads"
	}
	return "add --clients"
}

// orList joins alternatives as the end of a sentence; it ignores empty ones.
func orList(ways ...string) string {
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

// idleThreads notes that more threads were allowed than used, since a user who requests
// them may believe that they ran.
func idleThreads(r *load.Result) string {
	if r.MostThreads <= r.Threads || r.Clients == 0 || r.Threads < r.Clients {
		return ""
	}
	return fmt.Sprintf("only %d of %d --threads sent: each client uses one thread, and the run had %s",
		r.Threads, r.MostThreads, units.Plural(r.Clients, "client"))
}

func busy(r *load.Result, more string) string {
	if r.Busy <= MostBusy {
		return ""
	}
	return fmt.Sprintf("a sending thread was busy for %s of the measurement (at most %s): the rate is near what one thread can send; %s",
		units.FormatPercent(r.Busy), units.FormatPercent(MostBusy), orList(more, "lower the rate"))
}

// saturated checks how much of all processors the process used. Usage is sampled at the
// ends of intervals, so for a measurement shorter than one it includes what the process
// did before and after it.
func saturated(r *load.Result, processors int) string {
	length := r.Measurement.Length()
	if length < LeastMeasurement || processors <= 0 {
		return ""
	}
	share := min(1, r.Usage.CPU.Seconds()/(length.Seconds()*float64(processors)))
	if share <= MostBusy {
		return ""
	}
	who, so := "generator", "the rate is what it could send; use a machine with more processors"
	switch r.Mode {
	case load.OpenLoop:
		so = "lower the rate, or use a machine with more processors"
	case load.Consuming:
		who, so = "clients", "the rate is what they could take; use a machine with more processors"
	}
	return fmt.Sprintf("the %s used %s of %s (at most %s): %s",
		who, units.FormatPercent(share), units.Plural(processors, "processor"), units.FormatPercent(MostBusy), so)
}

// clock compares the wall clock with the monotonic clock that everything is measured
// by. They differ if the wall clock was set, which is harmless here, or if the machine
// slept or was migrated, which is not. A process cannot distinguish the two.
func clock(r *load.Result) string {
	// Sub uses the monotonic readings; Round(0) removes them.
	return clockDifference(r.Ended.Round(0).Sub(r.Started.Round(0)), r.Ended.Sub(r.Started))
}

func clockDifference(wall, monotonic time.Duration) string {
	off := (wall - monotonic).Abs()
	if off <= MostClock || off <= wall/100 {
		return ""
	}
	return fmt.Sprintf("the wall clock and the monotonic clock differ by %s over the run: the machine slept or was moved, or its clock was set; run again, once time synchronization is stable",
		units.FormatDuration(off))
}
