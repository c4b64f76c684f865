package find

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/test/testkit/assert"
)

// reader makes the outcome of the n-th trial of a search for the ceiling of reading.
type reader func(rnd *rand.Rand, n int) Outcome

// around is a rate near 1,000,000 a second.
func around(rnd *rand.Rand, spread float64) float64 { return 1e6 * (1 + spread*rnd.NormFloat64()) }

// A search for the ceiling of reading repeats full speed until the median is known.
func TestReading(t *testing.T) {
	for _, tt := range []struct {
		name    string
		budget  time.Duration
		read    reader
		ending  Ending
		says    string
		trials  int // at least
		code    int
		atLeast float64
	}{
		{"steady", 10 * time.Minute, func(rnd *rand.Rand, _ int) Outcome { return Outcome{Achieved: around(rnd, 0.003)} }, Found, "the interval of the median of 6 trials at full speed", 7, 0, 0},
		{"at least, and it holds", 10 * time.Minute, func(rnd *rand.Rand, _ int) Outcome { return Outcome{Achieved: around(rnd, 0.003)} }, Found, "", 7, 0, 900_000},
		{"at least, and it does not hold", 10 * time.Minute, func(rnd *rand.Rand, _ int) Outcome { return Outcome{Achieved: around(rnd, 0.003)} }, Found, "", 7, 1, 1_100_000},
		{"noisy", time.Minute, func(rnd *rand.Rand, _ int) Outcome { return Outcome{Achieved: around(rnd, 0.05)} }, Found, "trials at full speed", 8, 0, 0},
		{"the generator at times", 10 * time.Minute, func(rnd *rand.Rand, n int) Outcome {
			if n%3 == 2 {
				return Outcome{Achieved: around(rnd, 0.2) / 2, Doubt: "it did not run"}
			}
			return Outcome{Achieved: around(rnd, 0.002)}
		}, Found, "the median of 6 trials", 9, 0, 0},
		{"the generator", time.Minute, func(rnd *rand.Rand, _ int) Outcome {
			return Outcome{Achieved: around(rnd, 0.002), Doubt: "the clients used 100% of 2 processors"}
		}, AtLeast, "the clients used", 7, 3, 0},
		{"a limit that does not hold", 10 * time.Minute, func(rnd *rand.Rand, _ int) Outcome {
			return Outcome{Achieved: around(rnd, 0.002), Broken: "longest-stall"}
		}, None, "longest-stall", 7, 1, 0},
		{"an empty topic", time.Minute, func(*rand.Rand, int) Outcome { return Outcome{Unclear: "nothing was read"} }, Irregular, "nothing was read", 1, 4, 0},
		{"death", time.Minute, func(rnd *rand.Rand, n int) Outcome {
			if n > 3 {
				return Outcome{Dead: "refused"}
			}
			return Outcome{Achieved: around(rnd, 0.002)}
		}, Died, "refused", 5, 2, 0},
		{"a small budget", 10 * time.Second, nil, Stopped, "the budget does not suffice: reading takes 12 trials", 0, 4, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(20) {
				rnd := rand.New(rand.NewPCG(seed, 3))
				o := &Options{Reading: true, Precision: 0.02, Budget: tt.budget}
				var history []Outcome
				var a *Answer
				for a == nil {
					var next *Trial
					if next, a = o.Next(history); a != nil {
						break
					}
					assert.Must(t, next.Rate == 0 && next.Concurrency == 0 && next.Measure >= time.Second, "got %+v", next)
					out := tt.read(rnd, len(history))
					out.Trial, out.Elapsed = *next, next.Measure
					history = append(history, out)
				}
				if a.Ending != tt.ending || !strings.Contains(a.Why, tt.says) || len(a.Trials) < tt.trials || a.ExitCode(tt.atLeast) != tt.code {
					t.Fatalf("seed %d: %+v, exit code %d", seed, *a, a.ExitCode(tt.atLeast))
				}
				if known := a.Ending == Found || a.Ending == AtLeast; known && (a.Holds < 0.9e6 || a.Fails > 1.1e6 || (a.Ending == AtLeast) != (a.Fails == 0) || a.Ending == Found && a.Holds > a.Fails) {
					t.Errorf("seed %d: %v to %v", seed, a.Holds, a.Fails)
				}
				if a.Bottleneck != nil || len(a.Trials) > MostTrials {
					t.Errorf("seed %d: %+v", seed, *a)
				}
			}
		})
	}
}

// The text of an answer of readers has no words about responses.
func TestReadingText(t *testing.T) {
	a := &Answer{
		Ending: Found, Holds: 1e6, Fails: 1.01e6, HoldsConfirmed: true, Precision: 0.01, Wanted: 0.02, Why: "the interval of the median of 6 trials at full speed",
		Trials: []Tried{
			{Trial: Trial{Role: WarmUp, Measure: time.Second}, Achieved: 5e5, Report: "aaaaaaaa"},
			{Trial: Trial{Role: Read, Measure: 30 * time.Second}, Achieved: 1e6, Report: "bbbbbbbb", Verdict: &Verdict{Result: Pass, Why: "at full speed"}},
			{Trial: Trial{Role: Read, Measure: 30 * time.Second}, Achieved: 1e6, Report: "cccccccc", Verdict: &Verdict{Result: Invalid, Why: "it did not run"}},
		}, Elapsed: time.Minute,
	}
	p := &layout.Page{}
	Head(p, "", "DONE", a.Headline(""))
	a.Details(p)
	assert.Has(t, p.String(),
		"DONE  reading 1 to 1.01 M/s\nthe interval of the median of 6 trials at full speed; 3 trials", "\n  precision     1%\n",
		"full speed     1 M/s  30 s  bbbbbbbb  counts\n", "cccccccc  invalid: it did not run\n")
}
