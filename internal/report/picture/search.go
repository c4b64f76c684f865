package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"carronade/internal/verdict/find"
	"carronade/measure"
	"carronade/units"
)

// search draws the load-latency curve of each limited time of searches: all trials with their
// verdicts, the limits, the ceiling and the knee.
func (p *plot) search() {
	var of []string // the limited times
	for _, r := range p.runs {
		if r.Search == nil {
			continue
		}
		for _, c := range r.Search.Curve() {
			for _, q := range c.Times {
				if !slices.Contains(of, q.Of) {
					of = append(of, q.Of)
				}
			}
		}
	}
	for _, name := range of {
		p.loadLatency(name)
	}
}

// verdictSeries are the series of trials by their results.
var verdictSeries = []struct {
	name   string
	symbol Symbol
	tone   Tone
	of     []find.Result
}{
	{"holds", Square, Green, []find.Result{find.Pass}},
	{"fails", Cross, Red, []find.Result{find.Fail}},
	{"undecided or not judged", Diamond, Grey, []find.Result{find.Undecided, ""}},
}

func (p *plot) loadLatency(of string) {
	title := strings.ReplaceAll(of, "_", " ") + " time"
	f := Figure{
		Name: "load-latency-" + strings.ReplaceAll(of, "_", "-"), Title: "Load and " + title,
		Note: "Each point is a trial, on the interval of its percentile. A limit holds at a rate if the whole interval is below it.",
		X:    Axis{Label: "rate", Unit: PerSecond, Zero: true}, Y: Axis{Label: title, Unit: Micros, Log: true},
	}
	for i, r := range p.runs {
		if r.Search == nil {
			continue
		}
		curve := r.Search.Curve()
		for n, percentile := range limited(curve, of) {
			p.curveOf(&f, i, curve, of, percentile, n)
		}
	}
	f.Limits = p.limits(of, "", false)
	for _, r := range p.runs {
		if r.Search == nil {
			continue
		}
		if !p.several() {
			f.Marks = ceilingMarks(r.Search.Answer)
		}
	}
	p.add(f)
}

// limited are the percentiles of a time on a curve, the limited ones before the median.
func limited(curve []find.CurvePoint, of string) (out []float64) {
	for i := range curve {
		for _, q := range curve[i].Times {
			if q.Of == of && !slices.Contains(out, q.P) {
				out = append(out, q.P)
			}
		}
	}
	slices.SortFunc(out, func(a, b float64) int { return cmp.Compare(b, a) })
	return out
}

// curveOf adds the curve of a percentile, the nth of its report: a line through the middle trial
// of each rate, and all trials.
func (p *plot) curveOf(f *Figure, report int, curve []find.CurvePoint, of string, percentile float64, n int) {
	name := (&find.Quantile{P: percentile}).Name()
	median := percentile == 50 && n > 0
	line := Series{Name: p.seriesName(report, name), Tone: Orange, Dash: Dashed, Report: report}
	if median {
		line.Tone, line.Dash = Blue, Solid
	}
	if p.several() {
		line.Tone = toneOf(report)
	}
	at := map[float64][]float64{}
	for i := range curve {
		c := &curve[i]
		q, ok := c.At(of, percentile)
		if !ok {
			continue
		}
		if len(at[c.Rate]) == 0 {
			line.X = append(line.X, c.Rate)
		}
		at[c.Rate] = append(at[c.Rate], measure.Micros(q.At))
	}
	for _, rate := range line.X {
		ys := at[rate]
		slices.Sort(ys)
		line.Y = append(line.Y, ys[len(ys)/2])
	}
	f.Series = append(f.Series, line)
	if median { // its trials have the same verdicts
		trials := Series{Name: p.seriesName(report, name+" of a trial"), Style: Ranges, Symbol: Dot, Tone: line.Tone, Report: report}
		trials.addTrials(curve, of, percentile, nil)
		f.Series = append(f.Series, trials)
		return
	}
	for _, v := range verdictSeries {
		trials := Series{Name: p.seriesName(report, name+" "+v.name), Style: Ranges, Symbol: v.symbol, Tone: v.tone, Report: report}
		if p.several() {
			trials.Tone = line.Tone
		}
		trials.addTrials(curve, of, percentile, v.of)
		if len(trials.X) > 0 {
			f.Series = append(f.Series, trials)
		}
	}
}

// addTrials adds the trials with one of these results; nil: all.
func (s *Series) addTrials(curve []find.CurvePoint, of string, percentile float64, results []find.Result) {
	for i := range curve {
		c := &curve[i]
		if q, ok := c.At(of, percentile); ok && (results == nil || slices.Contains(results, c.Result)) {
			s.X, s.Y = append(s.X, c.Rate), append(s.Y, measure.Micros(q.At))
			s.Lo, s.Hi = append(s.Lo, measure.Micros(q.Least)), append(s.Hi, measure.Micros(q.Most))
		}
	}
}

// ceilingMarks are the ceiling, as far as it is known, and the knee.
func ceilingMarks(a *find.Answer) []Mark {
	var out []Mark
	name := "ceiling"
	if !a.HoldsConfirmed || !a.FailsConfirmed {
		name = "not confirmed:"
	}
	switch {
	case a.Holds > 0 && a.Fails > 0:
		out = append(out, Mark{From: a.Holds, To: a.Fails, Text: fmt.Sprintf("%s %s to %s", name, strings.TrimSuffix(units.FormatRate(a.Holds), "/s"), units.FormatRate(a.Fails))})
	case a.Holds > 0:
		out = append(out, Mark{From: a.Holds, To: a.Holds, Text: "at least " + units.FormatRate(a.Holds)})
	}
	k := a.CurveKnee()
	switch {
	case k == nil:
	case len(out) > 0 && k.Rate >= 0.9*out[0].From && k.Rate <= 1.3*out[0].To: // their texts would overlap
		out[0].Text = "knee " + units.FormatRate(k.Rate) + ", " + out[0].Text
		out = append(out, Mark{From: k.Rate, To: k.Rate})
	default:
		out = append(out, Mark{From: k.Rate, To: k.Rate, Text: "knee"})
	}
	return out
}
