// Package run turns a workload into a report: it opens the target, sends or reads, checks the
// delivery, assesses the generator and builds the document. All commands that measure use it:
// workloads through Execute, and operations on topics, which are not workloads, through Topics.
// It does not depend on protocols, terminals or flags.
//
// Invariant: once sending has begun there is a report, whatever happens.
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
	Replaces    string // the report that this run replaces, see report.Document; "": none

	HDR   string // file for the log of interval histograms; "" is none
	Trace string // file for a row a batch or sampled event; "" is none

	Note        string              // for the report
	Attachments []report.Attachment // likewise
	// Store stores the report, from the beginning of the run; nil: none. A failing store does
	// not stop the run.
	Store store.Store
	// Secrets must not be in what the system under test and its build print, in addition to
	// those of the workload.
	Secrets []string
	// Measured is called after the measurement, before the report is sealed and stored, and
	// may add to the document; may be nil.
	Measured func(ctx context.Context, d *report.Document)
	// Stored is called with the result of storing the sealed report; may be nil. It is not
	// called without a store.
	Stored func(d *report.Document, err error)

	// Watch is called with each interval as it closes; may be nil.
	Watch func(load.Snapshot)
	// Opened is called once the target is open, before anything is sent; may be nil.
	Opened func()
	// Facts is called with facts about the system, before Opened; may be nil.
	Facts func(facts map[string]any)
	// Permit is called with the same; an error ends the run before anything is sent. May be nil.
	Permit func(facts map[string]any) error
	// CameBack is called with the end-to-end time of each event of a round trip as it comes
	// back, one call at a time; may be nil.
	CameBack func(endToEnd time.Duration)
	// Outcomes is called with the final outcomes of batches, on the threads that sent them,
	// concurrently; see load.Plan.Trace. May be nil.
	Outcomes func(out []load.Outcome)
	// Output is called with each line that the system under test and its build print, without
	// secrets, if the workload asks for that (system-verbose); may be nil. It is called by
	// several goroutines.
	Output func(from, line string)
	// Arrivals is called with what a consuming run reads, on the goroutines that read it,
	// concurrently for different lanes; see load.ReadPlan.Observe. May be nil.
	Arrivals func(lane int, as []load.Arrival)
	// Logf prints progress; may be nil.
	Logf func(format string, args ...any)
	// Abort ends the run at once when it is closed, without waiting for answers; the end of
	// the context only stops it. nil: never.
	Abort <-chan struct{}
	// Started is called with a function that stops the processes that the run started (the
	// system under test, its build) and waits for them, for a program that exits without
	// waiting for the run; and with nil when none are left. May be nil.
	Started func(end func())

	// Portable uses only the runtime's timers, as virtual time requires.
	Portable bool

	Host        any
	Calibration *report.Calibration
}

// Execute runs a job to its end. If the context ends while the target is being opened, it
// returns the context's error and no report; after that there always is a report. An error of
// opening the target is a *target.Error.
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
			e.storeReport(ctx, d) // last, since the end of the system may add a warning
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
		if d != nil && d.System != nil && e.system != nil {
			d.System.Output = e.printedBySystem() // to its last line
		}
	}()
	unguard := e.watchProgress(e.opening)
	s, err := w.Kind.Open(ctx, spec)
	unguard()
	if err != nil {
		return nil, failed(ctx, e.diedMeanwhile(err))
	}
	e.session, e.before = s, s.Facts()
	e.vitals = system.NewHostMetrics()
	defer e.vitals.Close()
	if !job.Portable { // virtual time has no freezes
		e.causes = system.NewCauses()
		defer e.causes.Close()
	}
	if job.Facts != nil {
		job.Facts(e.before)
	}
	if job.Permit != nil {
		if err := job.Permit(e.before); err != nil {
			return nil, joinClose(err, s.Close())
		}
	}
	if job.Opened != nil {
		job.Opened()
	}
	e.sampler.Sample() // the cost of opening does not belong to the run
	var out outcome
	if w.Op == workload.Consume {
		out, err = e.consume(ctx)
	} else {
		out, err = e.send(ctx)
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

// failed is the reason why there is no report, preferably the interruption.
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
	causes  *system.Causes // nil if freezes are not watched
	before  map[string]any
	system  *underTest // nil if there is none
	hosts   []any      // other machines, described
	vitals  *system.HostMetrics
	hdr     *report.Log
	series  *series      // nil before the run begins
	writer  store.Writer // nil: the report is not kept while it is measured
	abort   *abort       // nil: a broken limit does not end the run
}

// An outcome is the result of a run.
type outcome struct {
	result   *load.Result
	ledger   *measure.Ledger
	gauges   []measure.Gauge
	indexed  *measure.Indexed
	warnings []string
	problems []string
	samples  *report.Samples
	trace    *report.Trace
	checks   []report.Check
}

