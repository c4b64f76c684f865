package layout

import (
	"io"
	"strings"
)

// A Page collects lines.
type Page struct {
	strings.Builder
	Style      Style
	MaxColumns int // columns of a narrower terminal; 0: no limit
}

// Columns is the page's number of columns, at most the package's Columns.
func (p *Page) Columns() int {
	if p.MaxColumns > 0 {
		return min(p.MaxColumns, Columns)
	}
	return Columns
}

// Paint is text in a color if the page has colors.
func (p *Page) Paint(code, text string) string { return p.Style.Paint(code, text) }

// Line writes one line.
func (p *Page) Line(s string) {
	p.WriteString(strings.TrimRight(s, " "))
	p.WriteByte('\n')
}

// Answer prints the first line: a word, and what decided it, which may take more lines.
func (p *Page) Answer(code, word, text string) {
	rest := ""
	if text != "" {
		rest = strings.TrimPrefix(Hang(word+"  ", Clean(text), p.Columns()), word)
	}
	lines := strings.Split(rest, "\n")
	p.Line(p.Paint(code, word) + lines[0])
	for _, l := range lines[1:] {
		p.Line(l)
	}
}

// Section begins a part of the page.
func (p *Page) Section(name string) {
	p.WriteByte('\n')
	p.Line(p.Paint(Bold, name))
}

// Title writes a heading, wrapped.
func (p *Page) Title(text string) {
	for _, l := range Wrap(text, p.Columns()) {
		p.Line(p.Paint(Bold, l))
	}
}

// labelWidth is the width of the column of labels, with its indentation.
const labelWidth = 16

// Pair writes a label, in a color, and a text next to it, wrapped.
func (p *Page) Pair(code, label, text string) {
	label = "  " + label
	at := labelWidth
	if Width(label) >= labelWidth {
		at = min(Width(label)+2, p.Columns()/2)
	}
	for i, l := range Wrap(text, p.Columns()-at) {
		if i == 0 {
			p.Line(p.Paint(code, PadRight(label, at)) + l)
			continue
		}
		p.Line(strings.Repeat(" ", at) + l)
	}
}

// Note writes a remark, wrapped.
func (p *Page) Note(text string) {
	for _, l := range Wrap(text, p.Columns()-2) {
		p.Line("  " + p.Paint(Dim, l))
	}
}

// Table writes a table, indented.
func (p *Page) Table(t *Table) {
	for _, l := range t.Lines(p.Columns()-2, p.Style) {
		p.Line("  " + l)
	}
}

// To writes the page.
func (p *Page) To(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}
