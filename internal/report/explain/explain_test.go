package explain

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

// quiet returns a run of two minutes without noise.
func quiet() *input {
	r := &input{Start: 0, End: 2 * time.Minute, Usual: 2 * time.Millisecond}
	for i := range 120 {
		at := time.Duration(i) * time.Second
		r.Intervals = append(r.Intervals, interval{Start: at, End: at + time.Second, P99: 5*time.Millisecond + time.Duration(i%3)*10*time.Microsecond, Rate: 1000 + float64(i%3), Due: 1000})
	}
	return r
}

func kinds(res result) (out []string) {
	for _, g := range res.Groups {
		out = append(out, g.Kind)
	}
	return out
}

func TestIncidents(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *input)
		want   []string
		at     time.Duration
	}{
		{"nothing", func(*input) {}, nil, 0},
		{"a stall", func(r *input) { r.Stalls = []span{{10 * time.Second, 11 * time.Second}} }, []string{stall}, 10 * time.Second},
		{"a stall of a slow system", func(r *input) {
			r.Usual, r.Stalls = 400*time.Millisecond, []span{{10 * time.Second, 11 * time.Second}}
		}, nil, 0},
		{"a stall in the warm-up", func(r *input) {
			r.Start, r.Stalls = 20*time.Second, []span{{10 * time.Second, 11 * time.Second}}
		}, nil, 0},
		{"a stall and its spike", func(r *input) {
			r.Stalls = []span{{10 * time.Second, 10*time.Second + 900*time.Millisecond}}
			r.Intervals[10].P99, r.Intervals[11].P99 = time.Second, time.Second
		}, []string{stall}, 10 * time.Second},
		{"a spike", func(r *input) { r.Intervals[40].P99 = 50 * time.Millisecond }, []string{spike}, 40 * time.Second},
		{"two intervals are one spike", func(r *input) {
			r.Intervals[40].P99, r.Intervals[41].P99 = 50*time.Millisecond, 40*time.Millisecond
		}, []string{spike}, 40 * time.Second},
		{"a little higher", func(r *input) { r.Intervals[40].P99 = 9 * time.Millisecond }, nil, 0},
		{"another level is not a spike", func(r *input) {
			for i := 60; i < 120; i++ {
				r.Intervals[i].P99 = 50 * time.Millisecond
			}
		}, nil, 0},
		{"a step", func(r *input) {
			for i := 70; i < 120; i++ {
				r.Intervals[i].Rate *= 0.6
			}
		}, []string{step}, 70 * time.Second},
		{"one low interval is not a step", func(r *input) { r.Intervals[70].Rate = 0 }, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := quiet()
			c.change(r)
			res := coincidences(r)
			got := kinds(res)
			assert.Must(t, slices.Equal(got, c.want), "got %v, want %v", got, c.want)
			if len(c.want) == 1 && (len(res.Groups[0].Incidents) != 1 || res.Groups[0].Incidents[0].At != c.at) {
				t.Errorf("got %+v, want one at %v", res.Groups[0].Incidents, c.at)
			}
		})
	}
}

func TestScheduledStep(t *testing.T) {
	r := quiet()
	for i := 70; i < 120; i++ {
		r.Intervals[i].Rate *= 2
		r.Intervals[i].Due *= 2
	}
	at := r.Intervals[70].Start
	r.Causes = []cause{{Name: "coincides", Moments: []span{{at, at}}}}
	g := coincidences(r).Groups
	assert.True(t, len(g) == 1 && g[0].Incidents[0].Scheduled && len(g[0].Findings) == 0 &&
		g[0].Unexplained(r.Causes) == 0, "got %+v, want a step that the schedule makes, and no other cause", g)
}

// TestSignsExplainNothing: what failed at the time of a stall came with it.
func TestSignsExplainNothing(t *testing.T) {
	r := quiet()
	c := cause{Name: "timeouts", Sign: true}
	for _, iv := range r.Intervals {
		c.Cells = append(c.Cells, cell{iv.Start, iv.End, 0})
	}
	for _, s := range []int{11, 23, 44, 71, 90, 101} {
		at := time.Duration(s)*time.Second + 300*time.Millisecond
		r.Stalls = append(r.Stalls, span{at, at + 300*time.Millisecond})
		c.Cells[s].Value = 10
	}
	r.Causes = []cause{c}
	g := coincidences(r).Groups[0]
	assert.True(t, len(g.Findings) == 1 && g.Findings[0].Hits == 6 && g.Unexplained(r.Causes) == 6,
		"got %+v, want a finding that explains none of 6", g)
}

