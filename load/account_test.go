package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestAccountPhases: whatever an account remembers, it counts in the phase that a moment lies in, also after the
// ends of phases have changed.
func TestAccountPhases(t *testing.T) {
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 1))
		plan := Plan{WarmupEvents: 10 * (seed % 2), WarmupTime: time.Duration(seed%3) * 10, Measurement: Limits{Time: 60}}
		if seed%5 == 0 {
			plan.WarmupEvents, plan.Schedule = 0, Constant(1e9)
			plan.Steps = []Step{{Start: 0, End: 20}, {Start: 20, End: 40}, {Start: 40, End: 60}}
		}
		r := assert.Value(New(plan, &instantTarget{}))(t)
		r.start = time.Now()
		a := newAccount(len(r.phases) + 1)
		for range 300 {
			at := time.Duration(dice.IntN(100))
			if dice.IntN(50) == 0 {
				r.claim(5, at)
			}
			if dice.IntN(200) == 0 {
				r.stopAt.CompareAndSwap(int64(Never), int64(at))
				r.edition.Add(1)
			}
			got := a.at(r, at)
			assert.Must(t, got == &a.phases[r.phaseAt(at)] && a.phase == r.phaseAt(at), "seed %d: at %d in phase %d, want %d", seed, at, a.phase, r.phaseAt(at))
		}
	}
}
