package find

import (
	"cmp"
	"time"

	"carronade/internal/verdict/stats"
	"carronade/units"
)

// Reading has no schedule: readers take what there is as fast as they can. So a search for its
// ceiling repeats a trial at full speed, until the interval of the median is narrow enough.

const (
	plannedReads = 12 // six are the fewest that bound a median
	longestRead  = 30 * time.Second
)

// ShortestRead is the length of the shortest trial of reading.
const ShortestRead = time.Second

// reads are the trials that read so far.
type reads struct {
	rates   []float64 // of the trials that count
	limited []float64 // of those in which the generator was the limit, or may have been
	broken  int       // of rates: limits do not hold
	why     string
	doubt   string
}

// read searches for the highest rate of reading.
func (s *search) read() error {
	length := min(longestRead, s.Budget/plannedReads).Round(100 * time.Millisecond)
	if length < ShortestRead {
		return s.end(Stopped, "the budget does not suffice: reading takes %d trials of %s or more", plannedReads, units.FormatDuration(ShortestRead))
	}
	if _, err := s.try(Trial{Role: WarmUp, Measure: min(length, warmUpFor), Slot: time.Second}); err != nil {
		return err
	}
	var r reads
	for {
		known := s.readSoFar(r.rates)
		if known && s.answer.Fails/s.answer.Holds-1 <= s.Precision {
			return s.readsEnd(&r)
		}
		o, err := s.try(Trial{Role: Read, Measure: length, Slot: time.Second})
		switch {
		case err == nil:
			s.noteRead(&r, o)
		case s.answer.Ending != Stopped || s.Interrupted:
			return err
		case known: // with the precision that was reached
			return s.readsEnd(&r)
		case len(r.limited) > len(r.rates) && s.readSoFar(append(r.limited, r.rates...)):
			s.answer.Fails = 0 // the readers might have done more
			return s.end(AtLeast, "%s", r.doubt)
		default:
			return err
		}
	}
}

// readSoFar answers with the interval of the median of some rates, if they are enough for one.
func (s *search) readSoFar(rates []float64) bool {
	m := stats.Median(rates, stats.Confidence)
	if !m.Bounded() || m.Lo <= 0 {
		return false
	}
	s.answer.Holds, s.answer.HoldsConfirmed, s.answer.Fails = m.Lo, true, m.Hi
	return true
}

// noteRead judges a trial that read.
func (s *search) noteRead(r *reads, o *Outcome) {
	v := Verdict{Result: Pass, Why: "at full speed"}
	switch doubt := cmp.Or(o.Generator, o.Doubt); {
	case o.Broken != "":
		v = Verdict{Result: Fail, Why: o.Broken}
		r.rates = append(r.rates, o.Achieved)
		r.broken, r.why = r.broken+1, o.Broken
	case doubt != "":
		v = Verdict{Result: Invalid, Why: doubt}
		r.limited, r.doubt = append(r.limited, o.Achieved), doubt
	default:
		r.rates = append(r.rates, o.Achieved)
	}
	s.answer.Trials[len(s.answer.Trials)-1].Verdict = &v
}

// readsEnd answers by what most trials that count say.
func (s *search) readsEnd(r *reads) error {
	if 2*r.broken > len(r.rates) {
		s.answer.Holds, s.answer.HoldsConfirmed, s.answer.Fails = 0, false, 0
		return s.end(None, "%s", r.why)
	}
	return s.end(Found, "the interval of the median of %s at full speed", units.Plural(len(r.rates), "trial"))
}
