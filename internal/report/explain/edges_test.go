package explain

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// readings returns a series with a value a second.
func readings(x ...float64) (out []cell) {
	for i, v := range x {
		at := time.Duration(i) * time.Second
		out = append(out, cell{at, at + time.Second, v})
	}
	return out
}

func TestPlace(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name      string
		x         []float64
		mean      bool
		deviation float64
		want      span
	}{
		{"between two means", []float64{10, 10, 10, 10, 20, 20, 20, 20}, true, 0, span{3980 * ms, 4020 * ms}},
		{"within a mean", []float64{10, 10, 10, 10, 17.5, 20, 20, 20, 20}, true, 0, span{4230 * ms, 4270 * ms}},
		{"down, within a mean", []float64{20, 20, 20, 20, 17.5, 10, 10, 10, 10}, true, 0, span{4730 * ms, 4770 * ms}},
		{"noise of a tenth", []float64{10, 10, 10, 10, 20, 20, 20, 20}, true, 1, span{3750 * ms, 4250 * ms}},
		{"noise as large as the change", []float64{10, 10, 10, 10, 20, 20, 20, 20}, true, 10, span{0, 8000 * ms}},
		{"readings", []float64{10, 10, 10, 10, 20, 20, 20, 20}, false, 0, span{4000 * ms, 5000 * ms}},
		{"a reading between", []float64{10, 10, 10, 10, 14, 20, 20, 20, 20}, false, 0, span{4000 * ms, 5000 * ms}},
		{"it passes over two values", []float64{10, 10, 10, 10, 13, 17, 20, 20, 20, 20}, true, 0, span{4000 * ms, 6000 * ms}},
		{"beyond both levels", []float64{20, 20, 20, 20, 1, 10, 10, 10, 10}, true, 0, span{4000 * ms, 5000 * ms}},
		{"no change", []float64{10, 10, 10, 10, 10, 10, 10, 10, 10}, true, 0, span{0, 9000 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := place(readings(c.x...), 4, 2, c.mean, c.deviation)
			assert.True(t, got == c.want, "got %v to %v, want %v to %v", got.Start, got.End, c.want.Start, c.want.End)
		})
	}
}

func TestEdges(t *testing.T) {
	level := func(n int, v float64) (out []float64) {
		for i := range n {
			out = append(out, v+float64(i%3))
		}
		return out
	}
	slope := make([]float64, 60)
	for i := range slope {
		slope[i] = 5*float64(i) + float64(i%3)
	}
	for _, c := range []struct {
		name  string
		x     []float64
		lasts int
		want  []time.Duration
	}{
		{"level", level(60, 10), 12, nil},
		{"slope", slope, 12, nil},
		{"one change", slices.Concat(level(30, 10), level(30, 50)), 12, []time.Duration{30 * time.Second}},
		{"a burst does not last", slices.Concat(level(30, 10), level(5, 50), level(30, 10)), 12, nil},
		{"a burst lasts long enough", slices.Concat(level(30, 10), level(5, 50), level(30, 10)), 4, []time.Duration{30 * time.Second, 35 * time.Second}},
		{"one value", slices.Concat(level(30, 10), level(1, 50), level(30, 10)), 3, nil},
		{"too few values", level(5, 10), 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := edges(readings(c.x...), "", false, c.lasts)
			assert.Must(t, len(got) == len(c.want), "got %v, want %v", got, c.want)
			for i, s := range got {
				assert.True(t, s.Start == c.want[i] && s.End == c.want[i]+time.Second,
					"got %v to %v, want the second from %v on", s.Start, s.End, c.want[i])
			}
		})
	}
}

// The sweep over all shifts counts as comparing at each does, and the share of them is what covers the time.
func TestSweep(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	const start, length = 5 * time.Second, 60 * time.Second
	at := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	for range 20 {
		var spans []span
		for from := 5 + 8*rnd.Float64(); from < 60; from += 3 + 12*rnd.Float64() {
			spans = append(spans, span{at(from), at(from + 2*rnd.Float64())})
		}
		active := widened(spans, scale{by: at(0.4 * rnd.Float64()), begins: rnd.IntN(2) == 0}, length)
		from := 5 + 58*rnd.Float64()
		in := span{at(from), at(from + 2*rnd.Float64())}
		tau := make([]time.Duration, 4000)
		for k := range tau {
			tau[k] = length * time.Duration(k) / time.Duration(len(tau))
		}
		hits, n := make([]int, len(tau)), 0
		sweep(active, in, start, length, tau, hits)
		for k, shift := range tau {
			want := 0
			if overlaps(active, in, start, length, shift) {
				want = 1
			}
			n += want
			assert.Must(t, hits[k] == want, "at %v: got %d, want %d", shift, hits[k], want)
		}
		got, want := covered(active, in, start, length), float64(n)/float64(len(tau))
		assert.True(t, math.Abs(got-want) <= 0.01, "got a share of %g, want %g", got, want)
	}
}

// TestStepIsPlaced: an interval between the levels shows when in it the rate changed.
func TestStepIsPlaced(t *testing.T) {
	r := quiet()
	for i := 70; i < 120; i++ {
		r.Intervals[i].Rate *= 0.6
	}
	r.Intervals[70].Rate = 0.75*1000 + 0.25*600
	g := coincidences(r).Groups
	if want := 70*time.Second + 750*time.Millisecond; len(g) != 1 || len(g[0].Incidents) != 1 || g[0].Incidents[0].At.Round(50*time.Millisecond) != want {
		t.Errorf("got %+v, want a step at %v", g, want)
	}
}

// TestTooShort: a series with one change among others cannot be named in a short run, which says
// how long it must be, and is named in one of that length.
func TestTooShort(t *testing.T) {
	explain := func(seconds int) group {
		r := quiet()
		for i := 120; i < seconds; i++ {
			at := time.Duration(i) * time.Second
			r.Intervals = append(r.Intervals, interval{Start: at, End: at + time.Second, P99: 5 * time.Millisecond, Rate: 1000 + float64(i%3), Due: 1000})
		}
		r.Intervals, r.End = r.Intervals[:seconds], time.Duration(seconds)*time.Second
		for i := 34; i < seconds; i++ {
			r.Intervals[i].Rate *= 0.6
		}
		for _, step := range []int{34, 15, 24, 44} {
			c := cause{Name: "series", Unit: "1"}
			for i, iv := range r.Intervals {
				v := float64(i % 2)
				if i >= step {
					v += 20
				}
				c.Cells = append(c.Cells, cell{iv.Start, iv.End, v})
			}
			r.Causes = append(r.Causes, c)
		}
		return coincidences(r).Groups[0]
	}
	g := explain(60)
	assert.Must(t, len(g.Findings) == 0 && g.Needed >= 90*time.Second && g.Needed <= 150*time.Second,
		"in a minute: got %d findings and that %v are needed, want none and about two minutes", len(g.Findings), g.Needed)
	long := explain(int(math.Ceil(g.Needed.Seconds())))
	assert.True(t, len(long.Findings) == 1 && long.Findings[0].Cause == 0 && long.Needed == 0,
		"in %v: got %+v, want the first series", g.Needed, long)
}
