package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// noisyRuns are runs whose numbers vary by their own noise.
func noisyRuns(rnd *rand.Rand, prefix string, n int, p99 float64, noise func(*rand.Rand) float64) []store.Row {
	out := make([]store.Row, n)
	for i := range out {
		at := func(level float64) store.Value {
			return store.Value{Kind: store.KindDuration, Num: level * math.Exp(noise(rnd))}
		}
		rate := store.Value{Kind: store.KindRate, Num: 50e3 * math.Exp(noise(rnd))}
		out[i] = store.Row{ID: fmt.Sprint(prefix, i), At: start.Add(time.Duration(2*i) * time.Minute), Fields: []store.Field{
			{Name: "op", Value: store.Value{Text: "produce"}},
			{Name: "response_p50", Value: at(p99 / 6)},
			{Name: "response_p99", Value: at(p99)},
			{Name: "response_p999", Value: at(p99 * 3)},
			{Name: "system_cores", Value: store.Value{Num: math.Exp(noise(rnd))}},
			{Name: "throughput", Value: rate},
		}}
	}
	return out
}

// heavy is noise with tails: most runs vary by 10 %, and some by much more.
func heavy(r *rand.Rand) float64 {
	squares := 0.0
	for range 2 {
		squares += math.Pow(r.NormFloat64(), 2)
	}
	return 0.1 * r.NormFloat64() / math.Sqrt(squares/2)
}

// The verdict of a comparison of equal sides is better or worse in at most 5 %
// of comparisons, with heavy-tailed noise and few repetitions; and a factor of 2
// is found in 95 % of comparisons of four and four runs that vary by 15 %.
func TestVerdictErrorRates(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 1000
	wide := func(r *rand.Rand) float64 { return 0.15 * r.NormFloat64() }
	twofold := func(r *rand.Rand) float64 { return 0.02*r.NormFloat64() + math.Ln2*float64(r.IntN(2)) }
	for _, tt := range []struct {
		name        string
		n           int
		factor      float64
		noise       func(*rand.Rand) float64
		most, least float64 // shares of better, worse and mixed together, and of worse
	}{
		{"equal, 3 and 3, heavy tails", 3, 1, heavy, 0.05, 0},
		{"equal, 4 and 4, heavy tails", 4, 1, heavy, 0.05, 0},
		{"equal, 5 and 5, heavy tails", 5, 1, heavy, 0.05, 0},
		{"equal, 6 and 6, heavy tails", 6, 1, heavy, 0.05, 0},
		{"equal, 3 and 3, two levels", 3, 1, twofold, 0.05, 0},
		{"equal, 4 and 4, two levels", 4, 1, twofold, 0.05, 0},
		{"equal, 5 and 5, two levels", 5, 1, twofold, 0.05, 0},
		{"twice as long, 4 and 4", 4, 2, wide, 1, 0.95},
		{"7.5 times as long, 4 and 4, heavy tails", 4, 7.5, heavy, 1, 0.95},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(8, uint64(tt.n)))
			different, worse := 0.0, 0.0
			for range trials {
				c, err := Compare(noisyRuns(rnd, "a", tt.n, 0.012, tt.noise), noisyRuns(rnd, "b", tt.n, 0.012*tt.factor, tt.noise), CompareOptions{})
				assert.OK(t, err)
				switch c.Verdict {
				case Worse:
					worse++
					different++
				case "better", Mixed:
					different++
				}
			}
			t.Logf("called different in %.1f%%, worse in %.1f%%", 100*different/trials, 100*worse/trials)
			if different/trials > tt.most || worse/trials < tt.least {
				t.Errorf("called different in %.1f%%, worse in %.1f%%; want at most %.0f%% and at least %.0f%%",
					100*different/trials, 100*worse/trials, 100*tt.most, 100*tt.least)
			}
		})
	}
}

// A comparison that goes on until there is a verdict looks several times, and
// calls equal sides different in at most 5 %, all looks together.
func TestErrorRateOfLooks(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 400
	sum := 0.0
	for range Looks {
		sum += LookAlpha
	}
	assert.True(t, sum <= 0.05+1e-12, "the errors of the looks add up to %v", sum)
	most := Looks[len(Looks)-1]
	for _, tt := range []struct {
		name        string
		factor      float64
		noise       func(*rand.Rand) float64
		most, least float64 // shares of better or worse, and of worse
	}{
		{"equal, heavy tails", 1, heavy, 0.05, 0},
		{"equal, two levels", 1, func(r *rand.Rand) float64 { return 0.02*r.NormFloat64() + math.Ln2*float64(r.IntN(2)) }, 0.05, 0},
		{"twice as long", 2, func(r *rand.Rand) float64 { return 0.15 * r.NormFloat64() }, 1, 0.95},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(13, 1))
			different, worse, runs := 0.0, 0.0, 0
			for range trials {
				base, candidate := noisyRuns(rnd, "a", most, 0.012, tt.noise), noisyRuns(rnd, "b", most, 0.012*tt.factor, tt.noise)
				for _, n := range Looks {
					c := assert.Value(Compare(base[:n], candidate[:n], CompareOptions{Alpha: LookAlpha}))(t)
					r := c.Pairs[0].Rows[0]
					assert.Must(t, r.Confidence == 1-LookAlpha, "an interval of %v, want %v", r.Confidence, 1-LookAlpha)
					if c.Verdict == CannotTell && n < most {
						continue
					}
					runs += n
					switch c.Verdict {
					case Worse:
						worse++
						different++
					case "better", Mixed:
						different++
					}
					break
				}
			}
			t.Logf("called different in %.1f%%, worse in %.1f%%, after %.1f runs of each side", 100*different/trials, 100*worse/trials, float64(runs)/trials)
			if different/trials > tt.most || worse/trials < tt.least {
				t.Errorf("called different in %.1f%%, worse in %.1f%%; want at most %.0f%% and at least %.0f%%",
					100*different/trials, 100*worse/trials, 100*tt.most, 100*tt.least)
			}
		})
	}
}
