package report

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/measure"
	"carronade/units"
)

// A finding of the ledger is a count that is not 0, of events that are not simply acked and found.
type ledgerFinding struct {
	name  string // of the row
	short string // for the headline: "137 lost"
	long  string // for sentences; only the first says "events"
	bad   bool   // acked events are not as they should be
	minor bool   // nothing is wrong with acked events, as far as is known
}

// ledgerFindings are the rows of the ledger that are not 0, except acked and read: what every verdict on the
// delivery names.
func (d *Document) ledgerFindings() []ledgerFinding {
	var out []ledgerFinding
	for _, r := range d.LedgerRows() {
		if r.Value == 0 || r.Name == "acked" || r.Name == "read" {
			continue
		}
		n := units.Plural(uint64(r.Value), "event")
		f := ledgerFinding{name: r.Name, short: r.Text() + " " + r.Label}
		if f.long = f.short; len(out) == 0 {
			f.long = n + " " + r.Label
		}
		switch r.Name {
		case "lost", "corrupted":
			f.bad = true
		case "phantom":
			f.bad, f.long = true, units.Plural(uint64(r.Value), "aborted event")+" seen by a read_committed consumer"
		case "unread":
			f.long = unread(d.Ledger)
		case "recovered":
			f.minor = true
		case "compacted":
			f.minor, f.long = true, n+" removed by compaction"
		case "inexact":
			f.minor, f.long = true, n+" could not be checked individually"
		}
		out = append(out, f)
	}
	return out
}

// verified is the check of the read-back, and the one verdict on the delivery. Its text names every finding, and
// claims nothing that was not checked.
func (d *Document) verified() Check {
	l := d.Ledger
	acked := d.Totals.RateOf != RateSent
	if !acked && d.notFound() > 0 && !l.Complete { // nothing was acked, so nothing can be unread
		return Check{Name: Verify, CannotTell: true, Text: fmt.Sprintf("%s: %s not found before the read-back ended", cannotTell, units.Plural(d.notFound(), "event"))}
	}
	var bad, rest []string
	open, inexact := "", ""
	for _, f := range d.ledgerFindings() {
		switch {
		case f.bad:
			bad = append(bad, f.long)
		case f.name == "unread":
			open = f.long
		case f.name == "inexact":
			inexact = ", as far as checked: " + f.long
		case f.name != "recovered" || acked: // else all that was found is
			rest = append(rest, f.long)
		}
	}
	switch n := d.notFound(); {
	case n > 0 && !acked:
		rest = append(rest, units.Plural(n, "event")+" not found")
	case n > 0 && l.Complete:
		rest = append(rest, units.Plural(n, "event")+" neither acked nor found")
	}
	c := Check{Name: Verify}
	var texts []string
	switch {
	case len(bad) > 0:
		texts = append(texts, strings.Join(append(bad, rest...), ", ")+inexact)
		if open != "" {
			texts = append(texts, "whether the others are there is unknown: "+open)
		}
		rest = nil
	case open != "":
		c.CannotTell = true
		texts = append(texts, cannotTell+": "+open+inexact)
	default:
		c.OK = true
		texts = append(texts, d.nothingWrong()+inexact)
	}
	if len(rest) > 0 {
		texts = append(texts, strings.Join(rest, ", "))
	}
	if text := d.byGroup(); text != "" {
		texts = append(texts, "by group: "+text)
	}
	if text := notChecked(l); text != "" {
		texts = append(texts, text)
	}
	c.Text = strings.Join(texts, "; ")
	return c
}

// nothingWrong says what is not wrong, of what was checked.
func (d *Document) nothingWrong() string {
	altered := !slices.Contains(d.Ledger.Unchecked, "corrupted")
	missing := d.notFound() > 0
	switch {
	case d.Totals.RateOf == RateSent && missing: // what was acked can be lost
		return "nothing that was found was altered"
	case missing && altered:
		return "nothing that was acked was lost or altered"
	case missing:
		return "nothing that was acked was lost"
	case altered:
		return "nothing was lost or altered"
	}
	return "nothing was lost"
}

