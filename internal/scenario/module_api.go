package scenario

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/sobek"

	"carronade/internal/workload"
	"carronade/units"
)

// An apiModule is the module "carronade". It implements sobek.ModuleRecord and, once evaluated,
// sobek.ModuleInstance.
type apiModule struct {
	engine *engine
	values map[string]sobek.Value
}

// api returns the module, the same one for all imports.
func (e *engine) api() *apiModule {
	if e.module == nil {
		e.module = &apiModule{engine: e}
	}
	return e.module
}

// names are what scripts import.
func (*apiModule) names() []string {
	return []string{"run", "find", "pipeline", "weighted", "parallel", "sleep", "check", "report", "mark", "args", "env"}
}

// Link implements sobek.ModuleRecord.
func (m *apiModule) Link() error { return nil }

// GetExportedNames implements sobek.ModuleRecord.
func (m *apiModule) GetExportedNames(callback func([]string), _ ...sobek.ModuleRecord) bool {
	callback(m.names())
	return true
}

// ResolveExport implements sobek.ModuleRecord.
func (m *apiModule) ResolveExport(name string, _ ...sobek.ResolveSetElement) (*sobek.ResolvedBinding, bool) {
	if !slices.Contains(m.names(), name) {
		return nil, false
	}
	return &sobek.ResolvedBinding{Module: m, BindingName: name}, false
}

// Evaluate implements sobek.ModuleRecord.
func (m *apiModule) Evaluate(vm *sobek.Runtime) *sobek.Promise {
	e := m.engine
	if m.values == nil {
		m.values = map[string]sobek.Value{
			"run":      vm.ToValue(func(c sobek.FunctionCall) sobek.Value { return e.run(RunStep, c) }),
			"find":     vm.ToValue(func(c sobek.FunctionCall) sobek.Value { return e.run(FindStep, c) }),
			"pipeline": vm.ToValue(e.pipeline),
			"weighted": vm.ToValue(e.weighted),
			"parallel": vm.ToValue(e.parallel),
			"sleep":    vm.ToValue(e.sleep),
			"check":    vm.ToValue(e.check),
			"report":   vm.ToValue(e.stored),
			"mark":     vm.ToValue(e.mark),
			"args":     e.arguments(),
			"env":      vm.NewDynamicObject(newEnvironment(vm, e.script.Source)),
		}
	}
	p, resolve, _ := vm.NewPromise()
	_ = resolve(m) // it has no reactions yet
	return p
}

// GetBindingValue implements sobek.ModuleInstance.
func (m *apiModule) GetBindingValue(name string) sobek.Value { return m.values[name] }

func (e *engine) arguments() sobek.Value {
	args := make([]any, len(e.script.Args))
	for i, a := range e.script.Args {
		args[i] = a
	}
	return e.vm.NewArray(args...)
}

// run is run(target, options) or find(target, options).
func (e *engine) run(kind string, c sobek.FunctionCall) sobek.Value {
	return e.start(e.step(kind, kind, c))
}

// pipeline is pipeline(target, options): a run with this operation.
func (e *engine) pipeline(c sobek.FunctionCall) sobek.Value {
	step := e.step("pipeline", RunStep, c)
	if slices.ContainsFunc(step.Options, func(o Option) bool { return o.Name == opOption }) {
		e.fail("leave it out, or call run", "the operation of pipeline is %s", workload.Pipeline)
	}
	step.Options = append(step.Options, Option{Name: opOption, Values: []string{workload.Pipeline}})
	return e.start(step)
}