// TestAlso: of two causes of the same incidents, the clearer comes first.
func TestAlso(t *testing.T) {
	r := quiet()
	exact, often := cause{Name: "exact", Moments: []span{}}, cause{Name: "often", Moments: []span{}}
	for _, s := range []int{11, 23, 44, 71, 90, 101, 113} {
		at := time.Duration(s) * time.Second
		r.Stalls = append(r.Stalls, span{at, at + 300*time.Millisecond})
		exact.Moments = append(exact.Moments, span{at, at})
		often.Moments = append(often.Moments, span{at - 150*time.Millisecond, at - 150*time.Millisecond})
	}
	r.Causes = []cause{often, exact}
	f := coincidences(r).Groups[0].Findings
	assert.True(t, len(f) == 2 && f[0].Cause == 1 && !f[0].Also && f[0].Within == 20*time.Millisecond && f[1].Also &&
		f[1].Within == 200*time.Millisecond, "got %+v, want the exact one first, within 20 ms, and the other also", f)
}

func TestManyIncidentsAreBounded(t *testing.T) {
	r := quiet()
	for i := range 400 {
		at := time.Duration(i) * 250 * time.Millisecond
		r.Stalls = append(r.Stalls, span{at, at + time.Duration(110+i%100)*time.Millisecond})
	}
	g := coincidences(r).Groups[0]
	assert.True(t, len(g.Incidents) == mostIncidents && g.Left == 200 && slices.IsSortedFunc(g.Incidents, func(a, b incident) int { return int(a.At - b.At) }),
		"got %d incidents and %d left, want the %d longest in order of time", len(g.Incidents), g.Left, mostIncidents)
}

// TestBegunBefore: what began before the measurement did not begin with it.
func TestBegunBefore(t *testing.T) {
	r := quiet()
	r.Start = 10 * time.Second
	at := r.Start + 5*time.Millisecond
	r.Stalls = []span{{at, at + 400*time.Millisecond}}
	r.Causes = []cause{{Name: "fault", Moments: []span{{5 * time.Second, 40 * time.Second}}}}
	g := coincidences(r).Groups[0]
	assert.True(t, len(g.Findings) == 0, "got %+v, want nothing", g.Findings)
}

// TestTheSameTwice: the same input gives the same result.
func TestTheSameTwice(t *testing.T) {
	results := func() (out []finding) {
		w := &world{rand.New(rand.NewPCG(7, 7)), 60}
		r := w.run()
		for i := range 6 {
			at := r.Start + time.Duration(9*i+1)*time.Second
			w.stall(r, at, 300*time.Millisecond)
			r.Causes = append(r.Causes, cause{Name: "x", Moments: []span{{at, at}}})
		}
		w.unrelated(r)
		for _, g := range coincidences(r).Groups {
			out = append(out, g.Findings...)
		}
		return out
	}
	a, b := results(), results()
	assert.True(t, slices.Equal(a, b), "got %+v and %+v", a, b)
}

// TestTails compares with the definition of the binomial distribution.
func TestTails(t *testing.T) {
	got := tails(3, 0.2)
	for k, want := range []float64{1, 1 - 0.8*0.8*0.8, 3*0.04*0.8 + 0.008, 0.008} {
		p := math.Exp(-got[k])
		assert.True(t, math.Abs(p-want) <= 1e-12, "at least %d of 3 at 0.2: got %g, want %g", k, p, want)
	}
}

func TestOverlapsAroundTheEnds(t *testing.T) {
	const second = time.Second
	active := widened([]span{{1 * second, 2 * second}, {9 * second, 10 * second}}, scale{by: second / 2}, 10*second)
	for _, c := range []struct {
		at, shift time.Duration
		want      bool
	}{
		{5 * second, 0, false},
		{2 * second, 0, true},
		{2*second + 600*time.Millisecond, 0, false},
		{5 * second, 7 * second, true},                           // at 2 s
		{5 * second, 5 * second, true},                           // at 0 s: less than half a second after the end
		{5 * second, 3*second + 400*time.Millisecond, false},     // at 8.4 s
		{5 * second, 3*second + 500*time.Millisecond, true},      // at 8.5 s
		{9500 * time.Millisecond, 9500 * time.Millisecond, true}, // at 9 s
	} {
		assert.Equal(t, overlaps(active, span{c.at, c.at}, 0, 10*second, c.shift), c.want, "%v shifted by %v", c.at, c.shift)
	}
}

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
		got := place(readings(c.x...), 4, 2, c.mean, c.deviation)
		assert.True(t, got == c.want, "%s: got %v to %v, want %v to %v", c.name, got.Start, got.End, c.want.Start, c.want.End)
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
	want := 70*time.Second + 750*time.Millisecond
	assert.True(t, len(g) == 1 && len(g[0].Incidents) == 1 && g[0].Incidents[0].At.Round(50*time.Millisecond) == want, "got %+v, want a step at %v", g, want)
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

