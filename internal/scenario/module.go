package scenario

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"github.com/grafana/sobek/ast"
	"github.com/grafana/sobek/file"
	"github.com/grafana/sobek/parser"

	"carronade/internal/advice"
)

// moduleName is the name of the module that scripts import.
const moduleName = "carronade"

// runModule is the Language of our own API: an ES module.
func runModule(s *Script, h Host) error {
	e := &engine{script: s, host: h, vm: sobek.New(), pending: map[int]*pending{}}
	h.OnLimit(func(text string) { e.vm.Interrupt(text) })
	e.vm.SetMaxCallStackSize(s.Depth)
	random := rand.New(rand.NewPCG(s.Seed, 1)) //nolint:gosec // repeatable, not secret
	e.vm.SetRandSource(random.Float64)
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rand.New(rand.NewPCG(s.Seed, 2)).Int64N(int64(20 * 365 * 24 * time.Hour))).Truncate(time.Millisecond)) //nolint:gosec // as above
	e.vm.SetTimeSource(func() time.Time { return begin.Add(e.waited) })
	e.vm.SetPromiseRejectionTracker(e.trackRejection)
	// A source map would name a file, which is not read.
	program, err := parser.ParseFile(nil, s.Path, s.Source, 0, parser.IsModule, parser.WithDisableSourceMaps)
	if err != nil {
		return e.fault(err)
	}
	if err := e.checkImports(program); err != nil {
		return err
	}
	if err := e.rememberThrows(program); err != nil {
		return err
	}
	resolve := func(any, string) (sobek.ModuleRecord, error) { return e.api(), nil }
	record, err := sobek.ModuleFromAST(program, resolve)
	if err != nil {
		return e.fault(err)
	}
	if err := record.Link(); err != nil {
		return e.fault(err)
	}
	if err := e.globals(); err != nil {
		return err
	}
	e.main = e.vm.CyclicModuleRecordEvaluate(record, resolve)
	return e.loop()
}

// An engine runs one script.
type engine struct {
	script *Script
	host   Host
	vm     *sobek.Runtime
	module *apiModule
	main   *sobek.Promise // of the script itself

	pending  map[int]*pending // steps by their numbers
	sleeps   []*sleeper
	waited   time.Duration    // how long the script has waited
	rejected []*sobek.Promise // without a handler, in order
	thrown   thrown           // the last one
	parse    sobek.Callable   // JSON.parse
	format   sobek.Callable   // JSON.stringify
	settle   sobek.Callable   // see settleSource
}

// position is a position as file:line:column.
func position(p file.Position) string { return fmt.Sprintf("%s:%d:%d", p.Filename, p.Line, p.Column) }

// at is the place in the script of the call in progress.
func (e *engine) at() string { return e.placeOf(e.vm.CaptureCallStack(0, nil)) }

// placeOf is the place of the first frame that is in the script; its path if there is none.
func (e *engine) placeOf(stack []sobek.StackFrame) string {
	for i := range stack {
		if p := stack[i].Position(); stack[i].SrcName() == e.script.Path && p.Line > 0 {
			return position(p)
		}
	}
	return e.script.Path
}

// checkImports checks what the script imports, with its places: the linker has none.
func (e *engine) checkImports(program *ast.Program) error {
	names := e.api().names()
	for _, entry := range program.ImportEntries {
		at := position(program.File.Position(int(entry.Idx) - 1))
		from := entry.ModuleSpecifier.String()
		if entry.FromClause != nil {
			from = entry.FromClause.ModuleSpecifier.String()
		}
		if from != moduleName {
			return &Fault{At: at, Text: fmt.Sprintf("the module %q does not exist", from), Hint: fmt.Sprintf("a scenario imports only %q, and is one file", moduleName)}
		}
		if entry.ImportClause == nil || entry.ImportClause.NamedImports == nil {
			continue
		}
		for _, one := range entry.ImportClause.NamedImports.ImportsList {
			if name := one.IdentifierName.String(); !slices.Contains(names, name) {
				return &Fault{
					At: at, Text: fmt.Sprintf("%q has no export %q", moduleName, name),
					Hint: advice.DidYouMean(name, names, "%s", "its exports are "+strings.Join(names, ", ")),
				}
			}
		}
	}
	for _, entry := range program.ExportEntries {
		if entry.FromClause != nil && entry.FromClause.ModuleSpecifier.String() != moduleName {
			return &Fault{At: position(program.File.Position(int(entry.Idx) - 1)), Text: fmt.Sprintf("the module %q does not exist", entry.FromClause.ModuleSpecifier.String()), Hint: "a scenario is one file"}
		}
	}
	return nil
}

