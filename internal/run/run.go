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
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/run/ledger"
	"carronade/internal/run/trace"
	"carronade/internal/store"
	"carronade/internal/verdict/fault"
	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
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
	// Rows is called with the row of each event instead, and with when the run started, one call
	// at a time, until the run has ended; may be nil.
	Rows func(started time.Time, r *trace.Row)

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
	// Figures is called with the metrics that a source ("server", "system", "host") reported at
	// one moment of the run, concurrently for different sources, and must not keep them. No
	// metrics: the source did not answer. May be nil.
	Figures func(from string, figures []measure.Figure)
	// Opened is called once the target is open, before anything is sent; may be nil.
	Opened func()
	// Facts is called with facts about the system, before Opened; may be nil.
	Facts func(facts map[string]any)
	// Permit is called with the same; an error ends the run before anything is sent. May be nil.
	Permit func(facts map[string]any) error
	// Marks is called with what puts marks on the time axis, when the run has begun; may be nil.
	Marks func(m *Marker)
	// Marked is called with each mark, whatever made it, one call at a time; may be nil.
	Marked func(m fault.Mark)
	// Backlog is called when a state of the backlog begins; see dropin.Observer.
	Backlog func(state string, took time.Duration)
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

	// Room is what the run may take of the machine; nil: what is free.
	Room *protocol.Room
	// Others is what else uses the machine; nil: it is measured while the target is opened.
	Others *trust.Others
	// Disturbed is called before anything is sent if that disturbs the run, with the name of the agent ("": it is this
	// machine) and what was found; may be nil.
	Disturbed func(agent, text string)

	// Portable uses only the runtime's timers, as virtual time requires.
	Portable bool

	// Fleet has other machines generate the load; nil: this process does.
	Fleet Fleet
	// Share is what this process does of the workload, if it is one of several generators;
	// nil: all of it. For Measure.
	Share *Share

	Host        any
	Calibration *report.Calibration
}

// Execute runs a job to its end. If the context ends while the target is being opened, it
// returns the context's error and no report; after that there always is a report. An error of
// opening the target is a *protocol.Error.
func Execute(ctx context.Context, job Job) (d *report.Document, err error) {
	e, err := prepare(job)
	if err != nil {
		return nil, err
	}
	defer e.Started(nil)
	defer e.room.keep(0)
	if e.hosts, err = otherHosts(job.Workload.List("system-host")); err != nil {
		return nil, err
	}
	if job.Fleet == nil {
		e.lookAround(ctx)
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
		if d != nil && d.System != nil && e.system != nil {
			var err error
			if d.System.BuildOutput, err = e.printedByBuild(); err != nil {
				d.Warnings = append(d.Warnings, err.Error())
			}
		}
		if err := e.system.close(); err != nil {
			e.Logf("%v", err)
			if d != nil {
				d.Warnings = append(d.Warnings, err.Error())
			}
		}
		if d != nil && d.System != nil && e.system != nil {
			d.System.Output = e.printedBySystem() // to its last line
		}
	}()
	var out outcome
	if job.Fleet != nil {
		out, err = e.runFleet(ctx)
	} else {
		out, err = e.measure(ctx)
	}
	if err != nil && out.result == nil {
		return nil, err
	}
	d = e.report(&out, err)
	if job.Measured != nil {
		job.Measured(ctx, d)
	}
	return d, nil
}

// prepare prepares the execution of a job.
func prepare(job Job) (*execution, error) {
	spec, err := job.Workload.Spec()
	if err != nil {
		return nil, err
	}
	if job.Logf == nil {
		job.Logf = func(string, ...any) {}
	}
	ends := &endings{report: job.Started}
	job.Started = ends.stop
	spec.Logf = job.Logf
	if spec.RunID = job.RunID; spec.RunID == 0 {
		spec.RunID = NewID()
	}
	job.Share.limitSpec(&spec)
	if job.Room != nil {
		spec.Room = *job.Room
	} else {
		spec.Room = MachineRoom()
	}
	if job.Fleet == nil { // else each agent checks its share
		if err := spec.Room.Check(needs(job.Workload, &spec)); err != nil {
			return nil, err
		}
	}
	e := &execution{Job: job, endings: ends, spec: spec, clock: host.NewWatch(), sampler: host.NewSampler()}
	e.spec.Happened = func(name string, began time.Time, length time.Duration) { e.moments.add("client", name, began, length) }
	return e, nil
}

