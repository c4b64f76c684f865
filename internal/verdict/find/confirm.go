package find

import (
	"math"
	"time"

	"carronade/units"
)

// This file confirms the ends of the interval that the search narrowed.

// confirmLow confirms that the limits hold at a rate, or finds a lower one. Its steps grow, so a
// search that short trials misled (burst credits) ends.
func (s *search) confirmLow(rate float64) error {
	for step := s.precision / 2; ; step *= 3 {
		v, err := s.confirmAt(rate)
		if err != nil || v.Result == Pass {
			return err
		}
		switch {
		case rate > s.floor():
		case v.Result == Invalid:
			return s.end(AtLeast, "%s", v.Why)
		case v.Result == Undecided:
			return s.end(Stopped, "no rate down to %s is decided: %s", units.FormatRate(s.floor()), v.Why)
		default:
			return s.noRate()
		}
		rate = max(rate/(1+step), s.floor())
	}
}

// quickStep is the step up from a rate that held after a short trial had failed there: the ceiling
// may be far above.
const quickStep = 0.25

// confirmHigh confirms that the limits fail at a rate above the one that holds, and narrows the
// interval with confirmed trials if it is too wide. Its steps grow too: where the share of late
// events hardly depends on the rate, only a rate far above decides.
func (s *search) confirmHigh(rate float64) error {
	step := s.precision
	for {
		holds, fails := s.bounds(true)
		switch {
		case s.To > 0 && holds >= s.To:
			return s.end(Highest, "it was the highest rate allowed")
		case fails > 0 && fails/holds <= 1+1.5*s.precision:
			return nil
		case fails > 0:
			rate = math.Sqrt(holds * fails)
		case rate <= holds*1.001:
			rate = holds * (1 + step)
			step *= 2
		}
		if rate = s.allowed(rate); rate == s.To && s.find(rate) != nil && s.find(rate).confirmed && fails == 0 {
			return s.end(Stopped, "the trials at %s, the highest rate allowed, do not decide", units.FormatRate(rate))
		}
		if p := s.generatorLimit(rate); p != nil {
			if p.disturbed > 1 || s.used-s.repeats >= MostTrials || s.elapsed >= s.Budget {
				return s.end(AtLeast, "the generator was the limit above %s: %s", units.FormatRate(holds), p.verdict.Why)
			}
			rate = p.rate // once more: what disturbed the generator may be over
		}
		p := s.find(rate)
		pinned := p != nil && p.verdict.Result == Fail // by a short trial
		v, err := s.confirmAt(rate)
		switch {
		case err != nil:
			return err
		case v.Result == Pass && pinned && fails == 0: // the ceiling may be anywhere above
			step = max(step, quickStep)
			continue
		case v.Result == Pass, v.Result == Fail:
			continue
		case fails > 0:
			return nil // the interval cannot be narrowed
		}
		rate *= 1 + step/2
		step *= 2
	}
}

// generatorLimit is the lowest rate up to this one at which the generator was the limit, or nil.
func (s *search) generatorLimit(rate float64) (lowest *point) {
	for i := range s.points {
		if p := &s.points[i]; p.rate <= rate && s.unsendable(p) && (lowest == nil || p.rate < lowest.rate) {
			lowest = p
		}
	}
	return lowest
}

// confirmAt confirms a rate. It fails only if two trials fail, of which one may be a short one of
// the search: a stall that happens once is not the system's limit. A backlog that grows is certain.
func (s *search) confirmAt(rate float64) (v Verdict, err error) {
	fails := 0
	if p := s.find(rate); p != nil && p.verdict.Result == Fail {
		fails = 1
	}
	for {
		if v, err = s.parts(rate); err != nil || v.Result != Fail {
			return v, err
		}
		if fails++; v.Growing || fails >= 2 {
			return v, nil
		}
		p := s.find(rate)
		p.begun, p.confirmed, p.failed = false, false, true // judged alone
		if s.elapsed+s.confirm > s.Budget {
			return v, nil
		}
	}
}

// parts runs a confirmation in parts that are judged together. A rate that fails may show it
// early; one that holds takes the whole time. What is nearly decided then gets the time again.
func (s *search) parts(rate float64) (v Verdict, err error) {
	first := s.timing.search
	for _, part := range []time.Duration{first, s.confirm - first, s.confirm} {
		if part < s.slot() || part == s.confirm && (!v.near() || s.elapsed+part > s.Budget) {
			break
		}
		v, err = s.at(Confirm, rate, part)
		if err != nil || v.Result == Fail || v.Result == Invalid || part != first && v.Result == Pass {
			break
		}
	}
	return v, err
}
