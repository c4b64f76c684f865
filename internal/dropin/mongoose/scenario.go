package mongoose

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/scenario"
	"carronade/internal/workload"
)

// elapsedPath is the path of how long a step ran before it is started again. Scripts cannot set
// it.
const elapsedPath = "load-step-elapsed"

// A runner runs the steps of a scenario: each as its own command line would run, with the options
// of the scenario's command line below those of the step. A step that cannot run is reported, and
// the scenario goes on. It implements scenario.Runner.
type runner struct {
	program *dropin.Program
	dry     bool // print what each path becomes, and run nothing
	exec    bool // the script may start processes

	ctx     context.Context // of the scenario; its end is an interruption, that of a step's is not
	base    *values
	args    []string
	lists   map[string]string // item lists that steps before write, with the topic of their items
	stamp   time.Time         // the last that was used for an id
	printed map[string]bool   // what the check printed

	mu     sync.Mutex // of what follows: steps end at the same time
	warned map[string]bool
	names  map[string]bool // ids of steps that ran
	code   int
	runs   int // steps that started, or would
	bad    int // steps that cannot run
}

// newRunner returns the runner for a command line.
func newRunner(ctx context.Context, p *dropin.Program, v *values, args []string) *runner {
	own := *p
	lock := new(sync.Mutex)
	own.Out, own.Err = &lockedWriter{mu: lock, w: p.Out}, &lockedWriter{mu: lock, w: p.Err}
	return &runner{
		program: &own, ctx: ctx, base: v, args: args,
		names: make(map[string]bool), lists: make(map[string]string), warned: make(map[string]bool), printed: make(map[string]bool),
	}
}

// A lockedWriter lets several steps write lines.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (r *runner) printf(format string, args ...any) {
	fmt.Fprintf(r.program.Out, format, args...)
}

// warn prints a warning once.
func (r *runner) warn(text string) {
	r.mu.Lock()
	before := r.warned[text]
	r.warned[text] = true
	r.mu.Unlock()
	if !before {
		warner(r.program)("%s", text)
	}
}

// Start implements scenario.Runner.
func (r *runner) Start(number int, s *scenario.Step) (func(ctx context.Context) *scenario.Ended, error) {
	if s.Kind == processKind {
		return r.process(s)
	}
	l := &loads{number: number, at: s.At, name: s.Name, kind: s.Kind}
	err := r.prepare(l, s)
	if r.dry {
		r.printCheck(l, err)
	}
	if err != nil {
		fault := &scenario.Fault{At: s.At, Text: err.Error()}
		if !r.dry {
			warner(r.program)("%s: step %d (%s) cannot run: %s", s.At, number, s.Name, err)
		}
		r.end(host.ExitFailed, true)
		return func(context.Context) *scenario.Ended {
			return &scenario.Ended{Number: number, Code: host.ExitFailed, Fault: fault}
		}, nil
	}
	if r.dry {
		r.end(host.ExitOK, false)
		return func(context.Context) *scenario.Ended { return &scenario.Ended{Number: number} }, nil
	}
	return func(ctx context.Context) *scenario.Ended {
		began := time.Now()
		code, err := r.run(ctx, l)
		if code == host.ExitInterrupted && r.ctx.Err() == nil {
			code = host.ExitOK // the script stopped the step
		}
		r.end(code, false)
		e := &scenario.Ended{Number: number, Code: code, Elapsed: time.Since(began)}
		if err != nil {
			e.Fault = &scenario.Fault{At: s.At, Text: err.Error()}
			warner(r.program)("%s: step %d (%s) failed: %s", s.At, number, s.Name, err)
		}
		return e
	}, nil
}

// end counts a step.
func (r *runner) end(code int, bad bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs++
	if bad {
		r.bad++
	}
	r.code = host.WorseExit(r.code, code)
}

// loads are the loads of one step of a scenario.
type loads struct {
	number         int
	at, name, kind string

	shared []configured // of all contexts, if there are several
	parts  []*scenarioPart
}

// A scenarioPart is one load of a step.
type scenarioPart struct {
	*step
	paths []configured    // its own, in order
	sets  map[string]bool // the options that the script gives, by name
	notes []string        // warnings
	later bool            // of a pipeline, and not its first

	doc *workload.Document // the run that it is or belongs to; nil: it is on topics
}

