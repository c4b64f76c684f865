package fault

import (
	"cmp"
	"fmt"
	"time"
)

// Lengths that scores depend on.
const (
	MostBaseline  = 30 * time.Second // before a mark; longer ones would be of another load
	LeastBaseline = 10 * time.Second
	leastStay     = 5 * time.Second // for which a system must stay recovered
	floorSpan     = time.Second
	// LateEffect is the time after a fault, and after its last heal, within which something must go wrong:
	// what begins later is not of that fault.
	LateEffect = time.Minute
)

// A Time is a time in seconds. With More it was not over when the observation ended: it is
// longer.
type Time struct {
	S    float64 `json:"s"`
	More bool    `json:"more,omitempty"`
}

// A Score is what followed a fault or a heal. The score of a fault counts until the next fault, for
// ten minutes at most, with the heal in between; that of a heal from the heal on.
type Score struct {
	Mark
	// ObservedS is from the mark until the next fault or the end of the measurement, ten minutes at most; if
	// nothing went wrong, until LateEffect after it and its heals at most.
	ObservedS float64   `json:"observed_s"`
	Baseline  Baseline  `json:"baseline"`
	Whole     Numbers   `json:"whole"`
	Lanes     []Numbers `json:"lanes,omitempty"` // partitions or connections
	Worst     int       `json:"worst"`           // index of the lane with the longest blackout; -1: no lanes
	// Later is the longest blackout, over the limit and longer than those of the score, that began after
	// the time of the score was cut because nothing had gone wrong in it, and before the next fault. It is
	// not known whether the fault caused it. nil: there was none.
	Later  *Time             `json:"later,omitempty"`
	Errors map[string]uint64 `json:"errors,omitempty"`
	// Delivery is what the check of the delivery found of the events due around a fault; nil: it was
	// not checked, it is not known when they were due, or it is a heal.
	Delivery *Delivery `json:"delivery,omitempty"`
}

