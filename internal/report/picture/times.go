package picture

import (
	"math"
	"slices"
	"strings"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

type summary = *measure.Summary

// A LinePercentile is a percentile that is drawn over time, in percent; 100 is the maximum, which is exact.
type LinePercentile struct {
	P    float64 `json:"p"`
	Name string  `json:"name"`
	Tone Tone    `json:"tone"`
	Dash Dash    `json:"dash"`
}

// LinePercentiles are those of every page, ascending.
var LinePercentiles = func() (all []LinePercentile) {
	tones, dashes := []Tone{Blue, Green, Orange, Purple, Sky, Olive}, []Dash{Solid, LongDash, Dashed, DashDot}
	for i, p := range measure.PercentilesOf(measure.Brief) {
		all = append(all, LinePercentile{p, measure.PercentileName(p), tones[i%len(tones)], dashes[i%len(dashes)]})
	}
	return append(all, LinePercentile{100, "max", Red, Dotted})
}()

// An overTime is a time that is drawn over the run.
type overTime struct {
	key, name, title, all, note string
	of                          func(*row) summary
}

var overTimes = []overTime{
	{"response", "response", "Response time", "Response times", "From when an event was due to its answer: how long a user would have waited.", func(r *row) summary { return r.response }},
	{"service", "service", "Service time", "Service times", "From when a batch was sent to its answer.", func(r *row) summary { return r.service }},
	{"end_to_end", "end-to-end", "End-to-end time", "End-to-end times", "From when an event was due (without a schedule: sent) until it was read back.", func(r *row) summary { return r.endToEnd }},
	{"send_delay", "send-delay", "Send delay", "", "How late the generator itself was: it should stay far below the other times.", func(r *row) summary { return r.sendDelay }},
}

// time draws a time over the run.
func (p *plot) time(key string) {
	for _, t := range overTimes {
		if t.key == key {
			p.percentilesOver(t.name, t.title, t.note, t.of)
		}
	}
}

// percentilesOver draws a time's percentiles over the run; only two of them for
// several reports.
func (p *plot) percentilesOver(name, title, note string, of func(*row) summary) {
	f := p.overTime(name, title, note, Axis{Label: "time", Unit: Micros, Log: true})
	f.Middles, f.Limits = true, p.limits(strings.ReplaceAll(name, "-", "_"), "", false)
	bounds := false
	for i, r := range p.runs {
		rows := r.rateRows()
		waiting := name == "response" && r.Mode == load.OpenLoop && r.Totals.RateOf == report.RateAcked
		if p.several() {
			for _, o := range LinePercentiles {
				if o.P == 50 || o.P == 99 {
					s, b := percentileSeries(rows, o.P, of, waiting)
					s.Name, s.Tone, s.Report = p.seriesName(i, o.Name), toneOf(i), i
					if o.P == 99 {
						s.Dash = Dashed
					}
					bounds = bounds || b
					f.Series = append(f.Series, s)
				}
			}
			continue
		}
		for _, o := range LinePercentiles {
			s, b := percentileSeries(rows, o.P, of, waiting)
			s.Name, s.Tone, s.Dash, s.Report = o.Name, o.Tone, o.Dash, i
			bounds = bounds || b
			f.Series = append(f.Series, s)
		}
	}
	f.Series = nonEmpty(f.Series)
	if bounds {
		f.Note += " Values marked >= are lower bounds: they include events without an answer, or that were not read, at the age they had reached."
	}
	p.add(f)
}

// nonEmpty leaves out series without a number.
func nonEmpty(all []Series) []Series {
	out := all[:0]
	for i := range all {
		if _, _, ok := all[i].extent(false); ok {
			out = append(out, all[i])
		}
	}
	return out
}

// percentileSeries is a percentile of rows. With waiting it includes the events
// that waited at a row's end, so that a stall is visible while it lasts.
func percentileSeries(rows []row, p float64, of func(*row) summary, waiting bool) (s Series, bounds bool) {
	var backlog report.Backlog
	for i := range rows {
		v, least := math.NaN(), false
		if waiting {
			backlog.Add(rows[i].to, &rows[i].Counts)
			if x, ok := backlog.At(p, of(&rows[i])); ok {
				v, least = measure.Micros(x.D), x.AtLeast
			}
		} else if sum := of(&rows[i]); !sum.IsEmpty() {
			x, ok := sum.At(p)
			if p == 100 {
				x, ok = sum.Largest()
			}
			if ok {
				v, least = measure.Micros(x.D), x.AtLeast
			}
		}
		s.X, s.Y = append(s.X, rows[i].middle()), append(s.Y, v)
		if least && s.AtLeast == nil {
			s.AtLeast = make([]bool, len(rows))
		}
		if least {
			s.AtLeast[i], bounds = true, true
		}
	}
	return s, bounds
}

// curveTimes are the times with a curve and a distribution.
var curveTimes = []struct {
	key, name string
	tone      Tone
	dash      Dash
}{
	{"response", "response", Blue, Solid},
	{"service", "service", Orange, Dashed},
	{"end_to_end", "end to end", Green, LongDash},
	{"send_delay", "send delay", Grey, Dotted},
}

// mainTime is the time by which reports are compared: response time, service time
// or end-to-end time, the first that exists.
func (p *plot) mainTime() (key, name string) {
	for _, t := range curveTimes[:3] {
		for _, r := range p.runs {
			if r.histogram(t.key).Count()+r.ages(t.key).Count() > 0 {
				return t.key, t.name
			}
		}
	}
	return "response", "response"
}

// curve draws the percentiles of the measurement on the axis of HDR histograms:
// each mark to the right leaves a tenth of the events that the mark before it left.
func (p *plot) curve() {
	f := Figure{
		Name: "percentiles", Title: "Percentiles",
		Note: "Of the measurement. Each mark on the axis leaves a tenth of the events that the mark before it left; a line ends at its maximum.",
		X:    Axis{Label: "percentile", Unit: Percentile, Log: true}, Y: Axis{Label: "time", Unit: Micros, Log: true},
	}
	key, name := p.mainTime()
	f.Limits = p.limits(key, "", false)
	if p.several() {
		f.Title = "Percentiles: " + name
		for i, r := range p.runs {
			f.Series = append(f.Series, r.curveOf(key, p.seriesName(i, ""), toneOf(i), Dash(i/int(Grey))%dashes, i)...)
		}
	} else {
		for _, t := range curveTimes {
			f.Series = append(f.Series, p.runs[0].curveOf(t.key, t.name, t.tone, t.dash, 0)...)
		}
	}
	p.add(f)
}

// ages are the ages of events without a value of a time; nil if none can be missing.
func (r *run) ages(key string) *measure.Histogram {
	if of := measure.AgesOf(key); of != "" {
		return r.histogram(of)
	}
	return nil
}

// curvePoints is the approximate maximum of a curve's points; more would not be
// visible.
const curvePoints = 400

// curveOf is the curve of a time. From the percentile on that includes events
// without an answer, it is a separate series, a lower bound.
func (r *run) curveOf(key, name string, tone Tone, dash Dash, report int) []Series {
	h, certain := r.histogram(key), math.Inf(1)
	if c := r.ages(key); c.Count() > 0 {
		both := measure.NewHistogram()
		both.Merge(h)
		both.Merge(c)
		h, certain = both, measure.Micros(c.Min())
	}
	if h.Count() == 0 {
		return nil
	}
	n := float64(h.Count())
	step := math.Log(max(n, 2)) / curvePoints
	s := Series{Name: name, Tone: tone, Dash: dash, Style: Steps, Report: report}
	least := Series{Name: name + ", at least", Tone: tone, Dash: Dotted, Style: Steps, Report: report}
	seen, last := 0.0, math.Inf(-1)
	most := measure.Micros(h.Max())
	h.EachBucket(func(top time.Duration, k uint64) {
		from := min(1/(1-seen/n), n)
		seen += float64(k)
		v := min(measure.Micros(top), most)
		line := &s
		if v >= certain {
			line = &least
		}
		// A point within a fraction of a pixel of the previous one raises that one, so that no value is understated. No
		// percentile of a table is between them: it must be exact.
		m := len(line.Y)
		between := func(x float64) bool { return line.X[m-1] < x && x <= from*(1+rounding) }
		if m > 0 && math.Log(from)-last < step && seen < n && !slices.ContainsFunc(exactPercentiles, between) {
			line.Y[m-1] = v
			return
		}
		last = math.Log(from)
		line.X, line.Y = append(line.X, from), append(line.Y, v)
	})
	if k := len(s.X); k > 0 && len(least.X) > 0 { // extend the certain part to the start of the uncertain one
		s.X, s.Y = append(s.X, least.X[0]), append(s.Y, s.Y[k-1])
	}
	out := []Series{s}
	if m := len(least.X); m > 0 {
		least.X, least.Y = append(least.X, n), append(least.Y, least.Y[m-1])
		out = append(out, least)
	} else if m := len(s.X); m > 0 {
		out[0].X, out[0].Y = append(s.X, n), append(s.Y, s.Y[m-1])
	}
	return nonEmpty(out)
}

// perDecade is the number of a distribution's bars per power of ten.
const perDecade = 20

// distribution draws how often each time occurred in the measurement: a histogram.
func (p *plot) distribution() {
	key, name := p.mainTime()
	f := Figure{
		Name: "distribution", Title: strings.ToUpper(name[:1]) + name[1:] + "-time histogram", Limits: p.limits(key, "", true),
		Note: "The share of all in the measurement that took this long, in 20 bins per power of ten.",
		X:    Axis{Label: "time", Unit: Micros, Log: true}, Y: Axis{Label: "share", Unit: Share, Zero: true},
	}
	unanswered := false
	if p.several() {
		for i, r := range p.runs {
			f.Series = append(f.Series, r.distributionOf(key, p.seriesName(i, ""), toneOf(i), Dash(i/int(Grey))%dashes, i)...)
			unanswered = unanswered || r.ages(key).Count() > 0
		}
	} else {
		for _, t := range curveTimes {
			if t.key != "send_delay" {
				all := p.runs[0].distributionOf(t.key, t.name, t.tone, t.dash, 0)
				for i := range all {
					all[i].Filled = t.key == key
				}
				f.Series = append(f.Series, all...)
				unanswered = unanswered || p.runs[0].ages(t.key).Count() > 0
			}
		}
	}
	if unanswered {
		f.Note += " Events without an answer, or that were not read, count in the total, but are in no bin."
	}
	p.add(f)
}

// distributionOf counts in bars whose edges are the same for all series. Every
// observation is in one bar, as a share of all events, including those without an
// answer.
func (r *run) distributionOf(key, name string, tone Tone, dash Dash, report int) []Series {
	h := r.histogram(key)
	if h.Count() == 0 {
		return nil
	}
	all := float64(h.Count() + r.ages(key).Count())
	bar := func(us float64) int { return int(math.Floor(math.Log10(max(us, 1)) * perDecade)) }
	lo, hi := bar(measure.Micros(h.Min())), bar(measure.Micros(min(h.Max(), measure.Highest)))
	counts := make([]float64, hi-lo+1)
	h.EachBucket(func(top time.Duration, n uint64) {
		counts[min(max(bar(measure.Micros(min(top, h.Max())))-lo, 0), hi-lo)] += float64(n)
	})
	s := Series{Name: name, Tone: tone, Dash: dash, Style: Steps, Report: report}
	edge := func(i int) float64 { return math.Pow(10, float64(lo+i)/perDecade) }
	s.X, s.Y = append(s.X, edge(0)), append(s.Y, 0)
	for i, c := range counts {
		s.X, s.Y = append(s.X, edge(i)), append(s.Y, 100*c/all)
	}
	s.X, s.Y = append(s.X, edge(len(counts))), append(s.Y, 0)
	return []Series{s}
}

// steps draws times over the target rate. The knee is where response time rises
// above service time.
func (p *plot) steps() {
	f := Figure{
		Name: "steps", Title: "Steps", Note: "What each step of the schedule reached. Where response time leaves service time behind is the knee.",
		X: Axis{Label: "target rate, events a second", Unit: PerSecond}, Y: Axis{Label: "time", Unit: Micros, Log: true},
	}
	for i, r := range p.runs {
		if len(r.Steps) < 2 {
			continue
		}
		line := func(name string, tone Tone, dash Dash, of func(k int) (measure.Value, bool)) {
			s := Series{Name: p.seriesName(i, name), Tone: tone, Dash: dash, Report: i}
			if p.several() {
				s.Tone = toneOf(i)
			}
			order := stepOrder(r)
			for _, k := range order {
				if v, ok := of(k); ok {
					s.X, s.Y = append(s.X, r.Steps[k].Rate), append(s.Y, measure.Micros(v.D))
				}
			}
			f.Series = append(f.Series, s)
		}
		line("response p50", Blue, Solid, func(k int) (measure.Value, bool) { return r.Steps[k].Response.At(50) })
		line("response p99", Purple, Dashed, func(k int) (measure.Value, bool) { return r.Steps[k].Response.At(99) })
		line("service p99", Orange, Dotted, func(k int) (measure.Value, bool) { return r.Steps[k].Service.At(99) })
	}
	f.Series = nonEmpty(f.Series)
	f.Limits = append(p.limits("response", "", false), p.limits("service", "", false)...)
	p.add(f)
}
