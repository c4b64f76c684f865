package judge

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/layout"
)

// CSV writes one line per row: the number of its group, the settings that rows
// name and those that differ between groups, VAR, and for each quantity the median in
// the unit of its kind and its spread, a share.
func (c *Collation) CSV(w io.Writer) error {
	var differs []string
	flags := false
	for _, g := range c.Groups {
		for _, name := range append(g.named(), g.Differs...) {
			if !slices.Contains(differs, name) {
				differs = append(differs, name)
			}
		}
		for _, l := range g.Rows {
			flags = flags || len(l.Flags) > 0
		}
	}
	slices.Sort(differs)
	var out layout.Table
	head := append([]string{"group"}, differs...)
	head = append(head, shownField(c.Variable), "reports", "report_id", "started", "revision", "revision_date", "untrusted")
	if flags {
		head = append(head, "flags")
	}
	for _, col := range c.columns {
		head = append(head, col.field, col.field+"_spread")
	}
	head = append(head, "best", "at_least", "noisy", "ahead")
	out.Row(head...)
	for i := range c.Groups {
		g := &c.Groups[i]
		for k := range g.Rows {
			out.Row(c.record(i+1, g, &g.Rows[k], differs, flags)...)
		}
	}
	return out.CSV(w)
}

func (c *Collation) record(number int, g *Group, l *Line, differs []string, flags bool) []string {
	r := []string{strconv.Itoa(number)}
	for _, name := range differs {
		text := l.setting(name)
		if i := slices.IndexFunc(g.Equal, func(s Setting) bool { return s.Name == name }); i >= 0 {
			text = g.Equal[i].Value
		}
		r = append(r, text)
	}
	date := ""
	if l.RevisionDate != nil {
		date = l.RevisionDate.Format(time.RFC3339)
	}
	r = append(r, l.Text, strconv.Itoa(len(l.Reports)), l.Reports[0], l.At.UTC().Format(time.RFC3339), l.Revision, date, strconv.Itoa(l.Untrusted))
	if flags {
		r = append(r, flagWords(l.Flags))
	}
	var best, ahead, bounds []string
	for _, col := range c.columns {
		cell, ok := l.Cells[col.field]
		if !ok {
			r = append(r, "", "")
			continue
		}
		spread := ""
		if cell.Spread != nil && cell.N > 1 {
			spread = strconv.FormatFloat(*cell.Spread, 'g', 4, 64)
		}
		r = append(r, strconv.FormatFloat(cell.Median, 'g', -1, 64), spread)
		if cell.Best {
			best = append(best, col.field)
		}
		if cell.Ahead {
			ahead = append(ahead, col.field)
		}
		if cell.AtLeast {
			bounds = append(bounds, col.field)
		}
	}
	return append(r, strings.Join(best, " "), strings.Join(bounds, " "), strconv.Itoa(l.Noisy), strings.Join(ahead, " "))
}

// Markdown writes the collation for a page or an issue: as Text, with each
// spread next to its median and the best in bold.
func (c *Collation) Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("### collate " + layout.Markdown(shownField(c.Variable)) + "\n")
	for i := range c.Groups {
		g := &c.Groups[i]
		var items []string
		for _, e := range c.shared(i) {
			items = append(items, layout.Markdown(shownField(e.Name))+" "+layout.MarkdownCode(e.Value))
		}
		b.WriteString("\n" + strings.Join(items, ", ") + "\n\n")
		for _, text := range g.remarks() {
			b.WriteString(layout.Markdown(text) + "\n\n")
		}
		c.sheet(g, layout.Style{}).markdown(&b)
	}
	markdownNotes(&b, c.Notes, c.LeftOut)
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown writes the sheet.
func (s *sheet) markdown(b *strings.Builder) {
	t := layout.Table{Left: []int{0, 1}}
	head := make([]string, len(s.head))
	for i, name := range s.head {
		if head[i] = layout.Markdown(name); i >= s.variable {
			t.Left = append(t.Left, i)
		}
	}
	t.Row(head...)
	for _, r := range s.rows {
		var cells []string
		for i, text := range r.cells {
			if i < len(r.spread) && r.spread[i] != "" {
				text += " " + r.spread[i]
			}
			if text = layout.Markdown(text); r.colors[i] != "" {
				text = "**" + text + "**"
			}
			cells = append(cells, text)
		}
		t.Row(cells...)
	}
	b.WriteString(t.Markdown())
}
