package picture

import (
	"fmt"
	"slices"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/measure"
)

// Of returns the figures for which a report has numbers, in reading order. For
// several reports it overlays their lines and makes a heat map for each.
func Of(ds ...*report.Document) []Figure {
	if len(ds) == 0 {
		return nil
	}
	p := &plot{runs: runs(ds)}
	p.search()
	p.throughput()
	main, _ := p.mainTime()
	p.time(main)
	p.distribution()
	p.heat(main)
	for _, t := range overTimes[:3] {
		if t.key != main {
			p.time(t.key)
		}
	}
	p.outstanding()
	p.time("send_delay")
	p.behind()
	p.answers()
	p.failures()
	p.bytes()
	p.memory()
	p.cpu()
	p.collector()
	p.serverFigures()
	p.curve()
	p.steps()
	for _, t := range overTimes[:3] {
		if t.key != main {
			p.heat(t.key)
		}
	}
	return p.figures
}

// limits are the limits on a percentile of a time, or without one on another result.
func (p *plot) limits(time, name string, onX bool) []Limit {
	var out []Limit
	for _, r := range p.runs {
		for _, l := range r.LimitLines() {
			x := Limit{Value: l.Value, Text: l.Text, OnX: onX}
			if time != "" {
				x.Value *= 1e6
			}
			if l.Time == time && (time != "" || l.Name == name) && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}

// ByName finds a figure by its name.
func ByName(figures []Figure, name string) (*Figure, bool) {
	for i := range figures {
		if figures[i].Name == name {
			return &figures[i], true
		}
	}
	return nil, false
}

// A plot collects figures.
type plot struct {
	runs    []*run
	figures []Figure
}

func (p *plot) several() bool { return len(p.runs) > 1 }

// add adds a figure unless it is empty.
func (p *plot) add(f Figure) {
	if f.empty() {
		return
	}
	p.figures = append(p.figures, f)
}

// overTime is a figure with the time of the run as X.
func (p *plot) overTime(name, title, note string, y Axis) Figure {
	f := Figure{Name: name, Title: title, Note: note, X: Axis{Label: "time since the start of the run", Unit: Seconds}, Y: y, Shared: true}
	for _, r := range p.runs {
		if n := len(r.rows); n > 0 {
			f.X.Max = max(f.X.Max, r.rows[n-1].to)
		}
	}
	if !p.several() {
		f.Marks = p.runs[0].marks()
	}
	return f
}

// seriesName prefixes a series' name with its report's if there are several
// reports.
func (p *plot) seriesName(i int, series string) string {
	if !p.several() {
		return series
	}
	if series == "" {
		return p.runs[i].name
	}
	return p.runs[i].name + ": " + series
}

// ToneOf is the color of a report among several, counted from 0.
func ToneOf(i int) Tone { return toneOf(i) }

func toneOf(i int) Tone { return Tone(i % int(Grey)) }

// marks are the phases other than the measurement, the starts of steps, the stalls,
// and the longest times in which the generator did not run.
func (r *run) marks() []Mark {
	var out []Mark
	shortest := 0.0
	if n := len(r.rows); n > 0 {
		shortest = (r.rows[n-1].to - r.rows[0].from) / 200 // narrower than visible
	}
	for i := range r.Phases {
		ph := &r.Phases[i]
		if ph.Name != measure.Measurement && ph.EndS-ph.StartS > shortest {
			out = append(out, Mark{From: ph.StartS, To: ph.EndS, Text: ph.Name})
		}
	}
	faults, moments := r.faultMarks()
	out = append(out, faults...)
	for i := range r.Steps {
		at := r.Steps[i].StartS
		out = append(out, Mark{From: at, To: at, Text: fmt.Sprintf("step %d: %s", i+1, Format(r.Steps[i].Rate, PerSecond))})
	}
	for _, s := range r.Stall.Each() {
		end := s.AtS + s.LengthS
		if n := len(out); n > 0 && out[n-1].Kind == Stall && s.AtS-out[n-1].To < shortest/5 {
			out[n-1].To = max(out[n-1].To, end) // not distinguishable
			continue
		}
		out = append(out, Mark{From: s.AtS, To: end, Kind: Stall})
	}
	for _, f := range r.Freezes.Longest { // even short ones are shown: they make the numbers doubtful
		out = append(out, Mark{From: f.AtS, To: f.AtS + f.LengthS, Kind: Freeze})
	}
	return append(out, moments...) // in front, since a stall often begins with its fault
}

// longestName is the length at which the name of a mark is cut.
const longestName = 80

// faultMarks are the stretches in which faults were there, and the moments of all marks. A fault
// without a heal lasts until the limit holds again, as far as that was seen.
func (r *run) faultMarks() (faults, moments []Mark) {
	if r.Faults == nil {
		return nil, nil
	}
	for i := range r.Faults.Marks {
		m := &r.Faults.Marks[i]
		moments = append(moments, Mark{From: m.AtS, To: m.AtS, Text: layout.Cut(layout.Clean(m.Kind+" "+m.Name), longestName)})
	}
	for i := range r.Faults.Scores {
		if s := &r.Faults.Scores[i]; s.Kind == fault.MarkFault {
			faults = append(faults, Mark{From: s.AtS, To: faultEnd(r.Faults, s), Kind: Fault})
		}
	}
	return faults, moments
}

func faultEnd(f *report.Faults, s *fault.Score) float64 {
	end := s.AtS + s.ObservedS
	for i := range f.Marks {
		if m := &f.Marks[i]; m.Kind == fault.MarkHeal && m.Name == s.Name && m.AtS >= s.AtS && m.AtS <= end {
			return m.AtS
		}
	}
	if b := s.Whole.Back; b != nil && !b.More {
		return s.AtS + b.S
	}
	return end
}
