package find

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
	"carronade/units"
)

// A fast system reaches the highest rate allowed wherever the search begins.
func TestToOfAFastSystem(t *testing.T) {
	for _, to := range []float64{1000, 2000} {
		for _, part := range []float64{0, 0.6, 0.7, 0.8, 0.9, 1} {
			o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute, To: to, From: part * to}
			a, _ := drive(o, func(t Trial, _ int) Outcome { return cliff(t, 100*to) })
			assert.True(t, a.Ending == Highest && a.Holds == to && a.ExitCode(0) == host.ExitOK,
				"to %v from %v: %s, %v holds: %s", to, o.From, a.Ending, a.Holds, a.Why)
		}
	}
}

// A search never offers more than it may. If that holds, it says so and succeeds.
func TestTo(t *testing.T) {
	for _, tt := range []struct {
		name     string
		to, from float64
		server   server
		ending   Ending
		least    float64 // Holds is at least
		most     float64
		code     int
	}{
		{name: "far below the ceiling", to: 500, server: server{service: exponential}, ending: Highest, least: 500, most: 500},
		{name: "from below it", to: 500, from: 400, server: server{service: exponential}, ending: Highest, least: 500, most: 500},
		{name: "from it", to: 500, from: 500, server: server{service: exponential}, ending: Highest, least: 500, most: 500},
		{name: "above the ceiling", to: 1500, server: server{service: exponential}, ending: Found, least: 850, most: 970},
		{name: "far above the ceiling", to: 50_000, server: server{service: exponential}, ending: Found, least: 850, most: 970},
		{name: "a million above the ceiling", to: 1e6, server: server{service: exponential}, ending: Found, least: 850, most: 970},
		{name: "just above the ceiling", to: 1010, server: server{service: constant}, ending: Found, least: 900, most: 1000},
		{name: "fails at low rates", to: 900, server: server{service: constant, delay: batching}, ending: Irregular, code: host.ExitCannotTell},
		{name: "always fails", to: 900, server: server{service: constant, delay: func(*server, float64) float64 { return 1 }}, ending: None, code: host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tally{searches: seeds(t, 5)}
			for seed := range c.searches {
				s := newServer(uint64(seed), tt.server.service)
				s.delay = tt.server.delay
				o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 20 * time.Minute, To: tt.to, From: tt.from}
				a, history := s.find(o)
				for i := range history {
					one := history[i].Trial
					assert.True(t, one.Rate <= tt.to && one.Role != Probe, "seed %d: a trial %+v", seed, one)
				}
				if a.Ending != tt.ending || a.Holds < tt.least || a.Holds > tt.most || a.ExitCode(0) != tt.code {
					c.wrongf(t, "seed %d: %s, %v to %v, %d trials in %v: %s", seed, a.Ending, a.Holds, a.Fails, len(a.Trials), a.Elapsed, a.Why)
				}
				assert.True(t, len(a.Trials) <= MostTrials, "seed %d: %d trials", seed, len(a.Trials))
				if text := a.Headline("p99 < 50 ms"); a.Ending == Highest && !strings.HasPrefix(text, "holds at "+units.FormatRate(a.Holds)+" (p99 < 50 ms): it was the highest rate allowed; ") {
					t.Errorf("got %q", text)
				}
			}
			c.check(t)
		})
	}
}
