package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// times is the table of all times side by side, a row a percentile.
func (d *Document) times(p *layout.Page) {
	cols := slices.DeleteFunc(d.Measured(), func(t Time) bool { return t.Name == failedService })
	if len(cols) == 0 && d.Mode == load.Consuming {
		return // a reader has none but in a round trip
	}
	p.Section("Times")
	if len(cols) == 0 {
		p.Note("nothing was answered, so there are none")
		return
	}
	if len(d.Steps) > 0 {
		p.Note("all steps together")
	}

	t := layout.Table{Headings: 2, Gap: 1, Least: 10}
	line := func(name string, cell func(c Time) string) {
		row := []string{name}
		for _, c := range cols {
			row = append(row, cell(c))
		}
		t.Row(row...)
	}
	// A mean, smallest and largest of answered ones does not exist where
	// nothing was answered.
	exact := func(us func(s *measure.Summary) float64) func(Time) string {
		return func(c Time) string {
			if c.Sum.Count == 0 {
				return "-"
			}
			return clock(us(c.Sum))
		}
	}
	line("", func(c Time) string { return c.Title })
	line("", func(c Time) string { return c.Of })
	line("mean", exact(func(s *measure.Summary) float64 { return s.Mean }))
	line("min", exact(func(s *measure.Summary) float64 { return s.Min }))
	for _, v := range cols[0].Sum.Percentiles {
		line(measure.PercentileName(v.P), func(c Time) string {
			if v, ok := c.Sum.At(v.P); ok {
				return value(v)
			}
			return "-"
		})
	}
	line("max", exact(func(s *measure.Summary) float64 { return s.Max }))
	line("count", func(c Time) string { return units.FormatCountShort(c.Sum.Count) })
	p.Table(&t)

	if n := d.Response; n != nil && n.Censored > 0 {
		p.Note(fmt.Sprintf("%s without an answer %s in the response percentiles at the age that was reached; >= marks what is known as a lower bound only; mean, min and max are of acked ones",
			units.Plural(n.Censored, "event"), verb(n.Censored, "stands", "stand")))
	}
	for _, text := range d.marked() {
		p.Note(text)
	}
	for _, c := range cols {
		if c.Sum.Above > 0 {
			p.Note(fmt.Sprintf("%s: %s beyond 1 h", c.Title, units.FormatCount(c.Sum.Above)))
		}
		if c.Sum.Below > 0 && c.Main {
			p.Note(fmt.Sprintf("%s: %s under 1 us, where the histogram's cells end", c.Title, units.FormatCount(c.Sum.Below)))
		}
	}
	switch {
	case d.Totals.RateOf == RateSent:
		p.Note("nothing is acknowledged, so there are no response and service times")
	case d.Mode == load.FullSpeed:
		p.Note("times at full speed are not the times that users would see: for those, use --rate")
	case d.Mode == load.ClosedLoop:
		p.Note("a closed loop has no due times and so no response times: while the system stalls, callers wait and fire less; see the longest time without an answer")
	}
}

