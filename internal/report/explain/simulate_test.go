package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
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

// A plant puts incidents, and perhaps their cause, into a run. It returns the kind of the incidents whose
// cause it planted; "": none has one.
type plant func(w *world, r *input, seed int) (kind string)

// A rate is a row of the table of docs/explain.md: how often causes are found in simulated runs, among
// many series and moments that explain nothing.
type rate struct {
	what    string
	minutes [2]int // the length of the runs, from and to
	runs    int    // of the table
	few     int    // of an ordinary test; 0: none
	long    bool   // an ordinary test in short mode leaves it out
	times   int    // as many series and moments that explain nothing as in the rows of the page, which does not list these
	misses  bool   // the runs are too short to find most causes
	plant   plant
}

func rates() []rate {
	return []rate{
		{what: "nothing: incidents of all kinds, one step among ten series that change once, or a rate that climbs", minutes: [2]int{1, 3}, runs: 400, few: 28, plant: nothing},
		{what: "pauses make most of the stalls", minutes: [2]int{2, 4}, runs: 200, few: 5, long: true, plant: pauses},
		{what: "regular pauses make regular stalls", minutes: [2]int{2, 4}, runs: 200, few: 5, long: true, plant: regularPauses},
		{what: "steal makes spikes", minutes: [2]int{2, 4}, runs: 200, few: 5, long: true, plant: steal},
		{what: "three changes of leaders make steps", minutes: [2]int{2, 4}, runs: 200, few: 5, long: true, plant: leaders},
		{what: "one change of leaders makes one step", minutes: [2]int{1, 3}, runs: 300, few: 10, plant: oneLeader},
		{what: "one change of a series of means comes with one step", minutes: [2]int{2, 4}, runs: 300, few: 10, plant: oneMean},
		{what: "one change of a series of readings comes with one step", minutes: [2]int{3, 5}, runs: 300, few: 10, plant: oneReading},
		{what: "the same", minutes: [2]int{2, 2}, runs: 120, misses: true, plant: oneReading},
		{what: "five times as many series: a change of leaders", minutes: [2]int{2, 2}, runs: 100, few: 5, times: 5, plant: oneLeader},
		{what: "the same", minutes: [2]int{4, 4}, runs: 100, times: 5, plant: oneLeader},
		{what: "five times as many series: a change of means", minutes: [2]int{2, 2}, runs: 100, times: 5, misses: true, plant: oneMean},
		{what: "the same", minutes: [2]int{4, 4}, runs: 100, times: 5, plant: oneMean},
		{what: "five times as many series: a change of readings", minutes: [2]int{2, 2}, runs: 100, times: 5, misses: true, plant: oneReading},
		{what: "the same", minutes: [2]int{4, 4}, runs: 100, times: 5, misses: true, plant: oneReading},
		{what: "five times as many series: nothing, and one step", minutes: [2]int{2, 4}, runs: 200, times: 5, plant: oneStep},
	}
}

// TestHowOftenItIsRight simulates runs with and without causes, and fails if too few causes are found or too many false ones
// named. An ordinary test makes few runs. In make conformance it makes those of the table in docs/explain.md, logs the table, and
// fails if the page has another one. CARRONADE_TEST_EXPLAIN=n makes n runs for each row of an ordinary test, as make soak does.
func TestHowOftenItIsRight(t *testing.T) {
	number := os.Getenv("CARRONADE_TEST_EXPLAIN")
	whole := testkit.Conformance && number == ""
	page := ""
	if whole && runtime.GOARCH == "amd64" { // others may round differently, and a result that is near its limit then differs
		text := assert.Value(os.ReadFile("../../../docs/explain.md"))(t)
		page = string(text)
	}
	for _, row := range rates() {
		n := testkit.Cases(row.few, (row.few+4)/5)
		switch {
		case whole:
			n = row.runs
		case n == 0:
			continue
		case number != "":
			var err error
			n, err = strconv.Atoi(number)
			assert.Must(t, err == nil && n >= 1, "CARRONADE_TEST_EXPLAIN=%q", number)
		}
		t.Run(strings.ReplaceAll(fmt.Sprintf("%s, %s", row.what, row.length()), " ", "_"), func(t *testing.T) {
			if row.long {
				testkit.Need(t, "some seconds")
			}
			line := row.simulate(t, n)
			t.Log(line)
			assert.True(t, page == "" || row.times > 1 || strings.Contains(page, line+"\n"), "docs/explain.md has another row:\n%s", line)
		})
	}
}

func (row *rate) length() string {
	if row.minutes[0] == row.minutes[1] {
		return fmt.Sprintf("%d min", row.minutes[0])
	}
	return fmt.Sprintf("%d to %d min", row.minutes[0], row.minutes[1])
}

