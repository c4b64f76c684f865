package mongoose

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"carronade/internal/scenario"
)

// A kind is a type of step: a type of mongoose's, and what it sets.
type kind struct {
	name string // the global
	of   string // linearLoad, pipelineLoad or weightedLoad
	sets [][2]string
}

// kinds are the types of steps.
var kinds = []kind{
	{name: "Load", of: linearLoad},
	{name: "PipelineLoad", of: pipelineLoad},
	{name: "WeightedLoad", of: weightedLoad},
	{name: "PreconditionLoad", of: linearLoad, sets: [][2]string{
		{"output-metrics-average-persist", "false"}, {"output-metrics-summary-persist", "false"}, {"output-metrics-trace-persist", "false"},
	}},
	{name: "NoopLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "noop"}}},
	{name: "CreateLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "create"}}},
	{name: "ReadLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "read"}}},
	{name: "UpdateLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "update"}}},
	{name: "DeleteLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "delete"}}},
	{name: "ListLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "list"}}},
	{name: "ReadVerifyLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "read"}, {"item-data-verify", "true"}}},
	{name: "ReadRandomRangeLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "read"}, {"item-data-ranges-random", "1"}}},
	{name: "ReadVerifyRandomRangeLoad", of: linearLoad, sets: [][2]string{
		{"load-op-type", "read"}, {"item-data-verify", "true"}, {"item-data-ranges-random", "1"},
	}},
	{name: "UpdateRandomRangeLoad", of: linearLoad, sets: [][2]string{{"load-op-type", "update"}, {"item-data-ranges-random", "1"}}},
}

// A scriptStep is a step as the script configures it, and once it is started as it runs.
type scriptStep struct {
	m     *machine
	kind  *kind
	sets  []scenario.Option // of config, later ones win
	parts []scenario.Part   // of append

	number  int // of the host, 0: not started
	ended   bool
	elapsed time.Duration // of the starts before this one
}

// object is a step in the script.
func (m *machine) object(s *scriptStep) *sobek.Object {
	o := m.vm.NewObject()
	m.methods(o, s)
	return o
}

// methods sets the methods of a step.
func (m *machine) methods(o *sobek.Object, s *scriptStep) {
	this := func(f func(call sobek.FunctionCall)) func(sobek.FunctionCall) sobek.Value {
		return func(call sobek.FunctionCall) sobek.Value {
			f(call)
			return o
		}
	}
	m.set(o, "config", func(call sobek.FunctionCall) sobek.Value { return m.object(s.config(call.Argument(0))) })
	m.set(o, "append", func(call sobek.FunctionCall) sobek.Value { return m.object(s.append(call.Argument(0))) })
	m.set(o, "start", this(func(sobek.FunctionCall) { s.start() }))
	m.set(o, "stop", this(func(sobek.FunctionCall) { s.stop() }))
	m.set(o, "close", this(func(sobek.FunctionCall) { s.close() }))
	m.set(o, "await", func(call sobek.FunctionCall) sobek.Value {
		limit := time.Duration(-1)
		if v := call.Argument(0); !sobek.IsUndefined(v) {
			var ok bool
			if limit, ok = scriptSeconds(v); !ok {
				m.throw("await: "+v.String()+" is not a time in seconds", "")
			}
		}
		return m.vm.ToValue(s.await(limit))
	})
	m.set(o, "run", this(func(sobek.FunctionCall) {
		if s.start() {
			s.await(-1)
			s.close()
		}
	}))
	m.set(o, "toString", func(sobek.FunctionCall) sobek.Value { return m.vm.ToValue(s.kind.name) })
}

// config is a copy of the step with a map laid over its configuration.
func (s *scriptStep) config(v sobek.Value) *scriptStep {
	if len(s.parts) > 0 {
		s.m.throw("config(...) must come before any append(...) call", "")
	}
	return &scriptStep{m: s.m, kind: s.kind, sets: append(slices.Clone(s.sets), s.m.flatten("config", v)...)}
}

// append is a copy of the step with one more context.
func (s *scriptStep) append(v sobek.Value) *scriptStep {
	sets := s.m.flatten("append", v)
	return &scriptStep{m: s.m, kind: s.kind, sets: s.sets, parts: append(slices.Clone(s.parts), scenario.Part{Options: sets})}
}

// request is the step as the host starts it: what its type sets, what config set, and the time
// that it ran before.
func (s *scriptStep) request() *scenario.Step {
	r := &scenario.Step{Kind: s.kind.of, Name: s.kind.name, At: s.m.here(), Parts: s.parts}
	for _, o := range s.kind.sets {
		r.Options = append(r.Options, scenario.Option{Name: o[0], Values: []string{o[1]}})
	}
	r.Options = append(r.Options, s.sets...)
	if s.elapsed > 0 {
		r.Options = append(r.Options, scenario.Option{Name: elapsedPath, Values: []string{s.elapsed.String()}})
	}
	return r
}

// start starts the step and reports whether it runs. That a step cannot start does not end the
// script: the host has said so.
func (s *scriptStep) start() bool {
	if s.number > 0 && !s.ended {
		s.m.throw("the step runs already", "")
	}
	number, err := s.m.host.Start(s.request())
	s.m.must(err)
	if s.m.gone != nil {
		return false
	}
	s.number, s.ended = number, false
	s.m.open = append(s.m.open, s)
	return true
}

// await waits for the end of the step, for a limit at most; below 0: without one. It reports
// whether the step has ended.
func (s *scriptStep) await(limit time.Duration) bool {
	if s.number == 0 {
		s.m.throw("the step was not started", "")
	}
	if s.ended {
		return true
	}
	e, err := s.m.host.Await(limit, s.number)
	s.m.must(err)
	if e != nil {
		s.ended = true
		s.elapsed += e.Elapsed
		s.m.open = slices.DeleteFunc(s.m.open, func(o *scriptStep) bool { return o == s })
	}
	return s.ended
}

// stop ends the step. A later start resumes it for the rest of its time.
func (s *scriptStep) stop() {
	if s.number == 0 || s.ended {
		return
	}
	s.m.must(s.m.host.Stop(s.number))
	s.await(-1)
}

// close stops the step if it runs. It cannot be resumed.
func (s *scriptStep) close() {
	s.stop()
	s.elapsed = 0
}

// flatten converts a map of a configuration to paths a-b-c with their values, in order. Names
// and values below a name "headers" stay unchanged.
func (m *machine) flatten(method string, v sobek.Value) []scenario.Option {
	o, ok := v.(*sobek.Object)
	if !ok || isList(v) || isFunction(v) {
		m.throw(method+"(...) needs a map of options", `such as {"load": {"op": {"limit": {"count": 10}}}}`)
	}
	return m.flattenInto(nil, "", o, 0)
}

// mostDepth limits the depth of a configuration.
const mostDepth = 16

func (m *machine) flattenInto(out []scenario.Option, prefix string, o *sobek.Object, depth int) []scenario.Option {
	if depth > mostDepth {
		m.throw(prefix+": maps are too deep", "")
	}
	for _, key := range o.Keys() {
		v := o.Get(key)
		path := strings.TrimPrefix(prefix+"-"+key, "-")
		inner, isObject := v.(*sobek.Object)
		isMap := isObject && !isList(v) && !isFunction(v) && plain(inner)
		if isMap && key != "headers" {
			out = m.flattenInto(out, path, inner, depth+1)
			continue
		}
		typ, values := m.value(path, v, isMap)
		if hint, err := checkPath(path, typ, strings.Join(values, ","), m.Strict); err != nil {
			m.throw(err.Error(), hint)
		}
		out = append(out, scenario.Option{Name: path, Values: values, At: m.here()})
	}
	return out
}

// value is a value of a configuration: its type, and its text, the elements of a list, or the
// names and values of a map in turn. It has no text if it is null.
func (m *machine) value(path string, v sobek.Value, isMap bool) (typ string, values []string) {
	switch {
	case v == nil || sobek.IsUndefined(v) || isFunction(v):
		m.throw(strings.ReplaceAll(path, "-", ".")+" is undefined", "null is the default")
	case sobek.IsNull(v):
		return nullValue, nil
	case isMap:
		o := v.ToObject(m.vm)
		for _, name := range o.Keys() {
			_, texts := m.value(path+"-"+name, o.Get(name), false)
			values = append(values, name, strings.Join(texts, ","))
		}
		return mapValue, values
	case isList(v):
		for _, e := range m.elements(v) {
			_, texts := m.value(path, e, false)
			values = append(values, texts...)
		}
		if len(values) == 0 {
			values = []string{""}
		}
		return listValue, values
	}
	switch v.Export().(type) {
	case bool:
		typ = boolValue
	case int64, float64:
		typ = numberValue
	default:
		typ = textValue
	}
	return typ, []string{number(v)}
}

// number is the text of a value. A number has no exponent, unlike in JavaScript.
func number(v sobek.Value) string {
	if x, ok := v.Export().(float64); ok {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return v.String()
}

// isList reports whether a value is an array, such as java.util.ArrayList is here.
func isList(v sobek.Value) bool {
	o, ok := v.(*sobek.Object)
	return ok && o.ClassName() == "Array"
}

func isFunction(v sobek.Value) bool {
	_, ok := sobek.AssertFunction(v)
	return ok
}

// plain reports whether an object is a map, and not a string, a number or a date in an object.
func plain(o *sobek.Object) bool { return o.ClassName() == "Object" }
