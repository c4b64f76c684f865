package find

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"carronade/units"
)

// Limits of each search.
const (
	// MostTrials is the most trials of a search, not counting those that repeat one that was not
	// trusted.
	MostTrials     = 24
	worstPrecision = 0.5
	probeFor       = 5 * time.Second
	warmUpFor      = 5 * time.Second
	beyondFor      = 20 * time.Second
	// mostOver is how far above the best answered rate a trial may be: more says nothing new, and
	// leaves a longer queue.
	mostOver    = 1.5
	leastEvents = 20                     // in a trial that is judged
	anyCapacity = 1e9                    // events a second: no search is shorter than at this
	coarse      = 100 * time.Millisecond // slots of trials that are not judged
)

// probes are the concurrencies of the closed loops that estimate the capacity.
var probes = []int{1, 8, 64, 512}

// point is what is known of a rate.
type point struct {
	rate      float64
	outcomes  []Outcome
	verdict   Verdict
	begun     bool // the outcomes are those of a confirmation
	confirmed bool // they are all that it takes
	failed    bool // in a confirmation that was begun anew
	disturbed int  // times that the generator could not send it, each of which took several trials
	retried   bool // because it contradicted the ends
}

// search is a search that is replayed from its history.
type search struct {
	*Options
	timing
	history []Outcome
	used    int
	repeats int // of the used ones: see MostTrials
	elapsed time.Duration
	best    float64 // rate answered
	points  []point
	answer  Answer
}

// A request ends a replay: the search needs this trial.
type request struct{ trial Trial }

func (*request) Error() string { return "a trial is needed" }

// errDone ends a replay with the answer.
var errDone = errors.New("the search is done")

// interrupted is why a search ended that was interrupted.
const interrupted = "interrupted"

// Next returns the next trial, or the answer. The history are the outcomes of the trials that
// Next returned, in order.
func (o *Options) Next(history []Outcome) (*Trial, *Answer) {
	s := search{Options: o, history: history}
	s.answer.Wanted, s.answer.Trials = o.Precision, []Tried{}
	run := s.run
	if o.Over == OverConcurrency {
		run = s.overConcurrency
	}
	err := run()
	var r *request
	if errors.As(err, &r) {
		return &r.trial, nil
	}
	s.conclude()
	if errors.As(s.soak(), &r) {
		return &r.trial, nil
	}
	if !o.Reading && o.Over == "" {
		s.answer.Bottleneck = bottleneck(history[:s.used], s.answer.Fails)
	}
	return nil, &s.answer
}

func (s *search) end(e Ending, why string, args ...any) error {
	s.answer.Ending, s.answer.Why = e, fmt.Sprintf(why, args...)
	return errDone
}

// try takes the outcome of the next trial from the history, or asks for the trial.
func (s *search) try(t Trial) (*Outcome, error) {
	switch {
	case t.Role == Soak:
	case s.used-s.repeats >= MostTrials:
		return nil, s.end(Stopped, "%d trials, the most of a search, were not enough", MostTrials)
	case s.elapsed >= s.Budget:
		return nil, s.end(Stopped, "the budget is spent")
	}
	if s.used >= len(s.history) {
		if s.Interrupted {
			return nil, s.end(Stopped, interrupted)
		}
		return nil, &request{t}
	}
	o := &s.history[s.used]
	s.used++
	s.elapsed += o.Elapsed
	s.best = max(s.best, o.Achieved)
	s.answer.Trials = append(s.answer.Trials, o.tried())
	switch {
	case o.Dead != "" && t.Concurrency > 0:
		return nil, s.end(Died, "%s, with %s in flight", o.Dead, units.Plural(t.Concurrency, "request"))
	case o.Dead != "":
		s.note(t.Rate, []Outcome{*o}, Verdict{Result: Fail, Why: o.Dead}, false)
		return nil, s.end(Died, "%s, at %s", o.Dead, units.FormatRate(t.Rate))
	case o.Unclear != "" && s.answer.Ending == "": // what follows the answer does not take it away
		return nil, s.end(Irregular, "%s", o.Unclear)
	}
	return o, nil
}

