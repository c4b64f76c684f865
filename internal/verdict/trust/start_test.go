package trust

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
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

// noisy returns a series of n values around 100, whose deviations depend on their neighbours, and
// that climbs by a share over its length.
func noisy(dice *rand.Rand, n int, spread, lag, climb float64) *series {
	s := new(series)
	e := spread * dice.NormFloat64()
	for i := range n {
		e = lag*e + spread*math.Sqrt(1-lag*lag)*dice.NormFloat64()
		s.add(time.Duration(i)*time.Second, time.Second, 100*(1+climb*(float64(i)/float64(n)-0.5)+e))
	}
	return s
}

// TestNeeded: the length follows from the spread and the dependence of the values.
func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		name        string
		spread, lag float64
		want        float64 // intervals: the closed form
	}{
		{"hardly any", 0.001, 0, LeastSeries},
		{"independent", 0.05, 0, 19.4},
		{"independent and large", 0.2, 0, 311},
		{"dependent", 0.1, 0.6, 311},
	} {
		t.Run(c.name, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(3, 3))
			sum := 0.0
			const runs = 40
			for range runs {
				sum += noisy(dice, 400, c.spread, c.lag, 0).needed().Seconds() / runs
			}
			assert.True(t, math.Abs(sum-c.want) <= 0.15*c.want, "got %.1f s, want about %.1f s", sum, c.want)
		})
	}
}

// In a measurement of the needed length, a climb of a tenth is found in about four of five cases.
func TestNeededTells(t *testing.T) {
	const runs = 400
	dice := rand.New(rand.NewPCG(4, 4))
	for _, spread := range []float64{0.05, 0.1} {
		n := int(noisy(dice, 2000, spread, 0, 0).needed().Seconds())
		found := 0
		for range runs {
			s := noisy(dice, n, spread, 0, MostRise)
			if x := s.trend(time.Duration(n) * time.Second); x.rise > 0 && x.chance < mostChance {
				found++
			}
		}
		share := float64(found) / runs
		assert.True(t, math.Abs(share-0.8) <= 0.08, "with %d intervals and a spread of %g: found in %.2f, want about 0.8", n, spread, share)
	}
}

func TestNeededOfLittle(t *testing.T) {
	for name, s := range map[string]*series{
		"nothing": {}, "two values": noisy(rand.New(rand.NewPCG(1, 1)), 2, 0.1, 0, 0),
		"zeros": {at: []float64{1, 2, 3}, weight: []float64{1, 1, 1}, value: []float64{0, 0, 0}},
	} {
		assert.Equal(t, s.needed(), 0, "%s", name)
	}
	constant := &series{at: []float64{1, 2, 3}, weight: []float64{1, 1, 1}, value: []float64{7, 7, 7}}
	assert.Equal(t, constant.needed(), LeastSeries*time.Second, "constant values")
}

// A run in which nothing was answered for a while is not steady, however short the while was, and no text says that it was.
func TestStalledIsNotSteady(t *testing.T) {
	r := &load.Result{Mode: load.OpenLoop, Measurement: measure.Tally{Name: "measurement", End: time.Minute}}
	for i := range 60 {
		iv := measure.Interval{Phase: measure.Measurement, Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second}
		iv.Counts = measure.Counts{Offered: 100, Sent: 100, Acked: 100}
		iv.InFlight = 5
		if i == 29 {
			iv.Acked, iv.InFlight = 0, 105
		}
		iv.Response = measure.NewHistogram()
		iv.Response.RecordN(time.Millisecond, max(iv.Acked, 1))
		r.Intervals = append(r.Intervals, iv)
	}
	s := Steady(r)
	assert.True(t, s.Known && !s.OK && s.Outage == "" && s.Text == "nothing was answered from second 29 to second 30", "got %+v", s)
	// With fewer intervals than show a trend, it says that it cannot tell.
	r.Intervals = r.Intervals[27:31]
	r.Measurement.Start, r.Measurement.End = 27*time.Second, 31*time.Second
	s = Steady(r)
	assert.True(t, !s.Known && strings.HasPrefix(s.Text, "nothing was answered from second 29 to second 30; the measurement was too short"), "got %+v", s)
}

