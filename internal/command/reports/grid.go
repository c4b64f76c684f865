package reports

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"carronade/internal/report"
)

// A grid is rows of cells under headings, at most report.Columns wide where its
// elastic columns allow it: what is cut has dots.
type grid struct {
	rows    [][]string
	left    []int // columns that stand to the left
	elastic []int // columns that may be cut, the one to be cut first first
}

// row adds a row; the first is the headings.
func (g *grid) row(cells ...string) {
	for i, c := range cells {
		cells[i] = clean(c)
	}
	g.rows = append(g.rows, cells)
}

// Widths of cells.
const (
	gap      = 2
	narrow   = 4 // what is cut keeps as much
	headings = 1
)

// write writes the grid. Columns that are empty but for their heading are left
// out.
func (g *grid) write(w io.Writer, style report.Style) error {
	widths := make([]int, len(g.rows[0]))
	for i := range widths {
		for _, r := range g.rows[headings:] {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
		if widths[i] > 0 {
			widths[i] = max(widths[i], utf8.RuneCountInString(g.rows[0][i]))
		}
	}
	g.fit(widths)
	var b strings.Builder
	for k, r := range g.rows {
		var line strings.Builder
		for i, c := range r {
			if widths[i] == 0 {
				continue
			}
			if line.Len() > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			c = shorten(c, widths[i])
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if slices.Contains(g.left, i) {
				line.WriteString(c + space)
			} else {
				line.WriteString(space + c)
			}
		}
		text := strings.TrimRight(line.String(), " ")
		if k < headings && style.Color {
			text = "\x1b[2m" + text + "\x1b[0m"
		}
		b.WriteString(text + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fit makes elastic columns narrower until all fit.
func (g *grid) fit(widths []int) {
	total := -gap
	for _, n := range widths {
		if n > 0 {
			total += n + gap
		}
	}
	for _, i := range g.elastic {
		if over := total - report.Columns; over > 0 && widths[i] > narrow {
			less := min(over, widths[i]-narrow)
			widths[i] -= less
			total -= less
		}
	}
}

// shorten cuts a text to n columns.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	const dots = ".."
	return string([]rune(s)[:max(n-len(dots), 0)]) + dots[:min(n, len(dots))]
}

// clean makes one line of a text, without what a terminal would obey.
func clean(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }), " ")
}

// join is words as they were typed.
func join(words []string) string { return strings.Join(words, " ") }
