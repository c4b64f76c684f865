package standin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"carronade/internal/apm/wire"
)

// A validator checks one text at a time against rules. It reads the text once,
// in place.
type validator struct {
	tokens wire.Tokens
	counts wire.Counts // of events in the text that the server keeps
	end    int         // of the object that a valid text begins with
}

// A validationError says where and how a text breaks the rules.
type validationError struct {
	path []string // innermost name first
	what string
}

func (e *validationError) Error() string {
	var b strings.Builder
	b.WriteString("validation error: ")
	for i, name := range slices.Backward(e.path) {
		b.WriteString(name)
		if i > 0 && e.path[i-1][0] != '[' {
			b.WriteByte('.')
		}
	}
	if len(e.path) > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.what)
	return b.String()
}

func invalidf(format string, args ...any) error {
	return &validationError{what: fmt.Sprintf(format, args...)}
}

// maxName is how many bytes of a member's name an error repeats.
const maxName = 60

// withPath adds a name to the path of a validation error.
func withPath(name string, err error) error {
	if e, ok := errors.AsType[*validationError](err); ok {
		if len(name) > maxName {
			name = strings.ToValidUTF8(name[:maxName], "") + "..."
		}
		e.path = append(e.path, name)
	}
	return err
}

var errUnrecognized = errors.New("did not recognize object type")

// line checks one line of intake v2 or RUM v3: an object whose first member's
// name says what it is. If it is valid, end is where the object ends.
func (j *validator) line(p []byte) (kind string, err error) {
	j.counts = wire.Counts{}
	j.tokens.Reset(p)
	j.tokens.LooseText = true
	if tok, err := j.tokens.Next(); err != nil || tok != wire.BeginObject {
		return "", notObject(err)
	}
	tok, err := j.tokens.Next()
	if err != nil || tok != wire.Key {
		return "", notObject(err)
	}
	kind = string(j.tokens.Raw()) // unescaped: the real server does not look for escapes
	n := allRules().lines[kind]
	if n == nil {
		return kind, fmt.Errorf("%w: %.100q", errUnrecognized, kind)
	}
	if err := j.nextValue(n); err != nil {
		return kind, withPath(kind, err)
	}
	if err := j.finish(); err != nil {
		return kind, err
	}
	if k, ok := wire.KindOfLine(p); ok {
		j.counts[k]++
	}
	if j.counts[wire.Metricset] > 0 {
		j.counts[wire.Metricset] = keptMetricsets(kind, p[:j.end])
	}
	return kind, nil
}

func notObject(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %q", errUnrecognized, "")
}

// finish reads the rest of the object with which the text begins. The real server
// ignores what follows the first member, and what follows the object.
func (j *validator) finish() error {
	for j.tokens.Depth() > 0 {
		if _, err := j.tokens.Next(); err != nil {
			return err
		}
	}
	j.end = j.tokens.End()
	return nil
}

// document checks a document of v1.
func (j *validator) document(n *node, p []byte) error {
	j.counts = wire.Counts{}
	j.tokens.Reset(p)
	if err := j.nextValue(n); err != nil {
		return err
	}
	return j.finish()
}

// nextValue checks the next value, which must exist.
func (j *validator) nextValue(n *node) error {
	tok, err := j.tokens.Next()
	if err != nil {
		return err
	}
	set, err := j.value(n, tok)
	if err == nil && !set {
		return invalidf("required")
	}
	return err
}

// value checks the value that tok begins, and reports whether it counts as set.
// The real server treats null, an array without items and an object without a
// known member that is set as missing.
func (j *validator) value(n *node, tok wire.Token) (set bool, err error) {
	if n == nil {
		return false, j.tokens.Skip(tok)
	}
	if tok == wire.Null && !n.needsValue {
		return false, nil
	}
	if n.types&tokenBit(tok) == 0 {
		if n.lenient {
			return false, j.tokens.Skip(tok)
		}
		return false, invalidf("want %s", wanted(n.types))
	}
	switch tok {
	case wire.BeginObject:
		return j.object(n)
	case wire.BeginArray:
		return j.array(n)
	case wire.String:
		return true, n.text(j.tokens.Raw())
	case wire.Number:
		return true, n.number(j.tokens.Raw())
	}
	return true, nil
}

func wanted(types uint8) string {
	var words []string
	for i, w := range typeNames {
		if types>>i&1 != 0 {
			words = append(words, w)
		}
	}
	return strings.Join(words, " or ")
}