func TestBacklog(t *testing.T) {
	for _, c := range []struct {
		name      string
		behind    []float64
		known, ok bool
		text      string
	}{
		{"too short", []float64{1, 2, 3, 4}, false, false, "too short"},
		{"none", []float64{0, 0, 0, 0, 0, 0, 0, 0}, true, true, "0 events at the start"},
		{"level", []float64{900, 700, 950, 800, 720, 890, 760, 900}, true, true, "at the end"},
		{"grows", []float64{10, 500, 1100, 1500, 2100, 2600, 3000, 3600}, true, false, "the reader is 2.05 x slower than the writer: the backlog grew from 10 to 3,600 events, by 513/s"},
		{"grows by little", []float64{10, 11, 12, 13, 14, 15, 16, 17}, true, true, ""},
		{"one stall", []float64{10, 12, 9000, 4000, 11, 10, 12, 11}, true, true, ""},
		{"stops near the end", []float64{0, 0, 0, 0, 0, 0, 0, 0, 1000, 2000}, true, false, "the reader is 1.29 x slower than the writer: the backlog grew from 0 to 2,000 events, by 222/s"},
		{"stops after three quarters", append(make([]float64, 45), 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 11000, 12000, 13000, 14000, 15000), true, false, "grew"},
		{"a late poll at the end", []float64{0, 300, 0, 200, 0, 400, 100, 0, 0, 900}, true, true, ""},
		{"falls", []float64{9000, 8000, 7000, 6000, 5000, 4000, 3000, 2000}, true, true, ""},
	} {
		var b Backlog // of what is written
		for i, x := range c.behind {
			b.Add(time.Duration(i+1)*time.Second, time.Second, x, 1000)
		}
		known, ok, text := b.KeepsUp()
		assert.True(t, known == c.known && ok == c.ok && strings.Contains(text, c.text),
			"%s: known %v, ok %v, %q; want %v, %v, %q", c.name, known, ok, text, c.known, c.ok, c.text)
	}
}

// TestFarBehind: the words of readers that fall far behind.
func TestFarBehind(t *testing.T) {
	for _, c := range []struct {
		name  string
		read  bool
		grows float64 // a second
		moved float64 // a second
		want  string
	}{
		{"a consumer", true, 21_000, 2283, "the reader is 10.2 x slower than the writer: the backlog grew from 21,000 to 210,000 events, by 21 k/s"},
		{"a round trip", false, 21_000, 23_283, "the reader is 10.2 x slower than the writer: the backlog grew from 21,000 to 210,000 events, by 21 k/s"},
		{"nothing is read", true, 21_000, 0, "nothing is read: the backlog grew from 21,000 to 210,000 events, by 21 k/s"},
		{"hardly anything is read", false, 21_000, 21_100, "the reader is 211 x slower than the writer"},
	} {
		b := Backlog{Read: c.read}
		for i := range 10 {
			b.Add(time.Duration(i+1)*time.Second, time.Second, float64(i+1)*c.grows, c.moved)
		}
		known, ok, got := b.KeepsUp()
		assert.True(t, known && !ok && strings.HasPrefix(got, c.want), "%s: got %v, %v, %q, want %q", c.name, known, ok, got, c.want)
	}
}

// The widest bound of each level, and the next wider one: as a share of the lower value
// if times are long, as an absolute time if they are short.
func TestLevels(t *testing.T) {
	us := time.Microsecond
	widths := []struct {
		lower, upper time.Duration
		want         measure.Level
	}{
		{0, 200 * us, measure.Trusted},
		{0, 201 * us, measure.Noisy},
		{0, 2000 * us, measure.Noisy},
		{0, 2001 * us, measure.NotTrusted},
		{1000 * us, 1200 * us, measure.Trusted},
		{1000 * us, 1201 * us, measure.Noisy},
		{1000 * us, 3000 * us, measure.Noisy},
		{1000 * us, 3001 * us, measure.NotTrusted},
		{10_000 * us, 10_900 * us, measure.Trusted},
		{10_000 * us, 10_901 * us, measure.Noisy},
		{10_000 * us, 13_000 * us, measure.Noisy},
		{10_000 * us, 13_001 * us, measure.NotTrusted},
	}
	for _, c := range []struct {
		name string
		mode load.Mode
		set  func(h *measure.Tally, lower, upper *measure.Histogram)
	}{
		{"response", load.OpenLoop, func(h *measure.Tally, lower, upper *measure.Histogram) { h.Lower.Response, h.Response = lower, upper }},
		{"service", load.ClosedLoop, func(h *measure.Tally, lower, upper *measure.Histogram) { h.Lower.Service, h.Service = lower, upper }},
		{"end_to_end", load.Consuming, func(h *measure.Tally, lower, upper *measure.Histogram) { h.Lower.EndToEnd, h.EndToEnd = lower, upper }},
	} {
		for _, w := range widths {
			t.Run(c.name+" "+w.lower.String()+" to "+w.upper.String(), func(t *testing.T) {
				r := calm(c.mode)
				c.set(&r.Measurement, times(w.lower, 1000), times(w.upper, 1000))
				got := Judge(Input{Result: r})
				assert.True(t, got.Level == w.want && got.OK == (w.want != measure.NotTrusted),
					"got %q, ok %v; want %q", got.Level, got.OK, w.want)
				if w.want == measure.Trusted {
					assert.True(t, len(got.Bounds) == 0, "got bounds %v", got.Bounds)
					return
				}
				want := measure.Bound{Time: c.name, P: 99, Upper: measure.Micros(w.upper), Lower: measure.Micros(w.lower), Level: w.want}
				b := find(got.Bounds, c.name, "", 99)
				assert.True(t, b != nil && *b == want, "got %+v, want %+v among them", got.Bounds, want)
				texts := append(got.Reasons, got.Doubts...)
				assert.True(t, len(texts) == 1 && strings.HasPrefix(texts[0], strings.ReplaceAll(c.name, "_", " ")+" p"),
					"got %q, want one sentence on %s", texts, c.name)
			})
		}
	}
}