// notChecked says what the ledger of a run does not show; "" if it shows everything.
func notChecked(l *measure.Ledger) string {
	var parts []string
	for _, name := range l.Unchecked {
		parts = append(parts, map[string]string{"duplicated": "duplicates", "reordered": "order", "corrupted": "contents"}[name])
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + " were not checked"
}

// flawless reports whether everything that was sent was found, once, in order and unaltered.
func (d *Document) flawless() bool {
	return d.notFound() == 0 && !slices.ContainsFunc(d.ledgerFindings(), func(f ledgerFinding) bool { return !f.minor })
}

// unread says why acked events were not read.
func unread(l *measure.Ledger) string {
	of := " of " + units.FormatCount(l.Acked)
	rest := l.Unread - min(l.Removed, l.Unread)
	were, they, them := number(rest)
	left := units.FormatCount(rest)
	if l.Removed == 0 {
		left += of
	}
	switch {
	case l.Blocked != "":
		left += were + "not read: " + l.Blocked
	case l.Complete:
		left += were + "not found, and whether " + they + " should be there is not known"
	case l.Removed > 0:
		left += were + "not reached by the read-back"
	default:
		left += were + "not read: the read-back ended before it reached " + them
	}
	if l.Removed == 0 {
		return left
	}
	were, they, _ = number(l.Removed)
	removed := units.FormatCount(l.Removed) + of + were + "removed before " + they + were + "read (retention or deletion)"
	if rest == 0 {
		return removed
	}
	return removed + ", and " + left
}

// number formats a number of events, with the verb and the pronoun that go with it.
func number(n uint64) (were, they, them string) {
	if n == 1 {
		return " was ", "it", "it"
	}
	return " were ", "they", "them"
}

// ledgerHeadline is the ledger's part of the headline.
func (d *Document) ledgerHeadline() []string {
	var parts []string
	if d.Totals.RateOf == RateSent { // events that were not acked can be missing, but not lost
		all := uint64(0)
		for i := range d.Phases {
			all += d.Phases[i].Totals.Unknown
		}
		parts = append(parts, fmt.Sprintf("%s of %s read back", units.FormatCount(d.Ledger.Recovered), units.FormatCount(all)))
	}
	for _, f := range d.ledgerFindings() {
		if !f.minor {
			parts = append(parts, f.short)
		}
	}
	return parts
}

// missing are the verdicts on events that were sent, not acked and not found. They are not
// lost: only what was acked can be.
func (d *Document) missing() []Verdict {
	if d.Ledger == nil {
		return nil
	}
	n := d.notFound()
	if n == 0 || !d.Ledger.Complete { // else the ledger and its check say so
		return nil
	}
	sent := uint64(0)
	for i := range d.Phases {
		sent += d.Phases[i].Totals.Sent
	}
	of := units.FormatCount(n) + " of " + units.Plural(sent, "event")
	if d.Totals.RateOf == RateSent {
		text := of + " not found; nothing is acknowledged in this run, so whether the system ever had them is not known"
		return []Verdict{{On: OnLimit, Mark: Bad, Label: "NOT FOUND", Texts: []string{text}}}
	}
	without := "without retries an application loses them"
	if d.Totals.Retries > 0 {
		without = "an application that retries as often loses them"
	}
	return []Verdict{{On: OnSystem, Mark: Bad, Label: "MISSING", Texts: []string{of + " were never acked and never stored: " + without}}}
}

// briefLedger prints one line if every acked event was found as it was sent, otherwise the table.
func (d *Document) briefLedger(p *layout.Page, level brevity) {
	l := d.Ledger
	if l == nil {
		return
	}
	if len(d.ledgerFindings()) > 0 && !(len(d.ledgerFindings()) == 1 && l.Compacted > 0) || !l.Complete {
		if level < withoutLedger {
			d.ledger(p, briefLogs)
		}
		return
	}
	how := "each once and in order"
	if n := len(l.Groups); n > 0 {
		how = "each once and in order by each of " + units.Plural(uint64(n), "group")
	}
	if text := notChecked(l); text != "" {
		how = "none is missing; " + text
	}
	p.Pair("", "ledger", fmt.Sprintf("%s acked, %s read back: %s",
		units.FormatCount(l.Acked), units.FormatCount(l.Read-min(l.Foreign, l.Read)), how))
	d.ledgerRemarks(p)
}
