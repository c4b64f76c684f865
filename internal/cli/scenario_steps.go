package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/scenario"
	"carronade/internal/secret"
	"carronade/internal/store"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
	"carronade/units"
)

// A scenarioRun is a scenario in progress. It is the scenario.Runner.
type scenarioRun struct {
	s      *session
	t      *cmdutil.Settings // given on the command line
	o      *outputs          // nil: nothing is sent
	ctx    context.Context   // ends with an interrupt
	began  time.Time
	script *scenario.Script
	id     string
	writer store.Writer // nil: the report is not kept while the scenario runs

	mu       sync.Mutex // of what follows
	active   int
	exports  bool // a step in progress exports its metrics
	steps    []report.ScenarioStep
	checks   []report.ScenarioCheck
	marks    []report.ScenarioMark
	files    map[string]int     // which step writes a file
	newest   []*report.Document // of the last steps, for checks
	warnings []string
	markers  map[*run.Marker]bool // of runs in progress that take marks
	planned  []planned            // of a dry run
	checked  int                  // the steps of a dry run
	refused  bool                 // one of them cannot run
}

// mostNewest is how many reports stay in memory for checks; others are read from the store.
const mostNewest = 16

// A stepKind is how steps of a kind run.
type stepKind struct {
	name string
	// plan checks a step, and returns what runs it and, for a dry run, a report without events.
	plan func(r *scenarioRun, number int, s *scenario.Step) (*plan, error)
}

// A plan is a step that was checked.
type plan struct {
	w       *workload.Workload
	text    string        // what it does, for the user
	elapsed time.Duration // how long it takes, 0: not known
	empty   *report.Document
	// run returns the report of the step, and whether it is in the store.
	run func(ctx context.Context, o *outputs) (d *report.Document, stored bool, err error)
}

func stepKinds() []stepKind {
	return []stepKind{
		{scenario.RunStep, (*scenarioRun).planRun},
		{scenario.FindStep, (*scenarioRun).planFind},
	}
}

// Start implements scenario.Runner.
func (r *scenarioRun) Start(number int, s *scenario.Step) (func(ctx context.Context) *scenario.Ended, error) {
	kinds := stepKinds()
	i := slices.IndexFunc(kinds, func(k stepKind) bool { return k.name == s.Kind })
	if i < 0 {
		return nil, &scenario.Fault{At: s.At, Text: fmt.Sprintf("there are no steps of the kind %q", s.Kind)}
	}
	p, err := kinds[i].plan(r, number, s)
	if err == nil {
		err = r.claim(number, p.w)
	}
	if err != nil {
		f := faultOf(s, err)
		if r.o == nil {
			r.plan(number, s, "cannot run: "+f.Text)
			r.refused = true
			return nil, f
		}
		r.ended(s, time.Now(), &scenario.Ended{Number: number, Code: host.ExitFailed, Fault: f}, nil, false)
		return nil, f
	}
	if r.o == nil {
		return r.dry(number, s, p)
	}
	return func(ctx context.Context) *scenario.Ended { return r.run(ctx, number, s, p) }, nil
}

// document makes a workload file of the options of a step.
func document(s *scenario.Step) *workload.Document {
	of := func(target string, options []scenario.Option) *workload.Document {
		d := &workload.Document{}
		if target != "" || len(s.Parts) == 0 {
			d.Add("target", s.At+": target", target)
		}
		for _, o := range options {
			d.Add(o.Name, cmp.Or(o.At, s.At)+": "+o.Name, o.Values...)
		}
		return d
	}
	d := of(s.Target, s.Options)
	for _, p := range s.Parts {
		d.Parts = append(d.Parts, of(p.Target, p.Options))
	}
	return d
}

