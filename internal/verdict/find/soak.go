package find

import (
	"fmt"
	"math"
	"time"

	"carronade/units"
)

// mostSoakSlots bounds the slots of a soak, so that its report stays readable.
const mostSoakSlots = 1800

// worseBy is how many standard errors the last third of a soak must be worse than the first.
const worseBy = 3

// A Soaked is the result of the soak: the lower end, for long.
type Soaked struct {
	// Result is Pass if the lower end was sustained, Fail if not, and Invalid if the soak says
	// nothing of the system.
	Result Result        `json:"result"`
	For    time.Duration `json:"for_ns"`
	// Sustained is the time until it became worse: all of the soak if it did not, and 0 if the
	// limits failed from the beginning.
	Sustained time.Duration `json:"sustained_ns"`
	Why       string        `json:"why"`
	Thirds    [3]Third      `json:"thirds"`
}

// A Third is a third of a soak.
type Third struct {
	Share   float64 `json:"share"`   // of events that were late for the limit that decided
	Waiting float64 `json:"waiting"` // events that waited for an answer, on average
}

// soak tries the lower end for long, after everything else. Its time is beyond the budget.
func (s *search) soak() error {
	a := &s.answer
	if s.Soak == 0 || !a.HoldsConfirmed || a.Ending == Died || s.Interrupted && s.used >= len(s.history) {
		return nil
	}
	slot := max(s.slot(), (s.Soak / mostSoakSlots).Round(time.Millisecond))
	o, v, err := s.judged(Trial{Role: Soak, Rate: a.Holds, Settle: s.settle, Measure: s.Soak, Slot: slot, Relax: s.relax})
	a.Elapsed = s.elapsed
	if err != nil {
		return err
	}
	result := s.inThirds(o)
	switch {
	case v.Result == Invalid, o.Unclear != "":
		result.Result, result.Why = Invalid, v.Why
	case result.Result == Fail: // it became worse
	case v.Result == Fail:
		result.Result, result.Sustained, result.Why = Fail, 0, v.Why
	default:
		result.Why = v.Why
	}
	a.Soak = &result
	return nil
}

// inThirds compares the last third of a soak with the first. A system that has spent its burst
// credits, or compacts what it has collected, is worse in the last.
func (s *search) inThirds(o *Outcome) Soaked {
	out := Soaked{Result: Pass, For: o.Trial.Measure, Sustained: o.Trial.Measure}
	n := len(o.Slots)
	third := func(i int) *Outcome {
		return &Outcome{Trial: o.Trial, Slots: o.Slots[i*n/3 : (i+1)*n/3]}
	}
	if n < 3*soakBatches {
		return out
	}
	width := o.Trial.Slot
	begin, _ := third(0).waiting()
	for i := range out.Thirds {
		out.Thirds[i].Waiting, _ = third(i).waiting()
	}
	most := 0.0
	for k, limit := range s.Times {
		var thirds [3]clusters
		for i := range thirds {
			// What the generator may have added does not make the last third worse.
			thirds[i].add(third(i), k, o.Trial.Relax, i == 2)
		}
		z := worse(thirds[0].share(), thirds[0].spread(), thirds[2].share(), thirds[2].spread())
		if k > 0 && z <= most {
			continue
		}
		most = z
		for i := range thirds {
			out.Thirds[i].Share = thirds[i].share()
		}
		if z <= worseBy {
			continue
		}
		at := changed(n, func(i int) float64 { return float64(o.Slots[i].Over[k]) })
		var before, after clusters
		before.add(&Outcome{Trial: o.Trial, Slots: o.Slots[:at]}, k, o.Trial.Relax, false)
		after.add(&Outcome{Trial: o.Trial, Slots: o.Slots[at:]}, k, o.Trial.Relax, true)
		out.Result, out.Sustained = Fail, time.Duration(at)*width
		out.Why = fmt.Sprintf("%s (%.3g %% before)", longerText(after.share(), limit), 100*before.share())
	}
	if out.Result == Fail {
		return out
	}
	first, error1 := third(0).waiting()
	last, error3 := third(2).waiting()
	if o.Doubt == "" && worse(first, error1, last, error3) > worseBy && s.large(last-first, o.Achieved, third(2).events()) {
		at := changed(n, func(i int) float64 { return float64(o.Slots[i].Waiting) })
		out.Result, out.Sustained = Fail, time.Duration(at)*width
		out.Why = fmt.Sprintf("the backlog grew from %s to %s", units.Plural(int(begin), "event"), units.Plural(int(last), "event"))
	}
	return out
}

// worse is by how many standard errors a value is larger than the one before.
func worse(before, itsError, after, afterError float64) float64 {
	if after <= before {
		return 0
	}
	if spread := math.Hypot(itsError, afterError); spread > 0 {
		return (after - before) / spread
	}
	return math.Inf(1)
}

// soakBatches is the number of batches of a third whose means give the error of its backlog: the
// length of a queue changes slowly, so the slots themselves say too much.
const soakBatches = 10

// waiting is the mean number of waiting events, with its standard error.
func (o *Outcome) waiting() (mean, spread float64) {
	n := len(o.Slots)
	var sum, squares float64
	for b := range soakBatches {
		from, to := b*n/soakBatches, (b+1)*n/soakBatches
		batch := 0.0
		for i := from; i < to; i++ {
			batch += float64(o.Slots[i].Waiting) / float64(to-from)
		}
		sum, squares = sum+batch, squares+batch*batch
	}
	mean = sum / soakBatches
	return mean, math.Sqrt(max(0, squares/soakBatches-mean*mean) / (soakBatches - 1))
}

// changed is the place that parts n values best into a level and a higher one behind it.
func changed(n int, value func(i int) float64) (at int) {
	var all, before, most float64
	for i := range n {
		all += value(i)
	}
	for i := range n - 1 {
		before += value(i)
		left, right := float64(i+1), float64(n-i-1)
		if d := (all-before)/right - before/left; d > 0 && d*d*left*right > most {
			at, most = i+1, d*d*left*right
		}
	}
	return at
}

// text says how the soak went.
func (k *Soaked) text() string {
	long := units.FormatDuration(k.For.Round(time.Second))
	switch {
	case k.Result == Pass:
		return fmt.Sprintf("sustained for %s: %s", long, k.Why)
	case k.Result == Invalid:
		return fmt.Sprintf("the soak of %s says nothing: %s", long, k.Why)
	case k.Sustained == 0:
		return fmt.Sprintf("not sustained for %s: %s", long, k.Why)
	}
	return fmt.Sprintf("sustained for %s, then %s", units.FormatDuration(k.Sustained.Round(time.Second)), k.Why)
}