// at tries a rate. What says nothing of the system is tried again.
func (s *search) at(role Role, rate float64, measure time.Duration) (Verdict, error) {
	measure = max(measure, seconds(leastEvents/rate))
	t := Trial{Role: role, Rate: rate, Settle: s.settle, Measure: measure, Slot: s.slot(), Relax: s.relax}
	if role == Confirm {
		t.Relax = s.relaxAt(rate)
	}
	ends := role == Search || role == Confirm // others say nothing of the ends
	o, v, err := s.repeated(t, ends)
	switch {
	case err != nil:
		return v, err
	case v.Result == Invalid && ends && s.tooBusy(rate, o):
		return v, s.end(Busy, "%s", busyText(o, &v))
	case v.Result == Invalid:
		if ends {
			s.disturb(rate, v)
		}
		return v, nil
	}
	outcomes := []Outcome{*o}
	if p := s.find(rate); p != nil && role == Confirm && (p.begun || p.failed) {
		if p.begun {
			outcomes = append(p.outcomes, *o)
		}
		v = s.judge(outcomes, p.failed) // of all together
		s.answer.Trials[len(s.answer.Trials)-1].Verdict = &v
	}
	if role == Search || role == Confirm {
		s.note(rate, outcomes, v, role == Confirm && (v.Result != Pass || s.confirms(outcomes)))
		s.find(rate).begun = role == Confirm
	}
	if v.Result == Invalid { // all together
		s.disturb(rate, v)
	}
	return v, nil
}

// confirms reports whether trials are as long as a confirmation. A rate holds only if they are.
func (s *search) confirms(outcomes []Outcome) bool {
	var length time.Duration
	for i := range outcomes {
		length += outcomes[i].Trial.Measure
	}
	return length+s.slot() > s.confirm
}

// disturb notes that the generator could not send a rate. What the system did there before stands.
func (s *search) disturb(rate float64, v Verdict) {
	if s.find(rate) == nil {
		s.note(rate, nil, v, false)
	}
	s.find(rate).disturbed++
}

// judged runs a trial and judges it alone.
func (s *search) judged(t Trial) (*Outcome, Verdict, error) {
	o, err := s.try(t)
	if err != nil {
		return nil, Verdict{}, err
	}
	v := s.Judge(*o)
	if v.Result == Fail && o.Dead == "" {
		if why := s.unexplained(o); why != "" {
			v = Verdict{Result: Invalid, Why: why}
		}
	}
	s.answer.Trials[len(s.answer.Trials)-1].Verdict = &v
	return o, v, nil
}

func (s *search) find(rate float64) *point {
	for i := range s.points {
		if s.points[i].rate == rate {
			return &s.points[i]
		}
	}
	return nil
}

// note keeps what is known of a rate. A later verdict replaces an earlier one: it has a longer
// trial, or the evidence of both.
func (s *search) note(rate float64, outcomes []Outcome, v Verdict, confirmed bool) {
	p := s.find(rate)
	if p == nil {
		s.points = append(s.points, point{rate: rate})
		p = &s.points[len(s.points)-1]
	} else if a, b := p.verdict.Result, v.Result; a == Pass && b == Fail || a == Fail && b == Pass {
		s.answer.Inversions = append(s.answer.Inversions,
			fmt.Sprintf("%s first %s, then %s", units.FormatRate(rate), p.verdict.Result, v.Result))
	}
	p.outcomes, p.verdict, p.confirmed = outcomes, v, confirmed
}

// bounds are the smallest rate that fails, or, of rates that need not be confirmed, that the
// generator cannot send, and the largest below it that holds. 0: none.
func (s *search) bounds(confirmed bool) (holds, fails float64) {
	fails = math.Inf(1)
	for i := range s.points {
		p := &s.points[i]
		if p.confirmed && p.verdict.Result == Fail || !confirmed && (p.verdict.Result == Fail || s.unsendable(p)) {
			fails = min(fails, p.rate)
		}
	}
	for i := range s.points {
		p := &s.points[i]
		if (p.confirmed || !confirmed) && p.verdict.Result == Pass && p.rate < fails {
			holds = max(holds, p.rate)
		}
	}
	if math.IsInf(fails, 1) {
		fails = 0
	}
	return holds, fails
}

// unsendable reports whether the generator was the limit at a rate. Where it sent that rate or a
// higher one at another time, something had disturbed it.
func (s *search) unsendable(p *point) bool {
	return p.verdict.Result == Invalid && !slices.ContainsFunc(s.points, func(q point) bool {
		return q.rate > p.rate && (q.verdict.Result == Pass || q.verdict.Result == Fail)
	})
}

