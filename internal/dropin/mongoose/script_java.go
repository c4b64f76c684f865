package mongoose

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/grafana/sobek"
)

// A class is a class of Java that scripts may use.
type class struct {
	name string
	make func(m *machine, args []sobek.Value) *sobek.Object
}

// classes are the classes that mongoose's examples use; a Process is what start returns.
func classes() []class {
	return []class{
		{"java.io.BufferedReader", (*machine).newReader},
		{"java.io.InputStreamReader", (*machine).newReader},
		{"java.lang.Process", func(m *machine, _ []sobek.Value) *sobek.Object {
			m.throw("java.lang.Process is what start() of a java.lang.ProcessBuilder returns", "")
			return nil
		}},
		{"java.lang.ProcessBuilder", (*machine).newBuilder},
		{"java.util.ArrayList", (*machine).newList},
	}
}

// defineJava defines the global java, and Nashorn's Packages and Java.type.
func (m *machine) defineJava() {
	java := m.vm.NewDynamicObject(&javaPackage{m: m, name: "java"})
	global := m.vm.GlobalObject()
	m.set(global, "java", java)
	packages := m.vm.NewObject()
	m.set(packages, "java", java)
	m.set(global, "Packages", packages)
	types := m.vm.NewObject()
	m.set(types, "type", func(call sobek.FunctionCall) sobek.Value { return m.class(call.Argument(0).String()) })
	m.set(global, "Java", types)
}

// A javaPackage is a package of Java's.
type javaPackage struct {
	m    *machine
	name string
}

// Get is a class of the package, or a package in it: names of packages are in lower case.
func (p *javaPackage) Get(key string) sobek.Value {
	name := p.name + "." + key
	if slices.ContainsFunc(classes(), func(c class) bool { return strings.HasPrefix(c.name, name+".") }) {
		return p.m.vm.NewDynamicObject(&javaPackage{m: p.m, name: name})
	}
	if key == "toString" || key == "valueOf" {
		return p.m.vm.ToValue(func(sobek.FunctionCall) sobek.Value { return p.m.vm.ToValue("[JavaPackage " + p.name + "]") })
	}
	return p.m.class(name)
}

// Set does nothing: packages cannot be changed.
func (p *javaPackage) Set(string, sobek.Value) bool { return false }

// Has reports whether there is a class or a package.
func (p *javaPackage) Has(key string) bool { return slices.Contains(p.Keys(), key) }

// Delete does nothing.
func (p *javaPackage) Delete(string) bool { return false }

// Keys are the names in the package.
func (p *javaPackage) Keys() (keys []string) {
	for _, c := range classes() {
		if rest, ok := strings.CutPrefix(c.name, p.name+"."); ok {
			rest, _, _ = strings.Cut(rest, ".")
			if !slices.Contains(keys, rest) {
				keys = append(keys, rest)
			}
		}
	}
	return keys
}

// class is the constructor of a class.
func (m *machine) class(name string) sobek.Value {
	var names []string
	for _, c := range classes() {
		if c.name == name {
			return m.vm.ToValue(func(call sobek.ConstructorCall) *sobek.Object { return c.make(m, call.Arguments) })
		}
		names = append(names, c.name)
	}
	m.throw("scenarios have no "+name, "there are "+strings.Join(names, ", "))
	return nil
}

// newList is a java.util.ArrayList: an array with its methods.
func (m *machine) newList(args []sobek.Value) *sobek.Object {
	var items []any
	if len(args) > 0 && isList(args[0]) {
		for _, v := range m.elements(args[0]) {
			items = append(items, v)
		}
	}
	list := m.vm.NewArray(items...)
	hidden := func(name string, f func(call sobek.FunctionCall) sobek.Value) {
		if err := list.DefineDataProperty(name, m.vm.ToValue(f), sobek.FLAG_FALSE, sobek.FLAG_FALSE, sobek.FLAG_FALSE); err != nil {
			panic(err)
		}
	}
	hidden("add", func(call sobek.FunctionCall) sobek.Value {
		m.set(list, list.Get("length").String(), call.Argument(0))
		return m.vm.ToValue(true)
	})
	hidden("get", func(call sobek.FunctionCall) sobek.Value {
		if v := list.Get(call.Argument(0).String()); v != nil {
			return v
		}
		m.throw("the list has no element "+call.Argument(0).String(), "")
		return nil
	})
	hidden("size", func(sobek.FunctionCall) sobek.Value { return list.Get("length") })
	hidden("isEmpty", func(sobek.FunctionCall) sobek.Value { return m.vm.ToValue(list.Get("length").ToInteger() == 0) })
	return list
}

// elements are the elements of an array.
func (m *machine) elements(v sobek.Value) (out []sobek.Value) {
	o := v.ToObject(m.vm)
	for i := range int(o.Get("length").ToInteger()) {
		out = append(out, o.Get(strconv.Itoa(i)))
	}
	return out
}

