package explain

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/measure"
	"carronade/units"
)

const (
	shortInterval = 0.5 // of the usual length: the last interval of a phase is often incomplete
	longGap       = 2.5 // times the usual distance of two values: a value is of no longer time
	leastFollow   = 0.7 // correlation with the rate from which on a series follows the load
	leastValues   = 8   // values of a series that can be compared
)

// followers are series that are the work of the load itself, or sizes that it makes: they change
// with the incidents, and explain nothing.
var followers = map[string]bool{
	"CPU": true, "received": true, "sent": true, "loopback": true, "read": true, "written": true,
	"processes": true, "PSS": true, "RSS": true,
}

// input makes the input of explain from a report.
func inputOf(d *report.Document) (r input, watched []Watched) {
	var longest float64
	for i := range d.Intervals {
		if iv := &d.Intervals[i]; iv.Phase == measure.Measurement {
			longest = max(longest, iv.EndS-iv.StartS)
		}
	}
	var rows []*report.Interval
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		if iv.Phase != measure.Measurement {
			continue
		}
		if r.End == 0 {
			r.Start = units.Seconds(iv.StartS)
		}
		r.End = max(r.End, units.Seconds(iv.EndS))
		if length := iv.EndS - iv.StartS; length <= 0 || length < shortInterval*longest {
			continue
		}
		if n := len(rows); n > 0 && rows[n-1].StartS == iv.StartS {
			rows[n-1] = joined(rows[n-1], iv)
			continue
		}
		rows = append(rows, iv)
	}
	for _, iv := range rows {
		r.Intervals = append(r.Intervals, intervalOf(iv))
	}
	for _, s := range d.Stall.Each() {
		r.Stalls = append(r.Stalls, span{Start: units.Seconds(s.AtS), End: units.Seconds(s.AtS + s.LengthS)})
	}
	r.Usual = percentile(d.Service, 50) + percentile(d.Batching, 50)
	add := func(c cause, not string) {
		w := Watched{From: c.From, Name: c.Name, Unit: c.Unit, Moments: len(c.Moments), Values: len(c.Cells), NotTried: not}
		if c.Moments == nil && not == "" && len(c.Cells) < leastValues {
			w.NotTried = tooFew
		}
		watched = append(watched, w)
		if w.NotTried == "" {
			r.Causes = append(r.Causes, c)
		}
	}
	exactGC := moments(d, add)
	marks(d, add)
	for i := range d.Gauges {
		g := &d.Gauges[i]
		if len(g.Points) < 2 {
			continue
		}
		c := gaugeCause(g)
		switch {
		case exactGC && g.From == "system" && strings.HasPrefix(g.Name, "GC pause"):
			add(c, "the pauses themselves were compared")
		case g.Counts, (g.From == "host" || g.From == "system") && followers[g.Name], follows(c.Cells, r.Intervals):
			add(c, followsLoad)
		default:
			add(c, "")
		}
	}
	ownSeries(rows, add)
	return r, watched
}

// The reasons why a series was not compared.
const (
	tooFew      = "it has too few values"
	followsLoad = "it follows the load"
)

// joined is the row of an interval in which two steps meet, which has a row for each: their times are
// those of the row with more answers.
func joined(a, b *report.Interval) *report.Interval {
	out := *b
	if a.Acked+a.Consumed > b.Acked+b.Consumed {
		out = *a
	}
	both := *a
	both.AddRate(b)
	out.WithinS, out.Arrived, out.EventsPerS = both.WithinS, both.Arrived, both.EventsPerS
	out.Counts = a.Counts
	out.Counts.Add(b.Counts)
	out.Classes = nil
	out.Classes.Merge(a.Classes)
	out.Classes.Merge(b.Classes)
	out.LagEvents = b.LagEvents
	out.Generator.GCPauseMaxUS = max(a.Generator.GCPauseMaxUS, b.Generator.GCPauseMaxUS)
	return &out
}

func intervalOf(iv *report.Interval) interval {
	out := interval{Start: units.Seconds(iv.StartS), End: units.Seconds(iv.EndS), Rate: iv.EventsPerS}
	if iv.Response != nil {
		out.Due = float64(iv.Offered) / iv.Lasts()
	}
	for _, s := range []*measure.Summary{iv.Response, iv.Service, iv.EndToEnd} {
		if out.P99 = percentile(s, 99); out.P99 > 0 {
			break
		}
	}
	return out
}

// percentile is one of a time; 0 without one.
func percentile(s *measure.Summary, p float64) time.Duration {
	if v, ok := s.At(p); ok {
		return v.D
	}
	return 0
}

// moments adds the moments of a report, by name. It reports whether the pauses of a collector
// are among them.
func moments(d *report.Document, add func(c cause, not string)) (exactGC bool) {
	type key struct{ from, name string }
	all := map[key][]span{}
	var keys []key
	for _, m := range d.Moments {
		k := key{m.From, m.Name}
		if all[k] == nil {
			keys = append(keys, k)
		}
		all[k] = append(all[k], span{Start: units.Seconds(m.AtS), End: units.Seconds(m.AtS + m.LengthS)})
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.name, b.name)) })
	for _, k := range keys {
		add(cause{From: k.from, Name: k.name, Moments: all[k]}, "")
	}
	return all[key{"system", "GC pause"}] != nil
}

