package find

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

// loop is a system under a closed loop: one server, and a delay before it that does not load it.
type loop struct {
	rnd     *rand.Rand
	service float64 // mean, s
	delay   float64 // mean, s
	crowd   float64 // by how much each request in flight slows the service
	most    int     // requests in flight that it stands; 0: any number
}

// run counts what is answered with n requests in flight.
func (l *loop) run(t Trial) Outcome {
	o := Outcome{Trial: t, Elapsed: t.Settle + t.Measure + time.Second}
	if l.most > 0 && t.Concurrency > l.most {
		o.Broken = "events failed: too many connections"
		return o
	}
	start, end := t.Settle.Seconds(), (t.Settle + t.Measure).Seconds()
	arrive := make([]float64, t.Concurrency) // when each request is at the server, by time
	for i := range arrive {
		arrive[i] = l.delay * l.rnd.ExpFloat64()
	}
	slices.Sort(arrive)
	answered, free := 0, 0.0
	for {
		at := arrive[0]
		free = max(free, at) + l.service*(1+l.crowd*float64(t.Concurrency))*l.rnd.ExpFloat64()
		if free >= end {
			break
		}
		if free >= start {
			answered++
		}
		again := free + l.delay*l.rnd.ExpFloat64()
		i, _ := slices.BinarySearch(arrive, again)
		copy(arrive, arrive[1:max(i, 1)])
		arrive[max(i, 1)-1] = again
	}
	o.Achieved = float64(answered) / t.Measure.Seconds()
	return o
}

func (l *loop) find(o *Options) (*Answer, []Outcome) {
	var history []Outcome
	for {
		t, a := o.Next(history)
		if a != nil {
			return a, history
		}
		if t.Concurrency < 1 || t.Rate != 0 || t.Measure <= 0 {
			panic("a trial without a number of requests, or with a rate")
		}
		history = append(history, l.run(*t))
	}
}

// repairmen is the throughput of n requests in flight by the closed form (machines and one repairman).
func repairmen(n int, service, delay float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1; k <= n; k++ {
		term *= float64(n-k+1) * service / delay
		sum += term
	}
	return (1 - 1/sum) / service
}

// The number that is enough is found, within a fifth, where a closed form gives it.
func TestKnee(t *testing.T) {
	const service, delay = 0.001, 0.01
	want := 1
	for repairmen(want, service, delay) < enoughShare/service {
		want++
	}
	c := tally{searches: seeds(t, 5)}
	for seed := range c.searches {
		l := &loop{rnd: rand.New(rand.NewPCG(uint64(seed), 5)), service: service, delay: delay}
		o := &Options{Over: OverConcurrency, Precision: 0.02, Budget: 10 * time.Minute}
		a, _ := l.find(o)
		k := a.Knee
		assert.True(t, len(a.Trials) <= MostTrials && a.Elapsed <= o.Budget, "seed %d: %d trials in %v", seed, len(a.Trials), a.Elapsed)
		if a.Ending != Found || k == nil || a.ExitCode(0) != host.ExitOK {
			c.wrongf(t, "seed %d: %+v", seed, *a)
			continue
		}
		if math.Abs(float64(k.Enough-want)) > 0.2*float64(want) || k.Below >= k.Enough || float64(k.Enough) > kneeWidth*float64(k.Below)+1 {
			c.wrongf(t, "seed %d: got %+v, want %d", seed, *k, want)
		}
		for _, n := range []int{k.Enough, k.Below, k.Best} {
			tried := 0
			for i := range a.Trials {
				if a.Trials[i].Concurrency == n {
					tried++
				}
			}
			assert.True(t, tried >= kneeTrials, "seed %d: %d in flight decides after %d trials", seed, n, tried)
		}
		text := a.Headline("")
		assert.True(t, strings.HasPrefix(text, "enough: ") && strings.Contains(text, "in flight: "), "got %q", text)
	}
	c.check(t)
}

// Other systems end as they should.
func TestKneeOfOthers(t *testing.T) {
	for _, tt := range []struct {
		name       string
		loop       loop
		ending     Ending
		least      int // Enough is at least
		most, code int
	}{
		{"saturated by one", loop{service: 0.001, delay: 1e-9}, Found, 1, 1, 0},
		{"falls again", loop{service: 0.001, delay: 0.05, crowd: 0.02}, Found, 10, 60, 0},
		{"fails with many", loop{service: 0.001, delay: 0.05, most: 20}, Found, 14, 16, 0},
		{"always fails", loop{service: 0.001, delay: 0.05, most: -1}, None, 0, 0, host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.loop.rnd = rand.New(rand.NewPCG(1, 1))
			if tt.loop.most < 0 {
				tt.loop.most, tt.loop.service = 1, math.Inf(1) // nothing is answered
			}
			a, _ := tt.loop.find(&Options{Over: OverConcurrency, Precision: 0.02, Budget: 10 * time.Minute})
			if a.Ending != tt.ending || a.Knee.Enough < tt.least || a.Knee.Enough > tt.most || a.ExitCode(0) != tt.code || len(a.Trials) > MostTrials {
				t.Errorf("got %s, %s, %+v, %d trials", a.Ending, a.Why, *a.Knee, len(a.Trials))
			}
		})
	}
}

