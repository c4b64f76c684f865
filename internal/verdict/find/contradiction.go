package find

import (
	"fmt"

	"carronade/units"
)

// This file is about trials that contradict the ends that were confirmed.

// contradicting is the lowest rate above one that failed in a confirmation at which the limits held, or
// one below a confirmed one at which they failed. Nil: no trial contradicts the ends, but for rates
// that were tried again since.
func (s *search) contradicting() (found *point) {
	holds, fails := s.bounds(true)
	for i := range s.points {
		p := &s.points[i]
		above := p.verdict.Result == Pass && fails > 0 && p.rate > fails
		below := p.verdict.Result == Fail && p.rate < holds
		if (above || below) && (found == nil || p.rate < found.rate) {
			found = p
		}
	}
	if found != nil && found.rate > fails && s.overruled(found, fails) {
		return nil
	}
	return found
}

// overruled reports whether a rate between the one that failed and this one, which held in a short
// trial, failed in a confirmation since: then short trials were too short.
func (s *search) overruled(p *point, fails float64) bool {
	if p.confirmed {
		return false
	}
	for i := range s.points {
		q := &s.points[i]
		if q.rate > fails && q.rate <= p.rate && q.confirmed && q.verdict.Result == Fail {
			return true
		}
	}
	return false
}

// contradiction says what contradicts the ends.
func (s *search) contradiction(p *point) string {
	holds, fails := s.bounds(true)
	if p.verdict.Result == Pass {
		return fmt.Sprintf("the trials contradict each other: %s holds although %s fails", units.FormatRate(p.rate), units.FormatRate(fails))
	}
	return fmt.Sprintf("the trials contradict each other: %s fails although %s holds", units.FormatRate(p.rate), units.FormatRate(holds))
}

// resolve confirms what contradicts the ends, and after that the end itself. What contradicts it then
// too is not resolved.
func (s *search) resolve() error {
	for {
		p := s.contradicting()
		if p == nil {
			return nil
		}
		_, fails := s.bounds(true)
		rate, retried := p.rate, p.retried
		if retried { // it is the end that may be wrong
			if p.verdict.Result != Pass || s.find(fails).retried {
				return s.end(Irregular, "%s", s.contradiction(p))
			}
			rate = fails
		}
		p = s.find(rate)
		p.retried = true
		if p.confirmed {
			p.begun, p.failed = false, true // judged alone
		}
		if _, err := s.confirmAt(rate); err != nil {
			return err
		}
		holds, fails := s.bounds(true)
		if holds == 0 {
			if err := s.confirmLow(fails / (1 + s.precision)); err != nil {
				return err
			}
		}
		if holds, _ = s.bounds(true); holds > 0 {
			if err := s.confirmHigh(holds * (1 + s.precision)); err != nil {
				return err
			}
		}
	}
}
