package run

import (
	"fmt"
	"time"

	"carronade/internal/report"
	"carronade/internal/run/trace"
	"carronade/load"
	"carronade/protocol"
)

// A tracing writes the trace of a run. Rows of a round trip are made when events are consumed,
// all others when batches complete. A nil tracing does nothing.
type tracing struct {
	file    *trace.Trace
	feeds   []*trace.Feed // by sending thread
	meeting *trace.SharedFeed
	later   func(o *load.Outcome) bool // whether the rows of a batch are made when it is read; nil: never
}

// newTracing prepares the requested trace, nil for none.
func (e *execution) newTracing(plan *load.Plan, all readers, of *pipeline) *tracing {
	if e.Trace == "" && e.Rows == nil {
		return nil
	}
	t := &tracing{}
	if len(all) > 0 && all[0].pair != nil { // one row has one time of reading: with groups that of the first
		t.later, all[0].rows = all[0].joins, t
	}
	if of != nil {
		t.later, of.rows = of.stage.Reads, t
	}
	plan.Trace = t.fired
	return t
}

// open creates the file, before the run starts.
func (t *tracing) open(e *execution, r *load.Run, plan *load.Plan, tgt load.Target) error {
	if t == nil {
		return nil
	}
	o := trace.Options{
		Path: e.Trace, Rows: e.Rows, Every: e.Workload.TraceEvents(), Seed: e.spec.Seed, Phases: plan.PhaseNames(),
		Due: dueOf(plan, tgt.Partitioner()), Started: time.Now(),
		About: map[string]string{
			"version": e.Version, "target": e.Workload.Target(), "op": e.Workload.Op, "report": report.IDOf(e.spec.RunID),
		},
	}
	if e.Rows != nil {
		o.Every = 1
	}
	can := e.session.Target().Capabilities()
	o.Partition, o.Key = can.LogOf, can.AppendKey
	file, err := trace.Create(o)
	if err != nil {
		return &protocol.Error{Doing: "--trace", Err: err, Hint: "give a file in a writable folder"}
	}
	t.file, t.meeting = file, file.SharedFeed()
	for range r.Threads() {
		t.feeds = append(t.feeds, file.Feed())
	}
	return nil
}

// began passes the time of offset 0 to the file.
func (t *tracing) began(r *load.Run) {
	if t != nil {
		t.file.Began(r.Started())
	}
}

// fired takes the outcomes of a sending thread.
func (t *tracing) fired(thread int, out []load.Outcome) {
	f := t.feeds[thread]
	if t.later == nil {
		f.Add(out)
		return
	}
	for i := range out {
		if !t.later(&out[i]) {
			f.AddOne(&out[i])
		}
	}
}

// consumed takes events that were joined with their arrivals.
func (t *tracing) consumed(o *load.Outcome, at time.Duration) {
	if t != nil {
		t.meeting.Consumed(o, at)
	}
}

// read takes events that were read by a request of their own.
func (t *tracing) read(sent, read *load.Outcome) {
	if t != nil {
		t.meeting.Read(sent, read.Sent, read.Done)
	}
}

// missed takes events that were to be read and were not.
func (t *tracing) missed(o *load.Outcome) {
	if t != nil {
		t.meeting.Missed(o)
	}
}

// close completes the file after sending and reading have ended, and reports the result.
func (t *tracing) close(out *outcome) {
	if t == nil || t.file == nil {
		return
	}
	r := t.file.Close()
	if r.File == "" {
		if r.Dropped > 0 {
			out.warnings = append(out.warnings, fmt.Sprintf("%d of %d rows of single events are missing: they came faster than they were written", r.Dropped, r.Rows+r.Dropped))
		}
		return
	}
	out.trace = &report.Trace{File: r.File, Rows: r.Rows, Dropped: r.Dropped, Every: r.Every, Bytes: r.Bytes}
	if r.Err != nil {
		out.trace.Error = r.Err.Error()
		out.problems = append(out.problems, fmt.Sprintf("--trace: %v; the %d rows before that can be read", r.Err, r.Rows))
		return
	}
	if r.Dropped > 0 {
		out.warnings = append(out.warnings, fmt.Sprintf("the trace lacks %d of %d rows: the disk was too slow; --trace-events samples them", r.Dropped, r.Rows+r.Dropped))
	}
}