// A trial that goes wrong does not end the search at a number that is too low.
func TestKneeWithABadTrial(t *testing.T) {
	find := func(alter func(n int, o *Outcome)) *Answer {
		o := &Options{Over: OverConcurrency, Budget: 10 * time.Minute}
		var history []Outcome
		for {
			trial, a := o.Next(history)
			if a != nil {
				return a
			}
			out := Outcome{Trial: *trial, Achieved: 100 * float64(min(trial.Concurrency, 64)), Elapsed: trial.Measure}
			alter(len(history), &out)
			history = append(history, out)
		}
	}
	slow := func(trials ...int) func(int, *Outcome) {
		return func(n int, o *Outcome) {
			if slices.Contains(trials, n) {
				o.Achieved = 205
			}
		}
	}
	for _, tt := range []struct {
		name  string
		alter func(n int, o *Outcome)
	}{
		{"slow once", slow(2)},
		{"slow twice", slow(2, 3)},
		{"a failure", func(n int, o *Outcome) {
			if n == 3 {
				o.Broken = "1 of 4,000 events failed: timeout"
			}
		}},
	} {
		if a := find(tt.alter); a.Ending != Found || a.Knee.BestThroughput < 6000 || a.Knee.Enough < 58 || a.Knee.Enough > 70 {
			t.Errorf("%s: got %s, %s, %+v", tt.name, a.Ending, a.Why, *a.Knee)
		}
	}
	limited := find(func(_ int, o *Outcome) {
		if o.Trial.Concurrency >= 8 {
			o.Generator = "the generator was late"
		}
	})
	if limited.Ending != AtLeast || limited.ExitCode(0) != host.ExitUntrusted || limited.Knee.Best != 4 {
		t.Errorf("got %s, %s, %+v", limited.Ending, limited.Why, *limited.Knee)
	}
	o := &Options{Over: OverConcurrency, Budget: time.Minute, Interrupted: true}
	_, a := o.Next(nil)
	assert.True(t, strings.HasPrefix(a.Headline(""), "not known which number of requests in flight is enough: interrupted"), "got %q", a.Headline(""))
}

// The law of scalability is shown where it fits: of exact curves it gives the parameters, and for
// a system that stops to scale at once it is not shown.
func TestKneeScalability(t *testing.T) {
	find := func(throughput func(n float64) float64) *Answer {
		o := &Options{Over: OverConcurrency, Precision: 0.02, Budget: 10 * time.Minute}
		var history []Outcome
		for {
			trial, a := o.Next(history)
			if a != nil {
				return a
			}
			history = append(history, Outcome{Trial: *trial, Achieved: throughput(float64(trial.Concurrency)), Elapsed: trial.Measure})
		}
	}
	law := stats.Scalability{Lambda: 1000, Sigma: 0.02, Kappa: 0.0001}
	a := find(law.At)
	got := a.Knee.Scalability
	assert.True(t, got != nil && math.Abs(got.Sigma-law.Sigma) <= 1e-4 && math.Abs(got.Kappa-law.Kappa) <= 1e-6 && strings.Contains(scalability(got), "its peak is at 99"),
		"got %+v", got)
	if a := find(func(n float64) float64 { return 100 * min(n, 64) }); a.Knee.Scalability != nil || a.Knee.Enough != 61 && a.Knee.Enough != 64 {
		t.Errorf("got %+v", *a.Knee)
	}
	if a := find(func(n float64) float64 { return n }); a.Ending != NoTop || a.ExitCode(0) != host.ExitCannotTell {
		t.Errorf("got %+v", *a)
	}
	o := &Options{Over: OverConcurrency, Budget: time.Minute}
	trial, _ := o.Next(nil)
	_, a = o.Next([]Outcome{{Trial: *trial, Achieved: 10, Doubt: "the generator was slow"}, {Achieved: 10}, {Achieved: 10}, {Achieved: 10}, {Achieved: 10}, {Achieved: 10}, {Achieved: 10}})
	assert.True(t, a != nil && a.Ending == AtLeast && a.ExitCode(0) == host.ExitUntrusted, "got %+v", a)
}

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
		{"far from the bound", func(rnd *rand.Rand, load float64) []Use { return []Use{share("cpu", 0.9*full(load), rnd)} }, true, nil},
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
