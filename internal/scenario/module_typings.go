package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/protocol"
)

// A TypedOption is an option that is not a setting of a workload.
type TypedOption struct{ Name, Help string }

// Typings returns the declarations for the kinds of targets, with the options that searches have
// in addition to settings. It ends with a newline.
func Typings(kinds []protocol.Kind, searches []TypedOption) []byte {
	b := &builder{seen: map[reflect.Type]string{}}
	b.line(0, `declare module "carronade" {`)
	b.raw(functions)
	b.settings(kinds)
	b.line(1, "/** A part of weighted: the options of one load. What applies to all is in the options of the whole. */")
	b.line(1, "export interface Part extends WholeOptions {")
	table := workload.PartTable()
	for i := range table {
		if table[i].Name != "name" { // as of a step
			b.property(table[i].Name, table[i].Help, typeOf(&table[i]), true)
		}
	}
	b.line(1, "}")
	b.line(1, "")
	b.line(1, "/** Options of weighted. */")
	b.line(1, "export interface WholeOptions extends Options {")
	b.property("target", "the target of all parts that have no other", "string", true)
	b.line(1, "}")
	b.line(1, "")
	b.line(1, "/** Options of find: settings of trials, and how to search. */")
	b.line(1, "export interface FindOptions extends Options {")
	for _, w := range searches {
		b.property(w.Name, w.Help, scalar, true)
	}
	b.line(1, "}")
	b.line(1, "")
	b.measured()
	b.structure("Report", "The report of a run: docs/report.md describes each field.", reflect.TypeFor[report.Document]())
	b.structure("SearchReport", "The answer of a search: docs/report.md describes each field.", reflect.TypeFor[report.Search](), basis...)
	for len(b.queue) > 0 {
		next := b.queue[0]
		b.queue = b.queue[1:]
		b.structure(b.seen[next], "", next)
	}
	b.line(0, "}")
	return bytes.ReplaceAll(b.Bytes(), []byte("\n\n}\n"), []byte("\n}\n"))
}

// basis are the fields that the report of a search shares with others.
var basis = []string{"id: string", "target: string", "op: string", "mode: string", "started_at: string", "ended_at: string", "stopped: string", "partial: boolean", "trust: Trust"}

// scalar is the type of a value that is written as in a workload file.
const scalar = "string | number"

// functions are the functions of the module.
const functions = `  /** A step in progress: a promise of its report. */
  export interface Step<R> extends Promise<R> {
    /** Ends the step as an interrupt does: it stops sending, waits for answers and reports. */
    stop(): this;
  }

  /** Starts a run, as carronade run does. */
  export function run(target: string, options?: Options): Step<Report>;
  /** Starts a search for the highest rate at which limits hold, as carronade find does. */
  export function find(target: string, options?: FindOptions): Step<SearchReport>;
  /** Starts a run that sends events and reads each after its ack: the operation pipeline. */
  export function pipeline(target: string, options?: Options): Step<Report>;
  /** Starts a run of several loads at once, each with a share of all events by its weight. */
  export function weighted(parts: Part[], options?: WholeOptions): Step<Report>;
  /** Awaits steps that run side by side. If one fails, the others are awaited first. */
  export function parallel<R extends unknown[]>(...steps: { [K in keyof R]: Promise<R[K]> | (() => Promise<R[K]>) }): Promise<R>;
  /** Waits for a time such as "5s". */
  export function sleep(time: string): Promise<void>;
  /** Checks limits, such as "p99<50ms", and returns whether all hold. The exit code counts them. */
  export function check(report: Report, ...limits: string[]): boolean;
  /** Adds a text with the time to the report of the scenario. */
  export function mark(text: string): void;
  /** Marks the runs in progress that take marks, as carronade mark does, and the report of the scenario. */
  export function mark(kind: "fault" | "heal" | "note", name: string): void;
  /** Reads a stored report: "last", an id, or another reference of carronade report show. */
  export function report(reference: string): Report;
  /** The arguments after the script on the command line. */
  export const args: string[];
  /** The variables of the environment whose names the script has in its text. */
  export const env: { readonly [name: string]: string | undefined };

`

// A builder writes declarations.
type builder struct {
	bytes.Buffer
	seen  map[reflect.Type]string // the names of structs
	queue []reflect.Type          // that are not yet written
}

func (b *builder) raw(text string) { b.WriteString(text) }

func (b *builder) line(depth int, text string) {
	if text != "" {
		b.WriteString(strings.Repeat("  ", depth))
	}
	b.WriteString(text + "\n")
}

