package kafkatools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/dropin"
)

// This file reads command lines as Java programs with JOpt Simple do. It determines
// options and their values and words the errors about wrong usage. What the options
// mean is up to the tools.

// A joptOption is one that a tool knows.
type joptOption struct {
	name      string // without dashes
	kind      valueKind
	word      string // placeholder for the value in usage
	otherwise string // the default; "": none
	help      string
}

// joptValues are the options and arguments of a command line. No argument is dropped:
// one that belongs to no option is in rest.
type joptValues struct {
	rest    []string // arguments of no option
	options []joptOption
	given   map[string][]string // an option without a value has an empty slice
}

// parseJopt reads a command line. Errors have JOpt Simple's wording.
func parseJopt(options []joptOption, args []string) (*joptValues, error) {
	v := &joptValues{options: options, given: make(map[string][]string)}
	for i := 0; i < len(args); i++ {
		name, isOption := strings.CutPrefix(args[i], "-")
		switch {
		case args[i] == "--":
			v.rest = append(v.rest, args[i+1:]...)
			return v, nil
		case !isOption, name == "":
			v.rest = append(v.rest, args[i])
			continue
		}
		name = strings.TrimPrefix(name, "-")
		name, value, valued := strings.Cut(name, "=")
		o := v.find(name)
		if o == nil {
			return nil, fmt.Errorf("%s is not a recognized option", name)
		}
		if _, seen := v.given[name]; !seen {
			v.given[name] = []string{}
		}
		switch {
		case o.kind == noValue && valued:
			return nil, fmt.Errorf("option %s takes no argument", name)
		case o.kind == noValue:
		case valued:
			v.given[name] = append(v.given[name], value)
		case !o.kind.optional():
			if i++; i == len(args) {
				return nil, fmt.Errorf("Option %s requires an argument", name)
			}
			v.given[name] = append(v.given[name], args[i])
		case i+1 < len(args) && o.takes(args[i+1]):
			i++
			v.given[name] = append(v.given[name], args[i])
		}
	}
	return v, nil
}

// takes reports whether an option with an optional value takes this argument as its
// value.
func (o *joptOption) takes(next string) bool {
	if o.kind == optionalText {
		return !strings.HasPrefix(next, "-")
	}
	_, err := strconv.ParseInt(next, 10, 64)
	return err == nil || !strings.HasPrefix(next, "-")
}

func (v *joptValues) find(name string) *joptOption {
	i := slices.IndexFunc(v.options, func(o joptOption) bool { return o.name == name })
	if i < 0 {
		return nil
	}
	return &v.options[i]
}

// has reports whether an option was given, with a value or without.
func (v *joptValues) has(name string) bool { _, ok := v.given[name]; return ok }

// all returns an option's values.
func (v *joptValues) all(name string) []string { return v.given[name] }

// text returns an option's value, or its default if it has none.
func (v *joptValues) text(name string) (string, error) {
	switch all := v.given[name]; len(all) {
	case 0:
		if o := v.find(name); o != nil {
			return o.otherwise, nil
		}
		return "", nil
	case 1:
		return all[0], nil
	default:
		return "", fmt.Errorf("Found multiple arguments for option %s, but you asked for only one", name)
	}
}

// number returns an option's value, or its default if it has none, or 0 if it has
// no default either.
func (v *joptValues) number(name string) (int64, error) {
	text, err := v.text(name)
	if err != nil || text == "" && !v.has(name) {
		return 0, err
	}
	n, err := v.find(name).kind.whole(text)
	if err != nil {
		return 0, fmt.Errorf("Cannot parse argument '%s' of option %s", text, name)
	}
	return n, nil
}

// missing is the error of Kafka's tools about required options.
func (v *joptValues) missing(required ...string) error {
	for _, name := range required {
		if !v.has(name) {
			return fmt.Errorf(`Missing required argument "[%s]"`, name)
		}
	}
	return nil
}

// oneOf is the error of Kafka's tools about options of which exactly one is
// required.
func (v *joptValues) oneOf(names ...string) error {
	n := 0
	var listed []string
	for _, name := range names {
		if v.has(name) {
			n++
		}
		listed = append(listed, "["+name+"]")
	}
	if n != 1 {
		return fmt.Errorf("Exactly one of the following arguments is required: %s", strings.Join(listed, ", "))
	}
	return nil
}

// exclusive is the error of Kafka's tools about options that exclude each other.
func (v *joptValues) exclusive(one, other string) error {
	if v.has(one) && v.has(other) {
		return fmt.Errorf(`Option "[%s]" can't be used with option "[%s]"`, one, other)
	}
	return nil
}

// A joptReader reads the values of options, and keeps the first error.
type joptReader struct {
	*joptValues
	err error
}

func (r *joptReader) keep(err error) { r.err = firstError(r.err, err) }

// text is the value of the first of these options that was given, or the default of the last.
func (r *joptReader) text(names ...string) (value string) {
	for _, name := range names {
		var err error
		value, err = r.joptValues.text(name)
		if r.keep(err); r.has(name) {
			break
		}
	}
	return value
}

func (r *joptReader) number(name string) int64 {
	n, err := r.joptValues.number(name)
	r.keep(err)
	return n
}

// servers is a list of brokers in a target's form.
func (r *joptReader) servers(list string) string {
	hosts, err := readServers(list)
	r.keep(err)
	return hosts
}

// firstError is the first of errors that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// joptUsage prints what is wrong, or what a tool is about, and its options. It returns the
// exit code.
func joptUsage(p *dropin.Program, text string, options []joptOption, differs string) (int, error) {
	fmt.Fprintf(p.Err, "%s\n%s\n%s%s", text, joptTable(options), dropin.CommonHelp, differs)
	return 1, nil
}

// Widths of the column of names and of a line, in usage.
const (
	joptNameWidth = 43
	joptWidth     = 80
)

// joptTable is the table of options as JOpt Simple prints it.
func joptTable(options []joptOption) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s  %s\n%-*s  %s\n", joptNameWidth, "Option", "Description", joptNameWidth, "------", "-----------")
	sorted := slices.Clone(options)
	slices.SortFunc(sorted, func(a, b joptOption) int { return strings.Compare(a.name, b.name) })
	for _, o := range sorted {
		help := o.help
		if o.otherwise != "" {
			help += " (default: " + o.otherwise + ")"
		}
		left, right := wrapJopt("--"+o.name+o.form(), joptNameWidth), wrapJopt(help, joptWidth-joptNameWidth-2)
		for i := range max(len(left), len(right)) {
			var l, r string
			if i < len(left) {
				l = left[i]
			}
			if i < len(right) {
				r = right[i]
			}
			b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s  %s", joptNameWidth, l, r), " ") + "\n")
		}
	}
	return b.String()
}

// form is an option's value in usage.
func (o *joptOption) form() string {
	switch {
	case o.kind == noValue:
		return ""
	case o.kind.optional():
		return " [" + javaKinds[o.kind] + ": " + o.word + "]"
	}
	return " <" + javaKinds[o.kind] + ": " + o.word + ">"
}

// wrapJopt breaks text at blanks; all but the first line are indented by two.
func wrapJopt(text string, width int) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			out = append(out, line)
			line = "  " + word
		default:
			line += " " + word
		}
	}
	return append(out, line)
}