func (j *validator) object(n *node) (set bool, err error) {
	var seen uint32 // bits of the members that are set
	for {
		tok, err := j.tokens.Next()
		if err != nil {
			return false, err
		}
		if tok == wire.EndObject {
			break
		}
		name := j.tokens.Raw()
		child, ok := n.members[string(name)]
		if !ok {
			if name = plain(name); len(n.members) > 0 {
				child, ok = n.members[lower(name)] // the decoder ignores the case of names
			}
		}
		if !ok {
			if n.otherNames != nil && !n.otherNames.Match(name) {
				return false, invalidf("no member may be called %.40q", name)
			}
			child.node = n.others
		}
		if tok, err = j.tokens.Next(); err != nil {
			return false, err
		}
		childSet, err := j.value(child.node, tok)
		if err != nil {
			return false, withPath(string(name), err)
		}
		if childSet {
			seen |= child.bit
		}
		// If the rule names no members, any member sets the object.
		set = set || childSet || len(n.members) == 0
	}
	if !set && !n.needsValue {
		return false, nil
	}
	return true, n.checkTogether(seen)
}

// plain is a name without escapes.
func plain(name []byte) []byte {
	if slices.Contains(name, '\\') {
		return []byte(wire.Unquote(name))
	}
	return name
}

// lower is a name with its ASCII letters in lower case.
func lower(name []byte) string {
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			low := bytes.Clone(name)
			for j := range low[i:] {
				if c := &low[i+j]; 'A' <= *c && *c <= 'Z' {
					*c |= 0x20
				}
			}
			return string(low)
		}
	}
	return string(name)
}

// checkTogether checks the conditions on several members of one object.
func (n *node) checkTogether(seen uint32) error {
	if missing := n.required &^ seen; missing != 0 {
		return withPath(n.namesOf(missing)[0], invalidf("required"))
	}
	if n.anyOf != 0 && n.anyOf&seen == 0 {
		return invalidf("requires at least one of %s", strings.Join(n.namesOf(n.anyOf), ", "))
	}
	for _, w := range n.needs {
		if missing := w.required &^ seen; w.trigger&seen != 0 && missing != 0 {
			return invalidf("%s requires %s", n.namesOf(w.trigger)[0], n.namesOf(missing)[0])
		}
	}
	return nil
}

// namesOf returns the names of the members that have these bits.
func (n *node) namesOf(bits uint32) (names []string) {
	for i, name := range n.bitNames {
		if bits>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (j *validator) array(n *node) (set bool, err error) {
	for i := 0; ; i++ {
		tok, err := j.tokens.Next()
		if err != nil {
			return false, err
		}
		if tok == wire.EndArray {
			if i < n.minItems {
				return false, invalidf("want at least %d items", n.minItems)
			}
			return i > 0, nil
		}
		if n.itemsAreEvents {
			j.counts[n.itemKind]++
		}
		set, err := j.value(n.items, tok)
		if err == nil && !set && n.items != nil && len(n.items.members) > 0 {
			err = invalidf("required")
		}
		if err != nil {
			return false, withPath("["+strconv.Itoa(i)+"]", err)
		}
	}
}

func (n *node) text(raw []byte) error {
	if n.isTime {
		if _, ok := wire.ParseTime(wire.Unquote(raw)); !ok {
			return invalidf("%.60q: want a time such as 2026-11-21T13:00:00Z", raw)
		}
		return nil
	}
	if n.maxLength == 0 && n.minLength == 0 && n.pattern == nil && n.enum == nil {
		return nil
	}
	if len(raw) <= n.maxLength && n.minLength == 0 && n.pattern == nil && n.enum == nil {
		return nil // a text has no more characters than bytes
	}
	s := wire.Unquote(raw)
	switch c := utf8.RuneCountInString(s); {
	case n.maxLength > 0 && c > n.maxLength:
		return invalidf("%d characters: want at most %d", c, n.maxLength)
	case c < n.minLength:
		return invalidf("%d characters: want at least %d", c, n.minLength)
	case n.pattern != nil && !n.pattern.MatchString(s):
		return invalidf("%.60q does not match %s", s, n.pattern)
	case n.enum != nil && s != "" && !slices.Contains(n.enum, s):
		return invalidf("%.60q: want one of %s", s, strings.Join(n.enum, ", "))
	}
	return nil
}

func (n *node) number(raw []byte) error {
	if n.integer && slices.ContainsFunc(raw, func(c byte) bool { return c == '.' || c|0x20 == 'e' }) {
		return invalidf("%.30s: want a whole number", raw)
	}
	if n.minimum != nil {
		if v, err := strconv.ParseFloat(string(raw), 64); err != nil || v < *n.minimum {
			return invalidf("%.30s: want at least %v", raw, *n.minimum)
		}
	}
	return nil
}