// A configured path is one that the script gave, with its text, and what is to be said of it.
type configured struct {
	name string
	text string
	path path
}

// prepare resolves what a step asks for.
func (r *runner) prepare(l *loads, s *scenario.Step) error {
	contexts := s.Parts
	if s.Kind == linearLoad || len(contexts) == 0 {
		contexts = []scenario.Part{{}}
	}
	if s.Kind == weightedLoad && len(contexts) < 2 {
		return fmt.Errorf("a %s needs at least two contexts: append(...)", weightedLoad)
	}
	began := r.now()
	for _, c := range contexts {
		p := &scenarioPart{sets: make(map[string]bool)}
		v := r.base.clone()
		elapsed := time.Duration(0)
		var refusal error
		for k, o := range append(append([]scenario.Option{}, s.Options...), c.Options...) {
			if o.Name == elapsedPath {
				elapsed, _ = time.ParseDuration(o.Values[0]) // our own
				continue
			}
			to, _, err := resolve(o.Name, r.program.Strict)
			if err != nil {
				return err
			}
			switch one := (configured{o.Name, textOf(to.option, o.Values), to}); {
			case k >= len(s.Options) || len(contexts) == 1:
				p.paths = append(p.paths, one)
			case len(l.parts) == 0:
				l.shared = append(l.shared, one)
			}
			if to.note != "" && !r.dry {
				r.warn(to.note)
			}
			values := o.Values
			if to.value != "" {
				values = []string{to.value}
			}
			switch {
			case to.option != nil:
				v.set(to.option, closed(r, values))
				p.sets[to.option.name] = true
			case to.refused != "" && len(values) > 0 && strings.Join(values, "") != "false":
				refusal = fmt.Errorf("%s: %s", dotted(o.Name), to.refused)
			}
		}
		l.parts = append(l.parts, p)
		if refusal != nil {
			return refusal
		}
		if err := remaining(v, elapsed); err != nil {
			return err
		}
		if err := r.load(l, p, v, began); err != nil {
			return err
		}
	}
	if last := l.parts[len(l.parts)-1]; l.kind == pipelineLoad { // the list is of what came to its end
		delete(l.parts[0].v.given, "item-output-file")
		if file := last.v.text("item-output-file"); file != "" {
			l.parts[0].v.given["item-output-file"] = file
		}
	}
	return r.canRun(l)
}

// textOf is a value as a check shows it.
func textOf(o *option, values []string) string {
	if o == nil || o.kind != tMap {
		return strings.Join(values, ",")
	}
	var pairs []string
	for i := 0; i+1 < len(values); i += 2 {
		pairs = append(pairs, values[i]+": "+values[i+1])
	}
	return strings.Join(pairs, ", ")
}

// canRun returns an error if a step cannot run as its parts are. A check resolves workloads, too,
// which are otherwise resolved when they run.
func (r *runner) canRun(l *loads) error {
	var doc *workload.Document
	switch s := l.parts[0].step; {
	case l.kind == pipelineLoad:
		if err := l.fitsPipeline(); err != nil {
			return err
		}
		doc = l.beforeDeletion().pipeline()
	case l.kind == weightedLoad:
		if err := l.fitsWeighted(); err != nil {
			return err
		}
		doc = r.weighted(l)
	case s.work == onTopics:
		return nil
	default:
		doc = s.workload(false)
	}
	for i, p := range l.parts {
		p.doc, p.later = doc, l.kind == pipelineLoad && i > 0
		if l.kind == weightedLoad {
			p.doc = &workload.Document{Entries: slices.Concat(doc.Parts[i].Entries, doc.Entries)}
		}
		for _, c := range p.paths {
			if o := c.path.option; p.later && !r.dry && o != nil && !slices.Contains(ofReads, o.name) && p.v.text(o.name) != l.parts[0].v.text(o.name) {
				r.warn(dotted(c.name) + " does nothing: " + firstHasIt)
			}
		}
	}
	if !r.dry || r.program.Resolve == nil {
		return nil
	}
	if err := r.program.Resolve(doc); err != nil {
		return errors.New(inScenario(err.Error()))
	}
	return nil
}