// weighted is weighted(parts, options): one run whose events have shares by weights.
func (e *engine) weighted(c sobek.FunctionCall) sobek.Value {
	const such = `such as weighted([{weight: 20}, {op: "read", weight: 80}], {target: "kafka://localhost:9092/events", rate: "1k/s"})`
	step := &Step{Kind: RunStep, At: e.at()}
	list, ok := c.Argument(0).(*sobek.Object)
	if !ok || list.ClassName() != "Array" {
		e.fail(such, "weighted takes a list of parts, and options of the whole")
	}
	if len(c.Arguments) > 2 {
		e.fail("put all options into one object", "weighted takes parts and options, not %d arguments", len(c.Arguments))
	}
	e.vm.ForOf(list, func(item sobek.Value) bool {
		part := Part{Options: e.options("a part", item)}
		part.Target = take(&part.Options, targetOption)
		step.Parts = append(step.Parts, part)
		return true
	})
	if len(step.Parts) == 0 {
		e.fail(such, "weighted takes at least one part")
	}
	step.Options = e.options("weighted", c.Argument(1))
	step.Name, step.Target = take(&step.Options, nameOption), take(&step.Options, targetOption)
	return e.start(step)
}

// step is the step of a call with a target and options.
func (e *engine) step(function, kind string, c sobek.FunctionCall) *Step {
	step := &Step{Kind: kind, At: e.at()}
	target, ok := c.Argument(0).Export().(string)
	if !ok {
		e.fail("such as "+function+`("kafka://localhost:9092/events", {rate: "10k/s"})`, "%s takes a target and options", function)
	}
	if len(c.Arguments) > 2 {
		e.fail("put all options into one object", "%s takes a target and options, not %d arguments", function, len(c.Arguments))
	}
	step.Target, step.Options = target, e.options(function, c.Argument(1))
	step.Name = take(&step.Options, nameOption)
	return step
}

// start starts a step: a promise of a report, with a method stop.
func (e *engine) start(step *Step) sobek.Value {
	number, err := e.host.Start(step)
	if err != nil {
		e.throw(err)
	}
	promise, resolve, reject := e.vm.NewPromise()
	e.pending[number] = &pending{at: step.At, resolve: resolve, reject: reject}
	o := e.vm.ToValue(promise).ToObject(e.vm)
	_ = o.Set("stop", func(sobek.FunctionCall) sobek.Value { // a new object accepts it
		if e.pending[number] != nil {
			if err := e.host.Stop(number); err != nil {
				e.throw(err)
			}
		}
		return o
	})
	return o
}

// parallel awaits steps that run side by side. It accepts functions that start them.
func (e *engine) parallel(c sobek.FunctionCall) sobek.Value {
	if len(c.Arguments) == 0 {
		e.fail("such as parallel(run(...), run(...))", "parallel takes steps")
	}
	all := make([]any, len(c.Arguments))
	for i, a := range c.Arguments {
		if f, ok := sobek.AssertFunction(a); ok {
			v, err := f(sobek.Undefined())
			if err != nil {
				panic(err)
			}
			a = v
		}
		if _, ok := a.Export().(*sobek.Promise); !ok {
			e.fail("leave out await before the steps of parallel", "argument %d of parallel is not a step", i+1)
		}
		all[i] = a
	}
	v, err := e.settle(sobek.Undefined(), e.vm.NewArray(all...))
	if err != nil {
		panic(err)
	}
	return v
}

// sleep is a promise that is settled after a time.
func (e *engine) sleep(c sobek.FunctionCall) sobek.Value {
	text, ok := c.Argument(0).Export().(string)
	if !ok {
		e.fail(`such as sleep("5s")`, "sleep takes a time with a unit")
	}
	d, err := units.ParseDuration(text)
	if err != nil {
		e.fail(`such as sleep("5s")`, "sleep: %v", err)
	}
	promise, resolve, _ := e.vm.NewPromise()
	e.sleeps = append(e.sleeps, &sleeper{until: e.waited + d, resolve: resolve})
	return e.vm.ToValue(promise)
}

