package profile

import (
	"fmt"
	"math"
	"strings"
	"time"

	"carronade/load"
	"carronade/units"
)

// The families of arrivals.
const (
	NoPace       = "unknown" // no times, or all the same
	ConstantPace = "constant"
	PoissonPace  = "poisson"
	RampPace     = "ramp"
	BurstPace    = "burst"
	StepsPace    = "steps"
)

// A PaceFit is a schedule that fits the times of a sample.
type PaceFit struct {
	Family string        `json:"family"`
	Shape  string        `json:"shape,omitempty"` // as --shape takes it
	Rate   float64       `json:"rate_per_s"`      // mean, events a second
	Span   time.Duration `json:"span_ns"`         // from the first event to the last
	First  time.Time     `json:"first_at,omitzero"`
	Events uint64        `json:"events"` // with a time
	// Error is the largest difference between the share of the events that had come and the
	// share that the schedule had due, at any time.
	Error      float64     `json:"error"`
	Dispersion *Dispersion `json:"dispersion,omitempty"`
}

const (
	// shortest is the time below which a rate says more about buffers than about a source.
	shortest     = 500 * time.Millisecond
	paceSegments = 24
	// paceTolerance is the deviation of a part's rate from a shape that is accepted even if it is
	// more than chance.
	paceTolerance = 0.05
	// chance is the number of standard deviations that count as chance.
	chance = 4
)

// Fit finds a schedule. together is how many events have one time because they were sent in
// one piece: windows in which the dispersion is computed have many of those.
func (a *Arrivals) Fit(together float64) PaceFit {
	f := PaceFit{Family: NoPace, Events: a.n, Span: a.Span(), Rate: a.Rate()}
	if a.n > 0 {
		f.First = a.First()
	}
	if f.Rate == 0 || a.n < 10 || f.Span < shortest {
		return f
	}
	d, ok := a.Dispersion(20 * max(1, together))
	if ok {
		f.Dispersion = &d
	}
	if a.burst(&f, together) {
		f.Error = a.distance(f)
		return f
	}
	rates, deviations := a.segments(d)
	span := f.Span
	switch low, high, steady := line(rates, deviations); {
	case steady && ok && d.Local > 0.5 && d.Local < 1.6 && together < 2:
		f.Family, f.Shape = PoissonPace, fmt.Sprintf("poisson(%s):%s", rate(f.Rate), length(span))
	case steady:
		f.Family, f.Shape = ConstantPace, fmt.Sprintf("constant(%s):%s", rate(f.Rate), length(span))
	case high >= 0:
		// The line through the parts, with the mean rate of the whole.
		shift := f.Rate - (low+high)/2
		f.Family, f.Shape = RampPace, fmt.Sprintf("ramp(%s,%s,%s)", rate(max(0, low+shift)), rate(max(0, high+shift)), length(span))
	default:
		f.Family, f.Shape = StepsPace, steps(rates, f.Rate, span)
	}
	f.Error = a.distance(f)
	return f
}

// rate writes a rate for a shape, to four digits.
func rate(perSecond float64) string {
	if perSecond > 0 {
		digits := math.Pow(10, 3-math.Floor(math.Log10(perSecond)))
		perSecond = math.Round(perSecond*digits) / digits
	}
	return units.FlagRate(perSecond)
}

// length writes a duration for a shape, to a millisecond or to four digits.
func length(d time.Duration) string {
	unit := time.Millisecond
	for d/unit >= 100_000 {
		unit *= 10
	}
	return units.FlagDuration(max(d.Round(unit), time.Millisecond))
}

// segments returns the rates in equal parts of the time, and how far chance moves them.
func (a *Arrivals) segments(d Dispersion) (rates, deviations []float64) {
	bins := a.last - a.first + 1
	k := max(1, bins/paceSegments)
	seconds := float64(k*a.width) / 1e9
	// The part of the last bins that does not fill a segment is left out.
	for _, c := range a.counts(k) {
		rates = append(rates, c/seconds)
		deviations = append(deviations, math.Sqrt(max(1, d.Local)*max(c, 1))/seconds)
	}
	return rates, deviations
}

