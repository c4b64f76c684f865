package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"carronade/internal/layout"
	"carronade/internal/report"
)

// stepOrder is the steps ordered by target rate, since X must rise.
func stepOrder(r *run) []int {
	order := make([]int, len(r.Steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Steps[a].Rate, r.Steps[b].Rate) })
	return order
}

// bytes draws bytes per second.
func (p *plot) bytes() {
	f := p.overTime("bytes", "Bytes", "Bytes a second: of events before compression, and of all bytes on the connections.",
		Axis{Label: "bytes a second", Unit: BytesPerS, Zero: true})
	for i := range p.runs {
		lines := []countLine{
			{name: "of events", tone: Blue, count: func(r *row) uint64 { return r.Bytes }},
			{name: "of acked events", tone: Green, dash: LongDash, count: func(r *row) uint64 { return r.AckedBytes }},
			{name: "on the wire", tone: Orange, dash: Dashed, count: func(r *row) uint64 { return r.WireBytes }},
		}
		if p.several() {
			lines = []countLine{lines[0], lines[2]}
		}
		p.counts(&f, i, lines)
	}
	p.add(f)
}

// gaugeLine makes a line of a gauge, with its values multiplied by by. If readings
// are missing the line has a gap.
func (r *run) gaugeLine(g *report.Gauge, by float64) (x, y []float64) {
	gap := 0.0
	if n := len(r.rows); n > 0 {
		gap = 2.5 * (r.rows[n-1].to - r.rows[0].from) / float64(n)
	}
	for i, pt := range g.Points {
		if n := len(x); i > 0 && n > 0 && gap > 0 && pt.AtS-x[n-1] > gap {
			x, y = append(x, (x[n-1]+pt.AtS)/2), append(y, math.NaN())
		}
		x, y = append(x, pt.AtS), append(y, pt.Value*by)
	}
	return x, y
}

// gauge adds a line of the first gauge with this owner and name.
func (p *plot) gauge(f *Figure, i int, from, name, as string, tone Tone, dash Dash, by float64) {
	r := p.runs[i]
	for k := range r.Gauges {
		g := &r.Gauges[k]
		if g.From != from || g.Name != name || len(g.Points) == 0 {
			continue
		}
		x, y := r.gaugeLine(g, by)
		s := Series{Name: p.seriesName(i, as), Tone: tone, Dash: dash, X: x, Y: y, Report: i}
		if p.several() {
			s.Tone = toneOf(i)
		}
		f.Series = append(f.Series, s)
		return
	}
}

// usage adds a line of the generator's resource usage.
func (p *plot) usage(f *Figure, i int, as string, tone Tone, dash Dash, of func(*row) (float64, bool)) {
	rows := p.runs[i].rateRows()
	var s Series
	for k := range rows {
		v, ok := of(&rows[k])
		if !ok {
			v = math.NaN()
		}
		s.X, s.Y = append(s.X, rows[k].to), append(s.Y, v)
	}
	s.Name, s.Tone, s.Dash, s.Report = p.seriesName(i, as), tone, dash, i
	if p.several() {
		s.Tone = toneOf(i)
	}
	if _, _, ok := s.extent(true); ok { // all zero: not measured
		f.Series = append(f.Series, s)
	}
}

// memory draws the resident memory of the system and the generator.
func (p *plot) memory() {
	f := p.overTime("memory", "Memory", "Resident memory of the system under test and of the generator, and the system's heap.",
		Axis{Label: "bytes", Unit: Bytes, Zero: true})
	for i := range p.runs {
		p.gauge(&f, i, "system", "RSS", "system", Blue, Solid, 1)
		p.gauge(&f, i, "system", "heap after GC", "heap after collections", Purple, DashDot, 1)
		if p.several() {
			continue
		}
		p.gauge(&f, i, "server", "heap", "heap", Purple, DashDot, 1)
		p.gauge(&f, i, "server", "memory of the runtime", "memory of the runtime", Green, LongDash, 1)
		p.usage(&f, i, "generator", Orange, Dashed, func(r *row) (float64, bool) { return float64(r.generator.RSSBytes), r.generator.RSSBytes > 0 })
	}
	p.add(f)
}

