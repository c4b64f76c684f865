package report

import (
	"math"
	"slices"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A Line is one number over the time of the measurement.
type Line struct {
	Label string
	Brief bool // shown in the brief report

	of   func(*Interval) float64
	join func(a, b float64) float64 // merges neighbours if there are more rows than columns; nil: the mean
	show func(float64) string
}

// lines are the series that a run may have, including empty ones.
func (d *Document) lines(rows []Interval) []Line {
	responses := d.responses(99)
	p99 := func(name string, iv *Interval) (measure.Value, bool) {
		if w, waits := responses[iv.StartS]; name == "response" && waits {
			return w, true
		}
		return iv.Time(name).At(99)
	}
	of := func(name string) func(*Interval) float64 {
		return func(iv *Interval) float64 {
			v, ok := p99(name, iv)
			if !ok {
				return math.NaN()
			}
			return measure.Micros(v.D)
		}
	}
	// If a value is only a lower bound, show it as one.
	bound := func(name string) func(us float64) string {
		return func(us float64) string {
			for i := range rows {
				if v, ok := p99(name, &rows[i]); ok && v.AtLeast && measure.Micros(v.D) == us {
					return Percentile(v)
				}
			}
			return Clock(us)
		}
	}
	count := func(v float64) string { return units.FormatCountShort(uint64(v)) }
	lengths := make([]float64, len(rows))
	for i := range rows {
		lengths[i] = rows[i].EndS - rows[i].StartS
	}
	least := LeastLength(lengths)
	out := []Line{{Label: d.Totals.RateOf, Brief: true, show: units.FormatRate, of: func(iv *Interval) float64 {
		if iv.Lasts() < least {
			return math.NaN()
		}
		return iv.EventsPerS
	}}}
	main := d.MainTime().Name
	for i := range times {
		t := &times[i]
		if t.row == nil {
			continue
		}
		label, show := t.Title, Clock
		if t.Name == "response" || t.Name == "service" {
			label += " p99"
		}
		if measure.AgesOf(t.Name) != "" {
			show = bound(t.Name)
		}
		brief := t.Name == main || main == "" && t.Name == "send_delay"
		out = append(out, Line{Label: label, Brief: brief, of: of(t.Name), join: math.Max, show: show})
	}
	switch {
	case d.Mode == load.Consuming:
		out = append(out, Line{Label: "lag", Brief: true, join: math.Max, show: count, of: func(iv *Interval) float64 {
			if iv.LagEvents < 0 {
				return math.NaN()
			}
			return float64(iv.LagEvents)
		}})
	case d.Backlog != nil:
		out = append(out, Line{Label: "backlog", Brief: true, join: math.Max, show: count, of: func(iv *Interval) float64 { return float64(iv.LagEvents) }})
	case d.Totals.RateOf != RateSent: // otherwise nothing is in flight
		out = append(out, Line{Label: "in flight", Brief: true, of: func(iv *Interval) float64 { return float64(iv.InFlight) }, join: math.Max, show: count})
	}
	return out
}

// Lasts is how much of the interval lies in its phase, in seconds.
func (iv *Interval) Lasts() float64 {
	if iv.WithinS > 0 {
		return iv.WithinS
	}
	return iv.EndS - iv.StartS // of a report of an older version
}

// LeastLength is the length from which on a row has a rate: half of the usual length of rows, whose lengths are given.
// In the last 2 ms of a run, a single event would be 500 in a second.
func LeastLength(lengths []float64) float64 {
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2] / 2
}

// AddRate adds the row of another step for the same interval to the rate.
func (iv *Interval) AddRate(o *Interval) {
	if iv.WithinS == 0 || o.WithinS == 0 { // of a report of an older version, or the phase of one of them was over
		iv.EventsPerS += o.EventsPerS
		iv.WithinS += o.WithinS
		iv.Arrived += o.Arrived
		return
	}
	iv.WithinS += o.WithinS
	iv.Arrived += o.Arrived
	iv.EventsPerS = float64(iv.Arrived) / iv.WithinS
}

// measurementEnd is when the measurement ended: later intervals are of the drain.
func (d *Document) measurementEnd() float64 {
	end := math.Inf(1)
	for _, ph := range d.Phases {
		if ph.Name == measure.Measurement {
			end = ph.EndS
		}
	}
	return end
}

// measurementRows are the intervals that began within the measurement. Where two steps meet,
// an interval has two rows, which are merged: rates are those of both together, and times are from the row with
// more answers.
func (d *Document) measurementRows() []Interval {
	end := d.measurementEnd()
	var rows []Interval
	for _, iv := range d.Intervals {
		if iv.Phase != measure.Measurement || iv.EndS <= iv.StartS || iv.StartS >= end {
			continue
		}
		n := len(rows)
		if n == 0 || rows[n-1].StartS != iv.StartS {
			rows = append(rows, iv)
			continue
		}
		last := &rows[n-1]
		both := *last
		both.AddRate(&iv)
		if iv.Acked+iv.Consumed >= last.Acked+last.Consumed {
			*last = iv
		}
		last.WithinS, last.Arrived, last.EventsPerS = both.WithinS, both.Arrived, both.EventsPerS
	}
	return rows
}

// leastSeries is the minimum number of rows for a sparkline.
const leastSeries = 3

const sparkWidth = 44

// series prints sparklines of the measurement.
func (d *Document) series(p *layout.Page, brief bool) {
	rows := d.measurementRows()
	if len(rows) < leastSeries {
		return
	}
	lines := slices.DeleteFunc(d.lines(rows), func(l Line) bool { return brief && !l.Brief })
	per := (len(rows) + sparkWidth - 1) / sparkWidth
	p.Line("")
	t := layout.Table{Headings: 1, Elastic: []int{0}, Middle: true, Left: []int{1}}
	length := rows[len(rows)-1].EndS - rows[0].StartS
	columns := (len(rows) + per - 1) / per
	step := length / float64(len(rows)) * float64(per)
	each := "each column is " + seconds(step)
	if from := rows[0].EndS - rows[0].Lasts(); from > 0 {
		each += ", from " + seconds(from) + " on" // all times count from the start of the run, warm-up included
	}
	t.Row("Series", each, "least", "most")
	for _, l := range lines {
		if values, lo, hi := l.columns(rows, columns); !math.IsInf(hi, -1) {
			t.Row(l.Label, units.Spark(values, 0, p.Style.ASCII), l.show(lo), l.show(hi))
		}
	}
	p.Table(&t)
}

// columns merges rows into n columns of equal time, since rows of a long run differ in length,
// and returns the minimum and maximum of the rows.
func (l *Line) columns(rows []Interval, n int) (values []float64, lo, hi float64) {
	from, length := rows[0].StartS, rows[len(rows)-1].EndS-rows[0].StartS
	column := func(iv *Interval) int {
		return min(int((iv.StartS-from)/length*float64(n)+1e-9), n-1)
	}
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := 0; i < len(rows); {
		v, weight := math.NaN(), 0.0
		for at := column(&rows[i]); i < len(rows) && column(&rows[i]) == at; i++ {
			x := l.of(&rows[i])
			if math.IsNaN(x) {
				continue
			}
			lo, hi = min(lo, x), max(hi, x)
			w := rows[i].Lasts()
			switch {
			case weight == 0:
				v = x
			case l.join == nil:
				v = (v*weight + x*w) / (weight + w)
			default:
				v = l.join(v, x)
			}
			weight += w
		}
		values = append(values, v)
	}
	return values, lo, hi
}