// measure opens the target, sends or reads, and closes the target. Without a result, an
// error says why there is none.
func (e *execution) measure(ctx context.Context) (out outcome, err error) {
	if err := e.open(ctx); err != nil {
		return out, err
	}
	defer e.vitals.Close()
	if e.causes != nil {
		defer e.causes.Close()
	}
	if e.Share != nil && e.Share.Reads {
		out, err = e.read(ctx)
	} else if e.Workload.Op == workload.Consume {
		out, err = e.consume(ctx)
	} else {
		out, err = e.send(ctx)
	}
	if err != nil && out.result == nil {
		return out, joinClose(err, e.session.Close())
	}
	e.inspect(&out)
	if cerr := e.session.Close(); cerr != nil {
		e.Logf("close: %v", cerr)
	}
	return out, err
}

// open opens the target.
func (e *execution) open(ctx context.Context) error {
	unguard := e.watchProgress(e.opening)
	s, err := e.Workload.Kind.Open(ctx, e.spec)
	unguard()
	if err != nil {
		return failed(ctx, e.diedMeanwhile(err))
	}
	e.session, e.before = s, s.Facts()
	e.lookedAround(ctx)
	if err := e.found(); err != nil {
		return joinClose(err, s.Close())
	}
	e.vitals = host.NewMetrics()
	e.atOpen, e.opened = host.ReadState(), time.Now()
	if !e.Portable { // virtual time has no freezes
		e.causes = host.NewCauses()
	}
	e.sampler.Sample() // the cost of opening does not belong to the run
	return nil
}

// found passes on what was found out about the system, before anything is sent.
func (e *execution) found() error {
	if e.Facts != nil {
		e.Facts(e.before)
	}
	if e.Permit != nil {
		if err := e.Permit(e.before); err != nil {
			return err
		}
	}
	if e.Opened != nil {
		e.Opened()
	}
	return nil
}

// inspect adds what the session knows after a run.
func (e *execution) inspect(out *outcome) {
	can := e.can()
	if can.Finish != nil {
		if err := can.Finish(); err != nil {
			out.problems = append(out.problems, err.Error())
		}
	}
	out.facts = e.session.Facts()
	out.words = e.session.Warnings()
	if can.Notice != nil {
		out.notice = joinNotices(can.Notice(), out.notice)
	}
	if can.Brokers != nil && e.Workload.ClientMetrics() {
		out.clients = can.Brokers()
	}
	out.encoding = e.encoding()
	out.clock, out.remarks = e.clock.Troubles(), append(e.clock.Remarks(), e.machine()...)
	out.noWaits = e.causes != nil && !e.causes.CountsWaits()
}

// machine returns what was wrong with this machine and mattered to the run.
func (e *execution) machine() []string {
	machine, ok := e.Host.(host.Host)
	if !ok {
		return nil
	}
	now, o := host.ReadState(), e.spec.Options
	return trust.MachineRemarks(&machine, &e.atOpen, &now, time.Since(e.opened), o.Size("send-buffer"), o.Size("recv-buffer"))
}

// NewID returns the identity of a run.
func NewID() uint64 { return rand.Uint64() | 1 } //nolint:gosec // an identity, not a secret

