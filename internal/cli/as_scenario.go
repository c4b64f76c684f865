package cli

import (
	"context"
	"strconv"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/scenario"
)

// asScenario runs the scenario of a tool. The tool runs the steps, and this keeps the report of the
// scenario with the steps inside.
func (s *session) asScenario(ctx context.Context, tool *dropin.Tool, common dropin.Common, o scenario.Options) (scenario.Reason, *scenario.Fault, error) { //nolint:gocritic // options by value, as Run has them
	var err error
	if o.Command, err = scenarioChildLine(); err != nil {
		return "", nil, err
	}
	if o.Script.Dry {
		return scenario.Run(ctx, o)
	}
	if err := tryFile("--report-json", common.ReportJSON); err != nil {
		return "", nil, err
	}
	var t cmdutil.Settings
	t.Doc.Add("label", byAs, "as="+tool.Name)
	for _, k := range common.Keep {
		t.Doc.Add(k.Name, k.Flag, k.Text)
	}
	keep, err := s.keeping(ctx, &t, true)
	if err != nil {
		return "", nil, err
	}
	defer keep.close()
	r := &scenarioRun{s: s, t: &t, o: &outputs{keep: keep, quiet: true, warns: true}, ctx: ctx, began: time.Now(), script: &o.Script, id: newSeries()}
	if err := r.begin(); err != nil {
		return "", nil, err
	}
	o.Runner = &toolRunner{Runner: o.Runner, run: r}
	warn := o.Warn
	o.Warn = func(text string) {
		warn(text)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.warnings = append(r.warnings, text)
	}
	reason, fault, err := scenario.Run(ctx, o)
	if err != nil || len(r.steps) == 0 {
		_ = r.abandon(host.ExitFailed, nil) // what went wrong is the tool's to say
		return reason, fault, err
	}
	d := r.finished(reason, fault)
	s.reportStored(keep, d, r.keep(d), true)
	if common.ReportJSON != "" {
		s.writeAs(common.ReportJSON, d.WriteJSON)
	}
	return reason, fault, nil
}

// A toolRunner runs the steps of a tool, and adds their reports to the scenario's.
type toolRunner struct {
	scenario.Runner
	run *scenarioRun
}

// Start implements scenario.Runner.
func (t *toolRunner) Start(number int, step *scenario.Step) (func(ctx context.Context) *scenario.Ended, error) {
	run, err := t.Runner.Start(number, step)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) *scenario.Ended {
		began := time.Now()
		of := &toolStep{scenario: t.run.id, number: number}
		ended := run(context.WithValue(ctx, toolStepKey{}, of))
		if !step.Aside {
			t.run.ended(step, began, ended, of.report, of.report != nil)
		}
		return ended
	}, nil
}

// A toolStep is the step of a scenario in whose context a tool runs a workload; nil outside of
// scenarios.
type toolStep struct {
	scenario string // its id
	number   int
	report   *report.Document // of the workload
}

type toolStepKey struct{}

// stepOf is the step of a context.
func stepOf(ctx context.Context) *toolStep {
	of, _ := ctx.Value(toolStepKey{}).(*toolStep)
	return of
}

// labels are those of the reports of the step.
func (t *toolStep) labels() []string {
	if t == nil {
		return nil
	}
	return []string{report.ScenarioLabel + "=" + t.scenario, report.ScenarioStepLabel + "=" + strconv.Itoa(t.number)}
}

// made keeps the report of the step.
func (t *toolStep) made(d *report.Document) {
	if t != nil {
		t.report = d
	}
}
