package run

import (
	"context"
	"fmt"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/units"
)

// A pipeline is a run that also reads what it sends, each batch after its ack. A nil pipeline
// is a run of another kind.
type pipeline struct {
	stage   *load.Stage
	of      load.Follower
	logOf   func(stream int32) int32
	samples *samples
	rows    *tracing // nil: no trace
	cut     bool     // the waiting for reads was interrupted
}

// newPipeline prepares the second stage of the session's operation; nil if it has none.
func (e *execution) newPipeline(ctx context.Context, plan *load.Plan, tgt load.Target) *pipeline {
	open := e.can().Pipeline
	if open == nil {
		return nil
	}
	of, stage := open()
	p := &pipeline{of: of, logOf: func(stream int32) int32 { return stream }}
	if logOf := tgt.Capabilities().LogOf; logOf != nil {
		p.logOf = logOf
	}
	p.samples = newSamples(e.spec.Seed, dueOf(plan, tgt.Partitioner()))
	p.samples.cameBack = e.CameBack
	stage.Done = func(sent, read *load.Outcome) {
		if read.Acked == read.Events {
			p.samples.add(sent, read.Done)
			p.rows.read(sent, read)
			return
		}
		p.rows.missed(sent)
	}
	p.stage = load.NewStage(stage, of, plan)
	plan.Completed = func() {
		waiting, cancel := e.waiting(ctx)
		defer cancel()
		p.stage.CatchUp(plan.Drain, waiting.Done())
		p.cut = waiting.Err() != nil
	}
	return p
}

// start begins to follow the run.
func (p *pipeline) start(r *load.Run) {
	if p != nil {
		p.stage.Start(r)
	}
}

// finish ends the reading and completes the outcome.
func (p *pipeline) finish(e *execution, out *outcome) {
	if p == nil {
		return
	}
	r := out.result
	s := p.stage.Result(r)
	if p.cut {
		e.interrupted(r)
	}
	sent := load.PartResult{Tally: r.Measurement, Classes: r.Classes}
	sent.Name = "send"
	r.Parts = []load.PartResult{sent, s.PartResult}
	out.samples = p.samples.report(p.of.Logs(), p.logOf)
	out.checks = append(out.checks, checkReads(&s))
}

// checkReads is whether every acked event was read, over all phases.
func checkReads(s *load.StageResult) report.Check {
	var failed uint64
	for _, n := range s.Classes {
		failed += n
	}
	c := report.Check{Name: "read", OK: failed+s.Unread+s.Missed+s.Partial == 0, Text: "every acked event was read"}
	if c.OK {
		return c
	}
	c.Text = ""
	add := func(n uint64, format string, args ...any) {
		if n > 0 {
			if c.Text != "" {
				c.Text += "; "
			}
			c.Text += units.Plural(n, "acked event") + " " + fmt.Sprintf(format, args...)
		}
	}
	add(failed, "could not be read: %s", s.Text)
	add(s.Unread, "not read when the run ended")
	add(s.Missed, "not read because the system did not say where they are")
	add(s.Partial, "not read because others of their batch were not acked")
	return c
}

// progress adds the reading to the progress of the sending.
func (p *pipeline) progress(sending progressFunc) progressFunc {
	if p == nil {
		return sending
	}
	var before load.StageProgress
	return func() (moved bool, waits func() string) {
		moved, waits = sending()
		now := p.stage.Progress()
		switch {
		case moved || now.Done != before.Done:
			before = now
			return true, nil
		case now.Due == 0:
			return false, waits
		}
		return false, func() string {
			text := fmt.Sprintf("the reads of %s", units.Plural(now.Due, "acked event"))
			if pending := p.of.Pending(); len(pending) > 0 {
				text += ": " + listed(pending)
			}
			return text
		}
	}
}

// stageOf describes a stage of a pipeline for the report.
func stageOf(w *workload.Workload, r *load.PartResult) report.PartInput {
	return report.PartInput{Target: w.Target(), Op: r.Name}
}
