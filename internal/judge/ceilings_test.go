package judge

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"carronade/internal/verdict/stats"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// ceilings are searches with these lower ends whose intervals are of one width.
func ceilings(width float64, lower ...float64) (out []Ceiling) {
	for _, v := range lower {
		out = append(out, Ceiling{Holds: v, Fails: v * (1 + width)})
	}
	return out
}

func TestCompareCeilings(t *testing.T) {
	six := []float64{1000, 1004, 1008, 1012, 1016, 1020}
	unknown := func(c []Ceiling) []Ceiling {
		for i := range c {
			c[i].Fails = 0
		}
		return c
	}
	for _, tt := range []struct {
		name            string
		base, candidate []Ceiling
		want            stats.Verdict
		why             string
	}{
		{"intervals apart, three", ceilings(0.05, 900, 905, 910), ceilings(0.05, 1000, 1004, 1008), stats.Better, ""},
		{"intervals apart, below, three", ceilings(0.05, 1000, 1004, 1008), ceilings(0.05, 900, 905, 910), stats.Worse, ""},
		{"intervals overlap, three", ceilings(0.2, 900, 905, 910), ceilings(0.2, 1000, 1004, 1008), stats.Unknown, "needs 6 repetitions"},
		{"intervals touch, three alike", ceilings(0.02, 1000, 1000, 1000), ceilings(0.02, 1020, 1020, 1020), stats.Unknown, "needs 6 repetitions"},
		{"two", ceilings(0.02, 900, 905), ceilings(0.02, 1500, 1501), stats.Unknown, "needs 6 repetitions"},
		{"six", ceilings(0.02, six...), ceilings(0.02, 1100, 1104, 1108, 1112, 1116, 1120), stats.Better, ""},
		{"six, equal", ceilings(0.02, six...), ceilings(0.02, six...), stats.Same, ""},
		{"six, only wider", ceilings(0.02, 1100, 1104, 1108, 1112, 1116, 1120), ceilings(0.2, six...), stats.Unknown, "by the lower ends of the intervals it is worse, by the upper ends better"},
		{"better than what the generator limited", unknown(ceilings(0, six...)), ceilings(0.02, 1500, 1504, 1508, 1512, 1516, 1520), stats.Unknown, "by the upper ends worse"},
		{"the generator limits what is better", ceilings(0.02, six...), unknown(ceilings(0, 1500, 1504, 1508, 1512, 1516, 1520)), stats.Better, ""},
		{"no rate holds any more", ceilings(0.02, 900, 905, 910), []Ceiling{{0, 1}, {0, 1}, {0, 1}}, stats.Worse, ""},
		{"one side is empty", ceilings(0.02, 900, 905, 910), nil, stats.Unknown, "not measured on both sides"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := CompareCeilings(tt.base, tt.candidate, DefaultEffect, 0, stats.Defaults)
			assert.True(t, j.Verdict == tt.want && strings.Contains(j.Why, tt.why), "got %s, %q, want %s", j.Verdict, j.Why, tt.want)
			if j.Base.Median != nil && *j.Base.Median != tt.base[len(tt.base)/2].Holds && len(tt.base)%2 == 1 {
				t.Errorf("got %v before, want the median of the lower ends", *j.Base.Median)
			}
		})
	}
}

// Equal sides are called different in at most 5 % of comparisons, however the ceiling differs
// between searches, and whatever part of the width of an interval a search adds. A difference of
// 20 % is found.
func TestCompareCeilingsErrorRate(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 2000
	for name, noise := range map[string]func(*rand.Rand) float64{
		"none":   func(*rand.Rand) float64 { return 0 },
		"2 %":    func(r *rand.Rand) float64 { return 0.02 * r.NormFloat64() },
		"10 %":   func(r *rand.Rand) float64 { return 0.1 * r.NormFloat64() },
		"Cauchy": func(r *rand.Rand) float64 { return 0.02 * r.NormFloat64() / math.Abs(r.NormFloat64()) },
		"steps":  func(r *rand.Rand) float64 { return 0.02 * float64(r.IntN(2)) },
	} {
		for _, n := range []int{3, 4, 6} {
			rnd := rand.New(rand.NewPCG(uint64(n), 1))
			side := func(factor float64) (out []Ceiling) {
				for range n {
					width := 0.02 + 0.06*rnd.Float64()
					level := factor * math.Exp(noise(rnd))
					lower := level * (1 - width*rnd.Float64())
					out = append(out, Ceiling{lower, lower * (1 + width)})
				}
				return out
			}
			different, found := 0, 0
			for range trials {
				if v := CompareCeilings(side(1), side(1), DefaultEffect, 0, stats.Defaults).Verdict; v == stats.Better || v == stats.Worse {
					different++
				}
				if CompareCeilings(side(1), side(1.2), DefaultEffect, 0, stats.Defaults).Verdict == stats.Better {
					found++
				}
			}
			t.Logf("%s, %d searches: called different in %.1f %%, 20 %% more found in %.1f %%", name, n, 100*float64(different)/trials, 100*float64(found)/trials)
			assert.True(t, different*20 <= trials,
				"%s, %d searches: equal sides are called different in %d of %d", name, n, different, trials)
			assert.True(t, name != "none" || found*10 >= 9*trials,
				"%s, %d searches: 20 %% more is found in %d of %d", name, n, found, trials)
		}
	}
}