// marks adds the marks of a report, by kind and name. A fault lasts until its heal.
func marks(d *report.Document, add func(c cause, not string)) {
	if d.Faults == nil {
		return
	}
	all := map[string][]span{}
	for i := range d.Faults.Marks {
		m := &d.Faults.Marks[i]
		at := units.Seconds(m.AtS)
		marked := span{Start: at, End: at}
		for k := i + 1; k < len(d.Faults.Marks); k++ {
			if h := &d.Faults.Marks[k]; m.Kind == fault.MarkFault && h.Kind == fault.MarkHeal && h.Name == m.Name {
				marked.End = units.Seconds(h.AtS)
				break
			}
		}
		name := strings.TrimSpace(m.Kind + " " + m.Name)
		all[name] = append(all[name], marked)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(cause{From: "mark", Name: name, Moments: all[name]}, "")
	}
}

// gaugeCause makes a cause of a gauge. A counter becomes the rate at which it rises, whose dips
// follow the load.
func gaugeCause(g *report.Gauge) cause {
	c := cause{From: g.From, Name: g.Name, Unit: g.Unit, Falls: g.From != "host" && !g.Total || g.Name == "memory available", Mean: g.Total || means(g)}
	distances := make([]float64, 0, len(g.Points))
	for i := 1; i < len(g.Points); i++ {
		distances = append(distances, g.Points[i].AtS-g.Points[i-1].AtS)
	}
	slices.Sort(distances)
	usual := distances[len(distances)/2]
	for i, p := range g.Points {
		value, since := p.Value, usual
		if i > 0 {
			since = min(p.AtS-g.Points[i-1].AtS, longGap*usual)
		}
		if g.Total {
			if i == 0 {
				continue
			}
			value = max(0, p.Value-g.Points[i-1].Value) / (p.AtS - g.Points[i-1].AtS)
		}
		c.Cells = append(c.Cells, cell{Start: units.Seconds(p.AtS - since), End: units.Seconds(p.AtS), Value: value})
	}
	return c
}

// means reports whether the values of a gauge are activity since the reading before, rather than
// what was read.
func means(g *report.Gauge) bool {
	return g.From == "host" && g.Name != "memory available" || g.From == "system" && processGauges[g.Name] && strings.HasSuffix(g.Unit, "/s")
}

// ownSeries adds what the intervals themselves have: attempts beyond the first, failures by
// class, consumer lag, and the generator's own pauses and lateness.
func ownSeries(rows []*report.Interval, add func(c cause, not string)) {
	series := func(c cause, value func(iv *report.Interval) float64) {
		some := false
		for _, iv := range rows {
			x := value(iv)
			some = some || x > 0
			c.Cells = append(c.Cells, cell{Start: units.Seconds(iv.StartS), End: units.Seconds(iv.EndS), Value: x})
		}
		if some {
			add(c, "")
		}
	}
	series(cause{From: "client", Name: "retries", Unit: "batches", Mean: true}, func(iv *report.Interval) float64 { return float64(iv.Retries) })
	var classes []string
	for _, iv := range rows {
		for _, c := range iv.Classes {
			if name := c.Class; !slices.Contains(classes, name) {
				classes = append(classes, name)
			}
		}
	}
	slices.Sort(classes)
	for _, name := range classes {
		series(cause{From: "client", Name: "failures: " + name, Unit: "events", Sign: true, Mean: true}, func(iv *report.Interval) float64 {
			n := uint64(0)
			for _, c := range iv.Classes {
				if c.Class == name {
					n += c.Events
				}
			}
			return float64(n)
		})
	}
	series(cause{From: "client", Name: "consumer lag", Unit: "events", Sign: true}, func(iv *report.Interval) float64 { return float64(max(0, iv.LagEvents)) })
	series(cause{From: "generator", Name: "longest GC pause", Unit: "us"}, func(iv *report.Interval) float64 { return iv.Generator.GCPauseMaxUS })
	series(cause{From: "generator", Name: "send delay", Unit: "us"}, func(iv *report.Interval) float64 {
		return float64(percentile(iv.SendDelay, 99).Microseconds())
	})
}

// follows reports whether a series rises and falls with the rate of the run.
func follows(cells []cell, rows []interval) bool {
	var x, y []float64
	i := 0
	for _, c := range cells {
		middle := (c.Start + c.End) / 2
		for i < len(rows) && rows[i].End <= middle {
			i++
		}
		if i == len(rows) {
			break
		}
		if rows[i].Start <= middle {
			x, y = append(x, c.Value), append(y, rows[i].Rate)
		}
	}
	return correlation(x, y) >= leastFollow
}

// correlation is Pearson's; 0 for constant values.
func correlation(x, y []float64) float64 {
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	var xx, yy, xy float64
	for i := range x {
		xx, yy, xy = xx+(x[i]-mx)*(x[i]-mx), yy+(y[i]-my)*(y[i]-my), xy+(x[i]-mx)*(y[i]-my)
	}
	if xx <= 0 || yy <= 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}