// settings are the command line's, with the labels of a step.
func (r *scenarioRun) settings(number int, file *workload.Document) *cmdutil.Settings {
	t := *r.t
	t.Doc.Entries = nil
	for _, e := range file.Entries { // ours do not replace them
		if e.Name == "label" {
			t.Doc.Entries = append(t.Doc.Entries, e)
		}
	}
	t.Doc.Entries = append(t.Doc.Entries, r.t.Doc.Entries...)
	for _, l := range []string{report.ScenarioLabel + "=" + r.id, report.ScenarioStepLabel + "=" + strconv.Itoa(number)} {
		t.Doc.Add("label", "the label of a step", l)
	}
	return &t
}

// planRun plans a step that is a run.
func (r *scenarioRun) planRun(number int, s *scenario.Step) (*plan, error) {
	file := document(s)
	if i := slices.IndexFunc(file.Entries, func(e workload.Entry) bool { return e.Name == repeatSetting }); i >= 0 {
		return nil, &protocol.Error{Err: fmt.Errorf("%s: a step is one run", file.Entries[i].Where), Hint: "repeat it with a loop"}
	}
	ws, err := r.s.resolveAll(r.settings(number, file), []*workload.Document{file})
	if err != nil {
		return nil, err
	}
	w := ws[0]
	p := &plan{w: w, elapsed: w.Duration("for"), empty: emptyReport(w), text: w.Op + " " + w.Target()}
	if of := p.empty.Load(1 << 10); of != "" {
		p.text += ", " + of
	}
	p.run = func(ctx context.Context, o *outputs) (*report.Document, bool, error) {
		o.tasks = []task{{w: w, of: 1, hdr: w.HDR(), trace: w.Trace()}}
		if err := o.tryFiles("--json-file"); err != nil {
			return nil, false, err
		}
		d, err := r.s.execute(ctx, *o, 0)
		stored := d != nil && r.s.reportStored(o.keep, d, o.tasks[0].kept, false) != ""
		return d, stored, err
	}
	return p, nil
}

// claim notes the files that a step writes. Two steps that write the same file would overwrite each
// other's, and so would a step in a loop.
func (r *scenarioRun) claim(number int, w *workload.Workload) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range [][2]string{{"hdr", w.HDR()}, {"trace", w.Trace()}} {
		path, err := filepath.Abs(of[1])
		if of[1] == "" || of[1] == os.DevNull || err != nil {
			continue
		}
		if before, ok := r.files[path]; ok && before != number {
			return &protocol.Error{Err: fmt.Errorf("%s: %s is the file of step %d", of[0], of[1], before), Hint: "give each step a file of its own: put its number or its name into the path"}
		}
		if r.files == nil {
			r.files = make(map[string]int)
		}
		r.files[path] = number
	}
	return nil
}

// planFind plans a step that is a search.
func (r *scenarioRun) planFind(number int, s *scenario.Step) (*plan, error) {
	f := &searching{share: "2%", budget: "10m", more: findMore{repeat: 1}}
	of := *s
	of.Options = nil
	for _, o := range s.Options {
		i := slices.IndexFunc(findOptions, func(one findOption) bool { return one.name == o.Name })
		if i < 0 {
			of.Options = append(of.Options, o)
			continue
		}
		if len(o.Values) != 1 {
			return nil, &protocol.Error{Err: fmt.Errorf("%s: takes one value, not %d", o.Name, len(o.Values))}
		}
		*findOptions[i].of(f) = o.Values[0]
	}
	if err := f.parse(); err != nil {
		return nil, err
	}
	file := document(&of)
	w, err := r.s.resolveSearch(f, r.settings(number, file), file)
	if err != nil {
		return nil, err
	}
	f.id = newSeries()
	d := emptyReport(w)
	d.Search = &report.Search{Limits: f.limitTexts(), Within: []report.SearchLimit{}, Budget: f.Budget, Answer: &find.Answer{Ending: find.Stopped, Trials: []find.Tried{}}}
	p := &plan{w: w, empty: d, elapsed: f.Budget + f.Soak, text: fmt.Sprintf("%s %s, %s, in at most %s", w.Op, w.Target(), strings.Join(f.limitTexts(), ", "), units.FormatDuration(f.Budget+f.Soak))}
	p.run = func(ctx context.Context, o *outputs) (*report.Document, bool, error) {
		f.began, f.of = time.Now(), &report.Document{Version: version(), Target: w.Target(), Op: w.Op, Labels: w.Labels(), Workload: w}
		answer, err := r.s.answer(ctx, f, o)
		if err != nil {
			return nil, false, err
		}
		d, err := f.reportOf(f.id, answer, f.of)
		if err != nil {
			return nil, false, err
		}
		stored := o.keep.store != nil && len(answer.Trials) > 0
		if stored {
			stored = r.s.reportStored(o.keep, d, keepAnswer(o.keep.store, d), false) != ""
		}
		return d, stored, nil
	}
	return p, nil
}

