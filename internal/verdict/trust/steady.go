package trust

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// The bounds of Steady.
const (
	MostRise      = 0.10 // over the measurement, of the mean
	LeastSeries   = 5    // intervals
	mostChance    = 0.05 // probability of such a series without a trend
	mostSeries    = 300  // points between which slopes are computed; the number of pairs grows quadratically
	shortInterval = 0.5  // of the usual length: the last interval of a phase is often incomplete
)

// Steady decides whether the run was steady: whether events in flight, or the mean
// response time (service time, if there is none) of the intervals, climbed over the
// measurement by more than a tenth of their mean. If the run has several steps, each is
// checked separately, and the worst is reported.
//
// The slope is the Theil-Sen estimate, the median of the slopes between all pairs of
// intervals, which is robust against a single stalled interval (P. K. Sen, Estimates of
// the regression coefficient based on Kendall's tau, 1968). A climb counts if Kendall's
// rank test on the same pairs gives it a probability of less than 5 % in a series
// without trend. If the schedule itself climbs or falls by more than a tenth, there is
// no result.
//
// A run with complete intervals in which the system accepted no event, or refused most
// events, is never steady, whatever its trends are. They are an outage if they are more
// than a tenth of all intervals, or five consecutive seconds.
func Steady(r *load.Result) measure.Steady {
	perBatch := 1.0
	if r.Measurement.Batches > 0 {
		perBatch = max(float64(r.Measurement.Sent)/float64(r.Measurement.Batches), 1)
	}
	all := spans(r)
	var worst *measure.Steady
	var unknown measure.Steady
	for _, s := range all {
		v := withOutage(steady(rows(r.Intervals, s.Start, s.End), r.Mode, perBatch), outageOf(r, s))
		if len(all) > 1 && !v.OK {
			v.Text += " (" + s.Name + ")"
		}
		switch {
		case !v.Known:
			unknown = v
		case worst == nil || worse(v, *worst):
			worst = &v
		}
	}
	if worst == nil {
		worst = &unknown
	}
	if len(all) > 1 && worst.OK { // steps may be too short to show an outage
		return withOutage(*worst, outageOf(r, &r.Measurement))
	}
	return *worst
}

// withOutage adds an outage to the result of the trends.
func withOutage(s measure.Steady, o outage) measure.Steady {
	s.Silent = o.share
	switch {
	case o.text == "":
	case o.bad && !s.Known, s.Known && s.OK:
		s.Text = o.text
	default:
		s.Text = o.text + "; " + s.Text
	}
	if s.Known && o.text != "" {
		s.OK = false
	}
	if o.bad {
		s.OK, s.Known, s.Outage = false, true, o.text
		s.OutageAt, s.OutageLength = o.longest.start.Seconds(), (o.longest.end - o.longest.start).Seconds()
	}
	return s
}

// worse compares verdicts: an outage is worse than a climb.
func worse(a, b measure.Steady) bool {
	switch {
	case a.OK != b.OK:
		return !a.OK
	case a.Silent != b.Silent && !a.OK:
		return a.Silent > b.Silent
	}
	return rise(a) > rise(b)
}

func rise(s measure.Steady) float64 { return max(s.InFlightRise, s.ResponseRise) }

// rows returns the intervals that lie within the span, without incomplete ones. An
// interval in which two steps meet has a row for each; they are joined here.
func rows(series []measure.Interval, start, end time.Duration) []measure.Interval {
	var in []measure.Interval
	longest := time.Duration(0)
	for _, iv := range series {
		if iv.Start < start || iv.End > end || iv.Phase != measure.Measurement {
			continue
		}
		longest = max(longest, iv.Length())
		if n := len(in); n > 0 && in[n-1].Start == iv.Start {
			in[n-1] = measure.Join(in[n-1], iv)
			continue
		}
		in = append(in, iv)
	}
	return slices.DeleteFunc(in, func(iv measure.Interval) bool {
		return float64(iv.Length()) < shortInterval*float64(longest)
	})
}