// simulate makes n runs, and returns the row of the table.
func (row *rate) simulate(t *testing.T, n int) string {
	planting, missed, short, wrong := false, 0, 0, 0
	for seed := range n {
		w := &world{rand.New(rand.NewPCG(2, uint64(seed))), 60 * (row.minutes[0] + seed%(row.minutes[1]-row.minutes[0]+1))}
		r := w.run()
		kind := row.plant(w, r, seed)
		for range max(1, row.times) {
			w.unrelated(r)
		}
		named, others, said := false, false, false
		for _, g := range coincidences(r).Groups {
			for _, f := range g.Findings {
				if r.Causes[f.Cause].Name != planted {
					others = true
				} else if g.Kind == kind {
					named = true
				}
			}
			said = said || g.Kind == kind && g.Needed > 0
		}
		if others {
			wrong++
		}
		if planting = kind != ""; planting && !named {
			missed++
			if said {
				short++
			}
		}
	}
	limit(t, "runs in which a false cause was named", wrong, n, 0.05)
	if !row.misses {
		limit(t, "runs whose cause was not found", missed, n, 0.05)
	}
	notFound := ""
	if planting {
		notFound = fmt.Sprintf("%d of %d", missed, n)
	}
	tooShort := ""
	if missed > 0 {
		tooShort = strconv.Itoa(short)
	}
	line := "|"
	for _, cell := range []string{row.what, row.length(), notFound, tooShort, fmt.Sprintf("%d of %d", wrong, n)} {
		if line += " "; cell != "" {
			line += cell + " "
		}
		line += "|"
	}
	return line
}

// nothing adds incidents of all kinds, or a single step among many series that have one, too, or a rate that climbs.
func nothing(w *world, r *input, seed int) string {
	switch seed / 3 % 4 { // the length follows from the seed, too
	case 0, 1:
		w.incidents(r)
	case 2:
		oneStep(w, r, seed)
		for i := range 9 {
			w.series(r, "one more step "+strconv.Itoa(i), elsewhere)
		}
	case 3:
		w.climb(r)
	}
	return ""
}

func oneStep(w *world, r *input, _ int) string {
	w.step(r, 6+w.Float64()*float64(w.seconds-12), 0.15+0.35*w.Float64())
	return ""
}

// pauses makes most of the stalls by pauses.
func pauses(w *world, r *input, _ int) string {
	c := cause{From: "system", Name: planted, Moments: []span{}}
	for range 5 + w.IntN(8) {
		at, length := r.Start+w.at(w.Float64()*float64(w.seconds-3)), w.at(0.2+w.Float64())
		c.Moments = append(c.Moments, span{at, at + length})
		if w.Float64() < 0.9 {
			w.stall(r, at-w.at(0.005*w.Float64()), length+w.at(0.01))
		}
	}
	for range 20 { // short ones do nothing
		at := r.Start + w.at(w.Float64()*float64(w.seconds))
		c.Moments = append(c.Moments, span{at, at + time.Millisecond})
	}
	w.stall(r, r.Start+w.at(w.Float64()*float64(w.seconds-3)), w.at(0.3)) // one has another reason
	r.Causes = append(r.Causes, c)
	return stall
}

func regularPauses(w *world, r *input, _ int) string {
	c := cause{From: "system", Name: planted, Moments: []span{}}
	for at := r.Start + w.at(3*w.Float64()); at < r.End-2*time.Second; at += 7 * time.Second {
		c.Moments = append(c.Moments, span{at, at + w.at(0.3)})
		w.stall(r, at-w.at(0.004*w.Float64()), w.at(0.3))
	}
	r.Causes = append(r.Causes, c)
	return stall
}

func steal(w *world, r *input, _ int) string {
	c := cause{From: "host", Name: planted, Unit: "%"}
	for _, iv := range r.Intervals {
		c.Cells = append(c.Cells, cell{iv.Start + 2*time.Millisecond, iv.End + 2*time.Millisecond, 0.5 * w.ExpFloat64()})
	}
	for range 4 + w.IntN(5) {
		i := w.IntN(w.seconds)
		c.Cells[i].Value = 15 + 20*w.Float64()
		r.Intervals[i].P99 = time.Duration(5e6 * (4 + 4*w.Float64()))
	}
	r.Causes = append(r.Causes, c)
	return spike
}

func leaders(w *world, r *input, _ int) string {
	c := cause{From: "client", Name: planted, Moments: []span{}}
	for k := range 3 {
		at := float64(w.seconds) * (float64(k+1)/4 + w.Float64()/8)
		w.step(r, at, 0.3)
		when := r.Start + w.at(at-0.1*w.Float64())
		c.Moments = append(c.Moments, span{when, when})
	}
	r.Causes = append(r.Causes, c)
	return step
}

// oneLeader, oneMean and oneReading make a single step that has a single cause: the hardest case, since one
// coincidence must be enough.
func oneLeader(w *world, r *input, _ int) string {
	when := r.Start + w.at(w.one(r))
	r.Causes = append(r.Causes, cause{From: "client", Name: planted, Moments: []span{{when, when}}})
	return step
}

func oneMean(w *world, r *input, _ int) string {
	w.level(r, w.one(r), true)
	return step
}

func oneReading(w *world, r *input, _ int) string {
	w.level(r, w.one(r), false)
	return step
}