// A findOption is an option of searches that is not a setting of a workload: a flag of carronade find.
type findOption struct {
	name string
	of   func(*searching) *string
}

var findOptions = []findOption{
	{"budget", func(f *searching) *string { return &f.budget }},
	{"precision", func(f *searching) *string { return &f.share }},
	{"from", func(f *searching) *string { return &f.from }},
	{"to", func(f *searching) *string { return &f.more.to }},
	{"at-least", func(f *searching) *string { return &f.atLeast }},
	{"confirm", func(f *searching) *string { return &f.more.confirm }},
	{"over", func(f *searching) *string { return &f.more.over }},
}

// faultOf makes a fault of the error of a step. Errors of several settings are in one.
func faultOf(s *scenario.Step, err error) *scenario.Fault {
	if own, ok := errors.AsType[*scenario.Fault](err); ok {
		return own
	}
	f := &scenario.Fault{At: s.At}
	var texts []string
	for _, one := range splitErrors(err) {
		texts = append(texts, strings.TrimPrefix(oneLine(one.Error()), s.At+": "))
		f.Hint = cmp.Or(f.Hint, advice.Hint(one))
	}
	f.Text = strings.Join(texts, "; ")
	return f
}

// run runs a step to its end.
func (r *scenarioRun) run(ctx context.Context, number int, s *scenario.Step, p *plan) *scenario.Ended {
	o := r.enter()
	exports := o.exporter != nil
	title := (&report.ScenarioStep{Number: number, Name: s.Name}).Title()
	r.say("step %s: %s %s", title, s.Kind, p.text)
	began := time.Now()
	d, stored, err := p.run(ctx, o)
	ended := &scenario.Ended{Number: number, Elapsed: time.Since(began)}
	if err == nil {
		ended.Code = r.codeOf(d)
		ended.Report, err = d.Slim()
	} else {
		ended.Code, err = withoutReport(err, ctx.Err() != nil, r.ctx.Err() != nil)
	}
	if err != nil {
		ended.Fault = faultOf(s, err)
		r.say("step %s: %s", title, ended.Fault.Text)
	} else {
		r.say("step %s: %s", title, d.Headline())
	}
	r.leave(exports)
	r.ended(s, began, ended, d, stored)
	return ended
}

// withoutReport is the exit code and the error of a step that has no report. One that was stopped
// before it began to measure did not fail. One that could not run did, also while it is stopped.
func withoutReport(err error, stopped, interrupted bool) (int, error) {
	if !stopped || !errors.Is(err, context.Canceled) {
		return host.ExitFailed, err
	}
	err = errors.New("it was stopped before it began to measure")
	if interrupted {
		return host.ExitInterrupted, err
	}
	return host.ExitOK, err
}

// codeOf is the exit code of a step. One that the script stopped, or the time of the scenario, was
// not interrupted: it may have fewer events than requested, also none.
func (r *scenarioRun) codeOf(d *report.Document) int {
	if d.Stopped != load.Interrupted || r.ctx.Err() != nil {
		return d.ExitCode()
	}
	of := *d
	of.Stopped = load.ByTime
	of.Checks = slices.DeleteFunc(slices.Clone(d.Checks), func(c report.Check) bool {
		return c.Name == "count" || c.Name == report.Taken && d.Totals.Sent == 0
	})
	return of.ExitCode()
}

