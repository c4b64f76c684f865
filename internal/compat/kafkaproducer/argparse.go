package kafkaproducer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/secret"
	"carronade/internal/workload"
)

// This file parses arguments as argparse4j does, which Kafka's tool uses: long
// flags and their unambiguous prefixes, --name value and --name=value, and a list
// that ends at the next flag.

// A valueKind is the kind of value that a flag takes.
type valueKind uint8

const (
	text     valueKind = iota
	long               // a 64-bit integer
	integer            // a 32-bit integer
	fraction           // a number
	noValue            // no value
	list               // one or more texts
)

// java are the names in Kafka's tool of the kinds whose conversion may fail.
var java = map[valueKind]string{long: "Long", integer: "Integer", fraction: "Double"}

// A usageError is the tool's message about a wrong command line.
type usageError struct {
	text string
	near string // a flag that may have been meant
}

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) *usageError {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// repeated is parse's key for the flags that were given more than once.
const repeated = "repeated"

// parse parses arguments. Given contains each flag's last values, by name, and the
// names of the repeated flags.
func parse(flags []flag, args []string) (given map[string][]string, err *usageError) {
	given = make(map[string][]string)
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		if !isFlag(args[i]) {
			return nil, usage("unrecognized arguments: '%s'", shown(args[i:]))
		}
		f, err := find(flags, name)
		if err != nil {
			return nil, err
		}
		var values []string
		switch {
		case f.kind == noValue && has:
			return nil, usage("argument %s: ignore implicit argument '%s'", f.name, value)
		case f.kind == noValue:
		case has:
			values = []string{value}
		default:
			for i+1 < len(args) && !isFlag(args[i+1]) && (f.kind == list || len(values) == 0) {
				i++
				values = append(values, args[i])
			}
			switch {
			case len(values) > 0:
			case f.kind == list:
				return nil, usage("argument %s: expected 1 argument(s)", f.name)
			default:
				return nil, usage("argument %s: expected one argument", f.name)
			}
		}
		if err := convert(f, values); err != nil {
			return nil, err
		}
		if f.oneOf {
			for _, other := range flags {
				if _, ok := given[other.name]; ok && other.oneOf && other.name != f.name {
					return nil, usage("argument %s: not allowed with argument %s", f.name, other.name)
				}
			}
		}
		if has := given[f.name]; has != nil && !slices.Contains(given[repeated], f.name) {
			given[repeated] = append(given[repeated], f.name)
		}
		given[f.name] = values
	}
	return given, nil
}

// shown is the arguments as they may be shown: names without values, which may be
// secrets.
func shown(args []string) string {
	var mask secret.Mask
	words := mask.Args(args)
	for i, w := range words {
		if name, _, ok := strings.Cut(w, "="); ok {
			words[i] = name + "=" + secret.Hidden
		}
	}
	return strings.Join(words, " ")
}

// isFlag reports whether an argument is a flag; a negative number is a value.
func isFlag(arg string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(arg, 64)
	return err != nil
}

// find returns the flag with this name or with a name that begins so.
func find(flags []flag, name string) (*flag, *usageError) {
	var found []string
	at := -1
	for i := range flags {
		switch {
		case flags[i].name == name || name == "-h" && flags[i].name == "--help":
			return &flags[i], nil
		case strings.HasPrefix(name, "--") && strings.HasPrefix(flags[i].name, name):
			found, at = append(found, flags[i].name), i
		}
	}
	switch len(found) {
	case 0:
		e := usage("unrecognized arguments: '%s'", name)
		var names []string
		for i := range flags {
			names = append(names, flags[i].name)
		}
		e.near = workload.Nearest(name, names)
		return nil, e
	case 1:
		return &flags[at], nil
	}
	slices.Sort(found)
	return nil, usage("ambiguous option: %s could match %s", name, strings.Join(found, ", "))
}

// convert checks that values have a flag's kind.
func convert(f *flag, values []string) *usageError {
	for _, v := range values {
		var err error
		switch f.kind {
		case long:
			_, err = strconv.ParseInt(v, 10, 64)
		case integer:
			_, err = strconv.ParseInt(v, 10, 32)
		case fraction:
			var x float64
			if x, err = strconv.ParseFloat(v, 64); err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
				err = strconv.ErrRange
			}
		}
		if err != nil {
			return usage("argument %s: could not convert '%s' to %s (For input string: \"%s\")", f.name, v, java[f.kind], v)
		}
	}
	return nil
}

// missing is the error about a required flag that is not given.
func missing(flags []flag, given map[string][]string) *usageError {
	for _, name := range []string{"--throughput", "--num-records", "--topic"} { // in the tool's order
		if _, ok := given[name]; !ok {
			return usage("argument %s is required", name)
		}
	}
	var names []string
	for _, f := range flags {
		if !f.oneOf {
			continue
		}
		if _, ok := given[f.name]; ok {
			return nil
		}
		names = append(names, f.name)
	}
	return usage("one of the arguments %s is required", strings.Join(names, " "))
}