// freezeCause returns the function that names the cause of a freeze; may be nil.
func (e *execution) freezeCause() func(length time.Duration) string {
	if e.causes == nil {
		return nil
	}
	return e.causes.Why
}

// usage samples the generator and checks the clock, once per interval.
func (e *execution) usage() measure.Usage {
	e.clock.Look()
	if e.causes != nil {
		e.causes.Look()
	}
	return e.sampler.Sample()
}

// watch passes an interval to the watcher and the log of histograms, and has it encoded.
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
	if e.abort != nil {
		e.abort.look(s)
	}
}

// openHDR opens the log of histograms, if requested.
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
	if f, ok := e.session.(target.Finisher); ok {
		if err := f.Finish(); err != nil {
			out.problems = append(out.problems, err.Error())
		}
	}
	if failure != nil {
		out.problems = append(out.problems, failure.Error())
	}
	facts := e.session.Facts()
	in := e.input(r)
	in.Series = e.series.end(r.Intervals)
	in.Trust = trust.Judge(trust.Input{
		Result: r, Discards: discardsAll(w, facts), Processors: load.Processors(), Clock: e.clock.Troubles(),
		System: e.system.ended(), Percentiles: w.Percentiles(), Limited: w.LimitPercentiles(), NoWaits: e.causes != nil && !e.causes.CountsWaits(),
	})
	in.Indexed, in.Ledger, in.Gauges, in.Problems = out.indexed, out.ledger, out.gauges, out.problems
	in.Warnings = unique(w.Warnings, e.session.Warnings(), e.system.warnings(), out.warnings, e.clock.Remarks(), []string{trust.Start(r)})
	in.Facts = facts
	if n, ok := e.session.(target.Noticer); ok {
		in.Notice = n.Notice()
	}
	in.Samples, in.Trace = out.samples, out.trace
	for _, c := range w.Checks(r) {
		in.Checks = append(in.Checks, report.Check{Name: c.Name, OK: c.OK, Text: c.Text})
	}
	in.Checks = append(in.Checks, out.checks...)
	in.Limits = w.Limits()
	for i := range r.Parts {
		if len(w.Parts()) > 0 {
			in.Parts = append(in.Parts, partOf(w, i))
		} else {
			in.Parts = append(in.Parts, stageOf(w, &r.Parts[i]))
		}
	}
	if e.abort != nil && r.Stopped == load.ByLimit { // else the run had ended already
		in.Aborted = e.abort.broken
	}
	if m, ok := e.session.(target.Metered); ok && w.ClientMetrics() {
		in.Clients = m.Brokers()
	}
	return report.Build(in)
}

// input is what is known before the measurement, together with its result.
func (e *execution) input(r *load.Result) report.Input {
	w := e.Workload
	mask := maskOf(w)
	in := report.Input{
		Version: e.Version, RunID: strconv.FormatUint(e.spec.RunID, 16), ID: report.IDOf(e.spec.RunID),
		Target: w.Target(), Op: w.Op, Labels: w.Labels(), Note: mask.Text(e.Note), Attachments: e.Attachments,
		Repetition: e.Repetition, Repetitions: e.Repetitions, Replaces: e.Replaces,
		Workload: w, Result: r, Percentiles: w.Percentiles(), Processors: load.Processors(),
		Warnings: w.Warnings, Facts: e.before, System: e.system.report(r),
		Hosts: e.hosts, Host: e.Host, Calibration: e.Calibration, Encoding: e.encoding(),
	}
	for _, s := range w.Settings() {
		in.Settings = append(in.Settings, report.SettingOf(&s))
	}
	return in
}

// partOf describes a part of a workload for the report.
func partOf(w *workload.Workload, i int) report.PartInput {
	p := &w.Parts()[i]
	in := report.PartInput{Target: p.Workload.Target(), Op: p.Workload.Op, Weight: p.Weight, Share: p.Share(w.Parts())}
	for _, s := range p.Own() {
		in.Settings = append(in.Settings, report.SettingOf(&s))
	}
	return in
}

// encoding asks the target when the bytes of events are made.
func (e *execution) encoding() *measure.Encoding {
	if s, ok := e.session.(target.Encoded); ok {
		return s.Encoding()
	}
	return nil
}

// unique joins lists of texts without empty ones and repetitions: a target repeats the warnings from when the
// workload was resolved.
func unique(lists ...[]string) []string {
	var all []string
	for _, text := range slices.Concat(lists...) {
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// discardsAll reports whether the receiver discards all events.
func discardsAll(w *workload.Workload, facts map[string]any) bool {
	discards, _ := facts["discards"].(bool)
	return discards || w.Kind.Name() == "null"
}
