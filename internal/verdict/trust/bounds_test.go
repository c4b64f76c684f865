package trust

import (
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

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
	if got.OK || len(got.Reasons) != 1 || !strings.HasPrefix(got.Reasons[0], "response p99 1 to 5 ms in the step of 3 k/s") {
		t.Errorf("reasons: got %q", got.Reasons)
	}
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

// Which percentiles count: those up to p99 decide, larger ones are marked, and the
// largest value is never a percentile.
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
			if got.Level != tt.level || (len(got.Reasons) == 1) != (tt.said != "") || tt.said != "" && !strings.HasPrefix(got.Reasons[0], tt.said) {
				t.Errorf("got %q, reasons %q; want %q, %q", got.Level, got.Reasons, tt.level, tt.said)
			}
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

// Values that rise evenly have no step, and the percentile itself decides: p50 is
// 10.5 % above its lower value.
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
