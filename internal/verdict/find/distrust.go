package find

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"carronade/units"
)

// This file is about trials that say nothing of the system, because the generator or other programs
// may be the cause of what they measured.

const (
	// mostDistrusted is how many trials of a rate in a row may say nothing. After that, more of them
	// would not either.
	mostDistrusted = 3
	// longer is how much longer each of them is than the one before: what disturbs for a moment is a
	// smaller part of it, and may be over.
	longer = 2
	// mostUnexplained is the part of all processors that other programs may use beyond what the load
	// explains, in a trial that fails.
	mostUnexplained = 0.2
	// mostGrowth is how much faster than the rate a system's use of processors may grow.
	mostGrowth = 2
	// worthNaming is the part of all processors that other programs must use to be named as the cause.
	worthNaming = 0.1
)

// notTrusted says why a trial that is not trusted says nothing.
func notTrusted(o *Outcome) string {
	return "not trusted: " + cmp.Or(o.Doubt, "the generator may be the cause")
}

// repeated runs a trial until it says something of the system, at most mostDistrusted times, each
// longer than the one before. Fewer suffice for a trial that does not look for the ends, and at a rate
// that the generator cannot send.
func (s *search) repeated(t Trial, ends bool) (o *Outcome, v Verdict, err error) {
	most := mostDistrusted
	if p := s.find(t.Rate); p != nil && p.disturbed > 0 {
		most = 1
	} else if !ends {
		most = 2
	}
	for n := 1; ; n++ {
		if o, v, err = s.judged(t); err != nil || v.Result != Invalid || n == most {
			return o, v, err
		}
		cannot := o.Generator != "" && !s.tooBusy(t.Rate, o)
		if cannot && n == 2 {
			return o, v, nil
		}
		s.repeats++
		if ends && !cannot {
			left := (s.Budget - s.elapsed).Truncate(time.Millisecond)
			t.Measure = max(t.Measure, min(longer*t.Measure, left))
		}
	}
}

// tooBusy reports whether something disturbed the trials of a rate, rather than that the generator
// cannot send it: it sent as much at another time, or other programs used more than the load explains.
// Where no lower rate says anything either, a generator that sends what is due was disturbed too.
func (s *search) tooBusy(rate float64, last *Outcome) bool {
	if s.unexplained(last) != "" {
		return true
	}
	below := false
	for i := range s.points {
		switch p := &s.points[i]; {
		case p.verdict.Result == Invalid:
		case p.rate >= rate:
			return true
		default:
			below = true
		}
	}
	return !below && last.Generator == ""
}

// busyText says that no trial of a rate could be judged, why, and what to do.
func busyText(o *Outcome, v *Verdict) string {
	var use string
	most := Use{Used: o.OthersMost, Bound: o.Others.Bound}
	switch least := worthNaming * most.Bound; {
	case most.Bound > 0 && o.Others.Used >= least:
		use = "use " + o.Others.ofProcessors()
	case most.Bound > 0 && o.OthersMost >= least:
		use = "use up to " + most.ofProcessors()
	default:
		return "this machine is too busy to decide (" + v.Why + ")"
	}
	return "this machine is too busy to decide (other programs " + use + "); stop them, or use a quieter machine"
}

// ofProcessors is a use of processors, such as 1.9 of 2 processors.
func (u *Use) ofProcessors() string {
	return strconv.FormatFloat(u.Used, 'f', 1, 64) + " of " + units.Plural(int(math.Round(u.Bound)), "processor")
}

// unexplained says that other programs used more processors in a trial that failed than the load
// explains, "" if not. A system that runs on this machine is one of them, so what they used in the
// other trials counts in proportion to the rate, and more. The busiest second counts: a short burst
// is enough to break a limit on a high percentile.
func (s *search) unexplained(o *Outcome) string {
	if o.Others.Bound <= 0 || o.Trial.Rate <= 0 {
		return ""
	}
	least := math.Inf(1)
	for i := range s.history[:s.used] {
		if t := &s.history[i]; t != o && t.Others.Bound > 0 && t.Achieved > 0 {
			least = min(least, t.OthersMost*max(1, mostGrowth*o.Trial.Rate/t.Achieved))
		}
	}
	if math.IsInf(least, 1) || o.OthersMost <= least+mostUnexplained*o.Others.Bound {
		return ""
	}
	most := Use{Used: o.OthersMost, Bound: o.Others.Bound}
	return "other programs used up to " + most.ofProcessors() + ", which the load does not explain"
}
