package explain

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// seeds is how many runs each simulation makes. CARRONADE_TEST_EXPLAIN=n makes n, as make soak does.
func seeds(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("CARRONADE_TEST_EXPLAIN")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CARRONADE_TEST_EXPLAIN=%q", text)
	}
	return n
}

// A world makes runs with series and moments that have nothing to do with the incidents.
type world struct {
	*rand.Rand
	seconds int
}

func (w *world) at(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// run returns a run without incidents.
func (w *world) run() *Run {
	r := &Run{Start: 5 * time.Second, End: w.at(float64(5 + w.seconds)), Usual: 3 * time.Millisecond}
	noise := 0.0
	for i := range w.seconds {
		noise = 0.7*noise + 0.02*w.NormFloat64()
		at := r.Start + w.at(float64(i))
		r.Intervals = append(r.Intervals, Interval{
			Start: at, End: at + time.Second,
			P99: time.Duration(5e6 * math.Exp(0.1*w.NormFloat64())), Rate: 10_000 * math.Exp(noise/4), Due: 10_000,
		})
	}
	return r
}

// series adds a series: independent values, slow changes, bursts, or rare single peaks.
func (w *world) series(r *Run, name string, sort int) {
	c := Cause{From: "system", Name: name, Falls: w.IntN(2) == 0}
	late := w.at(0.02 * w.Float64()) // it is read a little after the interval
	level, burst := 0.0, 0
	for _, iv := range r.Intervals {
		v := 0.0
		switch sort % 4 {
		case 0:
			v = 50 + 5*w.NormFloat64()
		case 1:
			level = 0.95*level + w.NormFloat64()
			v = 20 + level
		case 2:
			if burst--; burst < 0 && w.Float64() < 0.02 {
				burst = 5
			}
			if v = w.Float64(); burst > 0 {
				v += 30
			}
		case 3:
			if w.Float64() < 0.04 {
				v = 10 * w.ExpFloat64()
			}
		}
		c.Cells = append(c.Cells, Cell{iv.Start + late, iv.End + late, v})
	}
	r.Causes = append(r.Causes, c)
}

// moments adds moments at random times, some in clusters.
func (w *world) moments(r *Run, name string, perSecond float64) {
	c := Cause{From: "system", Name: name, Moments: []Span{}}
	for at := r.Start + w.at(w.ExpFloat64()/perSecond); at < r.End; at += w.at(w.ExpFloat64() / perSecond) {
		for range 1 + 2*w.IntN(2) {
			at += w.at(0.1 * w.Float64())
			c.Moments = append(c.Moments, Span{at, at + w.at(0.05*w.Float64())})
		}
	}
	r.Causes = append(r.Causes, c)
}

// unrelated adds many causes that explain nothing.
func (w *world) unrelated(r *Run) {
	for i := range 24 {
		w.series(r, "series "+strconv.Itoa(i), i)
	}
	for i, rate := range []float64{0.02, 0.1, 0.5} {
		w.moments(r, "moments "+strconv.Itoa(i), rate)
	}
}

// stall adds a stall, and what it does to its interval.
func (w *world) stall(r *Run, at, length time.Duration) {
	r.Stalls = append(r.Stalls, Span{at, at + length})
	for i := range r.Intervals {
		if iv := &r.Intervals[i]; iv.Start < at+length && at < iv.End {
			iv.P99 = max(iv.P99, length)
		}
	}
}

// incidents adds stalls, spikes and perhaps a step at random times, and returns when.
func (w *world) incidents(r *Run) {
	for range 2 + w.IntN(10) {
		w.stall(r, r.Start+w.at(w.Float64()*float64(w.seconds-3)), w.at(0.2+w.Float64()))
	}
	for range 1 + w.IntN(6) {
		r.Intervals[w.IntN(w.seconds)].P99 *= 8
	}
	if w.IntN(2) == 0 {
		w.step(r, 10+w.IntN(w.seconds-20))
	}
}

func (w *world) step(r *Run, from int) {
	for i := from; i < w.seconds; i++ {
		r.Intervals[i].Rate *= 0.7
	}
}

// TestNothingIsNamedByChance simulates runs in which nothing explains the incidents.
func TestNothingIsNamedByChance(t *testing.T) {
	n := seeds(t, 20)
	wrong := 0
	for seed := range n {
		w := &world{rand.New(rand.NewPCG(1, uint64(seed))), 60 + 60*(seed%3)}
		r := w.run()
		w.incidents(r)
		w.unrelated(r)
		for _, g := range Explain(r).Groups {
			if len(g.Findings) > 0 {
				wrong++
				break
			}
		}
	}
	limit(t, "runs in which a false cause was named", wrong, n, 0.05)
}

// limit fails if a share is above a limit by more than three standard errors of the simulation.
func limit(t *testing.T, what string, n, of int, most float64) {
	t.Helper()
	share := float64(n) / float64(of)
	t.Logf("%s: %d of %d", what, n, of)
	if share > most+3*math.Sqrt(most*(1-most)/float64(of)) {
		t.Errorf("%s: %d of %d, want at most %g", what, n, of, most)
	}
}

// TestPlantedCausesAreFound simulates runs with a cause for most of the incidents of a kind, among
// many unrelated ones.
func TestPlantedCausesAreFound(t *testing.T) {
	const name = "planted"
	plants := map[string]func(w *world, r *Run) (kind string){
		"pauses make stalls": func(w *world, r *Run) string {
			c := Cause{From: "system", Name: name, Moments: []Span{}}
			for range 5 + w.IntN(8) {
				at, length := r.Start+w.at(w.Float64()*float64(w.seconds-3)), w.at(0.2+w.Float64())
				c.Moments = append(c.Moments, Span{at, at + length})
				if w.Float64() < 0.9 {
					w.stall(r, at-w.at(0.005*w.Float64()), length+w.at(0.01))
				}
			}
			for range 20 { // short ones do nothing
				at := r.Start + w.at(w.Float64()*float64(w.seconds))
				c.Moments = append(c.Moments, Span{at, at + time.Millisecond})
			}
			w.stall(r, r.Start+w.at(w.Float64()*float64(w.seconds-3)), w.at(0.3)) // one has another reason
			r.Causes = append(r.Causes, c)
			return Stall
		},
		"regular pauses make regular stalls": func(w *world, r *Run) string {
			c := Cause{From: "system", Name: name, Moments: []Span{}}
			for at := r.Start + w.at(3*w.Float64()); at < r.End-2*time.Second; at += 7 * time.Second {
				c.Moments = append(c.Moments, Span{at, at + w.at(0.3)})
				w.stall(r, at-w.at(0.004*w.Float64()), w.at(0.3))
			}
			r.Causes = append(r.Causes, c)
			return Stall
		},
		"steal makes spikes": func(w *world, r *Run) string {
			c := Cause{From: "host", Name: name, Unit: "%"}
			for range r.Intervals {
				c.Cells = append(c.Cells, Cell{Value: 0.5 * w.ExpFloat64()})
			}
			for i := range r.Intervals {
				c.Cells[i].Start, c.Cells[i].End = r.Intervals[i].Start+2*time.Millisecond, r.Intervals[i].End+2*time.Millisecond
			}
			for range 4 + w.IntN(5) {
				i := w.IntN(w.seconds)
				c.Cells[i].Value = 15 + 20*w.Float64()
				r.Intervals[i].P99 = time.Duration(5e6 * (4 + 4*w.Float64()))
			}
			r.Causes = append(r.Causes, c)
			return Spike
		},
		"a leader changes, and the rate falls": func(w *world, r *Run) string {
			at := 12 + w.IntN(w.seconds-24)
			w.step(r, at)
			when := r.Intervals[at].Start - w.at(0.1*w.Float64())
			r.Causes = append(r.Causes, Cause{From: "client", Name: name, Moments: []Span{{when, when}}})
			return Step
		},
	}
	n := seeds(t, 5)
	for what, plant := range plants {
		t.Run(what, func(t *testing.T) {
			missed, wrong := 0, 0
			for seed := range n {
				w := &world{rand.New(rand.NewPCG(2, uint64(seed))), 120 + 60*(seed%3)}
				r := w.run()
				kind := plant(w, r)
				w.unrelated(r)
				named, others := false, false
				for _, g := range Explain(r).Groups {
					for _, f := range g.Findings {
						if r.Causes[f.Cause].Name != name {
							others = true
						} else if g.Kind == kind {
							named = true
						}
					}
				}
				if !named {
					missed++
				}
				if others {
					wrong++
				}
			}
			limit(t, "runs whose cause was not found", missed, n, 0.05)
			limit(t, "runs in which a false cause was named", wrong, n, 0.05)
		})
	}
}
