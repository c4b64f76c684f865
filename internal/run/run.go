// Package run turns a workload into a report: it opens the target, fires or
// reads, checks what was delivered, judges the generator and builds the
// document. All commands that measure go through it: workloads by Execute, and
// operations on topics, which are no workload, by Topics. It knows no protocol,
// no terminal and no flag.
//
// Its invariant: once firing has begun there is a report, whatever happens.
package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/system"
	"carronade/internal/trust"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/target"
)

// A Job is one execution of a workload.
type Job struct {
	Workload    *workload.Workload
	Version     string // of the program
	RunID       uint64 // random; 0: made here
	Repetition  int    // from 1
	Repetitions int

	HDR   string // file for the log of interval histograms; "" is none
	Trace string // file for a row a batch or sampled event; "" is none

	Note        string              // for the report to carry
	Attachments []report.Attachment // likewise
	// Store keeps the report, from the beginning of the run on; nil: none. One
	// that fails does not stop the run.
	Store store.Store
	// Measured is called when everything is measured and nothing is sealed and kept
	// yet, and may add to the document what stands beside the result; nil: nothing.
	Measured func(ctx context.Context, d *report.Document)
	// Kept is told what became of keeping the finished report, which is sealed
	// by then; nil: nobody wants to know. It is not called without a store.
	Kept func(d *report.Document, err error)

	// Watch sees each interval as it closes; nil: nobody watches.
	Watch func(load.Snapshot)
	// Opened is called once the target is open, before anything is fired; nil:
	// nobody wants to know.
	Opened func()
	// Found is called with what was found out about the system, before Opened;
	// nil: nobody wants to know.
	Found func(facts map[string]any)
	// Met is told the end-to-end time of each event of a round trip as it comes
	// back, one call at a time; nil: nobody wants to know.
	Met func(endToEnd time.Duration)
	// Fired sees the outcomes of batches, completed for good, on the threads that sent
	// them, several at once; see load.Plan.Trace. Nil: nobody looks.
	Fired func(out []load.Outcome)
	// Logf takes words for people about what is going on; nil: none.
	Logf func(format string, args ...any)
	// Abort ends the run at once when it is closed, answers or not; the
	// context's end merely stops it. nil: never.
	Abort <-chan struct{}
	// Started is called with what ends at once, and waits for the end of, the
	// processes that the run started (the system under test, its build): for a
	// program that leaves without waiting for the run. It is called with nil
	// when there are none any more. nil: nobody wants to know.
	Started func(end func())

	// Portable waits by the runtime's timers alone, as virtual time needs it.
	Portable bool

	Host        any
	Calibration *report.Calibration
}

// Execute runs a job to its end. When the context ends while the target is
// opened, there is no report and the context's error is returned; from then on
// there always is one. An error of the target while opening is a *target.Error.
func Execute(ctx context.Context, job Job) (d *report.Document, err error) {
	w := job.Workload
	spec, err := w.Spec()
	if err != nil {
		return nil, err
	}
	if job.Logf == nil {
		job.Logf = func(string, ...any) {}
	}
	if job.Started == nil {
		job.Started = func(func()) {}
	}
	defer job.Started(nil)
	spec.Logf = job.Logf
	if spec.RunID = job.RunID; spec.RunID == 0 {
		spec.RunID = NewID()
	}
	e := &execution{Job: job, spec: spec, clock: system.NewWatch(), sampler: system.NewSampler()}
	if e.hosts, err = otherHosts(w.List("system-host")); err != nil {
		return nil, err
	}
	if e.system, err = e.startSystem(ctx); err != nil {
		return nil, failed(ctx, err)
	}
	defer func() {
		if d != nil {
			e.kept(ctx, d) // last of all: the end of the system may add a warning
		} else {
			e.abandon(ctx)
		}
	}()
	defer func() {
		if err := e.system.close(); err != nil {
			job.Logf("%v", err)
			if d != nil {
				d.Warnings = append(d.Warnings, err.Error())
			}
		}
	}()
	unguard := e.guard(e.opening)
	s, err := w.Kind.Open(ctx, spec)
	unguard()
	if err != nil {
		return nil, failed(ctx, e.diedMeanwhile(err))
	}
	e.session, e.before = s, s.Facts()
	e.vitals = system.NewVitals()
	defer e.vitals.Close()
	if !job.Portable { // virtual time has no freezes
		e.causes = system.NewCauses()
		defer e.causes.Close()
	}
	if job.Found != nil {
		job.Found(e.before)
	}
	if job.Opened != nil {
		job.Opened()
	}
	e.sampler.Sample() // what opening took, pauses of its collections included, is not the run's
	var out outcome
	if w.Op == workload.Consume {
		out, err = e.consume(ctx)
	} else {
		out, err = e.fire(ctx)
	}
	if err != nil && out.result == nil {
		return nil, joinClose(err, s.Close())
	}
	d = e.report(out, err)
	if cerr := s.Close(); cerr != nil {
		job.Logf("close: %v", cerr)
	}
	if job.Measured != nil {
		job.Measured(ctx, d)
	}
	return d, nil
}

// NewID returns the identity of a run.
func NewID() uint64 { return rand.Uint64() | 1 } //nolint:gosec // an identity, not a secret

