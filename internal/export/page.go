package export

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"carronade/internal/layout"
	"carronade/internal/picture"
	"carronade/internal/report"
)

//go:embed page.js
var own string

// script is the page's script: the charts, and what draws the report with them.
var script = sync.OnceValue(func() string { return picture.ChartScript() + own })

//go:embed page.css
var sheet string

// errNothing: a page without a report would be blank.
var errNothing = errors.New("write a page: no report was given")

// tableRows limits the tables below the pictures: the picture and the report have more.
const tableRows = 40

// The widths at which still pictures are drawn: half of a page and all of it.
const (
	halfWidth = 600
	wholePage = 1200
)

// style is the page's style sheet: the colors of both themes, the rules of the
// pictures and those of the page.
var style = sync.OnceValue(func() string {
	light, dark := picture.Properties(picture.Light), picture.Properties(picture.Dark)
	return ":root{color-scheme:light;" + light + "}" +
		"@media(prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;" + dark + "}}" +
		":root[data-theme=dark]{color-scheme:dark;" + dark + "}" +
		"@media print{:root:root:root{color-scheme:light;" + light + "}}\n" +
		picture.Rules() + "\n" + picture.ChartSheet() + sheet
})

// policy allows only the page's own style and script: no connection, no frame, no
// other script, and no text as markup.
func policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash(script()) + "; style-src " + hash(style()) +
		"; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// writePage writes the page of a report, or of several overlaid.