// enter counts a step in progress. Only one at a time has the status line and exports metrics.
func (r *scenarioRun) enter() *outputs {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active++
	o := *r.o
	o.tasks, o.marker = nil, r.takes
	o.quiet = o.quiet || r.active > 1 || !interactive(r.s.Err)
	if r.exports {
		o.exporter = nil
	}
	r.exports = r.exports || o.exporter != nil
	return &o
}

func (r *scenarioRun) leave(exports bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active--
	if exports {
		r.exports = false
	}
}

// ended keeps the end of a step, with its report if it has one.
func (r *scenarioRun) ended(s *scenario.Step, began time.Time, ended *scenario.Ended, d *report.Document, stored bool) {
	var mask secret.Mask // of what the script gives: a report has masked its own texts
	one := report.ScenarioStep{
		Number: ended.Number, Name: mask.Text(s.Name), Kind: s.Kind, At: s.At, Target: mask.Text(s.Target),
		StartS: began.Sub(r.began).Seconds(), EndS: time.Since(r.began).Seconds(), Exit: ended.Code,
	}
	if f := ended.Fault; f != nil {
		one.Fault = &report.ScenarioFault{At: f.At, Text: mask.Text(f.Text), Hint: mask.Text(f.Hint)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if d != nil {
		one.Target, one.Op, one.Result = d.Target, d.Op, d.Headline()
		if stored {
			one.Report, one.Hash = d.ID, d.Hash
		}
		one.EventsPerS = d.Totals.EventsPerS
		if d.Search != nil {
			one.EventsPerS = d.Search.Holds
		}
		r.newest = append(r.newest[max(0, len(r.newest)+1-mostNewest):], d)
	} else {
		maps.DeleteFunc(r.files, func(_ string, of int) bool { return of == ended.Number }) // it wrote none
	}
	r.steps = append(r.steps, one)
	r.save(report.EncodeStep(&one))
}

// save stores a piece of the report while the scenario goes on. The caller holds the lock.
func (r *scenarioRun) save(piece report.Encoded, err error) {
	if r.writer != nil && err == nil { // its numbers are finite
		r.writer.Interval(piece)
	}
}

// mark keeps a text of the script with the time. With a kind it also marks the steps in progress.
func (r *scenarioRun) mark(at, kind, text string) error {
	if kind != "" {
		if err := r.markSteps(at, kind, text); err != nil {
			return err
		}
		text = kind + " " + text
	}
	var mask secret.Mask
	one := report.ScenarioMark{TimeS: time.Since(r.began).Seconds(), At: at, Text: mask.Text(text)}
	r.say("mark: %s", oneLine(one.Text))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.o == nil {
		r.planned = append(r.planned, planned{head: "mark (" + at + ")", text: one.Text})
		return nil
	}
	r.marks = append(r.marks, one)
	r.save(report.EncodeMark(len(r.marks), &one))
	return nil
}

// markSteps puts a mark on the time axis of each step in progress that takes marks.
func (r *scenarioRun) markSteps(at, kind, name string) error {
	now := time.Now()
	if err := checkMark(kind, name); err != nil {
		return &scenario.Fault{At: at, Text: err.Error(), Hint: `such as mark("fault", "kill broker 2")`}
	}
	if r.o == nil {
		return nil
	}
	r.mu.Lock()
	all := slices.Collect(maps.Keys(r.markers))
	r.mu.Unlock()
	taken := 0
	for _, m := range all {
		_, err := m.Mark(kind, layout.Clean(name), "scenario", now, now)
		switch {
		case err == nil:
			taken++
		case !errors.Is(err, run.ErrEnded):
			return &scenario.Fault{At: at, Text: err.Error()}
		}
	}
	if taken == 0 {
		return &scenario.Fault{At: at, Text: "no step that takes marks is in progress", Hint: "start it with marks: true, and mark it before it is awaited"}
	}
	return nil
}

// takes lets the script mark a run in progress. It returns what ends that.
func (r *scenarioRun) takes(m *run.Marker) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.markers == nil {
		r.markers = make(map[*run.Marker]bool)
	}
	r.markers[m] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.markers, m)
	}
}

