package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/scenario"
	"carronade/internal/secret"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/units"
)

// keepScenarioFor is the time that storing the report of a scenario may take.
const keepScenarioFor = 30 * time.Second

// head is what is known of a scenario before its first step.
func (r *scenarioRun) head() *report.Document {
	var mask secret.Mask
	machine := host.Describe()
	labels, _ := workload.ParseLabels(r.t.All("label")) // they were checked
	d := &report.Document{
		Schema: report.ScenarioSchema, ID: r.id, RunID: r.id, Version: version(),
		Target: filepath.Base(r.script.Path), Op: "scenario", Mode: report.InScenario, Labels: labels, Note: mask.Text(r.t.Last("note")),
		Repetition: 1, Repetitions: 1, StartedAt: r.began.Round(0), EndedAt: r.began.Round(0), Stopped: load.Killed, Partial: true,
		Trust:    measure.Trust{OK: true, Level: measure.Trusted, Reasons: []string{}, Doubts: []string{}, Notes: []string{}, Bounds: []measure.Bound{}},
		Warnings: []string{}, Problems: []string{}, Settings: []report.Setting{}, Workload: map[string]any{},
		Host: machine, HostText: machine.String(),
		Attachments: []report.Attachment{run.Attachment(filepath.Base(r.script.Path), r.script.Source, &mask, r.s.attachmentKey(true))},
		Scenario: &report.Scenario{
			Script: r.script.Path, Args: mask.Args(slices.Clone(r.script.Args)), Seed: r.script.Seed,
			Steps: []report.ScenarioStep{}, Checks: []report.ScenarioCheck{},
		},
	}
	table := cmdutil.AllSettings(r.s.Kinds)
	for _, e := range r.t.Doc.Entries {
		i := slices.IndexFunc(table, func(s workload.Setting) bool { return s.Name == e.Name && !s.FlagOnly && s.Name != "label" })
		if i < 0 {
			continue
		}
		value := strings.Join(e.Values, " ")
		if show := table[i].Show; show != nil {
			value = show(value)
		}
		d.Settings = append(d.Settings, report.Setting{Name: e.Name, Type: table[i].Type.String(), Value: mask.Value(e.Name, value), Independent: table[i].Independent})
	}
	return d
}

// begin stores what is known before the first step. A store that fails does not stop the scenario.
func (r *scenarioRun) begin() error {
	if r.o.keep.store == nil {
		return nil
	}
	head := r.head()
	if err := head.Seal(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, keepScenarioFor)
	defer cancel()
	var err error
	if r.writer, err = r.o.keep.store.Begin(ctx, head); err != nil {
		r.writer = nil
		r.s.warn(fmt.Sprintf("the report of the scenario is not saved while it runs: %v", err))
	}
	return nil
}

// stops are the reasons of a scenario in reports.
var stops = map[scenario.Reason]load.Reason{
	scenario.ByScript: report.ByScript, scenario.ByFault: report.ByFault, scenario.ByTime: load.ByTime,
	scenario.BySteps: report.BySteps, scenario.Interrupted: load.Interrupted,
}

// deliver makes, stores and prints the report of the scenario. The error has its exit code, and
// the script's fault.
func (r *scenarioRun) deliver(reason scenario.Reason, fault *scenario.Fault) error {
	d := r.finished(reason, fault)
	var problems []error
	if fault != nil {
		problems = append(problems, &protocol.Error{Err: fault, Hint: fault.Hint})
	}
	if len(r.steps)+len(r.checks)+len(r.marks) == 0 {
		return r.abandon(d.ExitCode(), problems)
	}
	kept := r.keep(d)
	if path := r.t.Last("json-file"); path != "" {
		if err := cmdutil.WriteFile(path, d.WriteJSON); err != nil {
			problems = append(problems, cannotWrite("--json-file", path, err, "carronade report export "+d.ID+" --as json writes it from the store"))
		}
	}
	var err error
	if r.o.json {
		err = d.WriteJSON(r.s.out)
	} else {
		err = r.s.print(d, *r.o, kept)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("writing the report: %w", err))
	}
	r.s.reportStored(r.o.keep, d, kept, r.o.json || r.o.full)
	return outcomeOf(d.ExitCode(), problems)
}

// finished is the report of the scenario when its steps have ended.
func (r *scenarioRun) finished(reason scenario.Reason, fault *scenario.Fault) *report.Document {
	d := r.head()
	d.EndedAt, d.Stopped, d.Partial = time.Now().Round(0), stops[reason], reason == scenario.Interrupted || reason == scenario.ByFault
	d.Warnings = slices.Clone(r.warnings)
	slices.SortStableFunc(r.steps, func(a, b report.ScenarioStep) int { return cmp.Compare(a.Number, b.Number) })
	d.Scenario.Steps, d.Scenario.Checks = append(d.Scenario.Steps, r.steps...), append(d.Scenario.Checks, r.checks...)
	d.Scenario.Marks = r.marks
	if fault != nil {
		d.Scenario.Fault = &report.ScenarioFault{At: fault.At, Text: fault.Text, Hint: fault.Hint}
	}
	return d
}