// A Delivery counts events that were lost, duplicated and reordered.
type Delivery struct {
	Lost       uint64 `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
}

// Lead is how long before a fault the events were due that are counted as its: those that were
// acked just before it, and not yet safe.
const Lead = 5 * time.Second

// Windows returns from when to when events are due that belong to each fault of scores, in their
// order: from Lead before it, but not before an earlier fault, until that of the next one, or until
// it was no longer observed. They do not overlap. A heal has none: its events are those of its fault.
func Windows(scores []Score) (from, to []time.Duration) {
	from, to = make([]time.Duration, len(scores)), make([]time.Duration, len(scores))
	last := -1
	for i := range scores {
		if scores[i].Kind != MarkFault {
			continue
		}
		from[i] = max(0, scores[i].At()-Lead)
		if last >= 0 {
			from[i] = max(from[i], scores[last].At())
			to[last] = min(to[last], from[i])
		}
		to[i] = scores[i].At() + seconds(scores[i].ObservedS)
		last = i
	}
	return from, to
}

// A Baseline is how the run was before a fault.
type Baseline struct {
	FromS      float64 `json:"from_s"`
	ToS        float64 `json:"to_s"`
	EventsPerS float64 `json:"events_per_s"` // acked
	ResponseS  float64 `json:"response_s"`   // median of the means of its bins
	// Why says why there is none; "" if there is.
	Why string `json:"why,omitempty"`
}

// Numbers are the score of the whole run or of one lane. Null: it cannot be said. A run that only reads
// has Blackout, FirstAck and Floor: in place of acks it has events, and the word that there are none.
type Numbers struct {
	Name string `json:"name,omitempty"` // of the lane

	Noticed  *Time `json:"noticed"`   // until the first event was over the limit, failed or was dropped; null: none was
	Blackout *Time `json:"blackout"`  // longest time without an ack while events waited; a run that only reads: without a sign that it should have
	FirstAck *Time `json:"first_ack"` // until the ack that ended it; after a heal, or without a blackout, until the next ack
	Back     *Time `json:"back"`      // until the limit holds for good
	Drained  *Time `json:"drained"`   // until no more events waited than before

	LostEventS *float64 `json:"lost_event_s"` // response times above the baseline's, added up until the queue was drained
	NotAcked   *float64 `json:"not_acked"`    // share of the events due in that time that were not acked
	Floor      *float64 `json:"floor"`        // lowest acked rate over a second, as a share of the baseline's
	Over       uint64   `json:"over"`         // events over the limit, failed, unknown or dropped

	Predicted *Prediction `json:"predicted,omitempty"`
	// NotPredicted says why the prediction is missing.
	NotPredicted string `json:"not_predicted,omitempty"`
}

// A Prediction is what follows from the length of the blackout and the headroom of the system, if
// the load is constant, nothing is dropped, and the system works at its capacity until the queue
// is gone.
type Prediction struct {
	PerS       float64 `json:"capacity_events_per_s"`
	Given      bool    `json:"given,omitempty"` // the capacity was given, not measured
	Headroom   float64 `json:"headroom"`        // capacity as a multiple of the load
	CatchUpS   float64 `json:"catch_up_s"`      // from the first ack until the queue is gone
	BackS      float64 `json:"back_s"`
	DrainedS   float64 `json:"drained_s"`
	LostEventS float64 `json:"lost_event_s"`
	Over       float64 `json:"over"`
}

// Input is what scores are made of.
type Input struct {
	Marks []Mark   // in order of time
	Lanes []string // names of the lanes; none: only the whole
	// Window returns the bins of a lane between two moments; lane -1 is the whole.
	Window func(lane int, from, to time.Duration) Series
	Errors func(from, to time.Duration) map[string]uint64

	Start, End time.Duration // of the measurement
	Answers    time.Duration // when the last answer came, after End or not
	Limit      time.Duration // on the response time
	Budget     float64       // share of events that may be over it
	Scheduled  bool          // events have due times
	Reading    bool          // the run only reads: acks are arrivals, and nothing is due
	Patience   time.Duration // of a run that only reads: for how long the system may wait for events before it answers
	Ceiling    float64       // events/s that the system is known to take; 0: not known
}

// Scores scores every fault and heal, in order of time.
func Scores(in Input) []Score {
	var out []Score
	for i := range in.Marks {
		if in.Marks[i].Kind != MarkNote && in.Marks[i].At() < in.End {
			out = append(out, in.score(i, out))
		}
	}
	return out
}

func (in *Input) score(i int, before []Score) Score {
	s := Score{Mark: in.Marks[i], Worst: -1}
	// Later outcomes were not kept: they would look like an outage.
	most := s.At() + keptAfter
	until, open := min(in.End, most), min(max(in.Answers, in.End), most)
	for _, m := range in.Marks[i+1:] {
		if m.Kind == MarkFault && m.AtS > s.AtS {
			until, open = min(until, m.At()), min(until, m.At())
			break
		}
	}
	s.ObservedS = (until - s.At()).Seconds()
	from, to := in.baseline(i, before)
	o := &observation{in: in, mark: s.At(), until: until, open: open, from: from, to: to, heal: s.Kind == MarkHeal}
	whole := o.look(-1)
	var rest *observation // after it was cut
	if quiet := in.quietAt(i, until); quiet < until && !o.began(&whole, quiet) {
		later := *o
		later.mark, later.heal, rest = quiet, false, &later
		o.until, o.open, open = quiet, min(open, quiet), min(open, quiet)
		s.ObservedS = (quiet - s.At()).Seconds()
		whole = o.look(-1)
	}
	s.Baseline = Baseline{FromS: from.Seconds(), ToS: to.Seconds(), Why: whole.why()}
	if s.Baseline.Why == "" {
		s.Baseline.EventsPerS, s.Baseline.ResponseS = whole.rate, whole.response
	} else if last := usable(before); last != nil {
		// The time between two faults is too short or still disturbed: what was before the last one counts.
		o.from, o.to = seconds(last.FromS), seconds(last.ToS)
		if again := o.look(-1); again.why() == "" {
			whole, s.Baseline = again, *last
		}
	}
	o.blind = s.Baseline.Why != ""
	if in.Reading {
		o.scoreReading(&s, &whole)
	} else {
		o.scoreSending(&s, &whole)
	}
	if rest != nil {
		s.Later = rest.longest(max(in.Limit, s.blackout()))
	}
	if in.Errors != nil {
		s.Errors = in.Errors(s.At(), open)
	}
	return s
}

// scoreSending scores a run that sends.
func (o *observation) scoreSending(s *Score, whole *view) {
	s.Whole = o.numbers(whole)
	for l, name := range o.in.Lanes {
		v := o.look(l)
		n := o.numbers(&v)
		n.Name = name
		if s.Lanes = append(s.Lanes, n); s.Worst < 0 || worse(&n, &s.Lanes[s.Worst]) {
			s.Worst = l
		}
	}
	s.explainNoHeadroom()
}

// blackout is the longest one of a score.
func (s *Score) blackout() time.Duration {
	longest := 0.0
	if b := s.Whole.Blackout; b != nil {
		longest = b.S
	}
	for i := range s.Lanes {
		if b := s.Lanes[i].Blackout; b != nil {
			longest = max(longest, b.S)
		}
	}
	return seconds(longest)
}

// quietAt returns until when a fault must have had an effect: a fixed time after it, or after the last
// of the heals that follow before a moment.
func (in *Input) quietAt(i int, until time.Duration) time.Duration {
	latest := in.Marks[i].At()
	for _, m := range in.Marks[i+1:] {
		if m.Kind == MarkHeal && m.At() < until {
			latest = m.At()
		}
	}
	return latest + LateEffect
}

func usable(before []Score) *Baseline {
	for i := len(before) - 1; i >= 0; i-- {
		if before[i].Baseline.Why == "" {
			return &before[i].Baseline
		}
	}
	return nil
}

// worse reports whether a lane had the longer blackout, or came back later.
func worse(a, b *Numbers) bool {
	if c := compareTimes(a.Blackout, b.Blackout); c != 0 {
		return c > 0
	}
	return compareTimes(a.Back, b.Back) > 0
}

func compareTimes(a, b *Time) int {
	length := func(t *Time) (float64, int) {
		switch {
		case t == nil:
			return -1, 0
		case t.More:
			return t.S, 1
		}
		return t.S, 0
	}
	as, am := length(a)
	bs, bm := length(b)
	return cmp.Or(cmp.Compare(as, bs), cmp.Compare(am, bm))
}

// baseline returns the stretch before a mark that nothing else disturbed. A heal has that of its
// fault.
func (in *Input) baseline(i int, before []Score) (from, to time.Duration) {
	m := &in.Marks[i]
	if m.Kind == MarkHeal {
		if f := Healed(m, before); f != nil {
			return seconds(f.Baseline.FromS), seconds(f.Baseline.ToS)
		}
	}
	to = m.At().Truncate(Bin)
	from = max(in.Start, to-MostBaseline, 0)
	for j := range before {
		from = max(from, seconds(before[j].AtS+before[j].disturbed(in)))
	}
	from = (from + Bin - 1).Truncate(Bin)
	return min(from, to), to
}

// Healed returns the fault that a heal ends: the last of its name, or else the last; nil: there is none.
func Healed(heal *Mark, before []Score) (last *Score) {
	for j := len(before) - 1; j >= 0; j-- {
		switch f := &before[j]; {
		case f.Kind != MarkFault:
		case f.Name == heal.Name:
			return f
		case last == nil:
			last = f
		}
	}
	return last
}

// disturbed returns for how many seconds after a mark the run cannot be a baseline.
func (s *Score) disturbed(in *Input) (length float64) {
	over := []*Time{s.Whole.Back, s.Whole.Drained}
	if in.Reading {
		over = []*Time{s.Whole.FirstAck}
		for l := range s.Lanes { // the others go on, so the whole does not wait for it
			if n := &s.Lanes[l]; n.Blackout != nil && n.Blackout.S > in.Limit.Seconds() {
				over = append(over, n.FirstAck)
			}
		}
	}
	for _, t := range over {
		if t != nil {
			length = max(length, t.S)
		}
	}
	return length
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// tooShort returns why a stretch cannot be a baseline; "" if it can.
func tooShort(length time.Duration) string {
	if length >= LeastBaseline {
		return ""
	}
	return fmt.Sprintf("cannot say: only %.3g s of the measurement before it are without another fault, and a baseline takes %g s", length.Seconds(), LeastBaseline.Seconds())
}
