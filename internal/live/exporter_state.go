package live

import (
	"time"

	"carronade/load"
	"carronade/measure"
)

// state contains the running totals of a run.
type state struct {
	run     ExportedRun
	began   time.Time
	running bool
	phase   string

	counts   measure.Counts
	statuses measure.Statuses
	times    measure.Set
	usage    measure.Usage
	inFlight uint64
	behind   int64 // events behind the end of the logs; -1 unknown
	seen     bool  // there was at least one interval
	groups   []groupState
}

// Help texts of the metrics of groups.
const (
	groupConsumedHelp = "Events read by a consumer group of a round trip."
	groupBacklogHelp  = "Events acked and not read by a consumer group."
)

// groupState are the totals of a consumer group of a round trip.
type groupState struct {
	name              string
	consumed, backlog uint64
}

// add adds an interval.
func (s *state) add(snap *load.Snapshot) {
	iv := &snap.Interval
	s.phase, s.counts = snap.Phase, snap.Total
	s.statuses.Merge(iv.Statuses)
	s.times.Merge(&iv.Set)
	s.usage = s.usage.Join(iv.Generator)
	s.inFlight, s.behind = iv.InFlight, iv.LagEvents
	s.seen = true
	for i, name := range snap.Groups[:min(len(snap.Groups), len(iv.Groups))] {
		if i == len(s.groups) {
			s.groups = append(s.groups, groupState{name: name})
		}
		s.groups[i].consumed += iv.Groups[i].Consumed
		s.groups[i].backlog = iv.Groups[i].Backlog
	}
}

// publishedTimes are the times that are published. The others are only in the
// report.
func publishedTimes(s *measure.Set) []namedTimes {
	return []namedTimes{
		{"response", "Response time of acked events: done - due.", s.Response, s.Censored},
		{"service", "Service time of answered batches: done - sent.", s.Service, nil},
		{"send_delay", "The generator's own lateness of sent events.", s.SendDelay, nil},
		{"end_to_end", "End-to-end time of events in a round trip: consumed - due, or - sent without a schedule.", s.EndToEnd, s.UnreadAges},
	}
}

type namedTimes struct {
	name, help string
	h          *measure.Histogram // nil: the run does not have this time
	ages       *measure.Histogram // of events that have no value of it
}

// A point contains the metrics of one interval.
type point struct {
	at    time.Time
	began time.Time
	run   ExportedRun
	// running is false in the last point of a run, which has no interval.
	running bool
	length  float64 // of the interval, s

	interval measure.Counts
	counts   measure.Counts
	statuses measure.Statuses
	inFlight uint64
	behind   int64
	groups   []groupState
	usage    measure.Usage

	unanswered bool // nothing is acknowledged

	p50, p99 []quantile // of the interval
	times    []exponential
}

// A quantile is a percentile of a time of one interval.
type quantile struct {
	name string
	d    time.Duration
}

// point makes the point of an interval after add.
func (s *state) point(snap *load.Snapshot) *point {
	iv := &snap.Interval
	p := &point{
		at: time.Now(), began: s.began, run: s.run, running: s.running, length: iv.Length().Seconds(),
		interval: iv.Counts, counts: s.counts, statuses: append(measure.Statuses(nil), s.statuses...),
		inFlight: s.inFlight, behind: s.behind, groups: append([]groupState(nil), s.groups...), usage: s.usage, unanswered: snap.Unanswered,
	}
	for _, t := range publishedTimes(&iv.Set) {
		if t.h.Count()+t.ages.Count() == 0 {
			continue
		}
		ps := measure.Percentiles(t.h, t.ages, []float64{50, 99}) // which may be lower bounds
		p.p50 = append(p.p50, quantile{t.name, ps[0].D})
		p.p99 = append(p.p99, quantile{t.name, ps[1].D})
	}
	for _, t := range publishedTimes(&s.times) {
		if t.h != nil {
			p.times = append(p.times, exponentialOf(t))
		}
	}
	return p
}

// accepted is the number of events that the system accepted or delivered in the
// interval. If nothing is acknowledged, it is those sent and not refused.
func (p *point) accepted() uint64 {
	if c := &p.interval; p.unanswered {
		return c.Sent - min(c.Failed, c.Sent)
	}
	return max(p.interval.Acked, p.interval.Consumed)
}

// acceptedBytes is the bytes of those events.
func (p *point) acceptedBytes() uint64 {
	if c := &p.interval; p.unanswered || c.Consumed > 0 && c.Acked == 0 {
		return c.Bytes
	}
	return p.interval.AckedBytes
}

// errorRate is the percentage of events not accepted among those completed in the
// interval, which may have been sent before it.
func (p *point) errorRate() float64 {
	c := &p.interval
	lost, done := c.Failed+c.Unknown, c.Acked+c.Failed+c.Unknown
	if p.unanswered { // only failures to send are known
		lost, done = c.Failed, max(c.Sent, c.Failed)
	}
	if done == 0 {
		return 0
	}
	return 100 * float64(lost) / float64(done)
}
