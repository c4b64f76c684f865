package export

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"carronade/internal/layout"
	"carronade/internal/page"
	"carronade/internal/report"
	"carronade/internal/report/picture"
)

//go:embed page.js
var own string

// script is the page's script: that of all pages, and what draws the report with it.
var script = sync.OnceValue(func() string { return page.Script() + own })

//go:embed page.html
var markup string

// pageTemplate makes the page of a pageView.
var pageTemplate = sync.OnceValue(func() *template.Template { return page.Parse(markup) })

// errNothing: a page without a report would be blank.
var errNothing = errors.New("write a page: no report was given")

// tableRows limits the tables below the pictures: the picture and the report have more.
const tableRows = 40

// The widths at which still pictures are drawn: half of a page and all of it.
const (
	halfWidth = 600
	wholePage = 1200
)

// policy allows only the page's own style and script: no connection, no frame, no
// other script, and no text as markup.
func policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash(script()) + "; style-src " + hash(page.Style()) +
		"; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// A pageView is what the page has, as its template needs it. Text is escaped there.
type pageView struct {
	Policy, Title, Heading string
	Style                  template.CSS
	Data, Script           template.JS
	About                  []string
	Several                bool
	Bands                  []page.Band
	Key                    page.Key
	Figures                []pageFigure
	Verdicts               []pageVerdict
	Conditions             []report.Condition // of a single report
	Differences            *pageTable         // of several
	Totals                 [][]*pageTable     // counts, times
	Parts                  []*pageTable
	Sections               []pageSection
	Folds                  []pageFold
}

// A pageTable is a table whose first column names the rows.
type pageTable struct {
	Class   string // numeric, prose, or these with more
	Head    []string
	Rows    [][]string
	Meaning string // a sentence next to it
}

// Of is the name of a column, for narrow screens, where each row is a card.
func (t *pageTable) Of(i int) string {
	if i < len(t.Head) && strings.Contains(t.Class, "cards") {
		return t.Head[i]
	}
	return ""
}

// Headed reports whether the columns have names.
func (t *pageTable) Headed() bool { return strings.Join(t.Head, "") != "" }

func numericTable(head []string, rows [][]string) *pageTable {
	return &pageTable{Class: "numeric", Head: head, Rows: rows}
}

func proseTable(head []string, rows [][]string) *pageTable {
	return &pageTable{Class: "prose cards", Head: head, Rows: rows}
}

// A pageSection is a table below a heading.
type pageSection struct {
	Label, Title string
	Table        *pageTable
}

// A pageFold is a section that is closed at first.
type pageFold struct {
	Title     string
	Table     *pageTable
	Sentences []string
	Text      string // as it is
}

// writePage writes the page of a report, or of several overlaid.
func writePage(w io.Writer, ds ...*report.Document) error {
	if len(ds) == 0 {
		return errNothing
	}
	figures := picture.Of(ds...)
	p := &builder{ds: ds, names: picture.Names(ds...)}
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, p.view(figures)); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	if _, err := w.Write(layout.Readable(b.Bytes())); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// A builder is a page under construction.
type builder struct {
	ds    []*report.Document
	names []string // of several reports; empty strings for one
	folds []pageFold
}

func (p *builder) view(figures []picture.Figure) *pageView {
	v := &pageView{
		Policy: policy(), Title: p.title(), Heading: p.title(), Several: p.several(),
		//nolint:gosec // the program's own, and JSON by encode
		Style: template.CSS(page.Style()), Data: template.JS(encode(figures)), Script: template.JS(script()),
		About: p.about(), Bands: p.bands(), Key: page.KeyOf(figures), Verdicts: p.verdicts(), Totals: p.totals(), Parts: p.parts(), Sections: slices.Concat(p.trials(), p.steps()),
	}
	if p.several() {
		v.Differences = p.differences()
	} else {
		v.Conditions = conditions(p.ds[0])
	}
	for i := range figures {
		v.Figures = append(v.Figures, p.figure(&figures[i]))
	}
	p.rest()
	v.Folds = p.folds
	return v
}

func (p *builder) several() bool { return len(p.ds) > 1 }

// runs reports whether the page is of at least one run.
func (p *builder) runs() bool { return slices.ContainsFunc(p.ds, (*report.Document).IsRun) }

// ids are short names of the reports.
func (p *builder) ids() []string {
	out := make([]string, len(p.ds))
	for i, d := range p.ds {
		if out[i] = d.ID; out[i] == "" {
			out[i] = fmt.Sprintf("report %d", i+1)
		}
	}
	return out
}

func (p *builder) title() string {
	if p.several() {
		return fmt.Sprintf("%d reports compared", len(p.ds))
	}
	if !p.runs() && p.ds[0].Scenario != nil {
		return "Scenario " + p.ds[0].Scenario.Script
	}
	if !p.runs() {
		return "Ceiling of " + p.ds[0].Target
	}
	return p.ds[0].Op + " " + p.ds[0].Target
}

// of names one of several reports after the name of what it has.
func (p *builder) of(i int) string {
	if p.several() {
		return " of " + p.names[i]
	}
	return ""
}
