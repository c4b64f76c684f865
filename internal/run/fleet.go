package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"carronade/internal/report"
	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
)

// A Fleet has several generators, usually on other machines, fire a workload together.
type Fleet interface {
	// Fire returns what the generators measured. It returns an error if nothing was sent.
	// It returns early when the context ends.
	Fire(ctx context.Context, o *Order) (*Combined, error)
}

// An Order is what a fleet has to do.
type Order struct {
	Workload *workload.Workload
	RunID    uint64
	// Opened is called when all generators have opened the target. The facts that they found
	// out come with their results. An error ends the run before anything is sent.
	Opened func(facts map[string]any) error
	// Started is called when all generators have agreed on the start, with its time on the clock
	// of this process; it is seconds ahead.
	Started func(at time.Time)
	// Watch is called with each interval of all generators together, when it is complete;
	// one call at a time.
	Watch func(load.Snapshot)
	// Disturbed is called with the name of a generator whose machine others use so much that it disturbs; may be nil.
	Disturbed func(agent, text string)
	// Stop has the generators stop: what is in flight is waited for.
	Stop <-chan load.Reason
	// Abort, when it is closed, has them stop without waiting.
	Abort <-chan struct{}
	// Records is called with the chunks of records of each generator, those of one in order, if
	// one of them reads what the others send; one call at a time.
	Records func(chunk []byte)
	// Logf prints progress.
	Logf func(format string, args ...any)
}

// Combined is what several generators measured together.
type Combined struct {
	Agents []Measured // those that sent anything, or should have; see Measured.Result
	// Rows describe the generators, in the same order.
	Rows []report.Agent
	// Faults are reasons why the numbers are not those of the whole workload, such as a
	// generator that was lost: the result is not trusted.
	Faults   []string
	Warnings []string
	// Skew is how far apart the generators may have started.
	Skew time.Duration
	// Apart is by how much times between a generator that sends and one that reads may be
	// wrong, since they are on two clocks.
	Apart time.Duration
}

// combined is what the report needs of it.
type combined struct {
	*Combined
	whole []*load.Result // of the agents that have one, before they were merged
	of    []int          // their indexes in Agents; first those that send
	reads []*load.Result // of those that read what others send
}

// processors are those of all generators.
func (g *combined) processors() (n int) {
	for _, i := range g.of {
		n += g.Agents[i].Processors
	}
	return n
}

// Measured is what one of several generators measured, and what it knows of the target.
// It encodes as JSON without loss.
type Measured struct {
	Result *load.Result // nil: none came

	Gauges   []measure.Gauge
	Warnings []string
	Problems []string
	Words    []string // warnings of the target
	Facts    map[string]any
	Notice   string
	Clients  []measure.Client
	Encoding *measure.Encoding
	Clock    []string
	Remarks  []string
	NoWaits  bool
	Moments  []measure.Moment // what its clients of the target reported

	Processors int // that the generator may use
	Host       any // described as in a report
	Others     *trust.Others

	// Of a run that a generator reads while others send: the records that were not taken
	// before, and what the one that reads knows of the logs.
	Records [][]byte
	Reading *Reading
}

// Measure runs the share of a workload that a job has. It is Execute for one of several
// generators: it starts no system, keeps no report and judges nothing.
func Measure(ctx context.Context, job Job) (*Measured, error) {
	e, err := prepare(job)
	if err != nil {
		return nil, err
	}
	defer e.room.keep(0)
	e.lookAround(ctx)
	out, err := e.measure(ctx)
	if out.result == nil {
		return nil, err
	}
	if err != nil {
		out.problems = append(out.problems, err.Error())
	}
	if e.series != nil {
		e.series.end(nil)
	}
	return &Measured{
		Result: out.result, Gauges: out.gauges, Warnings: out.warnings, Problems: out.problems, Words: out.words, Facts: out.facts,
		Notice: out.notice, Clients: out.clients, Encoding: out.encoding, Clock: out.clock, Remarks: out.remarks, NoWaits: out.noWaits,
		Moments:    e.moments.reported(out.result),
		Processors: load.Processors(), Host: job.Host, Others: e.Others,
		Records: e.Share.restOfRecords(), Reading: out.reading,
	}, nil
}