func writePage(w io.Writer, ds ...*report.Document) error {
	if len(ds) == 0 {
		return errNothing
	}
	figures := picture.Of(ds...)
	p := &page{ds: ds, names: picture.Names(ds...)}
	p.begin()
	p.head()
	p.numbers()
	p.pictures(figures)
	p.trials()
	p.steps()
	p.rest()
	p.end(encode(figures))
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// A page is a page under construction.
type page struct {
	layout.Markup
	ds    []*report.Document
	names []string // of several reports; empty strings for one
}

func (p *page) several() bool { return len(p.ds) > 1 }

// runs reports whether the page is of at least one run.
func (p *page) runs() bool { return slices.ContainsFunc(p.ds, (*report.Document).IsRun) }

// ids are short names of the reports.
func (p *page) ids() []string {
	out := make([]string, len(p.ds))
	for i, d := range p.ds {
		if out[i] = d.ID; out[i] == "" {
			out[i] = fmt.Sprintf("report %d", i+1)
		}
	}
	return out
}

func (p *page) title() string {
	if p.several() {
		return fmt.Sprintf("%d reports compared - Carronade", len(p.ds))
	}
	if !p.runs() && p.ds[0].Scenario != nil {
		return "Scenario " + p.ds[0].Scenario.Script + " - Carronade"
	}
	if !p.runs() {
		return "Ceiling of " + p.ds[0].Target + " - Carronade"
	}
	return p.ds[0].Op + " " + p.ds[0].Target + " - Carronade"
}

func (p *page) begin() {
	p.Raw("<!doctype html>\n")
	p.Open("html", "lang", "en")
	p.Open("head")
	p.Void("meta", "charset", "utf-8")
	p.Void("meta", "http-equiv", "Content-Security-Policy", "content", policy())
	p.Void("meta", "name", "viewport", "content", "width=device-width, initial-scale=1")
	p.Void("meta", "name", "color-scheme", "content", "light dark")
	p.Void("meta", "name", "referrer", "content", "no-referrer")
	p.Void("link", "rel", "icon", "href", "data:,") // otherwise browsers request one from the server
	p.Element("title", p.title())
	p.Open("style")
	p.Raw(style())
	p.Close()
	p.Close()
	p.Line()
	p.Open("body")
	p.Element("a", "Skip to the pictures", "class", "skip", "href", "#pictures")
	p.Line()
}

// end closes the page, with the pictures' data and the script.
func (p *page) end(data []byte) {
	p.Open("script", "type", "application/json", "id", "data")
	p.Raw(string(data))
	p.Close()
	p.Line()
	p.Open("script")
	p.Raw(script())
	p.Close()
	p.Line()
	p.Close()
	p.Close()
	p.Line()
}

// pictures writes the figures: a heading, notes, the names of the series, the still picture
// and its numbers.
func (p *page) pictures(figures []picture.Figure) {
	p.Open("section", "id", "pictures", "aria-label", "Pictures")
	p.Element("h2", "Pictures")
	// Only the script can fill this.
	p.Open("div", "id", "tools", "class", "tools", "hidden", "hidden")
	p.Close()
	p.Open("div", "class", "figures")
	p.Line()
	for i := range figures {
		p.figure(&figures[i])
	}
	p.Close()
	p.Close()
	p.Line()
}

func (p *page) figure(f *picture.Figure) {
	width, class := float64(halfWidth), "half"
	if f.Heat != nil || !p.runs() {
		width, class = wholePage, "whole"
	}
	p.Open("figure", "id", "f-"+f.Name, "class", class, "data-name", f.Name)
	p.Open("figcaption")
	p.Element("h3", f.Title, "id", "h-"+f.Name)
	p.Element("p", f.Note)
	p.Close()
	p.legend(f)
	p.Open("div", "class", "plot")
	p.Raw(f.Inline("p-"+f.Name, width))
	p.Close()
	p.numbersOf(f)
	p.Close()
	p.Line()
}

func (p *page) legend(f *picture.Figure) {
	if f.Heat != nil {
		p.Open("p", "class", "legend")
		p.Text("1 ")
		p.Open("svg", "class", "ramp", "viewBox", "0 0 200 12", "width", "200", "height", "12", "aria-hidden", "true")
		for i := range picture.HeatLevels {
			p.Empty("path", "class", fmt.Sprintf("cells h%d", i), "d", fmt.Sprintf("M%d 0h20v12h-20z", 20*i))
		}
		p.Close()
		p.Text(" most in a cell, " + picture.Format(float64(f.Heat.Count), picture.Events) + " in all")
		for _, k := range f.MarkKinds() {
			p.Text(" ")
			p.stretch(k)
		}
		p.Close()
		return
	}
	p.Open("ul", "class", "legend")
	for i := range f.Series {
		s := &f.Series[i]
		name := s.Name
		if name == "" {
			name = f.Title
		}
		p.Open("li", "data-s", fmt.Sprint(i))
		p.Open("svg", "class", "sample", "viewBox", "0 0 28 12", "width", "28", "height", "12", "aria-hidden", "true")
		switch s.Style {
		case picture.Bars:
			p.Empty("path", "class", fmt.Sprintf("f%d", s.Tone), "d", "M8 1h12v10h-12z")
		case picture.Ranges:
			path, filled := s.Symbol.Sample()
			class := fmt.Sprintf("f%d", s.Tone)
			if !filled {
				class = fmt.Sprintf("line t%d", s.Tone)
			}
			p.Empty("path", "class", class, "d", path)
		default:
			p.Empty("path", "class", fmt.Sprintf("line t%d d%d", s.Tone, s.Dash), "d", "M1 6h26")
		}
		p.Close()
		p.Element("span", name)
		p.Close()
	}
	for _, k := range f.MarkKinds() {
		p.Open("li")
		p.stretch(k)
		p.Close()
	}
	p.Close()
}

// stretch writes a kind of time spans into a legend.
func (p *page) stretch(k picture.MarkKind) {
	edge := "M1 0h26v3h-26z"
	switch k {
	case picture.Freeze:
		edge = "M1 9h26v3h-26z"
	case picture.Fault:
		edge = "M1 3h26v3h-26z"
	}
	p.Open("svg", "class", "sample", "viewBox", "0 0 28 12", "width", "28", "height", "12", "aria-hidden", "true")
	p.Empty("path", "class", k.Class(), "d", "M1 0h26v12h-26z")
	p.Empty("path", "class", fmt.Sprintf("f%d", k.Tone()), "d", edge)
	p.Close()
	p.Element("span", " "+k.Name())
}

func (p *page) numbersOf(f *picture.Figure) {
	t := f.Table(tableRows)
	if len(t.Rows) == 0 {
		return
	}
	p.Open("details", "class", "numbers")
	p.Open("summary")
	p.Text("Numbers")
	p.Element("span", " of "+f.Title, "class", "screen-reader")
	p.Close()
	if t.Note != "" {
		p.Element("p", t.Note)
	}
	p.table(t.Head, t.Rows)
	p.Close()
}

// table writes a table of numbers whose first column names the rows.
func (p *page) table(head []string, rows [][]string) { p.tableOf("numeric", head, rows) }

// prose writes a table of text.
func (p *page) prose(head []string, rows [][]string) { p.tableOf("prose", head, rows) }

func (p *page) tableOf(class string, head []string, rows [][]string) {
	p.Open("div", "class", "scroll", "tabindex", "0", "role", "region", "aria-label", "Table")
	p.Open("table", "class", class)
	if strings.Join(head, "") != "" {
		p.Open("thead")
		p.Open("tr")
		for _, h := range head {
			p.Element("th", h, "scope", "col")
		}
		p.Close()
		p.Close()
	}
	p.Open("tbody")
	for _, row := range rows {
		p.Open("tr")
		for i, c := range row {
			if i == 0 {
				p.Element("th", c, "scope", "row")
			} else {
				p.Element("td", c)
			}
		}
		p.Close()
	}
	p.Close()
	p.Close()
	p.Close()
	p.Line()
}
