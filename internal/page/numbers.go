package page

import (
	"bytes"
	"fmt"

	"carronade/internal/layout"
	"carronade/internal/picture"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// numbers are the totals: counts and times.
func (p *page) numbers() {
	p.Open("section", "aria-label", "Numbers", "class", "totals")
	p.Element("h2", "Numbers of the hold")
	p.Open("div", "class", "pair")
	p.counts()
	p.times()
	p.Close()
	p.Close()
	p.Line()
}

// counts is a row a count; a column a report.
func (p *page) counts() {
	head := append([]string{"events"}, p.ids()...)
	if !p.several() {
		head = []string{"events", "", "of offered"}
	}
	var rows [][]string
	row := func(name string, of func(t *report.Totals) uint64, always bool) {
		cells, some := []string{name}, always
		for _, d := range p.ds {
			n := of(&d.Totals)
			some = some || n > 0
			cells = append(cells, units.FormatCount(n))
			if !p.several() {
				share := ""
				if d.Totals.Offered > 0 && n > 0 && name != "offered" {
					share = units.FormatPercent(float64(n) / float64(d.Totals.Offered))
				}
				cells = append(cells, share)
			}
		}
		if some {
			rows = append(rows, cells)
		}
	}
	fired := false
	for _, d := range p.ds {
		fired = fired || d.Mode != load.Consuming
	}
	row("offered", func(t *report.Totals) uint64 { return t.Offered }, fired)
	row("sent", func(t *report.Totals) uint64 { return t.Sent }, fired)
	row("acked", func(t *report.Totals) uint64 { return t.Acked }, fired)
	row("failed", func(t *report.Totals) uint64 { return t.Failed }, fired)
	row("unknown", func(t *report.Totals) uint64 { return t.Unknown }, fired)
	row("dropped", func(t *report.Totals) uint64 { return t.Dropped }, fired)
	row("unsent", func(t *report.Totals) uint64 { return t.Unsent }, fired)
	row("consumed", func(t *report.Totals) uint64 { return t.Consumed }, !fired)
	row("missing", func(t *report.Totals) uint64 { return t.Missing }, false)
	words := func(name string, of func(d *report.Document) string) {
		cells := []string{name}
		for _, d := range p.ds {
			cells = append(cells, of(d))
			if !p.several() {
				cells = append(cells, "")
			}
		}
		rows = append(rows, cells)
	}
	words("throughput", func(d *report.Document) string {
		return units.FormatRate(d.Totals.EventsPerS) + " " + d.Totals.RateOf
	})
	words("bytes a second", func(d *report.Document) string { return picture.Format(d.Totals.BytesPerS, picture.BytesPerS) })
	words("in flight, mean", func(d *report.Document) string { return picture.Format(d.Totals.InFlightMean, picture.Events) })
	words("processor time an event", func(d *report.Document) string { return picture.Format(d.Generator.CPUUSPerEvent, picture.Micros) })
	p.table(head, rows)
}

type column struct {
	name string
	s    *measure.Summary
}

// times is a row a percentile: of one report a column a time, of several a
// column a report.
func (p *page) times() {
	var cols []column
	if p.several() {
		for i, d := range p.ds {
			s, of := d.Response, "response"
			if s.IsEmpty() {
				s, of = d.Service, "service"
			}
			if s.IsEmpty() {
				s, of = d.EndToEnd, "end to end"
			}
			if !s.IsEmpty() {
				cols = append(cols, column{p.ids()[i] + " " + of, s})
			}
		}
	} else {
		d := p.ds[0]
		for _, t := range d.Measured() {
			cols = append(cols, column{t.Title, t.Sum})
		}
	}
	if len(cols) == 0 {
		return
	}
	head := []string{"times"}
	for _, c := range cols {
		head = append(head, c.name)
	}
	var rows [][]string
	row := func(name string, of func(s *measure.Summary) string) {
		cells := []string{name}
		for _, c := range cols {
			cells = append(cells, of(c.s))
		}
		rows = append(rows, cells)
	}
	exact := func(of func(s *measure.Summary) float64) func(*measure.Summary) string {
		return func(s *measure.Summary) string {
			if s.Count == 0 {
				return "-"
			}
			return report.Clock(of(s))
		}
	}
	row("mean", exact(func(s *measure.Summary) float64 { return s.Mean }))
	row("min", exact(func(s *measure.Summary) float64 { return s.Min }))
	for _, v := range cols[0].s.Percentiles {
		row(measure.PercentileName(v.P), func(s *measure.Summary) string { return percentile(s, v.P) })
	}
	row("max", exact(func(s *measure.Summary) float64 { return s.Max }))
	row("count", func(s *measure.Summary) string { return units.FormatCount(s.Count) })
	p.table(head, rows)
}

func percentile(s *measure.Summary, at float64) string {
	v, ok := s.At(at)
	if !ok {
		return "-"
	}
	return report.Percentile(v)
}

// rest is everything else: failures in their own words, what others told, the
// settings, files that were attached, and the report as text, which has it all.
func (p *page) rest() {
	p.Open("section", "aria-label", "Everything else")
	p.Element("h2", "Everything else")
	for i, d := range p.ds {
		of := ""
		if p.several() {
			of = " of " + p.names[i]
		}
		p.failures(d, of)
		p.freezes(d, of)
		p.settings(d, of)
		for _, a := range d.Attachments {
			p.fold("File "+a.Name+of, func() { p.Element("pre", a.Text, "tabindex", "0") })
		}
		p.fold("The report"+of+" as text", func() {
			var b bytes.Buffer
			if err := d.Text(&b, layout.Style{}); err != nil {
				return // a buffer takes everything
			}
			p.Element("pre", b.String(), "tabindex", "0")
		})
	}
	p.Close()
	p.Line()
}

// fold is something that is opened by those who want it.
func (p *page) fold(title string, content func()) {
	p.Open("details")
	p.Element("summary", title)
	content()
	p.Close()
	p.Line()
}

func (p *page) failures(d *report.Document, of string) {
	if len(d.Failures) == 0 {
		return
	}
	p.fold(fmt.Sprintf("Failures%s (%d)", of, len(d.Failures)), func() {
		var rows [][]string
		for _, f := range d.Failures {
			rows = append(rows, []string{f.Class, units.FormatCount(f.Events), units.FormatCount(f.Shots), f.Text})
		}
		p.prose([]string{"class", "events", "shots", "in the words of the system or the connection"}, rows)
	})
}

// freezes are the times in which the generator did not run, the longest first.
func (p *page) freezes(d *report.Document, of string) {
	f := &d.Freezes
	if len(f.Longest) == 0 {
		return
	}
	title := fmt.Sprintf("Freezes of the generator%s (%d)", of, f.Count)
	if n := uint64(len(f.Longest)); n < f.Count {
		title = fmt.Sprintf("Freezes of the generator%s (the %d longest of %d)", of, n, f.Count)
	}
	p.fold(title, func() {
		var rows [][]string
		for _, l := range f.Longest {
			rows = append(rows, []string{seconds(l.AtS), seconds(l.LengthS), l.Who, l.Cause})
		}
		p.prose([]string{"at", "length", "what did not run", "why"}, rows)
	})
}

func (p *page) settings(d *report.Document, of string) {
	if len(d.Settings) == 0 {
		return
	}
	p.fold("Settings"+of, func() {
		var rows [][]string
		for _, s := range d.Settings {
			by := "set"
			if s.Default {
				by = "by default"
			}
			rows = append(rows, []string{s.Name, s.Value, by})
		}
		p.prose([]string{"setting", "value", ""}, rows)
	})
}
