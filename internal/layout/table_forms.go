package layout

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Markdown is the rows as a table of GitHub's Markdown. Cells are Markdown already. Columns are aligned
// right, except the first and those in Left; with AutoAlign only those in Left are.
func (t *Table) Markdown() string {
	var b strings.Builder
	for k, r := range t.rows {
		b.WriteString(markdownRow(r))
		if k != 0 {
			continue
		}
		align := make([]string, len(r))
		for i := range align {
			if align[i] = "---:"; slices.Contains(t.Left, i) || i == 0 && !t.AutoAlign {
				align[i] = "---"
			}
		}
		rule := markdownRow(align)
		if t.TightRule {
			rule = strings.ReplaceAll(rule, " ", "")
		}
		b.WriteString(rule)
	}
	return b.String()
}

func markdownRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// CSV writes the rows as CSV. A spreadsheet takes no cell for a formula.
func (t *Table) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	for _, r := range t.rows {
		cells := slices.Clone(r)
		for i, s := range cells {
			cells[i] = spreadsheetSafe(s)
		}
		_ = out.Write(cells) // the writer keeps errors for Flush
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// spreadsheetSafe is a text that a spreadsheet does not take for a formula.
func spreadsheetSafe(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			return "'" + s
		}
	}
	return s
}