// line fits a line to rates. steady: a constant is near enough. high is below 0 if the line is
// not near enough.
func line(rates, deviations []float64) (low, high float64, steady bool) {
	n := float64(len(rates))
	mean, _ := moments(rates)
	sxy, sxx := 0.0, 0.0
	for i, r := range rates {
		x := (float64(i)+0.5)/n - 0.5
		sxy += x * (r - mean)
		sxx += x * x
	}
	slope := 0.0
	if sxx > 0 {
		slope = sxy / sxx
	}
	steady, near := true, true
	for i, r := range rates {
		allowed := max(paceTolerance*mean, chance*deviations[i])
		steady = steady && math.Abs(r-mean) <= allowed
		near = near && math.Abs(r-mean-slope*((float64(i)+0.5)/n-0.5)) <= allowed
	}
	// A trend may be hidden in what chance allows each part.
	if chanceOfSlope := chance * math.Sqrt(sum(deviations, 2)/n/sxx); math.Abs(slope) > max(chanceOfSlope, 2*paceTolerance*mean) {
		steady = false
	}
	if !near {
		return 0, -1, steady
	}
	return mean - slope/2, mean + slope/2, steady
}

func sum(v []float64, power float64) float64 {
	s := 0.0
	for _, x := range v {
		s += math.Pow(x, power)
	}
	return s
}

// steps writes rates as steps, and joins equal ones. Their mean is that of the whole.
func steps(rates []float64, mean float64, span time.Duration) string {
	of, _ := moments(rates)
	each := span / time.Duration(len(rates))
	var parts []string
	for i := 0; i < len(rates); {
		j, total := i, 0.0
		for j < len(rates) && math.Abs(rates[j]-rates[i]) <= 0.02*mean {
			total += rates[j]
			j++
		}
		perSecond := max(total/float64(j-i)*mean/of, mean/1000) // a step has a rate
		parts = append(parts, fmt.Sprintf("%s:%s", rate(perSecond), length(each*time.Duration(j-i))))
		i = j
	}
	return "steps(" + strings.Join(parts, ",") + ")"
}

// burst finds bursts of equal size at equal intervals, with nothing between them.
func (a *Arrivals) burst(f *PaceFit, together float64) bool {
	bins := a.last - a.first + 1
	type cluster struct{ start, end, n float64 }
	var found []cluster
	empty, gap := int64(0), int64(3)
	for bin := a.first; bin <= a.last; bin++ {
		c := float64(a.bins[bin&(maxBins-1)])
		if c == 0 {
			empty++
			gap++
			continue
		}
		if gap >= 3 {
			found = append(found, cluster{start: float64(bin)})
		}
		last := &found[len(found)-1]
		last.end, last.n, gap = float64(bin), last.n+c, 0
	}
	if len(found) < 4 || float64(empty) < 0.5*float64(bins) {
		return false
	}
	var periods, sizes []float64
	longest := 0.0
	for i, c := range found {
		longest = max(longest, c.end-c.start+1)
		if i > 0 {
			periods = append(periods, c.start-found[i-1].start)
			sizes = append(sizes, found[i-1].n) // the last one may be cut
		}
	}
	period, pv := moments(periods)
	size, sv := moments(sizes)
	if size < 4*max(together, 4) {
		return false // single events, or batches
	}
	if math.Sqrt(pv) > 0.1*period+1 || math.Sqrt(sv) > 0.2*size || longest > 0.3*period {
		return false
	}
	every := time.Duration(period * float64(a.width))
	f.Family = BurstPace
	f.Shape = fmt.Sprintf("burst(%.0f,%s):%s", size, length(every), length(every*time.Duration(len(found))))
	return true
}

// distance is the largest difference between the share of events that had come and that which
// a shape has due.
func (a *Arrivals) distance(f PaceFit) float64 {
	shape := f.Shape
	if f.Family == PoissonPace { // its mean, without the chance of one draw
		shape = fmt.Sprintf("constant(%s):%s", rate(f.Rate), length(f.Span))
	}
	schedule, err := load.ParseShape(shape)
	if err != nil {
		return 1 // rates or times beyond what a schedule can have
	}
	due := func(s float64) float64 { return float64(schedule.Count(units.Seconds(s))) }
	total, reached, most := float64(a.n), 0.0, 0.0
	width := float64(a.width) / 1e9
	last := f.Span.Seconds() + 2*width // the last events are due at the very end
	end := max(due(last), 1)
	for bin := a.first; bin <= a.last; bin++ {
		before := reached
		reached += float64(a.bins[bin&(maxBins-1)])
		// Times are known to a bin: the nearest one counts.
		d0 := due(max(0, float64((bin-1)*a.width-a.min)/1e9)) / end
		d1 := due(max(0, min(last, float64((bin+2)*a.width-a.min)/1e9))) / end
		most = max(most, before/total-d1, d0-reached/total)
	}
	return most
}