func (s *search) run() error {
	if s.Reading {
		return s.read()
	}
	if _, ok := s.plan(anyCapacity); !ok {
		return s.end(Stopped, "the budget does not suffice: with these limits a search takes %s or more", budgetText(s.suffices(anyCapacity, worstPrecision)))
	}
	capacity, err := s.capacity()
	if err != nil {
		return err
	}
	var ok bool
	most := s.allowed(capacity) // no trial sees the system do more
	if s.timing, ok = s.plan(most); !ok {
		return s.end(Stopped, "the budget does not suffice: at about %s, a search takes %s, and %s for a precision of %s", units.FormatRate(most),
			budgetText(s.suffices(most, worstPrecision)), budgetText(s.suffices(most, s.Precision)), units.FormatPercent(s.Precision))
	}
	if _, err := s.try(Trial{Role: WarmUp, Rate: capacity / 4, Measure: s.short(warmUpFor), Slot: coarse}); err != nil {
		return err
	}
	low, high, err := s.narrow(capacity)
	if err != nil {
		return err
	}
	if err := s.confirmLow(low); err != nil {
		return err
	}
	if err := s.confirmHigh(high); err != nil {
		return err
	}
	if err := s.resolve(); err != nil {
		return err
	}
	return s.finish()
}

// capacity estimates how much the system can do: more requests in flight, until it does no more.
func (s *search) capacity() (float64, error) {
	if s.From > 0 {
		return s.From / 0.5, nil // the first trial is at From
	}
	if s.To > 0 {
		return s.capacityBelow(s.To)
	}
	best := 0.0
	for _, n := range probes {
		o, err := s.try(Trial{Role: Probe, Concurrency: n, Measure: s.short(probeFor), Slot: coarse})
		if err != nil {
			return 0, err
		}
		if o.Achieved < 1.05*best {
			break
		}
		best = o.Achieved
	}
	if best <= 0 {
		why := "nothing was answered"
		if last := s.history[s.used-1]; last.Broken != "" {
			why = last.Broken
		}
		return 0, s.end(None, "%s", why)
	}
	return best, nil
}

// capacityBelow estimates the capacity with schedules, since a closed loop could exceed the highest
// rate allowed. The rates grow by a factor that leaves a short queue only.
func (s *search) capacityBelow(to float64) (float64, error) {
	const first, factor, events, enough = 4096, 8, 400, 0.9
	length := s.short(probeFor)
	for rate := max(to/first, events/length.Seconds()); rate < to/2; rate *= factor {
		o, err := s.try(Trial{Role: WarmUp, Rate: rate, Measure: length, Slot: coarse})
		if err != nil {
			return 0, err
		}
		if o.Achieved < enough*rate {
			return max(s.best, rate/factor), nil
		}
	}
	return to, nil
}

// allowed is a rate, or To if that is less.
func (s *search) allowed(rate float64) float64 {
	if s.To > 0 {
		return min(rate, s.To)
	}
	return rate
}

// floor is the lowest rate that is tried: several events in each stretch of the limit, and the
// fewest of a trial in a tenth of the budget.
func (s *search) floor() float64 {
	x := time.Duration(math.MaxInt64)
	for _, l := range s.planned() {
		x = min(x, l.Within)
	}
	return max(1/max(1, 10*x.Seconds()), 10*leastEvents/s.Budget.Seconds())
}

// narrow brackets the ceiling from below and bisects. It returns rates below and above it that
// are near each other, or on both sides of a rate that short trials cannot decide.
func (s *search) narrow(capacity float64) (low, high float64, err error) {
	half := math.Sqrt(1 + s.precision)
	rate := capacity / 2
	for {
		v, err := s.at(Search, rate, s.timing.search)
		if err != nil {
			return 0, 0, err
		}
		holds, fails := s.bounds(false)
		here, limit := s.find(rate), s.find(fails)
		switch {
		case v.Result == Undecided, v.Result == Invalid && here.disturbed > 1 && !s.unsendable(here):
			return max(holds, rate/half), min(max(fails, rate*half), rate*half), nil
		case holds == 0 && fails <= s.floor() && s.allInvalid():
			return 0, 0, s.end(AtLeast, "%s", v.Why)
		case holds == 0 && fails <= s.floor():
			return 0, 0, s.none(capacity)
		case s.To > 0 && holds >= s.To:
			return holds, holds, nil
		case v.Result == Pass && limit != nil && limit.disturbed == 1 && limit.verdict.Result == Invalid:
			rate = fails // once more: what disturbed the generator may be over
		case holds == 0:
			rate = max(fails/2, s.floor())
			if fails < capacity/16 {
				rate = max(fails/8, s.floor())
			}
		case fails == 0:
			next := holds * max(1.25, 1+s.precision)
			if holds == capacity/2 {
				next = holds * 1.6
			}
			if next = min(next, mostOver*s.best); next < holds*min(1+s.precision, 1.25) {
				return 0, 0, s.end(NoTop, "%s holds, and the system answers no more than %s", units.FormatRate(holds), units.FormatRate(s.best))
			}
			rate = s.allowed(next)
		case fails/holds <= 1+s.precision*1.01:
			return holds, fails, nil
		default:
			rate = math.Sqrt(holds * fails)
			if fails/holds < (1+s.precision)*(1+s.precision) { // one more trial is enough
				rate = holds * (1 + s.precision)
				if rate >= fails {
					return holds, fails, nil
				}
			}
		}
	}
}