// runFleet has the fleet run the workload, and merges what its generators measured.
func (e *execution) runFleet(ctx context.Context) (out outcome, err error) {
	w := e.Workload
	mode, interval, err := e.modeOf()
	if err != nil {
		return out, err
	}
	if err := e.openHDR(); err != nil {
		return out, err
	}
	unanswered := w.Unacknowledged()
	stop := make(chan load.Reason, 4)
	ask := func(why load.Reason) {
		select {
		case stop <- why:
		default:
		}
	}
	plan, err := w.Plan()
	if err != nil {
		return out, err
	}
	plan.Unanswered = unanswered
	e.abort = e.newAbort(mode, &plan, func() { ask(load.ByLimit) })
	q := e.startWatching(ctx, mode, unanswered, interval)
	began := time.Now()
	q.begin(func() time.Duration { return time.Since(began) })
	engine := newMirror(mode)
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { e.await(ctx, watchedFleet{ask, over}, e.system.died()) })
	var records func([]byte)
	if w.Verify() || w.Op == workload.RoundTrip {
		e.records = newFleetLedger(e, &plan)
		records = e.records.take
	}
	marks := e.newFleetMarks(&plan)
	g, err := e.Fleet.Fire(context.WithoutCancel(ctx), &Order{
		Workload: w, RunID: e.spec.RunID,
		Opened:  func(facts map[string]any) error { e.before = facts; return e.found() },
		Started: marks.begin,
		Watch: func(s load.Snapshot) {
			t := &s.Total
			if why := plan.Measurement.Broken(t.Failed+t.Unknown, t.Acked+t.Failed+t.Unknown); why != "" {
				ask(why)
			}
			s.Merged = engine.add(s.Rows)
			e.watch(s)
		},
		Records: records, Disturbed: e.Disturbed, Stop: stop, Abort: e.Abort, Logf: e.Logf,
	})
	close(over)
	watching.Wait()
	if err != nil {
		e.endGauges(ctx, q, &out)
		return out, failed(ctx, err)
	}
	e.merge(g, &plan, &out)
	out.result.Mode = mode
	out.faults = marks.report(g.Skew)
	e.endGauges(ctx, q, &out)
	return out, nil
}

// A watchedFleet is a fleet that await asks to stop. The order of the fleet sets how long it waits for answers, and
// handles an abort.
type watchedFleet struct {
	ask  func(load.Reason)
	over <-chan struct{}
}

func (f watchedFleet) Stop(why load.Reason)  { f.ask(why) }
func (watchedFleet) End(load.Reason)         {}
func (watchedFleet) Abort()                  {}
func (f watchedFleet) Done() <-chan struct{} { return f.over }

// modeOf returns the mode of a workload and the length of its intervals.
func (e *execution) modeOf() (load.Mode, time.Duration, error) {
	plan, err := e.Workload.Plan()
	switch {
	case err != nil:
		return "", 0, err
	case e.Workload.Op == workload.Consume:
		return load.Consuming, plan.Interval, nil
	}
	return plan.Mode(), plan.Interval, nil
}

// merge makes one outcome of what the generators measured.
func (e *execution) merge(g *Combined, plan *load.Plan, out *outcome) {
	f := &combined{Combined: g}
	var names []string
	var readers []int
	for i := range g.Agents {
		a := &g.Agents[i]
		if a.Result == nil {
			continue
		}
		if g.Rows[i].Reads {
			f.reads = append(f.reads, a.Result)
			readers = append(readers, i)
		} else {
			f.whole, f.of = append(f.whole, a.Result), append(f.of, i)
			names = append(names, g.Rows[i].Name)
		}
		if out.facts == nil && !g.Rows[i].Reads {
			out.facts, out.notice, out.encoding = a.Facts, a.Notice, a.Encoding
		}
		named := func(texts []string) (all []string) {
			for _, t := range texts {
				all = append(all, g.Rows[i].Name+": "+t)
			}
			return all
		}
		out.words = unique(out.words, a.Words)
		out.warnings = append(out.warnings, named(a.Warnings)...)
		out.problems = append(out.problems, named(a.Problems)...)
		out.clock = append(out.clock, named(a.Clock)...)
		out.remarks = append(out.remarks, named(a.Remarks)...)
		out.clients = append(out.clients, a.Clients...)
		out.noWaits = out.noWaits || a.NoWaits
		for _, m := range a.Moments {
			m.From = g.Rows[i].Name
			out.moments = append(out.moments, m)
		}
		for _, m := range a.Gauges {
			if m.From == "server" && slices.ContainsFunc(out.gauges, func(o measure.Gauge) bool { return o.From == m.From && o.Name == m.Name }) {
				continue // all ask the same server
			}
			if m.From != "server" {
				m.From = g.Rows[i].Name
			}
			out.gauges = append(out.gauges, m)
		}
	}
	f.of = append(f.of, readers...)
	out.warnings = append(out.warnings, g.Warnings...)
	out.fleet = f
	for _, r := range f.whole {
		addSteps(r, f.whole)
	}
	out.result = load.Merge(names, f.whole)
	if out.result.Stopped == "" { // all were lost
		out.result.Stopped = load.ByLease
	}
	r := out.result
	if r.Mode == load.Consuming && r.Measurement.Consumed == 0 {
		e.judgeNothing(out, nothingRead) // the warnings of the generators say why
	}
	if e.records != nil {
		e.records.finish(e, g, out)
	}
	if plan.Schedule == nil {
		return
	}
	if len(g.Faults) > 0 {
		e.addUnsent(r, plan)
	}
	// With a schedule, its generators do not know how many events the others sent.
	if limits := plan.Measurement; limits.Events > 0 {
		r.Missing = limits.Missing(r.Measurement.Sent, r.Stopped)
	}
}

