package kafkatools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/advice"
	"carronade/internal/secret"
)

// This file parses arguments as argparse4j does: long
// flags and their unambiguous prefixes, --name value and --name=value, and a list
// that ends at the next flag.

// A argparseError is the tool's message about a wrong command line.
type argparseError struct {
	text string
	near string // a flag that may have been meant
}

func argparseErrorf(format string, args ...any) *argparseError {
	return &argparseError{text: fmt.Sprintf(format, args...)}
}

// repeatedProducerFlags is the key of parseArgparse for the flags that were given more than once.
const repeatedProducerFlags = "repeated"

// parseArgparse parses arguments. Given contains each flag's last values, by name, and the
// names of the repeated flags.
func parseArgparse(flags []producerFlag, args []string) (given map[string][]string, err *argparseError) {
	given = make(map[string][]string)
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		if !isProducerFlag(args[i]) {
			return nil, argparseErrorf("unrecognized arguments: '%s'", shownArgs(args[i:]))
		}
		f, err := findProducerFlag(flags, name)
		if err != nil {
			return nil, err
		}
		var values []string
		switch {
		case f.kind == noValue && has:
			return nil, argparseErrorf("argument %s: ignore implicit argument '%s'", f.name, value)
		case f.kind == noValue:
		case has:
			values = []string{value}
		default:
			for i+1 < len(args) && !isProducerFlag(args[i+1]) && (f.kind == listValue || len(values) == 0) {
				i++
				values = append(values, args[i])
			}
			switch {
			case len(values) > 0:
			case f.kind == listValue:
				return nil, argparseErrorf("argument %s: expected 1 argument(s)", f.name)
			default:
				return nil, argparseErrorf("argument %s: expected one argument", f.name)
			}
		}
		if err := checkProducerValues(f, values); err != nil {
			return nil, err
		}
		if f.oneOf {
			for _, other := range flags {
				if _, ok := given[other.name]; ok && other.oneOf && other.name != f.name {
					return nil, argparseErrorf("argument %s: not allowed with argument %s", f.name, other.name)
				}
			}
		}
		if has := given[f.name]; has != nil && !slices.Contains(given[repeatedProducerFlags], f.name) {
			given[repeatedProducerFlags] = append(given[repeatedProducerFlags], f.name)
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

// isProducerFlag reports whether an argument is a flag; a negative number is a value.
func isProducerFlag(arg string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(arg, 64)
	return err != nil
}

// findProducerFlag returns the flag with this name or with a name that begins so.
func findProducerFlag(flags []producerFlag, name string) (*producerFlag, *argparseError) {
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
		e := argparseErrorf("unrecognized arguments: '%s'", name)
		var names []string
		for i := range flags {
			names = append(names, flags[i].name)
		}
		e.near = advice.Nearest(name, names)
		return nil, e
	case 1:
		return &flags[at], nil
	}
	slices.Sort(found)
	return nil, argparseErrorf("ambiguous option: %s could match %s", name, strings.Join(found, ", "))
}

// checkProducerValues checks that values have a flag's kind.
func checkProducerValues(f *producerFlag, values []string) *argparseError {
	for _, v := range values {
		if f.kind.check(v) != nil {
			return argparseErrorf("argument %s: could not convert '%s' to %s (For input string: \"%s\")", f.name, v, javaKinds[f.kind], v)
		}
	}
	return nil
}

// missingProducerFlag is the error about a required flag that is not given.
func missingProducerFlag(flags []producerFlag, given map[string][]string) *argparseError {
	for _, name := range []string{"--throughput", "--num-records", "--topic"} { // in the tool's order
		if _, ok := given[name]; !ok {
			return argparseErrorf("argument %s is required", name)
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
	return argparseErrorf("one of the arguments %s is required", strings.Join(names, " "))
}
