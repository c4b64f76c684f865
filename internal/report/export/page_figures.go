package export

import (
	"fmt"
	"html/template"

	"carronade/internal/report/picture"
)

// A pageFigure is a figure: a heading, a note, the legend, the still picture and its numbers.
type pageFigure struct {
	Name, Class, Title, Note string
	Series                   []pageSample // of its lines; none of a heat map
	Cells                    []int        // of a heat map: where the samples of its levels are
	Events                   string       // and how many events it has
	Picture                  template.HTML
	Numbers                  *pageTable
}

// A pageSample is a line of a legend: the shape of a series and its name.
type pageSample struct{ Class, Path, Name string }

func (p *builder) figure(f *picture.Figure) pageFigure {
	width, class := float64(halfWidth), "half"
	if !p.runs() {
		width, class = wholePage, "whole"
	}
	t := f.Table(tableRows)
	x := pageFigure{
		Name: f.Name, Class: class, Title: f.Title, Note: f.Note,
		Picture: template.HTML(f.Inline("p-"+f.Name, width)), //nolint:gosec // layout.Markup escapes its text
		Numbers: &pageTable{Class: "numeric", Head: t.Head, Rows: t.Rows, Meaning: t.Note},
	}
	if f.Heat != nil {
		x.Events = picture.Format(float64(f.Heat.Count), picture.Events)
		for i := range picture.HeatLevels {
			x.Cells = append(x.Cells, 20*i)
		}
		return x
	}
	for i := range f.Series {
		x.Series = append(x.Series, sampleOf(f, &f.Series[i]))
	}
	return x
}

func sampleOf(f *picture.Figure, s *picture.Series) pageSample {
	name := s.Name
	if name == "" {
		name = f.Title
	}
	fill := fmt.Sprintf("f%d", s.Tone)
	switch s.Style {
	case picture.Bars:
		return pageSample{fill, "M8 1h12v10h-12z", name}
	case picture.Ranges:
		path, filled := s.Symbol.Sample()
		if !filled {
			fill = fmt.Sprintf("line t%d", s.Tone)
		}
		return pageSample{fill, path, name}
	}
	return pageSample{fmt.Sprintf("line t%d d%d", s.Tone, s.Dash), "M1 6h26", name}
}
