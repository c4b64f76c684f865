package heyapm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"carronade/internal/report"
	"carronade/measure"
	"carronade/units"
)

// A heyResult is what the tool of 2023 prints at the end.
type heyResult struct {
	strict bool

	transactions, spans, errors struct{ sent, dropped uint64 }

	accepted         uint64
	requests, failed uint64
	serverErrors     []string
	elapsed, drained time.Duration
}

// add adds a stream's report.
func (r *heyResult) add(s *heyStream, d *report.Document) {
	t := &d.Totals
	dropped := t.Dropped + t.Unsent
	if s.name == "errors" {
		r.errors.sent += t.Sent
		r.errors.dropped += dropped
	} else {
		own := transactionShare(d)
		of := func(n uint64) uint64 { return uint64(math.Round(float64(n) * own)) }
		r.transactions.sent += of(t.Sent)
		r.transactions.dropped += of(dropped)
		r.spans.sent += t.Sent - of(t.Sent)
		r.spans.dropped += dropped - of(dropped)
	}
	r.accepted += t.Acked
	r.requests += t.Batches
	for _, f := range d.Failures {
		if !hasStatus(f.Text) {
			r.failed += f.Batches
			continue
		}
		if !slices.Contains(r.serverErrors, f.Text) {
			r.serverErrors = append(r.serverErrors, f.Text)
		}
	}
	length := 0.0
	for _, ph := range d.Phases {
		switch ph.Name {
		case measure.Drain:
			r.drained = max(r.drained, units.Seconds(ph.EndS-ph.StartS))
			length += ph.EndS - ph.StartS
		case measure.Measurement:
			length += ph.EndS - ph.StartS
		}
	}
	if length == 0 {
		length = t.ElapsedS
	}
	r.elapsed = max(r.elapsed, units.Seconds(length))
}

// transactionShare is the share of transactions in a report's events; the others are their
// spans.
func transactionShare(d *report.Document) float64 {
	request, _ := d.Facts["request"].(map[string]any)
	kinds, _ := request["kinds"].(map[string]any)
	own, _ := kinds["transaction"].(float64)
	spans, _ := kinds["span"].(float64)
	if own <= 0 {
		return 1
	}
	return own / (own + spans)
}

func (r *heyResult) sent() uint64 { return r.transactions.sent + r.spans.sent + r.errors.sent }

// generated is the number of events sent and dropped. The tool omitted dropped
// spans and counted dropped errors twice.
func (r *heyResult) generated() uint64 {
	if r.strict {
		return r.sent() + 2*r.errors.dropped + r.transactions.dropped
	}
	return r.sent() + r.errors.dropped + r.transactions.dropped + r.spans.dropped
}

// text is the result's lines: a name, dots up to the thirtieth column, a value.
func (r *heyResult) text() string {
	var b strings.Builder
	add := func(name, format string, value any) {
		name += " "
		fmt.Fprintf(&b, "%s%s "+format+"\n", name, strings.Repeat(".", max(30-len(name), 0)), value)
	}
	percent := func(part, whole uint64) {
		if whole > 0 {
			add(" - success %", "%.2f", 100*float64(part)/float64(whole))
		}
	}
	add("transactions sent", "%d", r.transactions.sent)
	add("transactions dropped", "%d", r.transactions.dropped)
	percent(r.transactions.sent, r.transactions.sent+r.transactions.dropped)
	add("spans sent", "%d", r.spans.sent)
	add("spans dropped", "%d", r.spans.dropped)
	percent(r.spans.sent, r.spans.sent+r.spans.dropped)
	if r.transactions.sent > 0 {
		add("spans sent per transaction", "%.2f", float64(r.spans.sent)/float64(r.transactions.sent))
	}
	add("errors sent", "%d", r.errors.sent)
	add("errors dropped", "%d", r.errors.dropped)
	percent(r.errors.sent, r.errors.sent+r.errors.dropped)
	if s := r.elapsed.Seconds(); s > 0 {
		add("total events sent", "%d", r.sent())
		add(" - per second", "%.2f", float64(r.sent())/s)
		percent(r.sent(), r.generated())
		add(" - accepted", "%d", r.accepted)
		add("   - per second", "%.2f", float64(r.accepted)/s)
	}
	add("total requests", "%d", r.requests)
	add("failed", "%d", r.failed)
	if len(r.serverErrors) > 0 {
		add("server errors", "%s", "["+strings.Join(r.serverErrors, " ")+"]")
	}
	return b.String()
}
