package mongoose

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"carronade/internal/scenario"
)

// A machine runs one script.
type machine struct {
	script *scenario.Script
	scriptData
	host scenario.Host
	vm   *sobek.Runtime
	open []*scriptStep // started, and not known to have ended
	gone error         // the host is gone
}

// RunScript runs a script to its end. It is a scenario.Language.
func RunScript(s *scenario.Script, h scenario.Host) error {
	m := &machine{script: s, host: h, vm: sobek.New()}
	if s.Data != nil {
		if err := json.Unmarshal(s.Data, &m.scriptData); err != nil {
			return fmt.Errorf("read the settings of a script: %w", err)
		}
	}
	program, src, err := parseScript(s, m.Strict, m.Commas)
	for _, text := range src.warnings {
		if err := h.Warn(text); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	compiled, err := sobek.CompileAST(program, false)
	if err != nil {
		return m.fault(err)
	}
	m.vm.SetMaxCallStackSize(s.Depth)
	random := rand.New(rand.NewPCG(s.Seed, 0)) //nolint:gosec // for a script, the same in each run
	m.vm.SetRandSource(random.Float64)
	h.OnLimit(func(text string) { m.vm.Interrupt(text) })
	m.define(src.text)
	if _, err = m.vm.RunProgram(compiled); m.gone != nil {
		return m.gone
	}
	if gone := m.closeAll(err != nil); gone != nil {
		return gone
	}
	return m.fault(err)
}

// define defines the globals: environment variables that the script mentions, then the types of
// steps and Java's classes, which win over them.
func (m *machine) define(src string) {
	names := make(map[string]bool)
	words(src, names)
	for name := range names {
		if m.Apart {
			break
		}
		if text, ok := os.LookupEnv(name); ok {
			m.set(m.vm.GlobalObject(), name, text)
		}
	}
	for i := range kinds {
		k := &kinds[i]
		made := m.vm.ToValue(func(call sobek.ConstructorCall) *sobek.Object { // as in 4.0: Load() and new Load()
			return m.object(&scriptStep{m: m, kind: k})
		}).ToObject(m.vm)
		m.methods(made, &scriptStep{m: m, kind: k})
		m.set(m.vm.GlobalObject(), k.name, made)
	}
	m.set(m.vm.GlobalObject(), "print", m.print)
	ofCommand := func(sobek.FunctionCall) sobek.Value {
		m.throw("Command is of mongoose 4.0", `in 4.2 it is new java.lang.ProcessBuilder("/bin/sh", "-c", "COMMAND").start().waitFor()`)
		return nil
	}
	command := m.vm.ToValue(ofCommand).ToObject(m.vm)
	m.set(command, "value", ofCommand)
	m.set(m.vm.GlobalObject(), "Command", command)
	m.defineJava()
}

// set sets a property of an object that accepts each.
func (m *machine) set(o *sobek.Object, name string, value any) {
	if err := o.Set(name, value); err != nil {
		panic(err)
	}
}

func (m *machine) print(call sobek.FunctionCall) sobek.Value {
	var parts []string
	for _, a := range call.Arguments {
		parts = append(parts, a.String())
	}
	m.must(m.host.Print(strings.Join(parts, " ")))
	return sobek.Undefined()
}

// must ends the script if the host is gone. A fault of the request is an error in the script.
func (m *machine) must(err error) {
	var fault *scenario.Fault
	switch {
	case err == nil:
	case errors.As(err, &fault):
		m.throw(fault.Text, fault.Hint)
	default:
		m.gone = err
		m.vm.Interrupt(err)
	}
}

// throw throws an error in the script.
func (m *machine) throw(text, hint string) {
	if hint != "" {
		text += " (" + hint + ")"
	}
	panic(m.vm.NewTypeError("%s", text))
}

// fault is the error of a script with its place.
func (m *machine) fault(err error) error {
	if err == nil {
		return nil
	}
	var (
		thrown    *sobek.Exception
		stopped   *sobek.InterruptedError
		overflow  *sobek.StackOverflowError
		compiling *sobek.CompilerSyntaxError
	)
	f := &scenario.Fault{Text: err.Error()}
	switch {
	case errors.As(err, &stopped):
		f.At, f.Text = m.place(stopped.Stack()), fmt.Sprint(stopped.Value())
	case errors.As(err, &overflow):
		f.At, f.Text = m.place(overflow.Stack()), fmt.Sprintf("calls are more than %d deep", m.script.Depth)
	case errors.As(err, &thrown):
		f.At = m.place(thrown.Stack())
		if f.Text = "null"; thrown.Value() != nil {
			f.Text = strings.TrimPrefix(thrown.Value().String(), "TypeError: ")
		}
	case errors.As(err, &compiling):
		f.Text = "syntax error: " + compiling.Message
		if compiling.File != nil {
			at := compiling.File.Position(compiling.Offset)
			f.At = fmt.Sprintf("%s:%d:%d", m.script.Path, at.Line, at.Column)
		}
	}
	return f
}

// place is the innermost place of the script in a stack, "" if there is none.
func (m *machine) place(stack []sobek.StackFrame) string {
	for i := range stack {
		if at := stack[i].Position(); stack[i].SrcName() == m.script.Path && at.Line > 0 {
			return fmt.Sprintf("%s:%d:%d", m.script.Path, at.Line, at.Column)
		}
	}
	return ""
}

// here is the place of the script that calls us.
func (m *machine) here() string { return m.place(m.vm.CaptureCallStack(0, nil)) }

// closeAll ends the steps that the script started and did not close. If the script went well
// it waits for them, as a script's end does not end them; after an error it stops them.
func (m *machine) closeAll(failed bool) error {
	for _, s := range m.open {
		if s.ended {
			continue
		}
		if failed {
			if err := m.host.Stop(s.number); err != nil {
				return err
			}
		}
		if _, err := m.host.Await(-1, s.number); err != nil {
			return err
		}
	}
	return nil
}

// scriptSeconds converts an argument: a number of seconds, or a time such as 10s.
func scriptSeconds(v sobek.Value) (time.Duration, bool) {
	text, unit := cutUnit(v.String())
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0) || x > 1e6 {
		return 0, false
	}
	return time.Duration(x * float64(unit)), true
}