// TestFreezes: the overlap of a stall with a freeze of the generator is printed, and is not a finding. The generator is also frozen twice in each other second, so each coincidence may be chance.
func TestFreezes(t *testing.T) {
	freeze := func(at, length float64) report.Moment {
		return report.Moment{From: "generator", Name: "freeze", AtS: at, LengthS: length}
	}
	const nothing = "nothing that was watched explains"
	for _, c := range []struct {
		name      string
		stalls    []report.Span
		freezes   []report.Moment
		want, not string
	}{
		{"none at its time", []report.Span{{AtS: 11.01, LengthS: 0.254}}, []report.Moment{freeze(10.9, 0.1)}, nothing + " it: 254 ms at 11.01 s", "overlap"},
		{
			"at its beginning",
			[]report.Span{{AtS: 11.01, LengthS: 0.254}},
			[]report.Moment{freeze(11, 0.11)},
			"frozen a freeze of the generator overlaps 100 ms of its 254 ms at 11.01 s; nothing else that was watched explains it", nothing,
		},
		{
			"two, which overlap, of two machines",
			[]report.Span{{AtS: 11, LengthS: 0.3}},
			[]report.Moment{freeze(11.1, 0.05), freeze(11.05, 0.07)},
			"freezes of the generator overlap 100 ms of its 300 ms at 11 s", nothing,
		},
		{
			"of one of two stalls",
			[]report.Span{{AtS: 11.01, LengthS: 0.254}, {AtS: 47, LengthS: 0.2}},
			[]report.Moment{freeze(11.1, 0.1)},
			"frozen 1 of 2: a freeze of the generator overlaps 100 ms of its 254 ms at 11.01 s; nothing else that was watched explains it unexplained 1 of 2: 200 ms at 47 s", nothing,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := document(t)
			d.Stall.Count, d.Stall.Spans, d.Moments = uint64(len(c.stalls)), c.stalls, c.freezes
			for i := range 60 {
				if at := 5 + float64(i); at != 11 && at != 47 {
					d.Moments = append(d.Moments, freeze(at, 0.3), freeze(at+0.5, 0.3))
				}
			}
			x := Explain(d)
			g := &x.Groups[0]
			assert.True(t, len(g.Findings) <= 0 && g.Unexplained == len(c.stalls), "got the findings %+v and %d unexplained, want none, and all", g.Findings, g.Unexplained)
			got := text(t, x)
			assert.True(t, strings.Contains(got, c.want) && !strings.Contains(got, c.not), "want %q, and no %q, in:\n%s", c.want, c.not, got)
		})
	}
}

// A stall in which a client had no connection says so, before freezes that overlap a part of it.
func TestUnconnected(t *testing.T) {
	for _, c := range []struct {
		name    string
		moments []report.Moment
		want    string
	}{
		{
			"refused",
			[]report.Moment{{From: "client", Name: "no connection", AtS: 10.2, LengthS: 28.9}, {From: "client", Name: "no connection", AtS: 10.3, LengthS: 28.8}, {From: "generator", Name: "freeze", AtS: 12, LengthS: 2}},
			"unconnected a client had no connection for 28.9 s of its 29 s at 10.1 s, in which the generator was frozen for 2 s",
		},
		{
			"for a moment",
			[]report.Moment{{From: "client", Name: "no connection", AtS: 20, LengthS: 1}, {From: "generator", Name: "freeze", AtS: 12, LengthS: 2}},
			"frozen a freeze of the generator overlaps 2 s of its 29 s at 10.1 s",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := document(t)
			d.Stall.Count, d.Stall.Spans, d.Moments = 1, []report.Span{{AtS: 10.1, LengthS: 29}}, c.moments
			got := text(t, Explain(d))
			assert.True(t, strings.Contains(got, c.want), "want %q in:\n%s", c.want, got)
		})
	}
}
