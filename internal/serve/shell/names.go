package shell

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of names and of what they become.
const (
	mostNames         = 100
	mostSubstitutions = 100
	mostExpanded      = 64 << 10 // bytes of a line
)

var (
	errDefineFirst = errors.New("define can only be the first word in a line")
	errVariables   = errors.New("too many variables")
	errRecursive   = errors.New("too many substitutions (recursive definition?)")
)

// names are the user's definitions: a name, and the words that replace it, as typed.
type names map[string]string

// parse makes the commands of a line. If the first word is define, the line is one
// definition, whose words it returns unchanged. Otherwise the first word that is a
// name is replaced by its words, until none is left. Then each $ takes one of the last
// words of the line, and the line is split at the words that are a semicolon.
func (n names) parse(line string) (commands [][]string, definition []word, err error) {
	ws, err := split(line)
	if err != nil || len(ws) == 0 {
		return nil, nil, err
	}
	if ws[0].is("define") {
		return nil, ws, nil
	}
	commands, err = n.commands(ws)
	return commands, nil, err
}

func (n names) commands(ws []word) (out [][]string, err error) {
	if slices.ContainsFunc(ws, func(w word) bool { return w.is("define") }) {
		return nil, errDefineFirst
	}
	if ws, err = n.expand(ws); err != nil {
		return nil, err
	}
	if ws, err = fill(ws); err != nil {
		return nil, err
	}
	var command []string
	for i, w := range ws {
		if !w.is(separator) {
			command = append(command, w.text)
		}
		if (w.is(separator) || i == len(ws)-1) && len(command) > 0 {
			out = append(out, command)
			command = nil
		}
	}
	return out, nil
}

// expand replaces names until none is left.
func (n names) expand(ws []word) ([]word, error) {
	size := 0
	for _, w := range ws {
		size += len(w.text) + 1
	}
	for range mostSubstitutions {
		i := slices.IndexFunc(ws, func(w word) bool { _, ok := n[w.text]; return ok && !w.quoted })
		if i < 0 {
			return ws, nil
		}
		text := n[ws[i].text]
		by, err := split(text)
		if err != nil {
			return nil, fmt.Errorf("the definition of %s: %w", ws[i].text, err)
		}
		if size += len(text); size > mostExpanded {
			return nil, errRecursive
		}
		ws = slices.Concat(ws[:i], by, ws[i+1:])
	}
	if slices.ContainsFunc(ws, func(w word) bool { _, ok := n[w.text]; return ok && !w.quoted }) {
		return nil, errRecursive
	}
	return ws, nil
}

// fill replaces the placeholders of a line by its last words, which all come after
// the last placeholder.
func fill(ws []word) ([]word, error) {
	var at []int
	for i, w := range ws {
		if w.is(placeholder) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return ws, nil
	}
	first := len(ws) - len(at)
	if first <= at[len(at)-1] {
		return nil, errVariables
	}
	out := slices.Clone(ws[:first])
	for i, w := range ws[first:] {
		out[at[i]] = w
	}
	return out, nil
}

// reserved are words that cannot be names: each is the first word of a command, or
// has a meaning of its own.
func isReserved(name string) bool {
	return name == separator || name == placeholder || name == "define" || name == "rm" || slices.Contains(commandNames(), name)
}

// set defines a name. It returns the text that it had before.
func (n names) set(name string, ws []word) (old string, err error) {
	switch {
	case isReserved(name):
		return "", fmt.Errorf("%s is a reserved word", name)
	case slices.ContainsFunc(ws, func(w word) bool { return w.is(name) }):
		return "", fmt.Errorf("%s can't appear in the right side", name)
	case slices.ContainsFunc(ws, func(w word) bool { return w.is("define") }):
		return "", errDefineFirst
	case hasPassword(ws):
		return "", hinted(errors.New("a definition must not contain a password"), "elasticsearch use last uses that of the last time")
	}
	old, has := n[name]
	if !has && len(n) >= mostNames {
		return "", hinted(fmt.Errorf("you have %d names already, the most", len(n)), "define rm NAME removes one")
	}
	n[name] = quote(ws)
	return old, nil
}

// remove removes a name. It returns the names whose definitions still contain it.
func (n names) remove(name string) (used []string, err error) {
	if _, ok := n[name]; !ok {
		return nil, fmt.Errorf("%s is not defined", name)
	}
	delete(n, name)
	for _, other := range slices.Sorted(maps.Keys(n)) {
		ws, err := split(n[other])
		if err == nil && slices.ContainsFunc(ws, func(w word) bool { return w.is(name) }) {
			used = append(used, other)
		}
	}
	return used, nil
}

// list returns the definitions whose name or text contains a text, sorted.
func (n names) list(part string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if strings.Contains(name, part) || strings.Contains(n[name], part) {
			out = append(out, name+" "+n[name])
		}
	}
	return out
}