func verb(n uint64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// steps is a row a step.
func (d *Document) steps(p *layout.Page) {
	if len(d.Steps) == 0 {
		return
	}
	p.Section("Steps")
	t := layout.Table{Headings: 2, Elastic: []int{0}, Middle: true}
	// Where nothing is acknowledged there are no times.
	at := func(s *measure.Summary, pc float64) string {
		if v, ok := s.At(pc); ok {
			return value(v)
		}
		return "-"
	}
	t.Row("", "asked", d.Totals.RateOf, "response", "", "service", "delay", "in", "not")
	t.Row("", "", "", "p50", "p99", "p99", "p99", "flight", "acked")
	for i, s := range d.Steps {
		c := s.Totals
		t.Row(fmt.Sprint(i+1), units.FormatRate(s.Rate), units.FormatRate(c.EventsPerS), at(s.Response, 50), at(s.Response, 99),
			at(s.Service, 99), at(s.SendDelay, 99), units.FormatCountShort(uint64(c.InFlightMean+0.5)),
			units.FormatCountShort(c.Offered-min(c.Acked, c.Offered)))
	}
	p.Table(&t)
}

const sparkWidth = 44

// holdRows are the intervals that began within the hold. Where two steps meet,
// an interval has a row for each, which are one here: their rates add up, and
// their times are those of the row with more answers.
func (d *Document) holdRows() []Interval {
	end := math.Inf(1)
	for _, ph := range d.Phases {
		if ph.Name == measure.Hold {
			end = ph.EndS
		}
	}
	var rows []Interval
	for _, iv := range d.Intervals {
		if iv.Phase != measure.Hold || iv.EndS <= iv.StartS || iv.StartS >= end {
			continue
		}
		n := len(rows)
		if n == 0 || rows[n-1].StartS != iv.StartS {
			rows = append(rows, iv)
			continue
		}
		last := &rows[n-1]
		rate := last.EventsPerS + iv.EventsPerS
		if iv.Acked+iv.Consumed >= last.Acked+last.Consumed {
			*last = iv
		}
		last.EventsPerS = rate
	}
	return rows
}

// series shows how the hold went, a character a stretch of time.
func (d *Document) series(p *layout.Page) {
	rows := d.holdRows()
	if len(rows) < 3 {
		return
	}
	p99 := func(s *measure.Summary) float64 {
		v, ok := s.At(99)
		if !ok {
			return math.NaN()
		}
		return measure.Micros(v.D)
	}
	time := Clock
	responses := d.responses(99)
	response := func(iv Interval) float64 {
		if v, ok := responses[iv.StartS]; ok {
			return measure.Micros(v.D)
		}
		return p99(iv.Response)
	}
	// A stretch of which the largest is known as a bound only says so.
	bound := func(us float64) string {
		for _, iv := range rows {
			if v, ok := responses[iv.StartS]; ok && v.AtLeast && measure.Micros(v.D) == us {
				return Percentile(v)
			}
		}
		return time(us)
	}
	graphs := []struct {
		name string
		of   func(Interval) float64
		join func(a, b float64) float64 // neighbours, when there are more than columns
		show func(float64) string
	}{
		{d.Totals.RateOf, func(iv Interval) float64 { return iv.EventsPerS }, nil, units.FormatRate},
		{"response p99", response, math.Max, bound},
		{"service p99", func(iv Interval) float64 { return p99(iv.Service) }, math.Max, time},
		{"end to end", func(iv Interval) float64 { return p99(iv.EndToEnd) }, math.Max, time},
		{"send delay", func(iv Interval) float64 { return p99(iv.SendDelay) }, math.Max, time},
		{"in flight", func(iv Interval) float64 { return float64(iv.InFlight) }, math.Max, func(v float64) string { return units.FormatCountShort(uint64(v)) }},
		{"behind", func(iv Interval) float64 {
			if iv.LagEvents < 0 {
				return math.NaN()
			}
			return float64(iv.LagEvents)
		}, math.Max, func(v float64) string { return units.FormatCountShort(uint64(v)) }},
	}
	per := (len(rows) + sparkWidth - 1) / sparkWidth
	p.Section("Series")
	t := layout.Table{Headings: 1, Elastic: []int{0}, Middle: true, Left: []int{1}}
	from, length := rows[0].StartS, rows[len(rows)-1].EndS-rows[0].StartS
	columns := (len(rows) + per - 1) / per
	// Rows of a long run are not of one length: columns are of time.
	column := func(iv *Interval) int {
		return min(int((iv.StartS-from)/length*float64(columns)+1e-9), columns-1)
	}
	step := length / float64(len(rows)) * float64(per)
	t.Row("", "each column is "+seconds(step), "least", "most")
	for _, g := range graphs {
		consuming := d.Mode == load.Consuming
		flies := !consuming && d.Totals.RateOf != RateSent // else nothing is ever in flight
		if g.name == "in flight" && !flies || g.name == "behind" && !consuming {
			continue
		}
		var values []float64
		lo, hi := math.Inf(1), math.Inf(-1)
		for i := 0; i < len(rows); {
			v, n := math.NaN(), 0.0
			for at := column(&rows[i]); i < len(rows) && column(&rows[i]) == at; i++ {
				x := g.of(rows[i])
				if math.IsNaN(x) {
					continue
				}
				lo, hi = min(lo, x), max(hi, x)
				w := rows[i].EndS - rows[i].StartS
				switch {
				case n == 0:
					v = x
				case g.join == nil:
					v = (v*n + x*w) / (n + w)
				default:
					v = g.join(v, x)
				}
				n += w
			}
			values = append(values, v)
		}
		if math.IsInf(hi, -1) {
			continue // no such number in this run
		}
		t.Row(g.name, units.Spark(values, 0, p.Style.ASCII), g.show(lo), g.show(hi))
	}
	p.Table(&t)
}

// failures by class, then their texts.
func (d *Document) failures(p *layout.Page) {
	if len(d.Failures) == 0 && len(d.Classes) == 0 {
		return
	}
	p.Section("Failures")
	classes := map[string]bool{}
	for _, f := range d.Failures {
		head := fmt.Sprintf("%s in %s", units.Plural(f.Events, "event"), units.Plural(f.Shots, "shot"))
		if f.Text != "" {
			head += ": " + f.Text
		}
		p.Pair("", f.Class, head)
		classes[f.Class] = true
	}
	for _, class := range sortedKeys(d.Classes) {
		if !classes[class] && d.Classes[class] > 0 {
			p.Pair("", class, units.Plural(d.Classes[class], "event"))
		}
	}
	if s := d.FailedService; !s.IsEmpty() {
		p50, _ := s.At(50)
		p99, _ := s.At(99)
		p.Note(fmt.Sprintf("shots that failed took %s at p50, %s at p99, %s at most", Percentile(p50), Percentile(p99), Clock(s.Max)))
	}
	p.Note("counted over the whole run, warm-up and drain included")
}

func joinNonEmpty(parts ...string) string {
	var out []string
	for _, s := range parts {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}