func find(bounds []measure.Bound, time, step string, p float64) *measure.Bound {
	for i := range bounds {
		if b := &bounds[i]; b.Time == time && b.Step == step && b.P == p {
			return b
		}
	}
	return nil
}

// Each step is checked by its own times, and their sum is not.
func TestBoundsOfSteps(t *testing.T) {
	r := calm(load.OpenLoop)
	fine, noisy, bad := r.Measurement, r.Measurement, r.Measurement
	fine.Name, noisy.Name, bad.Name = "1 k/s", "2 k/s", "3 k/s"
	noisy.Lower.Response = times(4*time.Millisecond, 1000)
	bad.Lower.Response = times(time.Millisecond, 1000)
	bad.Lower.Service = times(3*time.Millisecond, 1000)
	r.Steps = []measure.Tally{fine, noisy, bad}
	got := Judge(Input{Result: r})
	assert.True(t, !got.OK && len(got.Reasons) == 1 && strings.HasPrefix(got.Reasons[0], "response p99 1 to 5 ms in the step of 3 k/s"), "reasons: got %q", got.Reasons)
	want := []string{
		"response p99 4 to 5 ms in the step of 2 k/s, since the generator was late",
		"service p99 3 to 4 ms in the step of 3 k/s, since the generator was late",
	}
	assert.Same(t, got.Doubts, want)
	for _, b := range got.Bounds {
		assert.True(t, b.Step == "2 k/s" || b.Step == "3 k/s", "got a bound of %q: %+v", b.Step, b)
	}
	// A single step is the complete measurement.
	r.Steps = []measure.Tally{bad}
	got = Judge(Input{Result: r})
	assert.True(t, got.OK, "a measurement of one step is not trusted: got %q", got.Reasons)
}

// Which percentiles count: those up to p99 decide, larger ones are marked, and the largest value is never a percentile.
func TestWhichPercentiles(t *testing.T) {
	slow, less := 50*time.Millisecond, 10*time.Millisecond
	for _, tt := range []struct {
		name    string
		n, late int // events, and how many of them the generator delayed
		extra   []float64
		level   measure.Level
		marked  []float64
		said    string // how the reason begins
	}{
		{name: "one of ten thousand has no percentile", n: 10_000, late: 1, level: measure.Trusted},
		{name: "p99.9", n: 10_000, late: 11, level: measure.Trusted, marked: []float64{99.9, 99.99}},
		{name: "p99", n: 10_000, late: 101, level: measure.NotTrusted, marked: []float64{99, 99.9, 99.99}, said: "response p99 "},
		{name: "p99 of a hundred", n: 100, late: 2, level: measure.NotTrusted, marked: []float64{99}, said: "response p99 "},
		{name: "p99 of 99 is the largest of them", n: 99, late: 2, level: measure.Trusted},
		{name: "p90 of fifty", n: 50, late: 6, level: measure.NotTrusted, marked: []float64{90, 95}, said: "response p95 "},
		{name: "p50 of two", n: 2, late: 2, level: measure.NotTrusted, marked: []float64{50}, said: "response p50 "},
		{name: "one event", n: 1, late: 1, level: measure.Trusted},
		{name: "asked for, and below p99", n: 1000, late: 16, extra: []float64{98.5}, level: measure.NotTrusted, marked: []float64{98.5, 99, 99.9}, said: "response p99 "},
		{name: "asked for, and beyond p99", n: 10_000, late: 60, extra: []float64{99.5}, level: measure.Trusted, marked: []float64{99.5, 99.9, 99.99}},
		{name: "the largest, asked for", n: 10_000, late: 1, extra: []float64{100}, level: measure.Trusted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := calm(load.OpenLoop)
			h := &r.Measurement
			h.Service, h.Lower.Service = nil, nil
			h.Response = times(less, tt.n-tt.late, slow, tt.late)
			h.Lower.Response = times(less, tt.n)
			got := Judge(Input{Result: r, Percentiles: tt.extra})
			var ps []float64
			for _, b := range got.Bounds {
				ps = append(ps, b.P)
			}
			assert.Same(t, ps, tt.marked, "bounds")
			assert.True(t, got.Level == tt.level && (len(got.Reasons) == 1) == (tt.said != "") && (tt.said == "" || strings.HasPrefix(got.Reasons[0], tt.said)),
				"got %q, reasons %q; want %q, %q", got.Level, got.Reasons, tt.level, tt.said)
		})
	}
}