// abandon ends a scenario without steps, checks and marks, which has nothing to report.
func (r *scenarioRun) abandon(code int, problems []error) error {
	if r.writer != nil {
		ctx, cancel := context.WithTimeout(context.Background(), keepScenarioFor)
		defer cancel()
		if err := r.writer.Abandon(ctx); err != nil {
			r.s.warn(err.Error())
		}
	}
	if len(problems) == 0 && code == host.ExitOK {
		r.say("the script asked for no steps")
	}
	return outcomeOf(code, problems)
}

// keep seals and stores the report.
func (r *scenarioRun) keep(d *report.Document) error {
	err := d.Seal()
	if err != nil || r.o.keep.store == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepScenarioFor) // interrupted scenarios are stored, too
	defer cancel()
	if r.writer != nil {
		return r.writer.Finish(ctx, d)
	}
	return r.o.keep.store.Put(ctx, d)
}

// emptyReport is a report of a workload without events, for scripts that are only checked.
func emptyReport(w *workload.Workload) *report.Document {
	d := &report.Document{
		Schema: report.Schema, ID: "unsent", Version: version(), Target: w.Target(), Op: w.Op, Labels: w.Labels(), Workload: w,
		Checks: []report.Check{}, Problems: []string{}, Warnings: []string{}, Steps: []report.Phase{}, Phases: []report.Phase{}, Intervals: []report.Interval{},
		Gauges: []report.Gauge{}, Failures: []measure.Failure{}, Classes: map[string]uint64{}, Trust: measure.Trust{OK: true, Level: measure.Trusted},
	}
	d.Totals.RateOf = report.RateAcked
	for _, of := range []**measure.Summary{&d.Response, &d.Service, &d.SendDelay, &d.Batching, &d.Queueing, &d.EndToEnd} {
		*of = measure.Summarize(measure.NewHistogram(), nil, w.Percentiles())
	}
	for _, s := range w.Settings() {
		d.Settings = append(d.Settings, report.SettingOf(&s))
	}
	return d
}

// A planned is what a dry run prints of a step or a mark.
type planned struct{ head, text string }

// plan notes what a dry run prints of a step.
func (r *scenarioRun) plan(number int, s *scenario.Step, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checked++
	title := (&report.ScenarioStep{Number: number, Name: s.Name}).Title()
	r.planned = append(r.planned, planned{head: "step " + title + " (" + s.At + "): " + s.Kind, text: text})
}

// dry plans a step and does not run it.
func (r *scenarioRun) dry(number int, s *scenario.Step, p *plan) (func(ctx context.Context) *scenario.Ended, error) {
	r.plan(number, s, p.text)
	text, err := p.empty.Slim()
	if err != nil {
		return nil, err
	}
	return func(context.Context) *scenario.Ended {
		return &scenario.Ended{Number: number, Report: json.RawMessage(text), Elapsed: p.elapsed}
	}, nil
}

// dryRun runs the script without its steps, and prints what they would do.
func (r *scenarioRun) dryRun(options *scenario.Options) error {
	if where := r.t.Where("json"); where != "" {
		return &protocol.Error{Err: errors.New(where + " does not go with --check"), Hint: "leave one of them out"}
	}
	reason, fault, err := scenario.Run(r.ctx, *options)
	if err != nil {
		return err
	}
	c := r.s.console()
	p := &layout.Page{Style: c.Style, MaxColumns: c.Columns}
	for _, one := range r.planned {
		p.Line(layout.Clean(one.head))
		for _, line := range layout.Wrap(layout.Clean(one.text), p.Columns()-2) {
			p.Line("  " + line)
		}
	}
	if err := p.To(r.s.out); err != nil {
		return err
	}
	switch reason {
	case scenario.ByTime, scenario.BySteps:
		r.s.note("the check ended after %s, before the end of the script", units.Plural(r.checked, "step"))
	case scenario.BySleep:
		r.s.note("the check ended before the end of the script, which only sleeps")
	case scenario.Interrupted:
		return exitCode{Code: host.ExitInterrupted}
	}
	if fault != nil {
		return &protocol.Error{Err: fault, Hint: fault.Hint}
	}
	if r.refused { // the script caught the error
		return exitCode{Code: host.ExitFailed}
	}
	return nil
}