// addUnsent counts what a lost generator should have sent as unsent: everything that the
// schedule has up to the end of the measurement, and that no generator has counted.
func (e *execution) addUnsent(r *load.Result, plan *load.Plan) {
	m := &r.Measurement
	from, to := plan.Schedule.Count(plan.WarmupTime), plan.Schedule.Count(m.End)
	if n := plan.Measurement.Events; n > 0 {
		to = min(to, from+n)
	}
	if to-from <= m.Offered || to < from {
		return
	}
	left := to - from - m.Offered
	m.Offered += left
	m.Unsent += left
	due := func(start, end time.Duration) uint64 {
		clip := func(at time.Duration) uint64 { return min(max(plan.Schedule.Count(at), from), to) }
		return clip(end) - clip(start)
	}
	for i := range r.Steps {
		if c, n := &r.Steps[i].Counts, due(r.Steps[i].Start, r.Steps[i].End); n > c.Offered {
			c.Unsent += n - c.Offered
			c.Offered = n
		}
	}
	last := -1
	for i := range r.Intervals {
		iv := &r.Intervals[i]
		if iv.Phase != measure.Measurement {
			continue
		}
		last = i
		if n := due(iv.Start, iv.End); n > iv.Offered {
			n = min(n-iv.Offered, left)
			iv.Offered += n
			iv.Unsent += n
			left -= n
		}
	}
	if last >= 0 {
		r.Intervals[last].Offered += left
		r.Intervals[last].Unsent += left
	}
}

// addSteps makes the steps of a generator that was lost, of which only intervals are here: an
// interval belongs to the step in which it begins.
func addSteps(r *load.Result, all []*load.Result) {
	i := slices.IndexFunc(all, func(o *load.Result) bool { return len(o.Steps) > 0 })
	if len(r.Steps) > 0 || i < 0 {
		return
	}
	for _, s := range all[i].Steps {
		r.Steps = append(r.Steps, measure.Tally{Name: s.Name, Rate: s.Rate, Start: s.Start, End: s.End})
	}
	for k := range r.Intervals {
		iv := &r.Intervals[k]
		at := slices.IndexFunc(r.Steps, func(s measure.Tally) bool { return iv.Start < s.End })
		if iv.Phase != measure.Measurement {
			continue
		}
		if at < 0 {
			at = len(r.Steps) - 1
		}
		s := &r.Steps[at]
		s.Counts.Add(iv.Counts)
		s.Set.Merge(&iv.Set)
		s.Lower.Merge(&measure.Lower{Response: iv.Response, Service: iv.Service})
		s.Statuses.Merge(iv.Statuses)
		s.Arrived += iv.Arrived
		s.ArrivedBytes += iv.AckedBytes
		s.Answers += iv.Part(iv.Answered)
		s.Sends += iv.Part(iv.Sent)
		s.SendBytes += iv.Part(iv.Bytes)
		s.SendWire += iv.Part(iv.WireBytes)
	}
}

// judgeFleet adds what only a single generator's result shows: which of them was the limit.
func (e *execution) judgeFleet(in *report.Input, f *combined) {
	whole := in.Trust.OK
	in.Trust.Reasons = append(in.Trust.Reasons, f.Faults...)
	in.Processors = 0
	for k, r := range slices.Concat(f.whole, f.reads) {
		a, row := &f.Agents[f.of[k]], &f.Rows[f.of[k]]
		in.Processors += a.Processors
		verdict := e.judge(r, &outcome{facts: a.Facts, noWaits: a.NoWaits}, a.Processors)
		row.Level = verdict.Level
		if whole { // else the reasons say the same of all
			for _, why := range verdict.Reasons {
				in.Trust.Reasons = append(in.Trust.Reasons, row.Name+": "+why)
			}
		}
		row.Measured(r, a.Processors)
		if in.Host == nil {
			in.Host = a.Host
		}
		if a.Others.Worse(in.Others) {
			others := *a.Others
			others.Machine = row.Name
			in.Others = &others
		}
	}
	in.Agents, in.Skew = f.Rows, f.Skew
	if len(f.reads) > 0 && e.Workload.Op == workload.RoundTrip {
		in.Apart = f.Apart
	}
	in.Trust.OK = len(in.Trust.Reasons) == 0
}
