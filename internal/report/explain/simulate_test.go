package explain

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// A world makes runs with series and moments that have nothing to do with the incidents.
type world struct {
	*rand.Rand
	seconds int
}

func (w *world) at(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// run returns a run without incidents.
func (w *world) run() *input {
	r := &input{Start: 5 * time.Second, End: w.at(float64(5 + w.seconds)), Usual: 3 * time.Millisecond}
	noise := 0.0
	for i := range w.seconds {
		noise = 0.7*noise + 0.02*w.NormFloat64()
		at := r.Start + w.at(float64(i))
		r.Intervals = append(r.Intervals, interval{
			Start: at, End: at + time.Second,
			P99: time.Duration(5e6 * math.Exp(0.1*w.NormFloat64())), Rate: 10_000 * math.Exp(noise/4), Due: 10_000,
		})
	}
	return r
}

// The sorts of series that explain nothing.
const (
	independent = iota
	slow95      // slow changes
	bursts
	rare      // single peaks
	trend     // a slope, with noise that depends on the last value
	elsewhere // one change of level, at any time
)

// series adds a series. Half of them have means, the others readings.
func (w *world) series(r *input, name string, sort int) {
	c := cause{From: "system", Name: name, Falls: w.IntN(2) == 0, Mean: w.IntN(2) == 0}
	late := w.at(0.02 * w.Float64()) // it is read a little after the interval
	level, burst, at, slope := 0.0, 0, w.Float64()*float64(w.seconds), w.NormFloat64()
	for i, iv := range r.Intervals {
		v := 0.0
		switch sort {
		case independent:
			v = 50 + 5*w.NormFloat64()
		case slow95:
			level = 0.95*level + w.NormFloat64()
			v = 20 + level
		case bursts:
			if burst--; burst < 0 && w.Float64() < 0.02 {
				burst = 5
			}
			if v = w.Float64(); burst > 0 {
				v += 30
			}
		case rare:
			if w.Float64() < 0.04 {
				v = 10 * w.ExpFloat64()
			}
		case trend:
			level = 0.8*level + w.NormFloat64()
			v = slope*float64(i) + level
		case elsewhere:
			v = 50 + w.NormFloat64() + 30*after(float64(i), at, c.Mean)
		}
		c.Cells = append(c.Cells, cell{iv.Start + late, iv.End + late, v})
	}
	r.Causes = append(r.Causes, c)
}

// after is the share of a second after a change; of a reading at its end, all or nothing.
func after(second, at float64, mean bool) float64 {
	share := min(1, max(0, second+1-at))
	if !mean && share > 0 {
		return 1
	}
	return share
}

// moments adds moments at random times, some in clusters.
func (w *world) moments(r *input, name string, perSecond float64) {
	c := cause{From: "system", Name: name, Moments: []span{}}
	for at := r.Start + w.at(w.ExpFloat64()/perSecond); at < r.End; at += w.at(w.ExpFloat64() / perSecond) {
		for range 1 + 2*w.IntN(2) {
			at += w.at(0.1 * w.Float64())
			c.Moments = append(c.Moments, span{at, at + w.at(0.05*w.Float64())})
		}
	}
	r.Causes = append(r.Causes, c)
}

// unrelated adds many causes that explain nothing: 24 series that change in many ways, six that
// have a trend, one that changes its level, and three lists of moments.
func (w *world) unrelated(r *input) {
	for i := range 24 {
		w.series(r, "series "+strconv.Itoa(i), i%4)
	}
	for i := range 6 {
		w.series(r, "trend "+strconv.Itoa(i), trend)
	}
	w.series(r, "another step", elsewhere)
	for i, rate := range []float64{0.02, 0.1, 0.5} {
		w.moments(r, "moments "+strconv.Itoa(i), rate)
	}
}

// stall adds a stall, and what it does to its interval.
func (w *world) stall(r *input, at, length time.Duration) {
	r.Stalls = append(r.Stalls, span{at, at + length})
	for i := range r.Intervals {
		if iv := &r.Intervals[i]; iv.Start < at+length && at < iv.End {
			iv.P99 = max(iv.P99, length)
		}
	}
}

// incidents adds stalls, spikes and perhaps a step at random times, and returns when.
func (w *world) incidents(r *input) {
	for range 2 + w.IntN(10) {
		w.stall(r, r.Start+w.at(w.Float64()*float64(w.seconds-3)), w.at(0.2+w.Float64()))
	}
	for range 1 + w.IntN(6) {
		r.Intervals[w.IntN(w.seconds)].P99 *= 8
	}
	if w.IntN(2) == 0 {
		w.step(r, 6+w.Float64()*float64(w.seconds-12), 0.3)
	}
}

// step lowers the rate from a time on.
func (w *world) step(r *input, at, by float64) {
	for i := range r.Intervals {
		r.Intervals[i].Rate *= 1 - by*after(float64(i), at, true)
	}
}

// climb lets the rate rise over the whole run: it has no step, but the search for steps finds some.
func (w *world) climb(r *input) {
	for i := range r.Intervals {
		r.Intervals[i].Rate *= 1 + 0.4*float64(i)/float64(w.seconds)
	}
}

// limit fails if a share is above a limit by more than three standard errors of the simulation.
func limit(t *testing.T, what string, n, of int, most float64) {
	t.Helper()
	share := float64(n) / float64(of)
	assert.True(t, share <= most+3*math.Sqrt(most*(1-most)/float64(of)), "%s: %d of %d, want at most %g", what, n, of, most)
}

const planted = "planted" // the name of the cause to find

// one lowers the rate once, and returns when its cause came: up to a tenth of a second before.
func (w *world) one(r *input) (at float64) {
	at = 6 + w.Float64()*float64(w.seconds-12)
	w.step(r, at, 0.15+0.35*w.Float64())
	return at - 0.1*w.Float64()
}

// level adds a series that changes its level once, by at least eight deviations of its noise.
func (w *world) level(r *input, at float64, mean bool) {
	c := cause{From: "host", Name: planted, Mean: mean}
	size := 8 + 20*w.Float64()
	for i, iv := range r.Intervals {
		const late = 2 * time.Millisecond
		c.Cells = append(c.Cells, cell{iv.Start + late, iv.End + late, 10 + w.NormFloat64() + size*after(float64(i), at, mean)})
	}
	r.Causes = append(r.Causes, c)
}