// A lower value that exceeds the upper one does not count.
func TestLowerIsNoMore(t *testing.T) {
	r := calm(load.OpenLoop)
	r.Measurement.Lower.Response = times(20*time.Millisecond, 10)
	got := Judge(Input{Result: r})
	assert.True(t, got.Level == measure.Trusted && len(got.Bounds) == 0, "got %+v", got)
}

// A percentile at a step of the distribution falls on either side of it because of a
// few events. That is not attributed to the generator; a shift of more events is.
func TestStep(t *testing.T) {
	const fast, slow = 5 * time.Millisecond, 100 * time.Millisecond
	for _, tt := range []struct {
		name        string
		slow, lower int // events of 10,000 that were slow, and that are slow in the lower values
		want        measure.Level
	}{
		{"on the step", 1001, 999, measure.Trusted},
		{"within a fiftieth of those beyond it", 1001, 981, measure.Trusted},
		{"more than that", 1001, 970, measure.NotTrusted},
		{"none is left", 1001, 0, measure.NotTrusted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := Input{Result: &load.Result{Mode: load.OpenLoop, Measurement: measure.Tally{Name: measure.Measurement, End: time.Second}}}
			h := &in.Result.Measurement
			h.Response = times(fast, 10_000-tt.slow, slow, tt.slow)
			h.Lower.Response = times(fast, 10_000-tt.lower, slow, tt.lower)
			got := measure.Trusted
			for _, b := range bounds(in) {
				if b.P == 90 {
					got = b.Level
				}
			}
			assert.Equal(t, got, tt.want)
		})
	}
}

// Values that rise evenly have no step, and the percentile itself decides: p50 is 10.5 % above its lower value.
func TestNoStep(t *testing.T) {
	in := Input{Result: &load.Result{Mode: load.FullSpeed, Measurement: measure.Tally{Name: measure.Measurement, End: time.Second}}}
	h := &in.Result.Measurement
	upper, lower := &measure.Histogram{}, &measure.Histogram{}
	for i := range 10_000 {
		d := 10*time.Millisecond + time.Duration(i)*2*time.Microsecond
		lower.Record(d)
		upper.Record(time.Duration(1.105 * float64(d)))
	}
	h.Service, h.Lower.Service = upper, lower
	for _, b := range bounds(in) {
		if b.P == 50 {
			assert.Equal(t, b.Level, measure.Noisy)
			return
		}
	}
	t.Error("p50 is trusted")
}

// TestEntryOfBefore: a fix is read under its name of before, too.
func TestEntryOfBefore(t *testing.T) {
	want := ExaminationEntry{"machine", protocol.Finding{Check: "swap", Level: protocol.LevelNote, Found: "it is on", Fix: "swapoff -a"}}
	now := assert.Value(json.Marshal(want))(t)
	for _, text := range []string{
		string(now),
		`{"about":"machine","check":"swap","level":"note","found":"it is on","mend":"swapoff -a"}`,
	} {
		var got ExaminationEntry
		assert.OK(t, json.Unmarshal([]byte(text), &got))
		assert.Same(t, got, want, "%s", text)
	}
	assert.Equal(t, string(now), `{"about":"machine","check":"swap","level":"note","found":"it is on","fix":"swapoff -a"}`)
}
