package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// mostGauges limits the table of gauges.
const mostGauges = 32

// gauges prints the metrics of other programs, a row each.
func (d *Document) gauges(p *layout.Page) {
	shown := d.Gauges
	if d.System == nil {
		// The JSON has what the generator's machine did; it is shown here only if the system
		// ran on it.
		shown = slices.DeleteFunc(slices.Clone(shown), func(g Gauge) bool { return g.From == "host" })
	}
	if len(shown) == 0 {
		return
	}
	p.Section("Metrics")
	t := layout.Table{Headings: 1, Elastic: []int{0}, Middle: true, Left: []int{1}}
	t.Row("", "", "before", "mean", "max", "after")
	missed := uint64(0)
	one := !slices.ContainsFunc(shown, func(g Gauge) bool { return g.From != shown[0].From })
	for i, g := range shown {
		missed = max(missed, g.Missed)
		if i < mostGauges {
			name := g.Name
			if !one {
				name = g.From + ": " + name
			}
			cells := []string{layout.CutMiddle(name, 44), layout.CutMiddle(g.Unit, 10)}
			for _, v := range []*float64{g.Before, g.Mean, g.Max, g.After} {
				cells = append(cells, gaugeCell(v, g.Unit))
			}
			t.Row(cells...)
		}
	}
	p.Table(&t)
	if n := len(shown) - mostGauges; n > 0 {
		p.Note(fmt.Sprintf("and %d more, in the JSON", n))
	}
	note := "mean and max are of the measurement"
	if one {
		note = "from the " + layout.Clean(shown[0].From) + "; " + note
	}
	p.Note(note)
	if missed > 0 {
		p.Note(units.Plural(missed, "sample") + " missing: no answer came")
	}
}

// gaugeCell formats a value of a gauge; the unit has its own column.
func gaugeCell(v *float64, unit string) string {
	switch {
	case v == nil:
		return "-"
	case unit == "bytes" && *v >= 0 && *v < math.MaxInt64:
		return units.FormatSize(int64(*v))
	case *v >= 9_999.5 && *v < 1<<63:
		return units.FormatCountShort(uint64(*v + 0.5))
	case *v == math.Trunc(*v) && math.Abs(*v) < 10_000:
		return strconv.FormatFloat(*v, 'f', 0, 64)
	case math.Abs(*v) < 1:
		return strconv.FormatFloat(*v, 'g', 3, 64)
	}
	return figure(*v)
}

// gaugeText formats a value of a gauge with its unit.
func gaugeText(v float64, unit string) string {
	switch unit {
	case "bytes": // sizes have one
		return gaugeCell(&v, unit)
	case "%":
		return gaugeCell(&v, unit) + unit
	}
	return strings.TrimSpace(gaugeCell(&v, unit) + " " + unit)
}

// serverCounts describes the incoming events as counted by the servers; "" if
// they did not report them. Rates of one unit are added: they are of several
// servers.
func (d *Document) serverCounts() string {
	type sum struct {
		unit string
		rate float64
	}
	var sums []sum
	for _, g := range d.Gauges {
		rate := g.Mean
		if rate == nil {
			rate = g.After
		}
		if !g.Counts || rate == nil {
			continue
		}
		i := slices.IndexFunc(sums, func(s sum) bool { return s.unit == g.Unit })
		if i < 0 {
			i, sums = len(sums), append(sums, sum{unit: g.Unit})
		}
		sums[i].rate += *rate
	}
	var parts []string
	for _, s := range sums {
		parts = append(parts, strings.TrimSpace(gaugeCell(&s.rate, s.unit)+" "+s.unit))
	}
	return strings.Join(parts, " and ")
}

