package store

import (
	"math"
	"strconv"
	"strings"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/units"
)

// seconds converts microseconds of the report's JSON, rounded to the
// nanosecond.
func seconds(us float64) float64 { return math.Round(us*1e3) / 1e9 }

// measured is the results of the measurement.
func (b *builder) measured(d *report.Document) {
	if d.Totals.ElapsedS <= 0 && d.Totals.IsZero() {
		return
	}
	results := workload.Results()
	for i := range results {
		r := &results[i]
		if x, why := d.Value(r); why == "" {
			b.number(r.Field, resultKinds[r.Kind], x)
		}
	}
	for _, t := range d.All() {
		b.times(t.Name, t.Sum, t.Main)
	}
	b.lower("response", d.ResponseLower)
	b.lower("service", d.ServiceLower)
	b.lower("end_to_end", d.EndToEndLower)
	for _, s := range d.Totals.Statuses {
		b.count("status."+strconv.Itoa(s.Code), s.Batches)
	}
	for _, f := range sortedKeys(d.Classes) {
		b.count("failed."+f, d.Classes[f])
	}
}

// resultKinds are the kinds of the values of results.
var resultKinds = map[workload.LimitKind]ValueKind{
	workload.DurationKind: KindDuration, workload.RateKind: KindRate, workload.ShareKind: KindShare, workload.CountKind: KindCount,
	workload.SizeKind: KindSize, workload.SpeedKind: KindSpeed, workload.NumberKind: KindNumber, workload.VerdictKind: KindBool,
}

// ceiling is the answer of a search: the interval in which the ceiling lies, as far as its ends
// are confirmed.
func (b *builder) ceiling(d *report.Document) {
	s := d.Search
	if s == nil || !s.HoldsConfirmed {
		return
	}
	v := Value{Kind: KindRate, Num: s.Holds, Text: ">= " + units.FormatRate(s.Holds)}
	if s.FailsConfirmed {
		v.Text = strings.TrimSuffix(units.FormatRate(s.Holds), "/s") + " to " + units.FormatRate(s.Fails)
		b.number("ceiling_upper", KindRate, s.Fails)
	}
	b.put("ceiling", v)
}

// partOfResponse are the times, in addition to the main ones, whose means are compared: means of
// parts add up.
var partOfResponse = map[string]bool{"batching": true, "queueing": true, "send_delay": true}

// times adds the percentiles, mean, min and max of a time. What events without an answer make a
// lower bound is shown as one.
func (b *builder) times(name string, s *measure.Summary, all bool) {
	if s.IsEmpty() {
		return
	}
	if mean, ok := s.Average(); ok && (all || partOfResponse[name]) {
		b.bound(name+"_mean", mean)
	}
	if all && s.Count > 0 {
		b.number(name+"_min", KindDuration, seconds(s.Min))
	}
	most, _ := s.Largest()
	b.bound(name+"_max", most)
	for _, p := range s.Percentiles {
		if !all && p.P != 50 && p.P != 99 {
			continue
		}
		b.bound(name+"_p"+digits(p.P), p)
	}
}

// lower adds a time without the generator's own delays, at the percentiles by
// which runs are compared.
func (b *builder) lower(name string, s *measure.Summary) {
	for _, p := range measure.PercentilesOf(measure.Compared) {
		if v, ok := s.At(p); ok {
			b.bound(name+"_lower_p"+digits(p), v)
		}
	}
}

// bound adds a time that may be a lower bound.
func (b *builder) bound(name string, of measure.Value) {
	v := Value{Kind: KindDuration, Num: seconds(measure.Micros(of.D))}
	if of.AtLeast {
		v.Text = ">= " + v.String()
	}
	b.put(name, v)
}

// digits are the digits of a percentile without the point: 999 for 99.9.
func digits(p float64) string {
	return strings.ReplaceAll(strconv.FormatFloat(p, 'f', -1, 64), ".", "")
}