// allInvalid reports whether the generator was the limit at every rate.
func (s *search) allInvalid() bool {
	return !slices.ContainsFunc(s.points, func(p point) bool { return p.verdict.Result != Invalid })
}

// none answers a search in which even the lowest rate failed. Some systems fail at low rates
// only, such as one that waits for a full batch: two higher rates show it.
func (s *search) none(capacity float64) error {
	for _, part := range []float64{0.7, 0.9} {
		rate := s.allowed(part * capacity)
		v, err := s.at(Search, rate, s.timing.search)
		switch {
		case err != nil && s.answer.Ending == Stopped && !s.Interrupted: // what is known suffices
			return s.noRate()
		case err != nil:
			return err
		case v.Result == Pass:
			return s.end(Irregular, "the limits hold at %s, and fail at lower rates", units.FormatRate(rate))
		}
	}
	return s.noRate()
}

// noRate ends a search in which no rate held. It says whether a lower rate helped.
func (s *search) noRate() error {
	text := "the limits fail at every rate down to " + units.FormatRate(s.floor())
	var low, high *point // at which events took too long
	for i := range s.points {
		p := &s.points[i]
		if p.verdict.Result != Fail || p.verdict.Share == 0 { // the others failed for a reason of their own
			continue
		}
		if low == nil || p.rate < low.rate {
			low = p
		}
		if high == nil || p.rate > high.rate {
			high = p
		}
	}
	if low != nil && high.rate >= 2*low.rate && low.verdict.Share >= high.verdict.Share/2 {
		text += fmt.Sprintf(", and the rate makes no difference: at %s %s, at %s %s",
			units.FormatRate(high.rate), high.verdict.Why, units.FormatRate(low.rate), low.verdict.Why)
	}
	return s.end(None, "%s", text)
}

// finish shows how the system behaves around the ceiling that was confirmed.
func (s *search) finish() error {
	holds, fails := s.bounds(true)
	s.answer.Ending, s.answer.Why = Found, s.find(fails).verdict.Why
	if beyond := s.allowed(1.2 * fails); beyond > fails {
		if _, err := s.try(Trial{Role: Beyond, Rate: beyond, Measure: s.short(beyondFor), Slot: coarse}); err != nil {
			return err
		}
	}
	again, err := s.at(Again, holds, s.confirm/2)
	if err != nil {
		return err
	}
	s.answer.AfterOverload = &again
	below := 0.8 * holds
	typical, err := s.at(Typical, below, s.timing.search)
	if err != nil {
		return err
	}
	if typical.Result == Fail {
		s.answer.Inversions = append(s.answer.Inversions, fmt.Sprintf("%s holds although %s fails: %s", units.FormatRate(holds), units.FormatRate(below), typical.Why))
	}
	return errDone
}

// conclude fills the answer from the points.
func (s *search) conclude() {
	a := &s.answer
	a.Elapsed = s.elapsed
	for _, confirmed := range []bool{true, false} {
		holds, fails := s.bounds(confirmed)
		if a.Holds == 0 && holds > 0 {
			a.Holds, a.HoldsConfirmed = holds, confirmed
		}
		if a.Fails == 0 && fails > a.Holds && s.find(fails).verdict.Result == Fail {
			a.Fails, a.FailsConfirmed = fails, confirmed
		}
	}
	if a.Holds > 0 && a.Fails > 0 {
		a.Precision = a.Fails/a.Holds - 1
	}
	if (a.Ending == Stopped || a.Ending == Busy) && a.HoldsConfirmed && a.FailsConfirmed && s.contradicting() == nil {
		a.Ending, a.Why = Found, s.find(a.Fails).verdict.Why // with the precision that was reached
	}
	_, fails := s.bounds(false)
	for i := range s.points {
		p := &s.points[i]
		if p.verdict.Result == Pass && fails > 0 && p.rate > fails && s.find(fails).verdict.Result == Fail {
			a.Inversions = append(a.Inversions, fmt.Sprintf("%s holds although %s fails", units.FormatRate(p.rate), units.FormatRate(fails)))
		}
	}
	a.Deciding = a.deciding()
}
