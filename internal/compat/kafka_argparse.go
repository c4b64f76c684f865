package compat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/secret"
	"carronade/internal/workload"
)

// This file parses arguments as argparse4j does: long
// flags and their unambiguous prefixes, --name value and --name=value, and a list
// that ends at the next flag.

// A usageError is the tool's message about a wrong command line.
type usageError struct {
	text string
	near string // a flag that may have been meant
}

func (e *usageError) Error() string { return e.text }

func usageErrorf(format string, args ...any) *usageError {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// repeatedFlags is parseFlags' key for the flags that were given more than once.
const repeatedFlags = "repeated"

// parseFlags parses arguments. Given contains each flag's last values, by name, and the
// names of the repeated flags.
func parseFlags(flags []producerFlag, args []string) (given map[string][]string, err *usageError) {
	given = make(map[string][]string)
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		if !isFlag(args[i]) {
			return nil, usageErrorf("unrecognized arguments: '%s'", shownArgs(args[i:]))
		}
		f, err := findFlag(flags, name)
		if err != nil {
			return nil, err
		}
		var values []string
		switch {
		case f.kind == noValue && has:
			return nil, usageErrorf("argument %s: ignore implicit argument '%s'", f.name, value)
		case f.kind == noValue:
		case has:
			values = []string{value}
		default:
			for i+1 < len(args) && !isFlag(args[i+1]) && (f.kind == listValue || len(values) == 0) {
				i++
				values = append(values, args[i])
			}
			switch {
			case len(values) > 0:
			case f.kind == listValue:
				return nil, usageErrorf("argument %s: expected 1 argument(s)", f.name)
			default:
				return nil, usageErrorf("argument %s: expected one argument", f.name)
			}
		}
		if err := checkValues(f, values); err != nil {
			return nil, err
		}
		if f.oneOf {
			for _, other := range flags {
				if _, ok := given[other.name]; ok && other.oneOf && other.name != f.name {
					return nil, usageErrorf("argument %s: not allowed with argument %s", f.name, other.name)
				}
			}
		}
		if has := given[f.name]; has != nil && !slices.Contains(given[repeatedFlags], f.name) {
			given[repeatedFlags] = append(given[repeatedFlags], f.name)
		}
		given[f.name] = values
	}
	return given, nil
}

// shownArgs is the arguments as they may be shown: names without values, which may be
// secrets.
func shownArgs(args []string) string {
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

// findFlag returns the flag with this name or with a name that begins so.
func findFlag(flags []producerFlag, name string) (*producerFlag, *usageError) {
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
		e := usageErrorf("unrecognized arguments: '%s'", name)
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
	return nil, usageErrorf("ambiguous option: %s could match %s", name, strings.Join(found, ", "))
}

// checkValues checks that values have a flag's kind.
func checkValues(f *producerFlag, values []string) *usageError {
	for _, v := range values {
		if f.kind.check(v) != nil {
			return usageErrorf("argument %s: could not convert '%s' to %s (For input string: \"%s\")", f.name, v, javaKinds[f.kind], v)
		}
	}
	return nil
}

// missingFlag is the error about a required flag that is not given.
func missingFlag(flags []producerFlag, given map[string][]string) *usageError {
	for _, name := range []string{"--throughput", "--num-records", "--topic"} { // in the tool's order
		if _, ok := given[name]; !ok {
			return usageErrorf("argument %s is required", name)
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
	return usageErrorf("one of the arguments %s is required", strings.Join(names, " "))
}
