package find

import (
	"cmp"
	"fmt"
	"slices"

	"carronade/units"
)

// A CurvePoint is a trial as a point of the load-latency curve.
type CurvePoint struct {
	Rate    float64
	Result  Result // "" if the trial was not judged
	Verdict *Verdict
	Times   []Quantile
	Role    Role
}

// Curve are the trials at a rate that say something of the system, by rate. A trial that was
// only to warm the system up is not among them.
func (a *Answer) Curve() []CurvePoint {
	var out []CurvePoint
	for i := range a.Trials {
		t := &a.Trials[i]
		p := CurvePoint{Rate: t.Rate, Verdict: t.Verdict, Times: t.Times, Role: t.Role}
		if t.Verdict != nil {
			p.Result = t.Verdict.Result
		}
		if t.Role != Probe && t.Role != WarmUp && p.Result != Invalid && len(t.Times) > 0 {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b CurvePoint) int { return cmp.Compare(a.Rate, b.Rate) })
	return out
}

// At is a quantile of a point.
func (p *CurvePoint) At(of string, percentile float64) (Quantile, bool) {
	for _, q := range p.Times {
		if q.Of == of && q.P == percentile {
			return q, true
		}
	}
	return Quantile{}, false
}

// Limited is the limited percentile among those of a point: that of the first limit. The median
// stands before it.
func Limited(times []Quantile) Quantile { return times[min(1, len(times)-1)] }

// A CurveKnee is the rate up to which more load costs less than it brings: the highest rate for its
// response time.
type CurveKnee struct {
	Rate float64
	Time Quantile
	// Lowest means that no lower rate was measured, so the knee may be below.
	Lowest bool
}

// CurveKnee is the knee of the load-latency curve: the measured rate with the largest ratio of rate
// to the limited time (Kleinrock's power). Nil if fewer than three rates have times, or if these do not
// show that times grow with the rate: the highest rate has the largest ratio, or takes no longer than the
// lowest one. A client that fills batches has shorter times at higher rates. It is nil too if the limits
// fail at that rate: then they end below the knee.
func (a *Answer) CurveKnee() *CurveKnee {
	curve := a.Curve()
	if len(curve) == 0 {
		return nil
	}
	limited := Limited(curve[0].Times)
	// Of the trials at one rate, the middle one counts.
	var rates []float64
	at, broken := map[float64][]Quantile{}, map[float64]bool{}
	for i := range curve {
		if q, ok := curve[i].At(limited.Of, limited.P); ok && q.At > 0 {
			if len(at[curve[i].Rate]) == 0 {
				rates = append(rates, curve[i].Rate)
			}
			at[curve[i].Rate] = append(at[curve[i].Rate], q)
			broken[curve[i].Rate] = broken[curve[i].Rate] || curve[i].Result == Fail
		}
	}
	if len(rates) < 3 {
		return nil
	}
	var best *CurveKnee
	var first, last Quantile
	for i, rate := range rates {
		qs := at[rate]
		slices.SortFunc(qs, func(a, b Quantile) int { return cmp.Compare(a.At, b.At) })
		last = qs[len(qs)/2]
		if i == 0 {
			first = last
		}
		k := CurveKnee{Rate: rate, Time: last, Lowest: i == 0}
		if best == nil || k.Rate*best.Time.At.Seconds() > best.Rate*k.Time.At.Seconds() {
			best = &k
		}
	}
	if best.Rate == rates[len(rates)-1] || last.At <= first.At || broken[best.Rate] {
		return nil
	}
	return best
}

// String says where the knee is.
func (k *CurveKnee) String() string {
	text := fmt.Sprintf("%s, at %s %s: above it times grow faster than the rate", units.FormatRate(k.Rate), k.Time.Name(), units.FormatDuration(k.Time.At))
	if k.Lowest {
		text = fmt.Sprintf("at or below %s, the lowest rate measured, with %s %s", units.FormatRate(k.Rate), k.Time.Name(), units.FormatDuration(k.Time.At))
	}
	return text
}

// Name is the name of a quantile: p99, or max.
func (q *Quantile) Name() string {
	if q.P == 100 {
		return "max"
	}
	return fmt.Sprintf("p%g", q.P)
}
