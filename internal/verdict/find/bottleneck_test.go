package find

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// causes makes the uses of a trial. load is the rate over the capacity of the server.
type causes func(rnd *rand.Rand, load float64) []Use

// share is the use of one resource with noise.
func share(name string, used float64, rnd *rand.Rand) Use {
	return Use{Resource: name, Used: min(1, max(0, used+0.01*rnd.NormFloat64())), Bound: 1}
}

// full is what a resource is used that the server's capacity follows from.
func full(load float64) float64 { return min(1, load) }

// Planted causes are named, and nothing else is.
func TestBottleneck(t *testing.T) {
	const slow, fast = 20 * time.Millisecond, 2 * time.Millisecond
	for _, tt := range []struct {
		name  string
		uses  causes
		slows bool // answers take longer above the ceiling
		want  []string
	}{
		{"processors", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share("cpu", full(load), rnd), share("disk", 0.3*load, rnd)}
		}, true, []string{"cpu"}},
		{"a fixed part", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share("cpu", 0.3+0.7*full(load), rnd)}
		}, true, []string{"cpu"}},
		{"two", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share("disk", full(load), rnd), share("network", 1.02*full(load), rnd)}
		}, true, []string{"disk", "network"}},
		{"flat and full", func(rnd *rand.Rand, _ float64) []Use { return []Use{share("cpu", 0.99, rnd)} }, true, nil},
		{"nearly flat", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share("memory", 0.9+0.1*full(load), rnd)}
		}, true, nil},
		{"far from the bound", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share("cpu", 0.9*full(load), rnd)}
		}, true, nil},
		{"at random", func(rnd *rand.Rand, _ float64) []Use {
			return []Use{{Resource: "disk", Used: rnd.Float64(), Bound: 1}}
		}, true, nil},
		{"falling", func(rnd *rand.Rand, load float64) []Use { return []Use{share("cpu", 1.9-full(load), rnd)} }, true, nil},
		{"the window, because answers are slow", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share(Window, full(load), rnd)}
		}, true, nil},
		{"the window", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share(Window, full(load), rnd)}
		}, false, []string{Window}},
		{"one connection", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share(Busiest, full(load), rnd), share(Window, 0.3*full(load), rnd)}
		}, true, []string{Busiest}},
		{"all connections", func(rnd *rand.Rand, load float64) []Use {
			return []Use{share(Busiest, full(load), rnd), share(Window, 0.9*full(load), rnd)}
		}, true, nil},
		{"nothing", func(*rand.Rand, float64) []Use { return nil }, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := tally{searches: seeds(t, 5)}
			for seed := range c.searches {
				s := newServer(uint64(seed), exponential)
				rnd := rand.New(rand.NewPCG(uint64(seed), 2))
				o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
				var history []Outcome
				var answer *Answer
				for answer == nil {
					var next *Trial
					if next, answer = o.Next(history); answer != nil {
						break
					}
					out := s.run(*next, o.Times)
					out.Uses, out.Service = tt.uses(rnd, next.Rate*mean), fast
					if tt.slows && next.Rate*mean > 0.9 {
						out.Service = slow
					}
					history = append(history, out)
				}
				b := answer.Bottleneck
				if answer.Ending != Found || b == nil {
					c.wrongf(t, "seed %d: %+v", seed, *answer)
					continue
				}
				var got []string
				for i := range b.Limits {
					got = append(got, b.Limits[i].Resource)
				}
				slices.Sort(got)
				if !slices.Equal(got, tt.want) {
					c.wrongf(t, "seed %d: got %q, want %q: %s", seed, got, tt.want, b.Text())
				}
			}
			c.check(t)
		})
	}
}

// A bottleneck in words, and that it needs trials.
func TestBottleneckText(t *testing.T) {
	at := func(role Role, rate, used float64) Outcome {
		return Outcome{Trial: Trial{Role: role, Rate: rate, Measure: time.Second}, Achieved: rate, Uses: []Use{{"processors of the system", used, 2, "processors"}, {"memory of this machine", 3 << 30, 24 << 30, "bytes"}}}
	}
	history := []Outcome{at(WarmUp, 100, 2), at(Search, 500, 0.98), at(Search, 800, 1.55), at(Search, 1000, 1.96), at(Confirm, 1000, 1.98), at(Beyond, 2000, 0.1)}
	for _, tt := range []struct {
		history []Outcome
		fails   float64
		want    string
	}{
		{history, 1000, "processors of the system 98.5% of 2, 49% at 500/s"},
		{history, 800, "too few trials to tell"},
		{history, 900, "too few trials to tell"},
		{append(history, at(Search, 900, 2)), 900, "too few trials to tell"},
		{[]Outcome{at(Search, 500, 0.4), at(Search, 800, 0.7), at(Search, 900, 0.8), at(Search, 1000, 0.9)}, 1000, "nothing that was watched was at its limit because of the load; the fullest: processors of the system 45% of 2; memory of this machine 12.5% of 24 GiB"},
		{[]Outcome{{}, {}}, 1000, "too few trials to tell"},
	} {
		assert.Equal(t, bottleneck(tt.history, tt.fails).Text(), tt.want)
	}
	assert.True(t, bottleneck(history, 0) == nil, "no bottleneck was named where no rate fails")
	data, err := json.Marshal(bottleneck(history, 1000))
	if err != nil || !strings.HasPrefix(string(data), `{"limits":[{"resource":"processors of the system","used":1.97,"bound":2,"unit":"processors","least":0.98,"least_rate":500}],"watched":[`) {
		t.Errorf("got %s, %v", data, err)
	}
}