// cpu draws processors in use.
func (p *plot) cpu() {
	f := p.overTime("cpu", "Processors", "Processors used by the system under test, by the generator, and by everything on the generator's machine.",
		Axis{Label: "processors", Unit: Cores, Zero: true})
	for i := range p.runs {
		p.gauge(&f, i, "system", "CPU", "system", Blue, Solid, 1)
		p.usage(&f, i, "generator", Orange, Dashed, func(r *row) (float64, bool) { return r.generator.CPUS / r.length(), true })
		if !p.several() {
			p.gauge(&f, i, "host", "CPU", "this machine", Grey, Dotted, 1)
		}
	}
	p.add(f)
}

// collector draws the pauses of garbage collectors.
func (p *plot) collector() {
	f := p.overTime("collector", "Pauses of garbage collectors", "In each interval: the total and the longest of the system under test, and the longest of the generator.",
		Axis{Label: "time", Unit: Micros, Zero: true})
	for i := range p.runs {
		p.gauge(&f, i, "system", "GC pause time", "system, in all", Blue, Solid, 1000)
		if !p.several() {
			p.gauge(&f, i, "system", "GC pause longest", "system, longest", Purple, DashDot, 1000)
		}
		p.usage(&f, i, "generator, longest", Orange, Dashed, func(r *row) (float64, bool) { return r.generator.GCPauseMaxUS, true })
	}
	p.add(f)
}

// drawnElsewhere are gauges that other figures show or that are not drawn.
var drawnElsewhere = map[[2]string]bool{
	{"system", "RSS"}: true, {"system", "heap after GC"}: true, {"server", "heap"}: true, {"server", "memory of the runtime"}: true,
	{"system", "CPU"}: true, {"host", "CPU"}: true, {"system", "GC pause time"}: true, {"system", "GC pause longest"}: true,
	// These rarely change, and the report's text contains them.
	{"system", "processes"}: true, {"system", "PSS"}: true, {"host", "memory available"}: true,
}

// Limits of the figures of external metrics.
const (
	maxFigures     = 8 // figures
	maxFigureLines = 8 // in each
)

// serverFigures draws the remaining gauges, one figure for each owner and unit.
// Gauges that were always zero are left out.
func (p *plot) serverFigures() {
	type group struct{ from, unit string }
	var groups []group
	for _, r := range p.runs {
		for k := range r.Gauges {
			g := &r.Gauges[k]
			owner := group{g.From, g.Unit}
			if !drawnElsewhere[[2]string{g.From, g.Name}] && nonZero(g) && !slices.Contains(groups, owner) {
				groups = append(groups, owner)
			}
		}
	}
	for _, owner := range groups[:min(len(groups), maxFigures)] {
		unit, by := owner.unit, 1.0
		title := "Metrics of the " + owner.from
		if unit != "" {
			title += ", " + unit
		}
		y := Axis{Label: unit, Unit: Unit(unit), Zero: true}
		if unit == "ms" {
			y, by = Axis{Label: "time", Unit: Micros, Zero: true}, 1000
		}
		f := p.overTime("figures-"+layout.MarkupID(owner.from+" "+unit), title, "As it reports them; metrics that were always zero are left out.", y)
		left := 0
		for i, r := range p.runs {
			n := 0
			for k := range r.Gauges {
				g := &r.Gauges[k]
				if g.From != owner.from || g.Unit != owner.unit || drawnElsewhere[[2]string{g.From, g.Name}] || !nonZero(g) {
					continue
				}
				if n == maxFigureLines {
					left++
					continue
				}
				x, y := r.gaugeLine(g, by)
				s := Series{Name: p.seriesName(i, layout.CutMiddle(g.Name, 40)), Tone: Tone(n % int(Grey)), Dash: Dash(n % int(dashes)), X: x, Y: y, Report: i}
				if p.several() {
					s.Tone = toneOf(i)
				}
				f.Series = append(f.Series, s)
				n++
			}
		}
		if left > 0 {
			f.Note += fmt.Sprintf(" %d more are in the report.", left)
		}
		p.add(f)
	}
}

// nonZero reports whether a gauge was ever different from zero.
func nonZero(g *report.Gauge) bool {
	return slices.ContainsFunc(g.Points, func(p report.Point) bool { return p.Value != 0 })
}
