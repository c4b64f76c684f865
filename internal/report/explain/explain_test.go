package explain

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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
	if len(g.Incidents) != mostIncidents || g.Left != 200 || !slices.IsSortedFunc(g.Incidents, func(a, b incident) int { return int(a.At - b.At) }) {
		t.Errorf("got %d incidents and %d left, want the %d longest in order of time", len(g.Incidents), g.Left, mostIncidents)
	}
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