// Check implements scenario.Runner.
func (r *scenarioRun) Check(at, id string, texts []string) (bool, error) {
	limits := make([]workload.Limit, 0, len(texts))
	for _, text := range texts {
		l, err := workload.ParseLimit(text)
		if err != nil {
			return false, &scenario.Fault{At: at, Text: fmt.Sprintf("check %q: %v", text, err), Hint: "carronade help slo describes limits"}
		}
		limits = append(limits, l)
	}
	if r.o == nil {
		return true, nil // nothing was measured, and all hold
	}
	d, err := r.documentOf(id)
	if err != nil {
		return false, &scenario.Fault{At: at, Text: err.Error(), Hint: advice.Hint(err)}
	}
	if !d.IsRun() {
		return false, &scenario.Fault{At: at, Text: "check takes reports of runs, and " + id + " is of a search or a scenario", Hint: "a search has its limits in its option slo, and its rate in holds"}
	}
	step, _ := strconv.Atoi(d.Labels[report.ScenarioStepLabel])
	if d.Labels[report.ScenarioLabel] != r.id {
		step = 0
	}
	ok := true
	for _, c := range d.CheckLimits(limits) {
		ok = ok && c.OK
		word := "holds"
		switch {
		case c.CannotTell:
			word = "cannot tell"
		case !c.OK:
			word = "BROKEN"
		}
		r.say("check %s: %s: %s", word, c.Name, c.Reason())
		r.mu.Lock()
		r.checks = append(r.checks, report.ScenarioCheck{Check: c, At: at, Report: id, Step: step})
		r.save(report.EncodeCheck(len(r.checks), &r.checks[len(r.checks)-1]))
		r.mu.Unlock()
	}
	return ok, nil
}

// documentOf is the report with an id: of the last steps, or of the store.
func (r *scenarioRun) documentOf(id string) (*report.Document, error) {
	r.mu.Lock()
	i := slices.IndexFunc(r.newest, func(d *report.Document) bool { return d.ID == id })
	var d *report.Document
	if i >= 0 {
		d = r.newest[i]
	}
	r.mu.Unlock()
	if d != nil {
		return d, nil
	}
	if r.o != nil && r.o.keep.store != nil {
		return r.o.keep.store.Get(r.ctx, id)
	}
	return r.s.stored(r.ctx, r.t, id)
}

// Report implements scenario.Runner.
func (r *scenarioRun) Report(at, reference string) (json.RawMessage, error) {
	d, err := r.s.stored(r.ctx, r.t, reference)
	if err != nil {
		return nil, &scenario.Fault{At: at, Text: err.Error(), Hint: advice.Hint(err)}
	}
	return d.Slim()
}

// say prints what happens, above the status line if there is one.
func (r *scenarioRun) say(format string, args ...any) {
	if r.o == nil || !r.o.quiet {
		r.s.printed(r.s.restore.Load(), r.s.wrapped("", fmt.Sprintf(format, args...)))
	}
}

// print prints what the script prints.
func (r *scenarioRun) print(text string) { r.s.printed(r.s.restore.Load(), text) }

// warn prints a warning of the script, and keeps it.
func (r *scenarioRun) warn(text string) {
	r.s.printed(r.s.restore.Load(), "warning: "+oneLine(text))
	r.mu.Lock()
	r.warnings = append(r.warnings, text)
	r.mu.Unlock()
}
