package judge

import (
	"io"
	"strings"
	"unicode/utf8"

	"carronade/internal/report"
)

// A page collects lines of at most report.Columns columns. Cells are laid out
// first and colored last, so that color never moves a column.
type page struct {
	strings.Builder
	style report.Style
}

// Colors of what is said.
const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
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

// pair writes a label and a text beside it, wrapped.
func (p *page) pair(code, label, text string) {
	const at = 16
	label = pad("  "+label, at)
	for i, l := range report.Wrap(text, report.Columns-at) {
		if i == 0 {
			p.line(p.paint(code, label) + l)
		} else {
			p.line(strings.Repeat(" ", at) + l)
		}
	}
}

// note writes a remark, wrapped.
func (p *page) note(text string) {
	for _, l := range report.Wrap(text, report.Columns-2) {
		p.line("  " + p.paint(dim, l))
	}
}

// title writes a heading, wrapped.
func (p *page) title(text string) {
	for _, l := range report.Wrap(text, report.Columns) {
		p.line(p.paint(bold, l))
	}
}

// A grid is rows of cells under headings. The first column stands to the left,
// as do those named in left, and the others to the right.
type grid struct {
	rows  [][]string
	left  map[int]bool
	color map[[2]int]string // of cells, by row and column
}

func (g *grid) row(cells ...string) { g.rows = append(g.rows, cells) }

// paint colors a cell of the row that was added last.
func (g *grid) paint(column int, code string) {
	if g.color == nil {
		g.color = map[[2]int]string{}
	}
	g.color[[2]int{len(g.rows) - 1, column}] = code
}

// grid writes a grid. One that is too wide moves closer together: the columns
// first, then numbers and their units.
func (p *page) grid(g *grid) {
	gap := "  "
	widths, total := g.widths(len(gap))
	if total > report.Columns {
		gap = " "
		widths, total = g.widths(len(gap))
	}
	if total > report.Columns {
		for _, r := range g.rows[1:] {
			for i := 1; i < len(r); i++ {
				if !g.left[i] {
					r[i] = strings.ReplaceAll(r[i], " ", "")
				}
			}
		}
		widths, _ = g.widths(len(gap))
	}
	for k, r := range g.rows {
		var b strings.Builder
		b.WriteString("  ")
		for i, c := range r {
			cell := strings.Repeat(" ", widths[i]-width(c)) + c
			if i == 0 || g.left[i] {
				cell = pad(c, widths[i])
			}
			if i > 0 {
				b.WriteString(gap)
			}
			code := g.color[[2]int{k, i}]
			if k == 0 {
				code = dim
			}
			b.WriteString(p.paint(code, cell))
		}
		p.line(b.String())
	}
}

// widths are those of the columns and of a whole line, indented and with gaps.
func (g *grid) widths(gap int) (columns []int, line int) {
	for _, r := range g.rows {
		for i, c := range r {
			if i == len(columns) {
				columns = append(columns, 0)
			}
			columns[i] = max(columns[i], width(c))
		}
	}
	for _, w := range columns {
		line += w + gap
	}
	return columns, line - gap + 2
}

func (p *page) to(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// width counts runes, which is columns for everything printed here.
func width(s string) int { return utf8.RuneCountInString(s) }

func pad(s string, n int) string { return s + strings.Repeat(" ", max(n-width(s), 0)) }

// cut shortens a text to n columns.
func cut(s string, n int) string {
	s = report.Clean(s)
	if width(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-3, 0)]) + "..."
}
