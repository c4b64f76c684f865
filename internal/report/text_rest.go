package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// mostRows limits the tables with a row per partition.
const mostRows = 12

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ledger prints the result of the read-back: the sum, and up to most logs with findings.
func (d *Document) ledger(p *layout.Page, most int) {
	l := d.Ledger
	if l == nil {
		return
	}
	p.Section("Ledger")
	t := layout.Table{Headings: 1, Elastic: []int{0}, Middle: true}
	shown := func(r Row) bool { return r.Name != "phantom" || l.Phantom > 0 }
	row := func(name string, of []Row) {
		cells := []string{layout.CutMiddle(name, 40)}
		for _, r := range of[:len(ledgerCounts)] {
			if shown(r) {
				cells = append(cells, ledgerCount(uint64(r.Value)))
			}
		}
		t.Row(cells...)
	}
	head := []string{""}
	all := d.LedgerRows()
	for _, r := range all[:len(ledgerCounts)] {
		if shown(r) {
			head = append(head, r.Label)
		}
	}
	t.Row(head...)
	row("all", all)
	// Partitions without findings are left out.
	bad := slices.DeleteFunc(slices.Clone(l.Logs), func(g measure.LedgerLog) bool {
		return g.Lost+g.Unread+g.Duplicated+g.Reordered+g.Corrupted+g.Recovered+g.Phantom+g.Inexact == 0
	})
	for i := range bad[:min(len(bad), most)] {
		row(bad[i].Log, ledgerRows(&bad[i].LedgerCounts))
	}
	p.Table(&t)
	if n := len(bad) - most; n > 0 {
		p.Note(fmt.Sprintf("and %d more partitions with findings, in the JSON", n))
	}
	d.ledgerRemarks(p)
}

// ledgerRemarks prints what the table of the ledger has no column for.
func (d *Document) ledgerRemarks(p *layout.Page) {
	l := d.Ledger
	events := func(n uint64, verbs ...string) string {
		return units.Plural(n, "event") + " " + verb(n, verbs[0], verbs[1])
	}
	if l.Contradicted > 0 {
		p.Pair(layout.Yellow, "contradicted", events(l.Contradicted, "was", "were")+" refused for certain, yet found (part of the recovered)")
	}
	if l.Compacted > 0 {
		p.Pair("", "compacted", events(l.Compacted, "was", "were")+" removed by compaction: a later event of the key is there")
	}
	if l.Committed+l.Aborted > 0 {
		saw := "none was aborted"
		switch {
		case l.Phantom > 0:
			saw = units.FormatCount(l.Phantom) + " that were aborted"
		case l.Aborted > 0:
			saw = "none of " + units.FormatCount(l.Aborted) + " aborted"
		}
		p.Pair("", "committed", fmt.Sprintf("a read_committed consumer found %s of %s, and %s",
			units.FormatCount(l.CommittedRead), units.FormatCount(l.Committed), saw))
	}
	var notes []string
	if l.Foreign > 0 {
		notes = append(notes, units.Plural(l.Foreign, "event")+" of other producers found and ignored")
	}
	if !l.Complete {
		notes = append(notes, "the read-back did not reach the end: missing events may still be there")
	}
	if len(notes) > 0 {
		p.Note(strings.Join(notes, "; "))
	}
}

// ledgerCount is exact if it fits the column.
func ledgerCount(n uint64) string {
	if n < 10_000_000 {
		return units.FormatCount(n)
	}
	return units.FormatCountShort(n)
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// logs prints what was consumed, a row per partition.
func (d *Document) logs(p *layout.Page) {
	if len(d.Logs) == 0 {
		return
	}
	p.Section("Logs")
	rows := slices.Clone(d.Logs)
	// Largest lag first, since that is what users look for.
	slices.SortStableFunc(rows, func(a, b load.LogResult) int { return cmp.Compare(b.Lag, a.Lag) })
	t := layout.Table{Headings: 1, Elastic: []int{0}, Middle: true}
	t.Row("", "consumed", "bytes", "lag")
	var sum load.LogResult
	for i, l := range rows {
		sum.Consumed += l.Consumed
		sum.Bytes += l.Bytes
		if l.Lag < 0 || sum.Lag < 0 {
			sum.Lag = -1
		} else {
			sum.Lag += l.Lag
		}
		if i < mostRows {
			t.Row(layout.CutMiddle(l.Log, 40), units.FormatCount(l.Consumed), units.FormatSize(int64(l.Bytes)), behind(l.Lag))
		}
	}
	if len(rows) > 1 {
		t.Row("all", units.FormatCount(sum.Consumed), units.FormatSize(int64(sum.Bytes)), behind(sum.Lag))
	}
	p.Table(&t)
	if n := len(rows) - mostRows; n > 0 {
		p.Note(fmt.Sprintf("and %d more with less lag, in the JSON", n))
	}
}

func behind(n int64) string {
	if n < 0 {
		return "unknown"
	}
	return units.FormatCount(uint64(n))
}

// system prints the facts about the system.
func (d *Document) system(p *layout.Page) {
	if len(d.Facts) == 0 {
		return
	}
	p.Section("System")
	for _, k := range sortedKeys(d.Facts) {
		p.Pair("", strings.ReplaceAll(k, "_", " "), fact(d.Facts[k]))
	}
}

// fact formats any value: lists with commas, maps as key and value, lists of maps with
// semicolons. Long values are cut; the JSON has the rest.
func fact(v any) string {
	switch x := v.(type) {
	case nil:
		return "unknown"
	case string:
		return x
	case bool:
		if x {
			return "yes"
		}
		return "no"
	case time.Duration:
		return units.FormatDuration(x)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return wholeNumber(int64(x))
		}
		return strconv.FormatFloat(x, 'g', 4, 64)
	case int:
		return wholeNumber(int64(x))
	case int64:
		return wholeNumber(x)
	case []any:
		sep := ", "
		var parts []string
		for _, e := range x[:min(len(x), mostRows)] {
			if _, ok := e.(map[string]any); ok {
				sep = "; "
			}
			parts = append(parts, fact(e))
		}
		if n := len(x) - mostRows; n > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", n))
		}
		return strings.Join(parts, sep)
	case map[string]any:
		var parts []string
		for i, k := range sortedKeys(x) {
			if i == 2*mostRows {
				parts = append(parts, fmt.Sprintf("and %d more", len(x)-i))
				break
			}
			parts = append(parts, strings.ReplaceAll(k, "_", " ")+" "+fact(x[k]))
		}
		return strings.Join(parts, ", ")
	}
	// Any other type is shown in the form that it has in the JSON.
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var generic any
	if err := json.Unmarshal(data, &generic); err != nil {
		return string(data)
	}
	return fact(generic)
}

