package judge

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/units"
)

// varySigns are the signs in names and words.
type varySigns struct{ to, by, pm string }

func signsOf(ascii bool) varySigns {
	if ascii {
		return varySigns{" -> ", " x ", "+-"}
	}
	return varySigns{" \u2192 ", " \u00d7 ", "\u00b1"}
}

// name is what an effect is of: "acks 1 -> all", or of interactions "acks x linger", with their
// values if a setting has several changes.
func (v *Variation) name(e *VariedEffect, s varySigns) string {
	var all []string
	for i, c := range e.of {
		text := e.Of[i].Name
		if e.Main() || len(v.design.Factors[c.Factor].Values) > 2 {
			text += " " + e.Of[i].From + s.to + e.Of[i].To
		}
		all = append(all, text)
	}
	return layout.Clean(strings.Join(all, s.by))
}

// words are an effect in words: "-31% ± 4%", or "no effect found, within ± 3%". An interval of
// ratios that is far from symmetric is given by its ends.
func (e *VariedEffect) words(s varySigns) string {
	ends := signedPercent(e.Lo) + " to " + signedPercent(e.Hi)
	effect := signedPercent(e.Effect)
	if above, below := e.Hi-e.Effect, e.Effect-e.Lo; above > symmetric*below {
		effect += " (" + ends + ")"
	} else {
		effect += " " + s.pm + " " + roundPercent((above+below)/2)
	}
	switch e.Verdict {
	case stats.EffectFound:
		return effect
	case stats.EffectUnsure:
		return "not certain, " + effect
	}
	within := max(math.Abs(e.Lo), math.Abs(e.Hi))
	if within > symmetric-1 {
		return "no effect found, within " + ends
	}
	return "no effect found, within " + s.pm + " " + roundPercent(within)
}

// symmetric is up to which ratio both halves of an interval count as equal.
const symmetric = 1.25

// Label is an effect's name for pictures.
func (v *Variation) Label(e *VariedEffect) string { return v.name(e, signsOf(false)) }

// Words are an effect in words for pictures.
func (e *VariedEffect) Words() string { return e.words(signsOf(false)) }

func signedPercent(x float64) string {
	if x < 0 {
		return "-" + roundPercent(-x)
	}
	return "+" + roundPercent(x)
}

// roundPercent is a share in whole percent, with a decimal below ten.
func roundPercent(x float64) string {
	digits := 0
	if x < 0.0995 {
		digits = 1
	}
	return strings.TrimSuffix(strconv.FormatFloat(100*x, 'f', digits, 64), ".0") + "%"
}

// color is that of an effect: better, worse, or nothing.
func (n *VariedNumber) color(e *VariedEffect) string {
	switch {
	case e.Verdict == stats.EffectUnsure:
		return layout.Yellow
	case e.Verdict != stats.EffectFound:
		return layout.Dim
	case (e.Effect > 0) == (n.Better == "more"):
		return layout.Green
	}
	return layout.Red
}

// heading is the line above the effects on a number.
func (n *VariedNumber) heading(s varySigns) string {
	text := n.Title
	if n.Decides {
		text += " (decides)"
	}
	return text + ", " + n.Better + " is better; noise " + s.pm + " " + roundPercent(n.Noise)
}

// nameColumn is the most columns of the names of effects.
const nameColumn = 42

// maxInteractions is up to how many interactions without an effect are listed for a number
// that does not decide.
const maxInteractions = 3

// shown are the effects that the text lists, and the interactions that it only counts.
func (n *VariedNumber) shown() (shown, rest []*VariedEffect) {
	for k := range n.Effects {
		e := &n.Effects[k]
		if !n.Decides && !e.Main() && e.Verdict == stats.NoEffect {
			rest = append(rest, e)
			continue
		}
		shown = append(shown, e)
	}
	if len(rest) <= maxInteractions {
		shown, rest = append(shown, rest...), nil
	}
	return shown, rest
}