// check checks limits on a report, and returns whether all hold.
func (e *engine) check(c sobek.FunctionCall) sobek.Value {
	const such = `such as check(await run(...), "p99<50ms")`
	o, ok := c.Argument(0).(*sobek.Object)
	if !ok {
		e.fail(such, "check takes a report and limits")
	}
	if _, ok := o.Export().(*sobek.Promise); ok {
		e.fail("write await before the step", "check takes a report, and this is a step in progress")
	}
	id := o.Get("id")
	if id == nil || len(c.Arguments) < 2 {
		e.fail(such, "check takes a report and limits")
	}
	limits := make([]string, 0, len(c.Arguments)-1)
	for _, a := range c.Arguments[1:] {
		limits = append(limits, a.String())
	}
	ok, err := e.host.Check(e.at(), id.String(), limits...)
	if err != nil {
		e.throw(err)
	}
	return e.vm.ToValue(ok)
}

// stored reads a stored report.
func (e *engine) stored(c sobek.FunctionCall) sobek.Value {
	ref, ok := c.Argument(0).Export().(string)
	if !ok {
		e.fail(`such as report("last") or report("ID")`, "report takes the reference of a stored report")
	}
	text, err := e.host.Report(e.at(), ref)
	if err != nil {
		e.throw(err)
	}
	v, err := e.report(text)
	if err != nil {
		e.throw(err)
	}
	return v
}

// mark adds a text with the time to the report of the scenario, or marks a fault, a heal or a note.
func (e *engine) mark(c sobek.FunctionCall) sobek.Value {
	texts := make([]string, len(c.Arguments))
	for i, a := range c.Arguments {
		text, ok := a.Export().(string)
		if !ok || text == "" {
			texts = nil
			break
		}
		texts[i] = text
	}
	if len(texts) != 1 && len(texts) != 2 {
		e.fail(`such as mark("the broker restarts") or mark("fault", "kill broker 2")`, "mark takes a text, or a kind and a name")
	}
	kind := ""
	if len(texts) == 2 {
		kind = texts[0]
	}
	if err := e.host.Mark(e.at(), kind, texts[len(texts)-1]); err != nil {
		e.throw(err)
	}
	return sobek.Undefined()
}

// print prints its arguments in one line: texts unchanged, all else as JSON.
func (e *engine) print(c sobek.FunctionCall) sobek.Value {
	parts := make([]string, len(c.Arguments))
	for i, a := range c.Arguments {
		parts[i] = e.text(a)
	}
	if err := e.host.Print(strings.Join(parts, " ")); err != nil {
		e.throw(err)
	}
	return sobek.Undefined()
}

func (e *engine) text(v sobek.Value) string {
	o, ok := v.(*sobek.Object)
	if !ok {
		return v.String()
	}
	if _, ok := sobek.AssertFunction(v); ok || o.ClassName() == "Error" {
		return v.String()
	}
	out, err := e.format(sobek.Undefined(), v)
	if err != nil {
		panic(err)
	}
	return out.String()
}

// An environment is the environment's variables by their names: those that the script mentions
// anywhere in its text. So the others, which may be secrets, are not in the interpreter.
type environment struct {
	vm    *sobek.Runtime
	texts map[string]string
}

// name matches what may be the name of a variable.
var name = regexp.MustCompile(`[\pL_][\pL\pN_]*`)

func newEnvironment(vm *sobek.Runtime, source string) *environment {
	e := &environment{vm: vm, texts: map[string]string{}}
	for _, word := range name.FindAllString(source, -1) {
		if text, ok := os.LookupEnv(word); ok {
			e.texts[word] = text
		}
	}
	return e
}

// Get implements sobek.DynamicObject.
func (e *environment) Get(key string) sobek.Value {
	text, ok := e.texts[key]
	if !ok {
		return nil
	}
	return e.vm.ToValue(text)
}

// Set implements sobek.DynamicObject.
func (*environment) Set(string, sobek.Value) bool { return false }

// Has implements sobek.DynamicObject.
func (e *environment) Has(key string) bool { _, ok := e.texts[key]; return ok }

// Delete implements sobek.DynamicObject.
func (*environment) Delete(string) bool { return false }

// Keys implements sobek.DynamicObject. A script has the variables that it names, and no list.
func (*environment) Keys() []string { return nil }