// closed closes the last expression of a text, as one of mongoose's examples needs.
func closed(r *runner, texts []string) []string {
	if r.program.Strict {
		return texts
	}
	for i, text := range texts {
		last := max(strings.LastIndex(text, "${"), strings.LastIndex(text, "%{"), strings.LastIndex(text, "#{"))
		if last >= 0 && !strings.Contains(text[last:], "}") {
			r.warn(fmt.Sprintf("the expression has no end: %s was read as %s", text, text+"}"))
			texts = append([]string{}, texts...)
			texts[i] = text + "}"
		}
	}
	return texts
}

// remaining takes the time that a step ran before off its limit.
func remaining(v *values, elapsed time.Duration) error {
	limit, err := v.duration("load-step-limit-time")
	if err != nil || limit == 0 || elapsed == 0 {
		return err
	}
	if limit -= elapsed.Truncate(time.Second); limit <= 0 {
		return errors.New("the step has used its time: further resuming is not available")
	}
	v.given["load-step-limit-time"] = fmt.Sprintf("%ds", limit/time.Second)
	return nil
}

// now is the time for a step's default id, which has milliseconds. Two steps have two ids.
func (r *runner) now() time.Time {
	now := time.Now()
	if r.dry && !r.stamp.IsZero() {
		return r.stamp // a check prints steps alike if they are
	}
	if next := r.stamp.Add(time.Millisecond); now.Before(next) {
		now = next
	}
	r.stamp = now
	return now
}

// load checks the options of a load. Its messages have paths as scenarios write them.
func (r *runner) load(l *loads, p *scenarioPart, v *values, began time.Time) error {
	kind := l.kind
	warn := func(format string, args ...any) {
		text := inScenario(fmt.Sprintf(format, args...))
		name, _, _ := strings.Cut(text, " ")
		if o := strings.ReplaceAll(name, ".", "-"); r.base.has(o) && !p.sets[o] {
			return // of the command line, and for the other steps
		}
		p.notes = append(p.notes, text)
		if !r.dry {
			r.warn(text)
		}
	}
	v.kind = kind
	if first := l.parts[0]; kind == pipelineLoad && first.step != nil && !v.has("item-input-file") && !v.has("item-input-path") {
		v.given["item-input-path"] = first.topic // the items of the context before
	}
	if v.text("load-step-id") == "" {
		prefix := map[string]string{pipelineLoad: "pipeline_", weightedLoad: "weighted_", linearLoad: "linear_"}[kind]
		v.given["load-step-id"] = prefix + began.UTC().Format(stamp)
	}
	file := v.text("item-input-file")
	if topic, ok := r.lists[file]; ok && r.dry {
		if _, err := os.Stat(file); err != nil { // a step before would have written it
			delete(v.given, "item-input-file")
			v.given["item-input-path"] = topic
		}
	}
	s, err := newStep(v, r.program.Strict, r.program.Generation, began, warn)
	if err != nil {
		return errors.New(inScenario(err.Error()))
	}
	p.step = s
	if file := v.text("item-output-file"); file != "" {
		r.lists[file] = cmp.Or(s.topic, "items")
	}
	return nil
}

// optionForm matches options in messages.
var optionForm = regexp.MustCompile(`--[a-z]+(-[a-zA-Z]+)+`)

// inScenario writes the options of a message as scenarios do.
func inScenario(text string) string {
	return optionForm.ReplaceAllStringFunc(text, func(name string) string {
		if name = strings.TrimPrefix(name, "--"); find(name) != nil {
			return dotted(name)
		}
		return "--" + name
	})
}

// run runs a step to its end.
func (r *runner) run(ctx context.Context, l *loads) (int, error) {
	switch l.kind {
	case pipelineLoad:
		return r.runWithDeletion(ctx, l)
	case weightedLoad:
		return r.runWeighted(ctx, l)
	}
	return l.parts[0].fire(ctx, r.program, r.args, r.again(l.parts[0].id), time.Now())
}

// again reports whether a step of the scenario had this id already.
func (r *runner) again(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.names[id]
	r.names[id] = true
	return before
}

// Check implements scenario.Runner. mongoose's scripts check no limits.
func (r *runner) Check(string, string, []string) (bool, error) {
	return false, errors.New("scenarios of mongoose check no limits")
}

// Report implements scenario.Runner. mongoose's scripts read no reports.
func (r *runner) Report(string, string) (json.RawMessage, error) {
	return nil, errors.New("scenarios of mongoose read no reports")
}
