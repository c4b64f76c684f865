package report

import "strings"

// A table is rows of cells, the first column to the left and the others to the
// right, as wide as what is in them.
type table struct {
	rows [][]string
	left int // columns aligned to the left, counted from the first
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// lines renders the table with gap blanks between columns; no column is
// narrower than least.
func (t *table) lines(gap, least int) []string {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, least)
				if i < max(t.left, 1) {
					widths[i] = 0
				}
			}
			widths[i] = max(widths[i], width(c))
		}
	}
	out := make([]string, len(t.rows))
	for k, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", gap))
			}
			if i < max(t.left, 1) {
				b.WriteString(padRight(c, widths[i]))
			} else {
				b.WriteString(padLeft(c, widths[i]))
			}
		}
		out[k] = strings.TrimRight(b.String(), " ")
	}
	return out
}