// property writes a property of an interface, with what it means.
func (b *builder) property(name, help, typ string, optional bool) {
	if help != "" {
		b.line(2, "/** "+strings.ReplaceAll(help, "*/", "* /")+" */")
	}
	mark := ""
	if optional {
		mark = "?"
	}
	b.line(2, key(name)+mark+": "+typ+";")
}

// key is a name as the key of an object.
func key(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// settings writes the settings of workloads: those of the load, and those of each kind.
func (b *builder) settings(kinds []protocol.Kind) {
	b.line(1, "/** Options of a step: the settings of a workload file, by their names. */")
	b.line(1, "export interface Options {")
	b.property("name", "the name of the step, in its report and on the screen", "string", true)
	seen := map[string]bool{}
	for _, k := range append([]protocol.Kind{nil}, kinds...) {
		table := workload.Table(k)
		for i := range table {
			s := &table[i]
			if seen[s.Name] || s.FlagOnly || s.Name == "repeat" {
				continue
			}
			seen[s.Name] = true
			help := s.Help
			if s.Kind != "" {
				help = s.Kind + ": " + help
			}
			if s.Default != "" && s.Name != "op" {
				help += " [" + s.Default + "]"
			}
			b.property(s.Name, help, typeOf(s), true)
		}
	}
	b.line(1, "}")
	b.line(1, "")
}

// typeOf is the type of a setting.
func typeOf(s *workload.Setting) string {
	switch s.Type {
	case protocol.Bool:
		return "boolean"
	case protocol.List:
		return "string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean }"
	case protocol.Duration:
		return "string"
	}
	if len(s.Choices) == 0 || s.Name == "op" { // other kinds may have other operations
		return scalar
	}
	var all []string
	for _, c := range s.Choices {
		all = append(all, fmt.Sprintf("%q", c))
		var n json.Number
		if json.Unmarshal([]byte(c), &n) == nil {
			all = append(all, c)
		}
	}
	return strings.Join(all, " | ")
}

// measured writes the type of a time of a report, from what its JSON has.
func (b *builder) measured() {
	b.line(1, "/** A time of a report, in microseconds; null where nothing was measured. */")
	b.line(1, "export interface Times {")
	text, err := json.Marshal(measure.Summarize(measure.NewHistogram(), nil, nil))
	if err != nil {
		panic(err) // a summary always encodes
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		value, _ := d.Token()
		typ := "number | null"
		if value != nil {
			typ = "number"
		}
		b.property(fmt.Sprint(name), "", typ, false)
	}
	b.line(2, "[percentile: string]: number | null;")
	b.line(1, "}")
	b.line(1, "")
}

// structure writes the interface of a struct, with further fields.
func (b *builder) structure(name, help string, typ reflect.Type, more ...string) {
	if help != "" {
		b.line(1, "/** "+help+" */")
	}
	b.line(1, "export interface "+name+" {")
	for _, m := range more {
		b.line(2, m+";")
	}
	b.fields(typ)
	b.line(1, "}")
	b.line(1, "")
}

func (b *builder) fields(typ reflect.Type) {
	for f := range typ.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		switch {
		case f.Anonymous && tag == "":
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			b.fields(ft)
		case !f.IsExported() || tag == "-" || tag == "":
		default:
			b.property(tag, "", b.typeOf(ft), strings.Contains(options, "omitempty"))
		}
	}
}

// typeOf is the type of a Go type's JSON.
func (b *builder) typeOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return "string"
	case reflect.TypeFor[measure.Summary]():
		return "Times"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.typeOf(t.Elem()) + " | null"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		of := b.typeOf(t.Elem())
		if strings.Contains(of, " ") {
			of = "(" + of + ")"
		}
		return of + "[]"
	case reflect.Map:
		return "{ [name: string]: " + b.typeOf(t.Elem()) + " }"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		return b.name(t)
	}
	return "number"
}

// name is the name of a struct, which is written later.
func (b *builder) name(t reflect.Type) string {
	if name, ok := b.seen[t]; ok {
		return name
	}
	name := t.Name()
	for _, other := range b.seen {
		if other == name { // of another package
			path := strings.Split(t.PkgPath(), "/")
			name = strings.ToUpper(path[len(path)-1][:1]) + path[len(path)-1][1:] + name
		}
	}
	b.seen[t] = name
	b.queue = append(b.queue, t)
	return name
}
