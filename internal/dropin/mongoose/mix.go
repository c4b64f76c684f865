package mongoose

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
)

// wholeOp is the operation of a WeightedLoad in lines that are of all its contexts.
const wholeOp = "MIX"

// fitsWeighted returns an error if these loads cannot run next to each other.
func (l *loads) fitsWeighted() error {
	for _, p := range l.parts {
		if p.work != writeRecords && p.work != readRecords {
			return fmt.Errorf("a %s of Kafka creates and reads records, and does not %s", weightedLoad, strings.ToLower(p.op))
		}
	}
	return nil
}

// weighted is the workload of a WeightedLoad: each context is a part of one run. Settings of
// the whole are those of the first context that has them; differing ones of others are
// reported.
func (r *runner) weighted(l *loads) *workload.Document {
	var whole dropin.Draft
	general := make(map[string]bool)
	for _, s := range workload.Table(nil) {
		general[s.Name] = s.Name != "op"
	}
	for i, p := range l.parts {
		var of dropin.Draft
		for _, e := range p.operations().Entries {
			k := slices.IndexFunc(whole.Entries, func(o workload.Entry) bool { return o.Name == e.Name })
			switch {
			case !general[e.Name]:
				of.Entries = append(of.Entries, e)
			case e.Name == "label" && i > 0:
			case k < 0 || e.Name == "label":
				whole.Entries = append(whole.Entries, e)
			case strings.Join(whole.Entries[k].Values, ",") != strings.Join(e.Values, ",") && p.v.has(strings.TrimPrefix(e.Where, "--")):
				r.warn(fmt.Sprintf("%s is one for all contexts of a %s: %s, not %s", inScenario(e.Where), weightedLoad,
					strings.Join(whole.Entries[k].Values, ","), strings.Join(e.Values, ",")))
			}
		}
		of.Set("weight", "--load-op-weight", p.v.text("load-op-weight"))
		of.Set("name", "--load-op-type", strings.ToLower(p.op))
		whole.Parts = append(whole.Parts, &of.Document)
	}
	return &whole.Document
}

// operations is the workload of a step in which each record is an operation, also if it is read.
func (s *step) operations() *workload.Document {
	if s.work != readRecords {
		return s.workload(false)
	}
	v := s.v
	var d dropin.Draft
	s.common(&d)
	d.Set("op", "--load-op-type", workload.ReadSingle)
	if s.recycle {
		d.Set("recycle", "--load-op-recycle", "true")
	}
	count := s.count
	if n := uint64(len(s.items)); n > 0 && s.places == "" && !s.recycle && v.kind != weightedLoad && (count == 0 || n < count) {
		count = n // the length of the list
	}
	if count > 0 {
		d.AtMost("--load-op-limit-count", strconv.FormatUint(count, 10))
	}
	if s.places != "" {
		d.Set("items-in", "--item-input-file", s.places)
	}
	if v.flag("item-data-verify") {
		d.Set("decode", "--item-data-verify", "true")
		d.Set("check-values", "--item-data-verify", s.check())
	}
	switch {
	case v.kind != weightedLoad:
		s.course(&d)
	case s.concurrency > 0:
		s.pace(&d)
	}
	s.connections(&d)
	return &d.Document
}

// runWeighted runs a WeightedLoad: its rows are of all contexts, and each context has results.
func (r *runner) runWeighted(ctx context.Context, l *loads) (int, error) {
	p := r.program
	s := *l.parts[0].step
	s.op, s.work, s.trace = wholeOp, writeRecords, false
	f, t, err := s.outputs(p, r.args, r.again(s.id))
	if err != nil {
		return host.ExitFailed, err
	}
	watched := apiOf(ctx).watch(&s)
	defer watched.end()
	m := newMeter(&s)
	d, err := p.Run(ctx, r.weighted(l), dropin.Observer{Interval: func(iv load.Snapshot) {
		m.interval(iv)
		watched.look(m)
		if iv.Phase != measure.Drain {
			m.rows(t, f)
		}
	}})
	if err != nil {
		return dropin.NoReport(ctx, host.ExitFailed, err)
	}
	last := m.last(d)
	watched.show(last)
	t.row(last)
	failed := uint64(0)
	for i := range d.Parts {
		of := *l.parts[i].step
		of.id = s.id
		mine := of.partMetrics(&d.Parts[i], last)
		failed += mine.fail
		of.summary(p.Out, mine)
		f.totalOf(&of, mine)
	}
	printWarnings(p, d)
	return f.exit(p, s.withFailures(d.ExitCode(), failed)), nil
}

// partMetrics are the metrics of one context at the end of a step.
func (s *step) partMetrics(p *report.Part, whole *metrics) *metrics {
	m := &metrics{
		at: whole.at, elapsed: whole.elapsed, mean: p.Totals.InFlightMean,
		succ: p.Totals.Acked, fail: p.Totals.Failed + p.Totals.Unknown, bytes: p.Totals.AckedBytes,
	}
	m.latency = s.timingOfSummary(p.Service)
	m.duration = m.latency
	if p.Response != nil {
		m.duration = s.timingOfSummary(p.Response)
	}
	s.rates(m)
	m.lastRate, m.lastBytes = m.meanRate, m.meanBytes
	return m
}

// timingOfSummary is timingOf for a summary in a report.
func (s *step) timingOfSummary(of *measure.Summary) timing {
	var t timing
	if !of.IsEmpty() {
		t = timing{sum: of.Mean * float64(of.Count) / 1e6, mean: of.Mean, min: int64(of.Min), max: int64(of.Max)}
	}
	for _, q := range s.quantiles {
		us := t.min
		if v, ok := of.At(math.Round(q*1e6) / 1e4); ok && q > 0 && q < 1 {
			us = v.D.Microseconds()
		} else if q >= 1 {
			us = t.max
		}
		t.quantiles = append(t.quantiles, us)
	}
	return t
}
