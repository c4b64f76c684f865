package layout

import (
	"slices"
	"strings"
)

// A Table is rows of cells under headings. By default the first column is aligned
// left and the others right. A table that is too wide becomes narrower in this
// order: gaps between columns shrink, elastic columns are cut, and blanks between
// numbers and their units are removed.
type Table struct {
	Headings  int   // rows at the top that are headings
	Left      []int // further columns that are aligned left
	AutoAlign bool  // align left all columns with a non-number, instead of the first
	Elastic   []int // columns that may be cut, in this order
	Keep      []int // minimum width of each elastic column; default 4
	Middle    bool  // cut cells in their middle, not at their end
	Wrapped   []int // elastic columns that are wrapped and not cut
	Sparse    bool  // leave out columns that are empty except for headings
	Gap       int   // blanks between columns; 0: two, or one if necessary
	MinWidth  int   // minimum width of columns that are aligned right
	TightRule bool  // in Markdown: no blanks in the line below the headings

	rows   [][]string
	colors map[[2]int]string // of cells, by row and column
}

// minElastic is the default minimum width of elastic columns.
const minElastic = 4

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Paint colors a cell of the row that was added last.
func (t *Table) Paint(column int, code string) {
	if t.colors == nil {
		t.colors = map[[2]int]string{}
	}
	t.colors[[2]int{len(t.rows) - 1, column}] = code
}

// left reports for each column whether it is aligned left. It is called once per
// table, because it may have to inspect every cell.
func (t *Table) left() []bool {
	var left []bool
	for _, r := range t.rows {
		for i := len(left); i < len(r); i++ {
			left = append(left, slices.Contains(t.Left, i) || t.AutoAlign && !t.numbers(i) || !t.AutoAlign && i == 0)
		}
	}
	return left
}

// numbers reports whether a column's cells begin with a digit or a sign.
func (t *Table) numbers(column int) bool {
	for _, r := range t.rows[t.Headings:] {
		if column >= len(r) {
			continue
		}
		if c := strings.TrimLeft(r[column], " "); c != "" && !strings.ContainsRune("0123456789-+>\u00b1", []rune(c)[0]) {
			return false
		}
	}
	return true
}

// Lines are the rows as lines of at most this many columns, if possible; 0 means no
// limit.
func (t *Table) Lines(columns int, style Style) []string {
	gap, rows := t.Gap, t.rows
	if gap == 0 {
		gap = 2
	}
	left := t.left()
	widths := t.widths(rows, left)
	if columns > 0 {
		if t.Gap == 0 && total(widths, gap) > columns {
			gap = 1
		}
		t.squeeze(widths, total(widths, gap)-columns)
		if total(widths, gap) > columns {
			rows = t.tight(left)
			widths = t.widths(rows, left)
			t.squeeze(widths, total(widths, gap)-columns)
		}
	}
	out := make([]string, 0, len(rows))
	for k, r := range rows {
		more := t.wrap(r, widths)
		if len(more) > 0 {
			r = more[0]
		}
		out = append(out, t.line(k, r, widths, left, gap, style))
		for _, r := range more[min(1, len(more)):] {
			out = append(out, t.line(k, r, widths, left, gap, style))
		}
	}
	return out
}

// wrap are the lines of a row with a wrapped cell that is too wide; none for other rows.
func (t *Table) wrap(r []string, widths []int) [][]string {
	var out [][]string
	for _, i := range t.Wrapped {
		if i >= len(r) || Width(r[i]) <= widths[i] {
			continue
		}
		for k, text := range Wrap(r[i], widths[i]) {
			switch {
			case len(out) == 0:
				out = append(out, slices.Clone(r))
			case k == len(out):
				out = append(out, make([]string, len(r)))
			}
			out[k][i] = text
		}
	}
	return out
}

func (t *Table) line(k int, r []string, widths []int, left []bool, gap int, style Style) string {
	var b strings.Builder
	first := true
	for i, c := range r {
		if widths[i] == 0 {
			continue
		}
		if !first {
			b.WriteString(strings.Repeat(" ", gap))
		}
		first = false
		if t.Middle {
			c = CutMiddle(c, widths[i])
		} else {
			c = Cut(c, widths[i])
		}
		if left[i] {
			c = PadRight(c, widths[i])
		} else {
			c = PadLeft(c, widths[i])
		}
		if i == len(r)-1 {
			c = strings.TrimRight(c, " ")
		}
		if k >= t.Headings {
			c = style.Paint(t.colors[[2]int{k, i}], c)
		}
		b.WriteString(c)
	}
	text := strings.TrimRight(b.String(), " ")
	if k < t.Headings {
		text = style.Paint(Dim, text)
	}
	return text
}

// widths are the columns' widths required by their cells; 0 for a column left out.
func (t *Table) widths(rows [][]string, left []bool) []int {
	var widths, filled []int
	for k, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths, filled = append(widths, 0), append(filled, 0)
				if !left[i] {
					widths[i] = t.MinWidth
				}
			}
			widths[i] = max(widths[i], Width(c))
			if k >= t.Headings {
				filled[i] = max(filled[i], Width(c))
			}
		}
	}
	for i := range widths {
		if t.Sparse && filled[i] == 0 {
			widths[i] = 0
		}
	}
	return widths
}

// squeeze makes elastic columns narrower by over in total, as far as possible.
func (t *Table) squeeze(widths []int, over int) {
	for k, i := range t.Elastic {
		keep := minElastic
		if k < len(t.Keep) {
			keep = t.Keep[k]
		}
		if over > 0 && i < len(widths) && widths[i] > keep {
			less := min(over, widths[i]-keep)
			widths[i] -= less
			over -= less
		}
	}
}

// tight are the rows without blanks between numbers and their units.
func (t *Table) tight(left []bool) [][]string {
	rows := slices.Clone(t.rows)
	for k := t.Headings; k < len(rows); k++ {
		rows[k] = slices.Clone(rows[k])
		for i, c := range rows[k] {
			if !left[i] {
				rows[k][i] = strings.ReplaceAll(c, " ", "")
			}
		}
	}
	return rows
}

// total is the width of a line.
func total(widths []int, gap int) int {
	n := -gap
	for _, w := range widths {
		if w > 0 {
			n += w + gap
		}
	}
	return n
}
