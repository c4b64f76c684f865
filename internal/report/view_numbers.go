package report

import (
	"math"
	"strconv"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A Row is one number of a report.
type Row struct {
	Name    string // in fields and files: "acked"
	Label   string // for people
	Unit    string // "events", "bytes/s", ...; empty: a plain number
	Meaning string // in a few words
	Value   float64
	Remark  string // a remark on it, in this run
	Always  bool   // shown even if 0
}

// Text is the number with its unit, unless the context shows the unit.
func (r *Row) Text() string {
	switch r.Unit {
	case "events/s":
		return units.FormatRate(r.Value)
	case "bytes":
		return units.FormatSize(int64(r.Value))
	case "bytes/s":
		return units.FormatSize(int64(r.Value)) + "/s"
	case "s":
		return seconds(r.Value)
	case "us":
		return Clock(r.Value)
	case "share":
		return units.FormatPercent(r.Value)
	case "slope":
		return signed(r.Value)
	}
	return units.FormatCount(uint64(math.Round(r.Value)))
}

// EachCount calls f with every count, in the order of tables.
func EachCount(c *measure.Counts, f func(r Row, n uint64)) {
	for i := range measure.Counters {
		k := &measure.Counters[i]
		n := k.Of(c)
		f(Row{Name: k.Name, Label: k.Label, Unit: k.Unit, Meaning: k.Means, Value: float64(n)}, n)
	}
}

// Counts are the counts of the measurement.
func (d *Document) Counts() []Row {
	t := &d.Totals
	reading := d.Mode == load.Consuming
	var out []Row
	EachCount(&t.Counts, func(r Row, n uint64) {
		if r.Unit != "events" || reading && r.Name != "consumed" {
			return
		}
		r.Always = r.Name != "unread" && (r.Name != "consumed" || reading || d.EndToEnd != nil)
		if r.Name != "offered" {
			r.Remark = share(n, t.Offered)
		}
		out = append(out, r)
	})
	return append(out, Row{Name: "missing", Label: "missing", Unit: "events", Meaning: "short of the requested count", Value: float64(t.Missing)})
}

// meanCount is n divided by over. A mean below ten that is not whole has one decimal.
func meanCount(n, over uint64) string {
	if mean := math.Round(10*float64(n)/float64(over)) / 10; mean < 10 {
		return strconv.FormatFloat(mean, 'f', -1, 64)
	}
	return units.FormatCountShort((n + over/2) / over)
}

// Figures are the other numbers of the measurement: rates, bytes, batches, in flight, stalls,
// and cost.
func (d *Document) Figures() []Row {
	t := &d.Totals
	reading := d.Mode == load.Consuming
	out := []Row{
		{Name: "throughput", Label: "throughput", Unit: "events/s", Meaning: "in the measurement", Value: t.EventsPerS, Remark: t.RateOf, Always: true},
		{Name: "bytes_per_s", Label: "volume", Unit: "bytes/s", Meaning: "of events", Value: t.BytesPerS, Always: true},
	}
	EachCount(&t.Counts, func(r Row, n uint64) {
		switch r.Name {
		case "bytes":
			r.Always = true
			if events := max(t.Sent, t.Consumed); events > 0 && n > 0 {
				r.Remark = units.FormatSize(int64(n/events)) + " an event"
			}
		case "wire_bytes":
			r.Always = true
		case "batches":
			if r.Always = !reading; n > 0 {
				events := t.Sent
				if reading {
					events = t.Consumed
				}
				r.Remark = d.rateText(t.BatchRate()) + ", " + meanCount(events, n) + " each"
			}
		case "retries":
			r.Always = !reading
		default:
			return
		}
		out = append(out, r)
	})
	if reading {
		out = append(out,
			Row{Name: "rebalance_s", Label: "rebalancing", Unit: "s", Meaning: "without an assignment", Value: t.RebalanceS, Always: true},
			Row{Name: "fetch_s", Label: "fetching", Unit: "s", Meaning: "the rest", Value: t.FetchS, Always: true})
	} else if t.RateOf != RateSent { // otherwise nothing is in flight or answered
		out = append(out,
			Row{Name: "in_flight_mean", Label: "in flight", Unit: "events", Meaning: "sent and not yet done", Value: t.InFlightMean, Remark: "mean", Always: true},
			Row{Name: "in_flight_max", Label: "most in flight", Unit: "events", Meaning: "at once", Value: float64(t.MostInFlight()), Always: true})
		if d.Steady.Known {
			out = append(out, Row{Name: "in_flight_slope", Label: "in-flight slope", Unit: "slope", Meaning: "events in flight gained a second", Value: d.Steady.InFlightSlope, Remark: "events a second", Always: true})
		}
	}
	if t.RateOf != RateSent {
		stall := Row{Name: "stall_longest_s", Label: "longest stall", Unit: "s", Meaning: "without an answer", Value: d.Stall.LongestS, Always: !reading}
		if stall.Value > 0 {
			stall.Remark = "at " + seconds(d.Stall.LongestAtS)
		}
		out = append(out, stall,
			Row{Name: "stall_share", Label: "stalled", Unit: "share", Meaning: "of the measurement", Value: d.Stall.Share, Always: !reading})
	}
	return append(out, Row{Name: "cpu_us_per_event", Label: "CPU an event", Unit: "us", Meaning: "of the generator", Value: d.Generator.CPUUSPerEvent})
}

// ledgerCounts are the counts of a ledger, or of one of its logs.
var ledgerCounts = []struct {
	Row
	of func(*measure.LedgerCounts) uint64
}{
	{Row{Name: "acked", Meaning: "the system accepted them"}, func(l *measure.LedgerCounts) uint64 { return l.Acked }},
	{Row{Name: "read", Meaning: "found in the logs"}, func(l *measure.LedgerCounts) uint64 { return l.Read }},
	{Row{Name: "lost", Meaning: "acked, but not found"}, func(l *measure.LedgerCounts) uint64 { return l.Lost }},
	{Row{Name: "unread", Meaning: "acked, but not read"}, func(l *measure.LedgerCounts) uint64 { return l.Unread }},
	{Row{Name: "duplicated", Meaning: "found more than once"}, func(l *measure.LedgerCounts) uint64 { return l.Duplicated }},
	{Row{Name: "reordered", Meaning: "found out of order"}, func(l *measure.LedgerCounts) uint64 { return l.Reordered }},
	{Row{Name: "corrupted", Meaning: "found altered"}, func(l *measure.LedgerCounts) uint64 { return l.Corrupted }},
	{Row{Name: "recovered", Meaning: "not acked, but found"}, func(l *measure.LedgerCounts) uint64 { return l.Recovered }},
	{Row{Name: "phantom", Meaning: "of aborted transactions, but seen"}, func(l *measure.LedgerCounts) uint64 { return l.Phantom }},
}

// LedgerRows are the results of the read-back; nil if there was none.
func (d *Document) LedgerRows() []Row {
	l := d.Ledger
	if l == nil {
		return nil
	}
	out := ledgerRows(&measure.LedgerCounts{
		Acked: l.Acked, Read: l.Read, Lost: l.Lost, Unread: l.Unread, Duplicated: l.Duplicated,
		Reordered: l.Reordered, Corrupted: l.Corrupted, Recovered: l.Recovered, Phantom: l.Phantom,
	})
	return append(out, Row{Name: "compacted", Label: "compacted", Unit: "events", Meaning: "removed by compaction", Value: float64(l.Compacted)},
		Row{Name: "inexact", Label: "inexact", Unit: "events", Meaning: "not checked individually", Value: float64(l.Inexact)})
}

func ledgerRows(l *measure.LedgerCounts) []Row {
	out := make([]Row, len(ledgerCounts))
	for i := range ledgerCounts {
		r := ledgerCounts[i].Row
		r.Label, r.Unit, r.Value = r.Name, "events", float64(ledgerCounts[i].of(l))
		r.Always = r.Name != "phantom" && r.Name != "recovered"
		out[i] = r
	}
	return out
}

// A FailureRow is one message of a failure, or the rest of a class without messages.
type FailureRow struct {
	Class, Text     string
	Events, Batches string
}

// FailureRows are the failures of the whole run.
func (d *Document) FailureRows() []FailureRow {
	var out []FailureRow
	classes := map[string]bool{}
	for _, f := range d.Failures {
		out = append(out, FailureRow{f.Class, f.Text, units.FormatCount(f.Events), units.FormatCount(f.Batches)})
		classes[f.Class] = true
	}
	for _, class := range sortedKeys(d.Classes) {
		if !classes[class] && d.Classes[class] > 0 {
			out = append(out, FailureRow{Class: class, Events: units.FormatCount(d.Classes[class])})
		}
	}
	return out
}

// StepRows is the table of steps, with headings in the first row; nil for a run with one rate.
// Cells are padded so that numbers align.
func (d *Document) StepRows() [][]string {
	if len(d.Steps) == 0 {
		return nil
	}
	rows := [][]string{{"step", "target", d.Totals.RateOf, "response p50", "response p99", "service p99", "send delay p99", "in flight", "not acked"}}
	for i := range d.Steps {
		s := &d.Steps[i]
		c := &s.Totals
		response := Time{Sum: s.Response, AtMost: d.atMost("response", s.Name)}
		service := Time{Sum: s.Service, AtMost: d.atMost("service", s.Name)}
		rows = append(rows, []string{
			strconv.Itoa(i + 1), units.FormatRate(s.Rate), units.FormatRate(c.EventsPerS),
			response.percentile(50), response.percentile(99), service.percentile(99), percentile(s.SendDelay, 99),
			units.FormatCountShort(uint64(c.InFlightMean + 0.5)), units.FormatCountShort(c.Offered - min(c.Acked, c.Offered)),
		})
	}
	return rows
}
