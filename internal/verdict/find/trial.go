package find

import (
	"math"
	"time"

	"carronade/measure"
)

// A TimeLimit is a limit on a quantile of a time, such as p99<50ms.
type TimeLimit struct {
	Name     string        // as written, for reasons
	Of       string        // the time, by the name of its histogram; "": the main one of the run
	Within   time.Duration // the limit
	Quantile float64       // 0.99 for p99; 1 for the maximum
}

// allowed is the share of events that may take longer.
func (l TimeLimit) allowed() float64 { return max(1-l.Quantile, 0) }

// A Role is what a trial is for.
type Role string

// The roles.
const (
	Probe   Role = "probe"   // closed loop: how much the system can do at all
	WarmUp  Role = "warm-up" // not judged
	Search  Role = "search"  // narrows the interval
	Confirm Role = "confirm" // confirms an end of the interval
	Beyond  Role = "beyond"  // above the ceiling: what fails first, and how long it lasts
	Again   Role = "again"   // at the lower end, after an overload
	Typical Role = "typical" // at 80 % of the ceiling
	Soak    Role = "soak"    // at the lower end, for long
	Read    Role = "read"    // at full speed
)

// A Trial is one run that the search asks for.
type Trial struct {
	Role Role `json:"role"`
	// Rate is in events a second; 0 for a probe, which keeps Concurrency requests in flight, and
	// for reading, which is at full speed.
	Rate        float64 `json:"rate,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"`
	// Settle is the time before the measurement, by due time: its events are sent, not judged.
	Settle  time.Duration `json:"settle_ns,omitempty"`
	Measure time.Duration `json:"measure_ns"`
	// Slot is the length of the slots of the outcome.
	Slot time.Duration `json:"slot_ns"`
	// Relax is the time in which the system forgets how long its queue was.
	Relax time.Duration `json:"relax_ns,omitempty"`
}

// A Slot counts the events that were due in a part of the measurement.
type Slot struct {
	Events uint64
	// Over is the number of events that took longer than each limit on a time, in the order of
	// the options. Events that failed, were dropped or were never answered are among them.
	Over []uint64
	// OverLeast is the same by the lower values of the times, without what the generator may
	// have added. Nil means the same as Over.
	OverLeast []uint64
	// Waiting is the number of events that were due and not answered at the end of the slot.
	Waiting uint64
}

// A Quantile is a percentile of a time in a trial, with the interval in which it lies as surely
// as the trial's verdict holds.
type Quantile struct {
	Of    string        `json:"of"` // the time, by the name of its histogram
	P     float64       `json:"p"`  // 99 for p99, 100 for the maximum
	At    time.Duration `json:"at_ns"`
	Least time.Duration `json:"least_ns"`
	Most  time.Duration `json:"most_ns"`
}

// An Outcome is what happened in a trial.
type Outcome struct {
	Trial    Trial
	ReportID string        // of the trial's report, if it is stored
	Achieved float64       // events answered a second, over the measurement
	Elapsed  time.Duration // of the whole trial: with start, settling, and waiting for the queue to drain
	Slots    []Slot
	Slowest  string     // the consumer group that has read least, whose backlog Slots has; empty: there are none
	Times    []Quantile // of the limited times
	// Uses are the resources that it used, and Service the median time of an answer since it was
	// sent: what the bottleneck follows from.
	Uses    []Use
	Service time.Duration
	// Broken says which limit does not hold, other than those on times: failures, losses, the
	// share of a processor. Empty: all hold.
	Broken string
	// Generator says why the outcome says nothing of the system. Empty: it does.
	Generator string
	// Trust is Noisy or NotTrusted as in the report; empty: trusted.
	Trust measure.Level
	// Doubt says why the generator may be the cause of what is wrong, if the report is not
	// trusted.
	Doubt string
	// Others are the processors that other programs used, or that were stolen from this machine:
	// the system too, if it runs on this machine and is not watched. OthersMost is their use in the
	// busiest second. A Bound of 0: not known.
	Others     Use
	OthersMost float64
	// Unclear says why a limit cannot be checked at all, such as that no metric has its name. The
	// search ends, unless it has its answer already.
	Unclear string
	// Dead says how the system died. The search ends.
	Dead string
}

func (o *Outcome) events() (n uint64) {
	for i := range o.Slots {
		n += o.Slots[i].Events
	}
	return n
}

// timing is how long the trials of a search take.
type timing struct {
	capacity  float64 // that it was planned for
	precision float64 // that the budget can confirm
	relax     time.Duration
	settle    time.Duration
	search    time.Duration
	confirm   time.Duration
}

// The trials that a search needs in addition to its two confirmations, to plan the budget.
const (
	plannedTrials = 6    // to bracket and bisect
	searchPart    = 0.25 // length of a search trial, in confirmations
	otherParts    = 2.2  // again, typical, and a confirmation that must be repeated
)