// intervalTable prints the measurement over time: arrivals, events in flight,
// and response times.
func (d *Document) intervalTable(p *layout.Page) {
	rows := d.measurementRows()
	if len(rows) < leastSeries || d.Mode == load.Consuming {
		return
	}
	answered := d.Totals.RateOf == RateAcked
	per := (len(rows) + mostRows - 1) / mostRows
	p.Section("Intervals")
	t := layout.Table{Headings: 2, Elastic: []int{0}, Middle: true}
	heads := [][]string{{"at"}, {""}}
	column := func(name, of string) {
		heads[0] = append(heads[0], name)
		heads[1] = append(heads[1], of)
	}
	column(d.Totals.RateOf, "events/s")
	column("bytes", "a second")
	if answered {
		column("in flight", "events")
		column("service", "p50")
		column("service", "p99")
		if d.Response != nil {
			column("response", "p99")
		}
	}
	t.Row(heads[0]...)
	t.Row(heads[1]...)
	responses := d.responses(99)
	for i := 0; i < len(rows); i += per {
		part := rows[i:min(i+per, len(rows))]
		t.Row(d.intervalRow(part, answered, responses)...)
	}
	p.Table(&t)
	switch {
	case per > 1:
		p.Note(fmt.Sprintf("a row is %d intervals: the mean of rates, the maximum of the rest", per))
	case answered:
		p.Note("in flight: sent and not yet done, at that moment")
	}
}

// intervalRow is a row of the table of intervals.
func (d *Document) intervalRow(part []Interval, answered bool, responses map[float64]measure.Value) []string {
	var rate, bytes, length float64
	inFlight := uint64(0)
	var p50, p99, response measure.Value
	for _, iv := range part {
		l := iv.Lasts()
		rate += iv.EventsPerS * l
		bytes += float64(iv.Bytes)
		length += l
		inFlight = max(inFlight, iv.InFlight)
		largest(&p50, iv.Service, 50)
		largest(&p99, iv.Service, 99)
		if v, ok := responses[iv.StartS]; ok && v.D >= response.D {
			response = v
		} else if responses == nil {
			largest(&response, iv.Response, 99)
		}
	}
	cells := []string{seconds(part[len(part)-1].EndS), units.FormatRate(rate / length), units.FormatSize(int64(bytes/length)) + "/s"}
	if !answered {
		return cells
	}
	cells = append(cells, units.FormatCountShort(inFlight), valueOr(p50), valueOr(p99))
	if d.Response != nil {
		cells = append(cells, valueOr(response))
	}
	return cells
}

// largest raises v to percentile p of s, if s has it.
func largest(v *measure.Value, s *measure.Summary, p float64) {
	if x, ok := s.At(p); ok && x.D >= v.D {
		*v = x
	}
}

// valueOr prints a percentile, a dash where nothing was measured.
func valueOr(v measure.Value) string {
	if v.P == 0 {
		return "-"
	}
	return value(v)
}

func signed(v float64) string {
	s := figure(math.Abs(v))
	switch {
	case strings.Trim(s, "0.") == "":
		return "0"
	case v < 0:
		return "-" + s
	}
	return "+" + s
}

// ServerGauge returns a gauge of the server: by the name of the target's own metrics, or as the server
// names it; nil if it has none.
func (d *Document) ServerGauge(name, path string) *Gauge {
	for i := range d.Gauges {
		if g := &d.Gauges[i]; g.From == "server" && g.Name == name || g.From == "system" && g.Name == path {
			return g
		}
	}
	return nil
}

// Rise returns by how much a counter of the server rose over the run.
func (d *Document) Rise(name, path string) (x float64, known bool) {
	g := d.ServerGauge(name, path)
	if g == nil || g.After == nil {
		return 0, false
	}
	if g.Before != nil {
		return *g.After - *g.Before, true
	}
	return *g.After, true
}

// OutputFailed returns how many events the server's output failed to index.
func (d *Document) OutputFailed() (x float64, known bool) {
	return d.Rise("output failed", "libbeat.output.events.failed")
}

// refusedText says how many events the server's output failed to index; "" if none, or if it is not known.
func (d *Document) refusedText() string {
	n, _ := d.OutputFailed()
	if n < 1 {
		return ""
	}
	return "the server's output failed for " + units.Plural(uint64(n), "event")
}