// Text writes the variation for people.
func (v *Variation) Text(w io.Writer, style layout.Style) error {
	p := &layout.Page{Style: style}
	s := signsOf(style.ASCII)
	code, word := layout.Bold, report.Done
	if v.distrusted() {
		code, word = layout.Red, report.Distrust
	}
	p.Answer(code, word, v.answer(s))
	machineLine(p, v.Machine)
	if v.Best != nil {
		for _, l := range layout.Wrap("best: "+v.bestWords(), layout.Columns) {
			p.Line(l)
		}
	}
	p.Title(v.summary())
	if len(v.LeftOut) > 0 {
		p.Line("")
	}
	leftOut(p, v.LeftOut)
	for i := range v.Numbers {
		n := &v.Numbers[i]
		if len(n.Effects) == 0 { // a note says why
			continue
		}
		p.Section(n.heading(s))
		shown, rest := n.shown()
		wide := 0
		for _, e := range shown {
			wide = max(wide, min(layout.Width(v.name(e, s)), nameColumn))
		}
		for _, e := range shown {
			for j, line := range layout.Wrap(v.name(e, s), nameColumn) {
				if j > 0 {
					p.Line("    " + line)
					continue
				}
				p.Line("  " + layout.PadRight(line, wide) + "  " + p.Paint(n.color(e), e.words(s)))
			}
		}
		if len(rest) > 0 {
			p.Line("  " + p.Paint(layout.Dim, fmt.Sprintf("%s: no effect found", units.Plural(len(rest), "interaction"))))
		}
	}
	p.Line("")
	p.Table(v.table())
	p.Line("")
	for _, n := range v.Notes {
		p.Note(s.note(n))
	}
	return p.To(w)
}

// distrusted reports whether runs are missing because they were not trusted.
func (v *Variation) distrusted() bool {
	return v.missing() > 0 && slices.ContainsFunc(v.LeftOut, func(l LeftOut) bool { return l.Why == notTrusted })
}

// answer is what the settings change of the number that decides.
func (v *Variation) answer(s varySigns) string {
	var found []string
	title := ""
	for i := range v.Numbers {
		n := &v.Numbers[i]
		if !n.Decides || len(n.Effects) == 0 {
			continue
		}
		title = n.Title
		for k := range n.Effects {
			if e := &n.Effects[k]; e.Verdict != stats.NoEffect {
				found = append(found, v.name(e, s)+": "+e.words(s))
			}
		}
	}
	switch {
	case title == "":
		return "no effect can be told from these runs"
	case len(found) == 0:
		return "no effect on " + title + " was found"
	}
	return title + ", " + strings.Join(found, "; ")
}

// note replaces the sign of an interaction in a note.
func (s varySigns) note(n string) string { return strings.ReplaceAll(n, "A x B", "A"+s.by+"B") }

func (v *Variation) summary() string {
	return fmt.Sprintf("%s, %s each, %s %s", units.Plural(len(v.Cells), "cell"), units.Plural(v.Rounds, v.each()), v.Op, v.Target)
}

// bestWords names the best cell, and how certain that is.
func (v *Variation) bestWords() string {
	c := &v.Cells[v.Best.Cell-1]
	n := &v.Numbers[0]
	text := fmt.Sprintf("%s (%s %s), ", c.settings(), n.Title, n.value(c))
	if c.Died > 0 {
		text += "but the system ended in " + units.Plural(c.Died, v.each()) + " of it; "
	}
	if len(v.Best.Rivals) == 0 {
		return text + "better than every other"
	}
	var cells []string
	for _, r := range v.Best.Rivals {
		cells = append(cells, strconv.Itoa(r))
	}
	which := "cell "
	if len(cells) > 1 {
		which = "cells "
	}
	return text + which + strings.ReplaceAll(list(cells, 8), " ", ", ") + " may be as good"
}

// settings are the values of a cell in one line.
func (c *VariedCell) settings() string {
	var parts []string
	for _, s := range c.Settings {
		parts = append(parts, s.Name+"="+s.Value)
	}
	return layout.Clean(strings.Join(parts, " "))
}

// value is a number of a cell, "-" if it has none.
func (n *VariedNumber) value(c *VariedCell) string {
	mean, ok := c.Means[n.Field]
	if !ok {
		return "-"
	}
	return boundSign(false, slices.Contains(c.AtMost, n.Field)) + store.Value{Kind: n.kind, Num: mean}.String()
}