// failed is why there is no report: the interruption where there was one.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func joinClose(err, closing error) error {
	if closing == nil {
		return err
	}
	return fmt.Errorf("%w (and closing: %w)", err, closing)
}

// An execution is a job in progress.
type execution struct {
	Job
	session target.Session
	spec    target.Spec
	sampler *system.Sampler
	clock   *system.Watch
	causes  *system.Causes // nil where nothing freezes
	before  map[string]any
	system  *underTest // nil where the run has none
	hosts   []any      // other machines, described
	vitals  *system.Vitals
	hdr     *report.Log
	series  *series      // nil before the run begins
	writer  store.Writer // nil: the report is not kept while it is measured
}

// An outcome is what a run left.
type outcome struct {
	result   *load.Result
	ledger   *measure.Ledger
	gauges   []measure.Gauge
	indexed  *measure.Indexed
	warnings []string
	problems []string
	samples  *report.Samples
	trace    *report.Trace
}

// why is what says why the generator did not run; nil: nobody knows.
func (e *execution) why() func(length time.Duration) string {
	if e.causes == nil {
		return nil
	}
	return e.causes.Why
}

// usage samples the generator and looks at the clock, once an interval.
func (e *execution) usage() measure.Usage {
	e.clock.Look()
	if e.causes != nil {
		e.causes.Look()
	}
	return e.sampler.Sample()
}

// watch shows an interval to the job's watcher and the log of histograms, and
// has it encoded.
func (e *execution) watch(s load.Snapshot) {
	e.series.add(s.Rows)
	if e.hdr != nil {
		for i := range s.Rows {
			e.hdr.Interval(&s.Rows[i])
		}
	}
	if e.Watch != nil {
		e.Watch(s)
	}
}

// openHDR opens the log of histograms, where one was asked for.
func (e *execution) openHDR() error {
	if e.HDR == "" {
		return nil
	}
	l, err := report.CreateLog(e.HDR)
	if err != nil {
		return err
	}
	l.Begin(time.Now(), "carronade "+e.Version, "target "+e.Workload.Target())
	e.hdr = l
	return nil
}

// report builds the document.
func (e *execution) report(out outcome, failure error) *report.Document {
	w, r := e.Workload, out.result
	r.Steady = trust.Steady(r)
	if e.hdr != nil {
		if err := e.hdr.Close(); err != nil {
			out.problems = append(out.problems, fmt.Sprintf("--hdr: %v", err))
		}
	}
	if failure != nil {
		out.problems = append(out.problems, failure.Error())
	}
	facts := e.session.Facts()
	in := e.input(r)
	in.Series = e.series.end(r.Intervals)
	in.Trust = trust.Judge(trust.Input{
		Result: r, Nowhere: nowhere(w, facts), Processors: load.Processors(), Clock: e.clock.Troubles(),
		System: e.system.ended(), Percentiles: w.Percentiles(), NoWaits: e.causes != nil && !e.causes.CountsWaits(),
	})
	in.Indexed, in.Ledger, in.Gauges, in.Problems = out.indexed, out.ledger, out.gauges, out.problems
	in.Warnings = once(w.Warnings, e.session.Warnings(), e.system.warnings(), out.warnings, e.clock.Remarks())
	in.Facts = facts
	in.Samples, in.Trace = out.samples, out.trace
	for _, c := range w.Checks(r) {
		in.Checks = append(in.Checks, report.Check{Name: c.Name, OK: c.OK, Text: c.Text})
	}
	if m, ok := e.session.(target.Metered); ok && w.ClientMetrics() {
		in.Clients = m.Brokers()
	}
	return report.Build(in)
}

// input is what is known of a run before anything was measured, with what has
// been.
func (e *execution) input(r *load.Result) report.Input {
	w := e.Workload
	mask := maskOf(w)
	in := report.Input{
		Version: e.Version, RunID: strconv.FormatUint(e.spec.RunID, 16), ID: report.IDOf(e.spec.RunID),
		Target: w.Target(), Op: w.Op, Labels: w.Labels(), Note: mask.Text(e.Note), Attachments: e.Attachments,
		Repetition: e.Repetition, Repetitions: e.Repetitions,
		Workload: w, Result: r, Percentiles: w.Percentiles(), Processors: load.Processors(),
		Warnings: w.Warnings, Facts: e.before, System: e.system.report(r),
		Hosts: e.hosts, Host: e.Host, Calibration: e.Calibration,
	}
	for _, s := range w.Settings() {
		in.Settings = append(in.Settings, report.Setting{
			Name: s.Name, Type: s.Type.String(), Value: s.Text(),
			Default: s.From == workload.FromDefault, Preset: s.From == workload.FromPreset, Minor: s.Minor, Independent: s.Independent,
		})
	}
	return in
}

// once joins lists of words and leaves out what was said before: a target says
// again what it said when the workload was resolved.
func once(lists ...[]string) []string {
	var all []string
	for _, text := range slices.Concat(lists...) {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// nowhere reports whether what is fired is thrown away where it arrives.
func nowhere(w *workload.Workload, facts map[string]any) bool {
	discards, _ := facts["discards"].(bool)
	return discards || w.Kind.Name() == "null"
}