// failed is the reason why the report is missing, preferably the interruption.
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
	endings  *endings
	session  protocol.Session
	spec     protocol.Spec
	sampler  *host.Sampler
	clock    *host.Watch
	causes   *host.Causes // nil if freezes are not watched
	before   map[string]any
	system   *underTest   // nil if there is none
	broken   faultWindows // what its faults did to the system
	hosts    []any        // other machines, described
	vitals   *host.Metrics
	look     *trust.MachineLook // at what else uses this machine; nil: it is over
	atOpen   host.State         // of this machine, before anything was sent
	opened   time.Time
	hdr      *report.Log
	series   *series      // nil before the run begins
	writer   store.Writer // nil: the report is not kept while it is measured
	abort    *abort       // nil: a broken limit does not end the run
	draining *draining    // nil: no backlog
	moments  moments
	records  *fleetLedger // nil: this process checks what it sends, or nothing is checked
	room     heapRoom

	ledgers []*ledger.Ledger // of what is sent and read back here, by reader

	// unconnected is closed when faults of the run have left no connection; nil: that is not watched.
	unconnected <-chan struct{}
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
	faults   *report.Faults
	backlog  *report.ReadBacklog
	moments  []measure.Moment // of several generators
	checks   []report.Check

	// What is known of the target and of the generator after the run.
	facts    map[string]any
	words    []string // warnings of the target
	notice   string
	clients  []measure.Client
	encoding *measure.Encoding
	clock    []string // trouble with the clocks
	remarks  []string // on the clocks and on this machine
	noWaits  bool     // see trust.Input

	reading *Reading  // of a generator that reads what others send
	fleet   *combined // of several generators; nil: this process generated the load
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
	u := e.sampler.Sample()
	if e.Portable { // pauses of real time say nothing about virtual time
		u.GCPauses, u.GCPauseMax = 0, 0
	}
	return u
}

// watch passes an interval to the watcher and the log of histograms, and has it encoded.
func (e *execution) watch(s load.Snapshot) {
	e.keepRoom(&s)
	s.Stage, s.Backlog = e.draining.progress(s.At)
	e.series.add(s.Rows, s.Merged)
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
func (e *execution) report(out *outcome, failure error) *report.Document {
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
	in := e.input(r)
	in.Series = e.series.end(r.Intervals)
	processors := load.Processors()
	if out.fleet != nil {
		processors = out.fleet.processors()
	}
	in.Trust = e.judge(r, out, processors)
	if out.fleet != nil {
		e.judgeFleet(&in, out.fleet)
	}
	in.Moments = e.moments.of(r, out.moments)
	in.Indexed, in.Ledger, in.Gauges, in.Problems = out.indexed, out.ledger, out.gauges, out.problems
	in.Warnings = unique(w.Warnings, out.words, e.system.warnings(), out.warnings, out.remarks, e.moments.remarks(), []string{trust.Start(r)})
	in.Facts, in.Notice, in.Clients, in.Encoding = out.facts, out.notice, out.clients, out.encoding
	in.Samples, in.Trace, in.Faults, in.Backlog = out.samples, out.trace, out.faults, out.backlog
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
	return report.Build(in)
}

// judge assesses a generator by its result.
func (e *execution) judge(r *load.Result, out *outcome, processors int) measure.Trust {
	w := e.Workload
	var connections string
	if r.Stopped == load.ByLoss { // else the measurement ended before that could stop it
		connections = e.leftAlone()
	}
	return trust.Judge(trust.Input{
		Result: r, Discards: discardsAll(w, out.facts), Processors: processors, Clock: out.clock,
		System: e.endedAlone(), Connections: connections, Percentiles: w.Percentiles(), Limited: w.LimitPercentiles(), NoWaits: out.noWaits,
	})
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
		Hosts: e.hosts, Host: e.Host, Others: e.Others, Calibration: e.Calibration, Encoding: e.encoding(), Undecoded: e.undecoded(),
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
	if encoding := e.can().Encoding; encoding != nil {
		return encoding()
	}
	return nil
}

// joinNotices joins what the headline begins with.
func joinNotices(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
}

// undecoded says how a run that consumes counts what it reads, if it does not decode it.
func (e *execution) undecoded() string {
	if e.Workload.Op != workload.Consume || e.session == nil {
		return ""
	}
	if undecoded := e.session.Source().Capabilities().Undecoded; undecoded != nil {
		return undecoded()
	}
	return ""
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