// maxColumns is up to how many settings have columns of their own.
const maxColumns = 3

func (v *Variation) table() *layout.Table {
	t := &layout.Table{Headings: 1}
	head := []string{"cell"}
	apart := len(v.Factors) <= maxColumns
	if apart {
		for i, f := range v.Factors {
			head = append(head, f.Name)
			t.Left, t.Elastic = append(t.Left, i+1), append(t.Elastic, i+1)
		}
	} else {
		head = append(head, "settings")
		t.Left, t.Elastic = []int{1}, []int{1}
	}
	head = append(head, v.many())
	for i := range v.Numbers {
		head = append(head, v.Numbers[i].column)
	}
	t.Row(head...)
	for i := range v.Cells {
		c := &v.Cells[i]
		row := []string{strconv.Itoa(c.Cell)}
		if apart {
			for _, s := range c.Settings {
				row = append(row, s.Value)
			}
		} else {
			row = append(row, c.settings())
		}
		row = append(row, strconv.Itoa(len(c.Reports)))
		for k := range v.Numbers {
			row = append(row, v.Numbers[k].value(c))
		}
		t.Row(row...)
		if v.Best != nil && v.Best.Cell == c.Cell {
			t.Paint(len(row)-len(v.Numbers), layout.Green)
		}
	}
	return t
}

// Markdown writes the variation as Markdown, for a page or an issue.
func (v *Variation) Markdown(w io.Writer) error {
	var b strings.Builder
	s := signsOf(false)
	b.WriteString("### What the settings change\n\n" + layout.Markdown(v.summary()) + "\n")
	for i := range v.Numbers {
		n := &v.Numbers[i]
		if len(n.Effects) == 0 {
			continue
		}
		b.WriteString("\n**" + layout.Markdown(n.heading(s)) + "**\n\n")
		t := layout.Table{Left: []int{1}}
		t.Row("change", "effect", "interval")
		for k := range n.Effects {
			e := &n.Effects[k]
			t.Row(layout.Markdown(v.name(e, s)), layout.Markdown(e.words(s)), signedPercent(e.Lo)+" to "+signedPercent(e.Hi))
		}
		b.WriteString(t.Markdown())
	}
	if v.Best != nil {
		b.WriteString("\n**Best cell:** " + layout.Markdown(v.bestWords()) + "\n")
	}
	b.WriteString("\n")
	head := []string{"cell", "settings", v.many()}
	for i := range v.Numbers {
		head = append(head, layout.Markdown(v.Numbers[i].Title))
	}
	t := layout.Table{AutoAlign: true, Left: []int{1}}
	t.Row(head...)
	for i := range v.Cells {
		c := &v.Cells[i]
		row := []string{strconv.Itoa(c.Cell), layout.MarkdownCode(c.settings()), strconv.Itoa(len(c.Reports))}
		for k := range v.Numbers {
			row = append(row, v.Numbers[k].value(c))
		}
		t.Row(row...)
	}
	b.WriteString(t.Markdown())
	notes := slices.Clone(v.Notes)
	for i := range notes {
		notes[i] = s.note(notes[i])
	}
	markdownNotes(&b, notes, v.LeftOut)
	_, err := io.WriteString(w, b.String())
	return err
}

// CSV writes one line per number and effect. Effects and their bounds are shares.
func (v *Variation) CSV(w io.Writer) error {
	var out layout.Table
	out.Row("series", "number", "decides", "kind", "change", "effect", "lo", "hi", "p", "p_adjusted", "verdict")
	plain := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	for i := range v.Numbers {
		n := &v.Numbers[i]
		for k := range n.Effects {
			e := &n.Effects[k]
			kind := "main"
			if !e.Main() {
				kind = "interaction"
			}
			out.Row(
				v.Series, n.Field, strconv.FormatBool(n.Decides), kind, v.name(e, signsOf(true)),
				plain(e.Effect), plain(e.Lo), plain(e.Hi), plain(e.P), plain(e.Adjusted), string(e.Verdict),
			)
		}
	}
	return out.CSV(w)
}