// words are arguments of a program: those of a call, or the elements of the only one.
func (m *machine) words(args []sobek.Value) (out []string) {
	if len(args) == 1 && isList(args[0]) {
		args = m.elements(args[0])
	}
	for _, a := range args {
		out = append(out, a.String())
	}
	return out
}

// A builder is a java.lang.ProcessBuilder.
type builder struct {
	args            []string
	inherit, merged bool
}

func (m *machine) newBuilder(args []sobek.Value) *sobek.Object {
	b := &builder{args: m.words(args)}
	o := m.vm.NewObject()
	m.set(o, "command", func(call sobek.FunctionCall) sobek.Value {
		if len(call.Arguments) == 0 {
			var items []any
			for _, a := range b.args {
				items = append(items, a)
			}
			return m.newList([]sobek.Value{m.vm.NewArray(items...)})
		}
		b.args = m.words(call.Arguments)
		return o
	})
	m.set(o, "inheritIO", func(sobek.FunctionCall) sobek.Value {
		b.inherit = true
		return o
	})
	m.set(o, "redirectErrorStream", func(call sobek.FunctionCall) sobek.Value {
		b.merged = call.Argument(0).ToBoolean()
		return o
	})
	m.set(o, "start", func(sobek.FunctionCall) sobek.Value { return m.startProcess(b) })
	return o
}

// A process is a java.lang.Process. The host runs it, and what it prints can be read when it has
// ended.
type process struct {
	m      *machine
	number int
	ended  *processEnd // nil: in progress
	out    lines
	errs   lines
}

// lines are lines that a script reads one by one.
type lines struct{ left []string }

func (m *machine) startProcess(b *builder) *sobek.Object {
	switch {
	case !m.Exec:
		m.throw("the script may not start processes", "--allow-exec permits it")
	case len(b.args) == 0:
		m.throw("the process has no command", "")
	}
	r := processRequest(b.args, b.inherit, b.merged)
	r.At = m.here()
	number, err := m.host.Start(r)
	m.must(err)
	return m.process(&process{m: m, number: number})
}

// await waits for the end of the process.
func (p *process) await() {
	if p.ended != nil {
		return
	}
	p.ended = &processEnd{}
	e, err := p.m.host.Await(-1, p.number)
	p.m.must(err)
	switch {
	case e == nil:
		return
	case e.Fault != nil:
		p.m.throw(e.Fault.Text, e.Fault.Hint)
	}
	if err := json.Unmarshal(e.Report, p.ended); err != nil {
		p.m.throw("read what a process printed: "+err.Error(), "")
	}
	p.out.left, p.errs.left = p.ended.Out, p.ended.Err
}

// process is a java.lang.Process in the script.
func (m *machine) process(p *process) *sobek.Object {
	o := m.vm.NewObject()
	m.set(o, "getInputStream", func(sobek.FunctionCall) sobek.Value { return m.stream(p, &p.out) })
	m.set(o, "getErrorStream", func(sobek.FunctionCall) sobek.Value { return m.stream(p, &p.errs) })
	wait := func(sobek.FunctionCall) sobek.Value {
		p.await()
		return m.vm.ToValue(p.ended.Code)
	}
	m.set(o, "waitFor", wait)
	m.set(o, "exitValue", wait)
	m.set(o, "destroy", func(sobek.FunctionCall) sobek.Value {
		m.must(m.host.Stop(p.number))
		return sobek.Undefined()
	})
	return o
}

// streamKey is the property of a stream or a reader that holds what it reads.
var streamKey = sobek.NewSymbol("stream")

// A reading is what a stream reads.
type reading struct {
	of    *process
	lines *lines
}

// line is the next line; false at the end.
func (r *reading) line() (string, bool) {
	r.of.await()
	if len(r.lines.left) == 0 {
		return "", false
	}
	line := r.lines.left[0]
	r.lines.left = r.lines.left[1:]
	return line, true
}

func (m *machine) stream(p *process, of *lines) *sobek.Object {
	return m.streamObject(&reading{of: p, lines: of})
}

func (m *machine) streamObject(r *reading) *sobek.Object {
	o := m.vm.NewObject()
	if err := o.SetSymbol(streamKey, r); err != nil {
		panic(err)
	}
	m.set(o, "close", func(sobek.FunctionCall) sobek.Value { return sobek.Undefined() })
	return o
}

// newReader is a java.io.InputStreamReader or BufferedReader: both read lines here.
func (m *machine) newReader(args []sobek.Value) *sobek.Object {
	if len(args) > 0 {
		if from, ok := args[0].(*sobek.Object); ok {
			if v := from.GetSymbol(streamKey); v != nil {
				if r, ok := v.Export().(*reading); ok {
					o := m.streamObject(r)
					m.set(o, "readLine", func(sobek.FunctionCall) sobek.Value {
						if line, ok := r.line(); ok {
							return m.vm.ToValue(line)
						}
						return sobek.Null()
					})
					return o
				}
			}
		}
	}
	m.throw("a reader needs an output of a process", "such as process.getInputStream()")
	return nil
}
