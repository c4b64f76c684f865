package report

import (
	"io"
	"strings"
)

// Columns is how wide a page is.
const Columns = 80

// Style is how a page may be written.
type Style struct {
	Color bool // ANSI; for a terminal that wants it, never for a file
	ASCII bool // no block characters
}

// A page collects lines. Text is laid out first and colored last, so that
// color never moves a column.
type page struct {
	strings.Builder
	style Style
}

const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

func (p *page) paint(code, s string) string {
	if !p.style.Color || s == "" || code == "" {
		return s
	}
	return code + s + plain
}

// line writes one line.
func (p *page) line(s string) {
	p.WriteString(strings.TrimRight(s, " "))
	p.WriteByte('\n')
}

// section begins a part of the report.
func (p *page) section(name string) {
	p.WriteByte('\n')
	p.line(p.paint(bold, name))
}

// labels is how wide the column of labels is, with its indentation.
const labels = 16

// pair writes a label and a text beside it, wrapped.
func (p *page) pair(label, text string) { p.pairIn("", label, text) }

func (p *page) pairIn(code, label, text string) {
	label = "  " + label
	at := labels
	if width(label) >= labels {
		at = min(width(label)+2, Columns/2)
	}
	for i, l := range Wrap(text, Columns-at) {
		if i == 0 {
			p.line(p.paint(code, padRight(label, at)) + l)
			continue
		}
		p.line(strings.Repeat(" ", at) + l)
	}
}

// note writes a remark below a table.
func (p *page) note(text string) {
	for _, l := range Wrap(text, Columns-2) {
		p.line("  " + p.paint(dim, l))
	}
}

// table writes rows, the first of them as headings. What is too wide for the
// page moves closer together, and then its first column is cut.
func (p *page) table(t *table, headings int) {
	const room = Columns - 2
	lines := t.lines(2, 0)
	if widest(lines) > room {
		lines = t.lines(1, 0)
	}
	if over := widest(lines) - room; over > 0 {
		first := 0
		for _, r := range t.rows {
			first = max(first, width(r[0]))
		}
		for _, r := range t.rows {
			r[0] = cut(r[0], max(first-over, 4))
		}
		lines = t.lines(1, 0)
	}
	for i, l := range lines {
		if i < headings {
			l = p.paint(dim, l)
		}
		p.line("  " + l)
	}
}

func widest(lines []string) int {
	n := 0
	for _, l := range lines {
		n = max(n, width(l))
	}
	return n
}

func (p *page) to(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}
