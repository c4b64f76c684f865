package store

import (
	"math"
	"strconv"
	"strings"

	"carronade/internal/report"
	"carronade/measure"
	"carronade/units"
)

// seconds converts microseconds of the report's JSON, rounded to the
// nanosecond.
func seconds(us float64) float64 { return math.Round(us*1e3) / 1e9 }

// measured is the results of the measurement.
func (b *builder) measured(d *report.Document) {
	t := &d.Totals
	if t.ElapsedS <= 0 && t.IsZero() {
		return
	}
	b.number("elapsed", KindDuration, t.ElapsedS)
	b.number("throughput", KindRate, t.EventsPerS)
	b.counts(d)
	if t.ElapsedS > 0 && t.Sent > 0 {
		sent, pushed, wire := t.SendRates()
		b.number("send_rate", KindRate, sent)
		b.number("pushed", KindSpeed, pushed)
		b.number("wire", KindSpeed, wire)
		if t.RateOf == report.RateAcked {
			b.number("accepted", KindSpeed, t.BytesPerS)
		}
		if n := accepted(t); n > 0 {
			if rate := t.AnswerRate(n); rate > 0 {
				b.number("per_batch", KindDuration, 1/rate)
			}
		}
	}
	if t.ElapsedS > 0 && t.Consumed > 0 {
		b.number("read", KindSpeed, float64(t.Bytes)/t.ElapsedS)
		b.number("rebalance", KindDuration, t.RebalanceS)
		b.number("fetch", KindDuration, t.FetchS)
	}
	for _, t := range d.All() {
		b.times(t.Name, t.Sum, t.Main)
	}
	b.lower("response", d.ResponseLower)
	b.lower("service", d.ServiceLower)
	b.lower("end_to_end", d.EndToEndLower)
	b.number("stall", KindDuration, d.Stall.LongestS)
	if d.Faults != nil {
		out, back := d.WorstOutage(), d.WorstRecovery()
		if t := out.Known(); t != nil { // a lower bound must not be taken for the time
			b.number("outage", KindDuration, t.S)
		}
		if t := back.Known(); t != nil {
			b.number("recover", KindDuration, t.S)
		}
	}
	if f := &d.Freezes; f.Longest != nil { // otherwise freezes were not measured
		b.count("freezes", f.Count)
		b.number("freeze_total", KindDuration, f.TotalS)
		longest := 0.0
		if len(f.Longest) > 0 {
			longest = f.Longest[0].LengthS
		}
		b.number("freeze_longest", KindDuration, longest)
	}
	for _, s := range t.Statuses {
		b.count("status."+strconv.Itoa(s.Code), s.Batches)
	}
	for _, f := range sortedKeys(d.Classes) {
		b.count("failed."+f, d.Classes[f])
	}
	if l := d.Ledger; l != nil {
		b.count("lost", l.Lost)
		b.count("unread", l.Unread)
		b.count("removed", l.Removed)
		b.count("duplicated", l.Duplicated)
		b.count("reordered", l.Reordered)
		b.count("corrupted", l.Corrupted)
		b.count("recovered", l.Recovered)
		b.count("contradicted", l.Contradicted)
		b.count("compacted", l.Compacted)
		if l.Committed+l.Aborted+l.Phantom > 0 {
			b.count("committed", l.Committed)
			b.count("committed_read", l.CommittedRead)
			b.count("aborted", l.Aborted)
			b.count("phantom", l.Phantom)
		}
	}
	if x := d.Indexed; x != nil {
		b.number("documents", KindCount, float64(x.Docs))
		b.number("indexed", KindRate, x.PerS)
		if x.Share != nil {
			b.number("index_share", KindShare, *x.Share)
		}
	}
	g := &d.Generator
	b.number("generator_cpu", KindDuration, g.CPUS)
	b.number("generator_cpu_share", KindShare, g.CPUShare)
	b.number("generator_max_rss", KindSize, float64(g.MaxRSSBytes))
	b.number("generator_busy", KindShare, g.Busy)
}