func steady(in []measure.Interval, mode load.Mode, perBatch float64) measure.Steady {
	var inFlight, response, offered series
	name := "service"
	for _, iv := range in {
		length := iv.Length()
		offered.add(iv.Start+length/2, length, float64(iv.Offered)/length.Seconds())
		inFlight.add(iv.End, length, float64(iv.InFlight))
		times := iv.Response
		if times.Count() == 0 {
			times = iv.Service
		} else {
			name = "response"
		}
		if times.Count() > 0 {
			response.add(iv.Start+length/2, length, float64(times.Mean())/float64(time.Microsecond))
		}
	}
	if len(in) < LeastSeries {
		s := measure.Steady{OK: true, Text: fmt.Sprintf("the measurement was too short to tell (%s, at least %d are needed)", units.Plural(len(in), "whole interval"), LeastSeries)}
		if n := response.needed(); n > 0 {
			s.Needed = n.Seconds()
			s.Text += fmt.Sprintf("; a climb of %s would show in a measurement of about %s", units.FormatPercent(MostRise), units.FormatDuration(n))
		}
		return s
	}
	span := in[len(in)-1].End - in[0].Start
	if mode == load.OpenLoop {
		if t := offered.trend(span); math.Abs(t.rise) > MostRise && t.chance < mostChance {
			return measure.Steady{OK: true, Text: "the target rate changed, so it cannot have a trend"}
		}
	}

	f, t := inFlight.trend(span), response.trend(span)
	s := measure.Steady{
		Known: true, OK: true,
		InFlightSlope: f.slope, InFlightRise: f.rise,
		ResponseSlope: t.slope, ResponseRise: t.rise, Needed: response.needed().Seconds(),
	}
	var climbs []string
	// A rise by less than a batch may only depend on where in a batch the interval
	// ended.
	if f.climbs() && f.slope*span.Seconds() >= perBatch {
		climbs = append(climbs, fmt.Sprintf("events in flight climbed by %s over the measurement (%+.3g/s)", units.FormatPercent(f.rise), f.slope))
	}
	if t.climbs() {
		climbs = append(climbs, fmt.Sprintf("the mean %s time climbed by %s over the measurement (%s/s)", name,
			units.FormatPercent(t.rise), "+"+units.FormatDuration(time.Duration(t.slope*float64(time.Microsecond)))))
	}
	if s.OK = len(climbs) == 0; s.OK {
		s.Text = "no upward trend"
		return s
	}
	s.Text = strings.Join(climbs, "; ")
	return s
}

// A series contains values over time, with the length of time that each represents.
type series struct {
	at, weight, value []float64
}

func (s *series) add(at, weight time.Duration, v float64) {
	s.at = append(s.at, at.Seconds())
	s.weight = append(s.weight, weight.Seconds())
	s.value = append(s.value, v)
}

// thin returns the series with at most mostSeries points, each the mean of neighbours.
func (s *series) thin() series {
	per := (len(s.at) + mostSeries - 1) / mostSeries
	if per <= 1 {
		return *s
	}
	var out series
	for i := 0; i < len(s.at); i += per {
		j := min(i+per, len(s.at))
		var at, weight, value float64
		for k := i; k < j; k++ {
			weight += s.weight[k]
			at += s.at[k] * s.weight[k]
			value += s.value[k] * s.weight[k]
		}
		out.at, out.weight, out.value = append(out.at, at/weight), append(out.weight, weight), append(out.value, value/weight)
	}
	return out
}

// A trend describes the change of a series over a span of time.
type trend struct {
	slope  float64 // per second
	rise   float64 // slope times span, as a share of the mean
	chance float64 // probability of as strong a climb or fall in a series without trend
}

func (t trend) climbs() bool { return t.rise > MostRise && t.chance < mostChance }

func (s *series) trend(span time.Duration) trend {
	if len(s.at) < LeastSeries {
		return trend{chance: 1}
	}
	p := s.thin()
	n := len(p.at)
	slopes := make([]float64, 0, n*(n-1)/2)
	concordant := 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			d := p.value[j] - p.value[i]
			switch {
			case d > 0:
				concordant++
			case d < 0:
				concordant--
			}
			if dt := p.at[j] - p.at[i]; dt > 0 {
				slopes = append(slopes, d/dt)
			}
		}
	}
	slices.Sort(slopes)
	var t trend
	if len(slopes) > 0 {
		m := len(slopes) / 2
		t.slope = (slopes[m] + slopes[len(slopes)-1-m]) / 2
	}
	var mean, weight float64
	for i := range n {
		mean += p.value[i] * p.weight[i]
		weight += p.weight[i]
	}
	mean /= weight
	if mean > 0 {
		t.rise = t.slope * span.Seconds() / mean
	}
	t.chance = kendall(concordant, n, ties(p.value))
	return t
}

// kendall returns the one-sided probability of at least |s| in the Mann-Kendall rank
// test for trend over n values: normal approximation with continuity correction and
// ties (R. O. Gilbert, Statistical Methods for Environmental Pollution Monitoring,
// 1987, 16.4). At n = 5 it is 1.4 %, the exact value for a perfect climb 0.8 %.
func kendall(s, n int, tied []int) float64 {
	v := float64(n) * float64(n-1) * float64(2*n+5)
	for _, t := range tied {
		v -= float64(t) * float64(t-1) * float64(2*t+5)
	}
	if v <= 0 || s == 0 {
		return 1
	}
	z := (math.Abs(float64(s)) - 1) / math.Sqrt(v/18)
	return math.Erfc(z/math.Sqrt2) / 2
}

// ties returns the sizes of the groups of equal values.
func ties(values []float64) []int {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	var out []int
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		if j-i > 1 {
			out = append(out, j-i)
		}
		i = j
	}
	return out
}