// wholeNumber prints a number, with digit groups if it is long. Short ones are
// often ids, such as a broker's, or years.
func wholeNumber(n int64) string {
	switch {
	case n <= -10_000:
		return "-" + units.FormatCount(uint64(-n))
	case n >= 10_000:
		return units.FormatCount(uint64(n))
	}
	return strconv.FormatInt(n, 10)
}

// clients prints the connections to each broker.
func (d *Document) clients(p *layout.Page) {
	if len(d.Clients) == 0 {
		return
	}
	p.Section("Clients")
	t := layout.Table{Headings: 1, Elastic: []int{0}, Middle: true}
	t.Row("broker", "requests", "batches", "a batch", "bytes", "ratio", "throttled", "reconnects")
	for _, c := range d.Clients {
		t.Row(layout.CutMiddle(c.Broker, 30), units.FormatCountShort(c.Requests), units.FormatCountShort(c.Batches), figure(c.EventsPerBatch),
			units.FormatSize(int64(c.Bytes)), figure(c.CompressionRatio), seconds(c.ThrottleSeconds), units.FormatCountShort(c.Reconnects))
	}
	p.Table(&t)
}

// generator prints what the run cost this machine.
func (d *Document) generator(p *layout.Page) {
	g := d.Generator
	p.Section("Generator")
	cpu := seconds(g.CPUS)
	if g.Processors > 0 && g.CPUShare <= 1 { // above 1, it includes time before and after a measurement shorter than an interval
		cpu += fmt.Sprintf(", %s of %s", units.FormatPercent(g.CPUShare), units.Plural(g.Processors, "processor"))
	}
	if g.CPUUSPerEvent > 0 {
		cpu += ", " + Clock(g.CPUUSPerEvent) + " an event"
	}
	p.Pair("", "CPU", cpu)
	p.Pair("", "memory", units.FormatSize(int64(g.MaxRSSBytes))+" at most")
	p.Pair("", "collector", joinNonEmpty(units.Plural(g.GCPauses, "pause"), "the longest "+Clock(g.GCPauseMaxUS), seconds(g.GCCPUS)+" of CPU"))
	threads := ""
	if g.Busy > 0 && d.Mode != load.Consuming {
		threads = "the busiest thread worked for " + units.FormatPercent(g.Busy) + " of the measurement"
	}
	if d.Mode == load.FullSpeed {
		threads = joinNonEmpty(threads, "the in-flight limit was reached for "+units.FormatPercent(g.BoundFull))
	}
	if threads != "" {
		p.Pair("", "sending", threads)
	}
	if c := d.Calibration; c != nil {
		text := joinNonEmpty(rateOrNone(c.NullPerS, "without a target"), rateOrNone(c.DiscardPerS, "into a discarding stand-in"))
		text += " (" + c.At.UTC().Format(time.DateOnly) + ", " + c.Workload() + ")"
		switch {
		case c.Instead != "":
			text += "; with another workload: " + c.Instead + " measures this one"
		case c.DiscardPerS > 0 && d.Totals.EventsPerS > 0 && d.Mode != load.Consuming:
			text += "; this run reached " + units.FormatPercent(d.Totals.EventsPerS/c.DiscardPerS) + " of the latter"
		}
		p.Pair("", "calibrated", text)
	}
	if d.Trace != nil {
		p.Pair("", "trace", d.Trace.text())
	}
	for _, c := range d.Origin() {
		p.Pair("", c.Name, c.Text)
	}
}

// Workload describes what a calibration was measured with. That of an older program says only
// the size.
func (c *Calibration) Workload() string {
	text := units.FormatSize(int64(c.EventBytes)) + " an event"
	if c.Clients > 0 {
		text += ", " + units.Plural(c.Clients, "client")
	}
	where := c.Target
	if c.Server != "" {
		where += " at " + c.Server
	}
	return joinNonEmpty(where, text)
}

func rateOrNone(r float64, where string) string {
	if r <= 0 {
		return ""
	}
	return units.FormatRate(r) + " " + where
}
