package find

import (
	"os"
	"strconv"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func p99(x time.Duration) []TimeLimit {
	return []TimeLimit{{Name: "p99<" + x.String(), Within: x, Quantile: 0.99}}
}

// seeds is how many seeds a test tries: few, a fifth of them with -short, or as many as the
// variable says.
func seeds(t *testing.T, few int) int {
	if text := os.Getenv("CARRONADE_TEST_SEEDS"); text != "" {
		n := assert.Value(strconv.Atoi(text))(t)
		return n
	}
	return testkit.Cases(few, (few+4)/5)
}

// A tally counts the searches that answered wrongly. Chance misleads a search now and then, so one
// in twenty may be wrong: of the few seeds of make test, none.
type tally struct{ searches, wrong int }

func (c *tally) wrongf(t *testing.T, format string, args ...any) {
	t.Helper()
	c.wrong++
	t.Logf(format, args...)
}

func (c *tally) check(t *testing.T) {
	t.Helper()
	assert.True(t, c.wrong*20 <= c.searches, "%d of %d searches answered wrongly", c.wrong, c.searches)
}

// The true ceiling of queues with a closed form lies in the answered interval.
func TestClosedForms(t *testing.T) {
	for _, tt := range []struct {
		name    string
		service func(*server, float64) float64
		poisson bool
		ceiling float64 // at p99<50ms
	}{
		{"D/M/1", exponential, false, 953.21},
		{"M/M/1", exponential, true, 907.90},
		{"M/D/1", constant, true, 954.10},
		{"D/D/1", constant, false, 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := seeds(t, 20)
			missed, above, other, trials := 0, 0, 0, 0
			var width, elapsed, longest float64
			for seed := range n {
				s := newServer(uint64(seed), tt.service)
				s.poisson = tt.poisson
				o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
				a, history := s.find(o)
				if testing.Verbose() && seed < 1 {
					t.Logf("%+v", *a)
					for i := range history {
						h := &history[i]
						if h.Trial.Role == Probe {
							continue
						}
						t.Logf("   %-8s %8.1f/s for %v: %+v", h.Trial.Role, h.Trial.Rate, h.Trial.Measure.Round(time.Millisecond), o.Judge(*h))
					}
				}
				if a.Ending != Found {
					other++
					if other <= 3 {
						t.Logf("seed %d: %+v", seed, *a)
					}
				}
				const digits = 1e-4 // of the ceilings above
				if a.Holds > tt.ceiling*(1+digits) || a.Fails > 0 && a.Fails < tt.ceiling*(1-digits) {
					missed++
				}
				if a.HoldsConfirmed && a.Holds > tt.ceiling*(1+a.Wanted) {
					above++
				}
				trials = max(trials, len(a.Trials))
				width += a.Precision / float64(n)
				elapsed += a.Elapsed.Seconds() / float64(n)
				longest = max(longest, a.Elapsed.Seconds())
			}
			t.Logf("%d searches: %d missed, %d above, %d not found; mean width %.3f, mean %.0f s, longest %.0f s, at most %d trials", n, missed, above, other, width, elapsed, longest, trials)
			assert.True(t, missed*20 <= n && above*100 <= n && trials <= MostTrials,
				"%d of %d missed the ceiling, %d confirmed a rate above it, %d trials", missed, n, above, trials)
		})
	}
}