// timingFor plans the trials for a capacity, in events a second, and a precision.
//
// The queue of a system near its ceiling forgets slowly. For one server of random service
// times, late events come in clusters that last 1/(capacity d^2) seconds on average, with d the
// part of the capacity that is free (Aldous, Probability Approximations via the Poisson Clumping
// Heuristic, B). A system that varies less has its ceiling nearer to its capacity, and its clusters
// last longer. How much it varies is not known beforehand, so the precision is used for d: what is
// nearer to the capacity is not distinguished from it. All times below follow from that length.
func (o *Options) timingFor(capacity, precision float64) timing {
	// Systems have stalls that no theory of queues has, so trials are never shorter than this.
	t := timing{capacity: capacity, precision: precision, search: min(10*time.Second, o.Budget/40), confirm: min(30*time.Second, o.Budget/15)}
	for _, l := range o.planned() {
		x, b := l.Within.Seconds(), l.planned()
		cluster := 1 / (capacity * precision * precision)
		if l.farBelow(capacity, precision) {
			cluster = l.cluster(max(precision, l.usuallyFree(capacity)/leastVaried))
		}
		relax := 4 * cluster
		// How many clusters are expected at the limit so that a rate that is half of the
		// precision away is distinguished from it in four of five trials. It was fitted to the Poisson
		// distribution: 3 at 2.6, 5 at 1.8, 10 at 1.2, 39 at 0.5.
		apart := capacity * x * precision / 2
		need := max(3.2, 13/math.Pow(apart, 1.6))
		confirm := max(x/precision, 20*relax, need*cluster/b, 10/b/capacity)
		t.relax = max(t.relax, seconds(relax))
		t.settle = max(t.settle, min(2*time.Second, o.Budget/100), seconds(max(5*x, 3*relax)))
		t.confirm = max(t.confirm, seconds(confirm))
		t.search = max(t.search, seconds(max(searchPart*confirm, 10*relax, 10/b/capacity)))
	}
	t.search = min(t.search, t.confirm)
	return t
}

// planned are the limits that the lengths of trials follow from. Where nothing is acknowledged
// there are none, and no queue that an answer shows.
func (o *Options) planned() []TimeLimit {
	if len(o.Times) == 0 {
		return []TimeLimit{{Within: 100 * time.Millisecond, Quantile: 0.99}}
	}
	return o.Times
}

// leastAllowed is the share that may be late for a limit on the maximum, to plan its trials.
const leastAllowed = 1e-3

// whole is how long a search takes.
func (o *Options) whole(t *timing) time.Duration {
	trials := plannedTrials*(t.search+t.settle) + 2*(t.confirm+t.settle) +
		time.Duration(otherParts*float64(t.confirm)) + 3*t.settle
	return trials + o.short(beyondFor) + o.short(warmUpFor) + 3*o.short(probeFor)
}

// plan is the timing with the smallest precision, at least the one asked for, that the budget
// can confirm.
func (o *Options) plan(capacity float64) (t timing, ok bool) {
	for p := o.Precision; ; p = min(1.1*p, worstPrecision) {
		if t = o.timingFor(capacity, p); o.whole(&t) <= o.Budget {
			return t, true
		}
		if p >= worstPrecision {
			return t, false
		}
	}
}

// short is the length of a trial that is not judged, less if the budget is small.
func (o *Options) short(usual time.Duration) time.Duration { return min(usual, o.Budget/30) }

// slot is the length of a slot: short enough to see clusters, long enough to be cheap.
func (t *timing) slot() time.Duration {
	return min(max(t.relax/4, 20*time.Millisecond), time.Second).Round(time.Millisecond)
}

func seconds(s float64) time.Duration {
	if s > float64(math.MaxInt64)/2e9 {
		return math.MaxInt64 / 16
	}
	return time.Duration(s * float64(time.Second))
}

// usuallyFree is the part of the capacity that is free at the ceiling if the system varies as one
// with random arrivals and service times does: log(1/allowed) service times to a limit.
func (l TimeLimit) usuallyFree(capacity float64) float64 {
	return math.Log(1/l.planned()) / (capacity * l.Within.Seconds())
}

// leastVaried is how much less than that a system is taken to vary.
const leastVaried = 4

// farBelow reports whether such a ceiling lies further below the capacity than the precision.
func (l TimeLimit) farBelow(capacity, precision float64) bool {
	return l.usuallyFree(capacity) > precision
}

// cluster is how long late events stay late, in seconds, in a system that has this part of its
// capacity free at the ceiling.
func (l TimeLimit) cluster(free float64) float64 {
	return l.Within.Seconds() / (free * math.Log(1/l.planned()))
}

// planned is the share that may be late, to plan trials: that of a limit on the maximum is not 0.
func (l TimeLimit) planned() float64 { return max(l.allowed(), leastAllowed) }

// relaxAt is the time in which a system forgets how long its queue was, if its ceiling is at this
// rate. Half of the precision stands for what is nearer to the capacity.
func (s *search) relaxAt(rate float64) time.Duration {
	relax := s.relax
	for _, l := range s.Times {
		if l.farBelow(s.best, s.precision) {
			relax = max(relax, seconds(4*l.cluster(max(1-rate/s.best, s.precision/2, l.usuallyFree(s.best)/leastVaried))))
		}
	}
	return relax
}
