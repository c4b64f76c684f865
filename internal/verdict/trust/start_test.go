package trust

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A startNoise describes how the intervals of simulated runs differ.
type startNoise struct {
	name   string
	sd     float64 // of the logarithm of an interval's times
	spikes float64 // share of intervals whose p99 is eight times as long
	stalls float64 // share of intervals in which everything takes three times as long
}

// startsFound is the share of simulated runs of n intervals with a start: by p50, p99 or
// throughput, as Start looks for it. The first slow intervals take three times as long.
func startsFound(noise startNoise, n, slow int) float64 {
	const runs = 3000
	rnd, found := rand.New(rand.NewPCG(1, 2)), 0
	p50, p99, each := make([]float64, n), make([]float64, n), make([]float64, n)
	for range runs {
		for i := range n {
			factor := math.Exp(noise.sd * rnd.NormFloat64())
			if i < slow {
				factor *= 3
			}
			if rnd.Float64() < noise.stalls {
				factor *= 3
			}
			p50[i] = factor * math.Exp(0.02*rnd.NormFloat64())
			p99[i] = 4 * factor * math.Exp(0.1*rnd.NormFloat64())
			if rnd.Float64() < noise.spikes {
				p99[i] *= 8
			}
			each[i] = factor * math.Exp(0.02*rnd.NormFloat64())
		}
		if unlike(p50, leastForOne) > 0 || unlike(p99, leastForOneP99) > 0 || unlike(each, leastForOne) > 0 {
			found++
		}
	}
	return float64(found) / runs
}

// At most 2 % of runs that are steady may get a warning.
func TestStartQuiet(t *testing.T) {
	testkit.Need(t, "some seconds")
	for _, n := range []int{10, 11, 12, 15, 17, 18, 20, 25, 30, 39, 40, 60} {
		for _, noise := range []startNoise{
			{"none", 0, 0, 0},
			{"5 %", 0.05, 0, 0},
			{"15 %", 0.15, 0, 0},
			{"30 %", 0.3, 0, 0},
			{"some spikes", 0.1, 0.05, 0},
			{"many spikes", 0.1, 0.3, 0},
			{"some stalls", 0.1, 0, 0.02},
			{"stalls and spikes", 0.1, 0.1, 0.02},
		} {
			got := startsFound(noise, n, 0)
			assert.True(t, got <= 0.02, "noise %s, %d intervals: %.1f %% false alarms, want at most 2", noise.name, n, 100*got)
		}
	}
}

// A start of 1 to 3 of 20 intervals that are three times as slow is found.
func TestStartFound(t *testing.T) {
	for slow := 1; slow <= 3; slow++ {
		for _, noise := range []startNoise{
			{"none", 0, 0, 0}, {"10 %", 0.1, 0, 0}, {"15 %", 0.15, 0, 0}, {"spikes", 0.1, 0.05, 0},
		} {
			got := startsFound(noise, 20, slow)
			assert.True(t, got >= 0.95, "noise %s, %d s: found in %.1f %%, want at least 95", noise.name, slow, 100*got)
		}
	}
}

// started is a run with a start that takes three times as long.
func started(mode load.Mode, intervals, slow int) *load.Result {
	r := &load.Result{Mode: mode, Warmup: measure.Tally{End: 2 * time.Second}}
	r.Measurement = measure.Tally{Name: "measurement", Start: 2 * time.Second, End: time.Duration(2+intervals) * time.Second}
	for i := range intervals {
		iv := measure.Interval{
			Phase: measure.Measurement, Start: time.Duration(2+i) * time.Second, End: time.Duration(3+i) * time.Second,
			Counts: measure.Counts{Offered: 900, Sent: 900, Acked: 900}, Set: measure.Set{Service: times(3*time.Millisecond, 900)},
		}
		if i < slow {
			iv.Service = times(9*time.Millisecond, 900)
			if mode == load.ClosedLoop {
				iv.Offered, iv.Sent, iv.Acked = 300, 300, 300
				iv.Service = times(9*time.Millisecond, 300)
			}
		}
		if mode == load.OpenLoop {
			iv.Response = iv.Service
			r.Measurement.Response = iv.Service
		}
		r.Intervals = append(r.Intervals, iv)
	}
	return r
}

func TestStart(t *testing.T) {
	for _, test := range []struct {
		name  string
		run   *load.Result
		alter func(r *load.Result)
		want  []string // fragments; none: nothing is said
	}{
		{"open loop", started(load.OpenLoop, 20, 3), nil, []string{
			"the first 3 s of the measurement differ from the rest: response p50 9 ms, 3 ms after it; response p99 9 ms, 3 ms after it; ",
			"--warmup 5s leaves them out", // with the warm-up that it had
		}},
		{"closed loop", started(load.ClosedLoop, 20, 2), nil, []string{"service p50 9 ms, 3 ms after it", "300/s acked, 900/s after it", "--warmup 4s"}},
		{"full speed", started(load.FullSpeed, 20, 1), nil, []string{"the first 1 s of", "--warmup 3s"}},
		{"ten intervals", started(load.OpenLoop, 10, 2), nil, []string{"--warmup 4s"}},
		{"too few intervals", started(load.OpenLoop, 9, 2), nil, nil},
		{"one of ten", started(load.OpenLoop, 10, 1), nil, nil},
		{"no start", started(load.OpenLoop, 20, 0), nil, nil},
		{"half of it", started(load.OpenLoop, 20, 10), nil, nil},
		{"consuming", started(load.Consuming, 20, 3), nil, nil},
		{"steps", started(load.OpenLoop, 20, 3), func(r *load.Result) { r.Steps = make([]measure.Tally, 2) }, nil},
		{"a ramp", started(load.OpenLoop, 20, 3), func(r *load.Result) {
			for i := range r.Intervals {
				r.Intervals[i].Offered = uint64(1000 + 50*i)
			}
		}, nil},
		{"random arrivals", started(load.OpenLoop, 20, 3), func(r *load.Result) {
			for i := range r.Intervals {
				r.Intervals[i].Offered += uint64(60 * (i % 2))
			}
		}, []string{"--warmup 5s"}},
		{"an outage", started(load.OpenLoop, 20, 3), func(r *load.Result) { r.Steady.Outage = "nothing was answered" }, nil},
		{"few events", started(load.OpenLoop, 20, 3), func(r *load.Result) {
			for i := range r.Intervals {
				r.Intervals[i].Response = times(r.Intervals[i].Response.Max(), 5)
			}
		}, nil},
		{"the same later", started(load.OpenLoop, 20, 1), func(r *load.Result) {
			for _, i := range []int{7, 11, 12} {
				r.Intervals[i].Response = r.Intervals[0].Response
			}
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.alter != nil {
				test.alter(test.run)
			}
			got := Start(test.run)
			assert.Equal(t, (got == ""), (test.want == nil))
			assert.Has(t, got, test.want...)
		})
	}
}