// ceiling is the answer of a search: the interval in which the ceiling lies, as far as its ends
// are confirmed.
func (b *builder) ceiling(d *report.Document) {
	s := d.Search
	if s == nil || !s.HoldsConfirmed {
		return
	}
	v := Value{Kind: KindRate, Num: s.Holds, Text: ">= " + units.FormatRate(s.Holds)}
	if s.FailsConfirmed {
		v.Text = strings.TrimSuffix(units.FormatRate(s.Holds), "/s") + " to " + units.FormatRate(s.Fails)
		b.number("ceiling_upper", KindRate, s.Fails)
	}
	b.put("ceiling", v)
}

// accepted is the number of accepted batches: by status if the protocol has
// one, otherwise the answered ones.
func accepted(t *report.Totals) (n uint64) {
	if len(t.Statuses) == 0 {
		return t.Answered
	}
	for _, s := range t.Statuses {
		if s.Code/100 == 2 {
			n += s.Batches
		}
	}
	return n
}

func (b *builder) counts(d *report.Document) {
	t := &d.Totals
	reading := t.RateOf == report.RateConsumed
	for i := range measure.Counters {
		k := &measure.Counters[i]
		has := !reading
		switch k.Name {
		case "consumed":
			has = reading || t.Consumed > 0 || t.Unread > 0
		case "unread":
			has = !reading && d.Ledger == nil && t.Consumed+t.Unread > 0 // else that of the ledger, which covers the whole run
		case "bytes":
			has = true
		}
		if has {
			b.number(k.Field, counterKind(k), float64(k.Of(&t.Counts)))
		}
	}
	b.count("missing", t.Missing)
	if reading {
		return
	}
	b.number("in_flight", KindNumber, t.InFlightMean)
	b.count("in_flight_max", t.InFlightMax)
	if t.InFlightPeak > 0 { // otherwise it was not counted
		b.count("in_flight_peak", t.InFlightPeak)
	}
	if t.Sent > 0 {
		b.number("failure_share", KindShare, float64(t.Failed)/float64(t.Sent))
		if t.RateOf == report.RateAcked {
			b.number("unknown_share", KindShare, float64(t.Unknown)/float64(t.Sent))
		}
	}
}

// partOfResponse are the times, in addition to the main ones, whose means are compared: means of
// parts add up.
var partOfResponse = map[string]bool{"batching": true, "queueing": true, "send_delay": true}

// times adds the percentiles, mean, min and max of a time. What events without an answer make a
// lower bound is shown as one.
func (b *builder) times(name string, s *measure.Summary, all bool) {
	if s.IsEmpty() {
		return
	}
	if mean, ok := s.Average(); ok && (all || partOfResponse[name]) {
		b.bound(name+"_mean", mean)
	}
	if all && s.Count > 0 {
		b.number(name+"_min", KindDuration, seconds(s.Min))
	}
	most, _ := s.Largest()
	b.bound(name+"_max", most)
	for _, p := range s.Percentiles {
		if !all && p.P != 50 && p.P != 99 {
			continue
		}
		b.bound(name+"_p"+digits(p.P), p)
	}
}

// lower adds a time without the generator's own delays, at the percentiles by
// which runs are compared.
func (b *builder) lower(name string, s *measure.Summary) {
	for _, p := range measure.PercentilesOf(measure.Compared) {
		if v, ok := s.At(p); ok {
			b.bound(name+"_lower_p"+digits(p), v)
		}
	}
}

// bound adds a time that may be a lower bound.
func (b *builder) bound(name string, of measure.Value) {
	v := Value{Kind: KindDuration, Num: seconds(measure.Micros(of.D))}
	if of.AtLeast {
		v.Text = ">= " + v.String()
	}
	b.put(name, v)
}

// digits are the digits of a percentile without the point: 999 for 99.9.
func digits(p float64) string {
	return strings.ReplaceAll(strconv.FormatFloat(p, 'f', -1, 64), ".", "")
}
