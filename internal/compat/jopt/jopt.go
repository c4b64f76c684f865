// Package jopt reads command lines as Java programs with JOpt Simple do; Kafka's
// tools use this form of options. It determines options and their values and words
// the errors about wrong usage. What the options mean is up to its callers.
//
// Its invariant: no argument is dropped. An argument that belongs to no option is
// in Rest.
package jopt

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Kind is the kind of value that an option takes.
type Kind uint8

// The kinds.
const (
	Text Kind = iota
	Int       // of 32 bits
	Long
	Flag         // no value
	OptionalInt  // Int, or no value
	OptionalLong // Long, or no value
	OptionalText
)

// An Option is a known option.
type Option struct {
	Name    string // without dashes
	Kind    Kind
	Word    string // placeholder for the value in usage
	Default string // "": none
	Help    string
}

// Values are the options and arguments of a command line.
type Values struct {
	Rest    []string // arguments of no option
	options []Option
	given   map[string][]string // an option without a value has an empty slice
}

// Parse reads a command line. Errors have JOpt Simple's wording.
func Parse(options []Option, args []string) (*Values, error) {
	v := &Values{options: options, given: make(map[string][]string)}
	for i := 0; i < len(args); i++ {
		name, isOption := strings.CutPrefix(args[i], "-")
		switch {
		case args[i] == "--":
			v.Rest = append(v.Rest, args[i+1:]...)
			return v, nil
		case !isOption, name == "":
			v.Rest = append(v.Rest, args[i])
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
		case o.Kind == Flag && valued:
			return nil, fmt.Errorf("option %s takes no argument", name)
		case o.Kind == Flag:
		case valued:
			v.given[name] = append(v.given[name], value)
		case o.Kind < Flag:
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
func (o *Option) takes(next string) bool {
	if o.Kind == OptionalText {
		return !strings.HasPrefix(next, "-")
	}
	_, err := strconv.ParseInt(next, 10, 64)
	return err == nil || !strings.HasPrefix(next, "-")
}

func (v *Values) find(name string) *Option {
	i := slices.IndexFunc(v.options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &v.options[i]
}

// Has reports whether an option was given, with a value or without.
func (v *Values) Has(name string) bool { _, ok := v.given[name]; return ok }

// Given lists the options that were given, in the order of the known options.
func (v *Values) Given() []string {
	var names []string
	for _, o := range v.options {
		if v.Has(o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}

// All returns an option's values.
func (v *Values) All(name string) []string { return v.given[name] }

// Text returns an option's value, or its default if it has none.
func (v *Values) Text(name string) (string, error) {
	switch all := v.given[name]; len(all) {
	case 0:
		if o := v.find(name); o != nil {
			return o.Default, nil
		}
		return "", nil
	case 1:
		return all[0], nil
	default:
		return "", fmt.Errorf("Found multiple arguments for option %s, but you asked for only one", name)
	}
}

// Number returns an option's value, or its default if it has none, or 0 if it has
// no default either.
func (v *Values) Number(name string) (int64, error) {
	text, err := v.Text(name)
	if err != nil || text == "" && !v.Has(name) {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if o := v.find(name); err != nil || o != nil && (o.Kind == Int || o.Kind == OptionalInt) && (n > math.MaxInt32 || n < math.MinInt32) {
		return 0, fmt.Errorf("Cannot parse argument '%s' of option %s", text, name)
	}
	return n, nil
}

// Missing is the error of Kafka's tools about required options.
func (v *Values) Missing(required ...string) error {
	for _, name := range required {
		if !v.Has(name) {
			return fmt.Errorf(`Missing required argument "[%s]"`, name)
		}
	}
	return nil
}

// OneOf is the error of Kafka's tools about options of which exactly one is
// required.
func (v *Values) OneOf(names ...string) error {
	n := 0
	var listed []string
	for _, name := range names {
		if v.Has(name) {
			n++
		}
		listed = append(listed, "["+name+"]")
	}
	if n != 1 {
		return fmt.Errorf("Exactly one of the following arguments is required: %s", strings.Join(listed, ", "))
	}
	return nil
}

// Exclusive is the error of Kafka's tools about options that exclude each other.
func (v *Values) Exclusive(one, other string) error {
	if v.Has(one) && v.Has(other) {
		return fmt.Errorf(`Option "[%s]" can't be used with option "[%s]"`, one, other)
	}
	return nil
}

// Widths of the column of names and of a line, in usage.
const (
	nameWidth = 43
	lineWidth = 80
)

// Usage is the table of options as JOpt Simple prints it.
func Usage(options []Option) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s  %s\n%-*s  %s\n", nameWidth, "Option", "Description", nameWidth, "------", "-----------")
	sorted := slices.Clone(options)
	slices.SortFunc(sorted, func(a, b Option) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range sorted {
		help := o.Help
		if o.Default != "" {
			help += " (default: " + o.Default + ")"
		}
		left, right := wrap("--"+o.Name+o.form(), nameWidth), wrap(help, lineWidth-nameWidth-2)
		for i := range max(len(left), len(right)) {
			var l, r string
			if i < len(left) {
				l = left[i]
			}
			if i < len(right) {
				r = right[i]
			}
			b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s  %s", nameWidth, l, r), " ") + "\n")
		}
	}
	return b.String()
}

// form is an option's value in usage.
func (o *Option) form() string {
	kind := [...]string{"String", "Integer", "Long", "", "Integer", "Long", "String"}[o.Kind]
	switch {
	case o.Kind == Flag:
		return ""
	case o.Kind > Flag:
		return " [" + kind + ": " + o.Word + "]"
	}
	return " <" + kind + ": " + o.Word + ">"
}

// wrap breaks text at blanks; all but the first line are indented by two.
func wrap(text string, width int) []string {
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