// globals sets what a script has without an import, and keeps functions of the interpreter,
// which the script may replace.
func (e *engine) globals() error {
	console := e.vm.NewObject()
	for _, name := range []string{"log", "info", "warn", "error"} {
		if err := console.Set(name, e.print); err != nil {
			return err
		}
	}
	if err := e.vm.Set("console", console); err != nil {
		return err
	}
	json := e.vm.Get("JSON").ToObject(e.vm)
	e.parse, _ = sobek.AssertFunction(json.Get("parse"))
	e.format, _ = sobek.AssertFunction(json.Get("stringify"))
	settle, err := e.vm.RunScript(moduleName, settleSource)
	if err != nil {
		return err
	}
	e.settle, _ = sobek.AssertFunction(settle)
	return nil
}

// settleSource awaits all promises, and then fails with the first that failed. So no step is left
// behind.
const settleSource = `(async (all) => {
	const ends = await Promise.allSettled(all);
	for (const end of ends) if (end.status === "rejected") throw end.reason;
	return ends.map((end) => end.value);
})`

// fault makes a fault of an error of the interpreter.
func (e *engine) fault(err error) *Fault {
	var (
		own         *Fault
		list        parser.ErrorList
		one         *parser.Error
		syntax      *sobek.CompilerSyntaxError
		interrupted *sobek.InterruptedError
		overflow    *sobek.StackOverflowError
		thrown      *sobek.Exception
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &list) && len(list) > 0:
		return &Fault{At: position(list[0].Position), Text: "syntax error: " + list[0].Message}
	case errors.As(err, &one):
		return &Fault{At: position(one.Position), Text: "syntax error: " + one.Message}
	case errors.As(err, &syntax):
		at := e.script.Path
		if syntax.File != nil {
			at = position(syntax.File.Position(syntax.Offset))
		}
		return &Fault{At: at, Text: "syntax error: " + syntax.Message}
	case errors.As(err, &interrupted):
		return &Fault{At: e.placeOf(interrupted.Stack()), Text: fmt.Sprint(interrupted.Value())}
	case errors.As(err, &overflow):
		return &Fault{At: e.placeOf(overflow.Stack()), Text: fmt.Sprintf("calls are nested more than %d deep", e.script.Depth), Hint: "a function that calls itself without end does this"}
	case errors.As(err, &thrown):
		f := e.faultOf(thrown.Value())
		if at := e.placeOf(thrown.Stack()); f.At == "" || f.At == e.script.Path {
			f.At = at
		}
		return f
	}
	return &Fault{At: e.script.Path, Text: err.Error()}
}

// faultOf makes a fault of a value that was thrown. Its place is that of its stack, the script's
// path if it has none.
func (e *engine) faultOf(v sobek.Value) *Fault {
	if v == nil {
		return &Fault{At: e.script.Path, Text: "undefined was thrown"}
	}
	if err, ok := v.Export().(error); ok {
		return e.fault(err)
	}
	f := &Fault{At: e.script.Path}
	o, ok := v.(*sobek.Object)
	if !ok {
		f.Text = "thrown: " + v.String()
		if e.thrown.value != nil && e.thrown.value.StrictEquals(v) {
			f.At = e.thrown.at
		}
		return f
	}
	if ex := e.vm.Try(func() {
		f.Text = o.String()
		if of := o.Get("value"); of != nil {
			if own, ok := of.Export().(*Fault); ok {
				f = own
				return
			}
		}
		if stack := o.Get("stack"); stack != nil {
			f.At = e.placeInStack(stack.String())
		}
	}); ex != nil { // a getter of the script
		f.Text = "an error that cannot be shown"
	}
	return f
}

// placeInStack is the first place in the script of a stack as text: lines end with
// file:line:column(pc).
func (e *engine) placeInStack(stack string) string {
	for line := range strings.Lines(stack) {
		i := strings.Index(line, e.script.Path+":")
		if i < 0 {
			continue
		}
		at, _, ok := strings.Cut(line[i:], "(")
		if ok && strings.Count(at[len(e.script.Path):], ":") == 2 {
			return strings.TrimSpace(at)
		}
	}
	return e.script.Path
}

// throw makes the script's call fail.
func (e *engine) throw(err error) {
	var f *Fault
	if !errors.As(err, &f) { // the parent is gone, and with it this process
		panic(err)
	}
	if f.At == "" {
		f.At = e.at()
	}
	panic(e.vm.NewGoError(f))
}

// fail makes the script's call fail with a text.
func (e *engine) fail(hint, format string, args ...any) {
	e.throw(&Fault{At: e.at(), Text: fmt.Sprintf(format, args...), Hint: hint})
}
