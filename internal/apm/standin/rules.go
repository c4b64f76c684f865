package standin

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"carronade/internal/apm/wire"
)

// The rules for events, in our own language: they say the same as the JSON Schemas
// that Elastic publishes with its decoder, and where the two differ, the same as
// the decoder, because the server uses it. Tests compare the rules with both.
// rules/v2.txt describes the language.
//
//go:embed rules/*.txt
var ruleTexts embed.FS

// A node is the rule for one value.
type node struct {
	types      uint8 // bits of the allowed types, see tokenBit
	integer    bool  // numbers have no fraction
	minLength  int   // of strings, in code points
	maxLength  int   // 0: any
	pattern    *regexp.Regexp
	enum       []string // of strings
	minimum    *float64 // of numbers
	minItems   int
	items      *node // nil: any
	needsValue bool  // a value that is not set is invalid
	lenient    bool  // a value of another type counts as missing
	isTime     bool  // a string is a time

	members    map[string]member
	otherNames *regexp.Regexp // of all other members; nil: any
	others     *node          // the rule for their values
	// Conditions on several members. Each member that occurs in one has a bit:
	// the index of its name in bitNames.
	bitNames []string
	required uint32
	anyOf    uint32 // at least one of them is set
	needs    []need

	itemKind       wire.Kind // the kind of event that each item is
	itemsAreEvents bool
}

type member struct {
	*node
	bit uint32
}

// A need says that one member requires others.
type need struct{ trigger, required uint32 }

func tokenBit(t wire.Token) uint8 {
	switch t {
	case wire.BeginObject:
		return 1
	case wire.BeginArray:
		return 2
	case wire.String:
		return 4
	case wire.Number:
		return 8
	case wire.Bool:
		return 16
	}
	return 0
}

var typeNames = []string{"an object", "an array", "a string", "a number", "a boolean"}

var kindBits = map[string]uint8{"object": 1, "list": 2, "text": 4, "keyword": 4, "number": 8, "whole": 8, "bool": 16}

// maxKeyword is the largest length of a keyword, in characters.
const maxKeyword = 1024

// bitOf returns the bit of a member, and assigns one if it has none: a condition
// on a member may precede the member.
func (n *node) bitOf(name string) uint32 {
	i := slices.Index(n.bitNames, name)
	if i < 0 {
		i = len(n.bitNames)
		n.bitNames = append(n.bitNames, name)
	}
	return 1 << i
}

// A loader reads one text of rules.
type loader struct {
	lines    []ruleLine
	nextLine int
	defined  map[string]bool
	groups   map[string]*node // by name, from the first reference on
	used     map[string]bool
}

type ruleLine struct {
	number, depth int
	text          string
}

func (l ruleLine) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", l.number, fmt.Sprintf(format, args...))
}

// load reads rules and returns the nodes that roots name. It is strict: a
// definition that it does not understand, that exists twice, or that nothing
// refers to is an error.
func load(text string, roots ...string) (map[string]*node, error) {
	l := &loader{defined: map[string]bool{}, groups: map[string]*node{}, used: map[string]bool{}}
	for i, line := range strings.Split(text, "\n") {
		content := strings.TrimLeft(line, " ")
		if content == "" || content[0] == '#' {
			continue
		}
		indent := len(line) - len(content)
		r := ruleLine{i + 1, indent / 2, content}
		if indent%2 != 0 || strings.ContainsAny(line, "\t\r") || strings.TrimRight(content, " ") != content {
			return nil, r.errorf("want two spaces for each level, and none at the end")
		}
		l.lines = append(l.lines, r)
	}
	for l.nextLine < len(l.lines) {
		if err := l.definition(); err != nil {
			return nil, err
		}
	}
	found := map[string]*node{}
	for _, name := range roots {
		l.used[name] = true
		found[name] = l.groups[name]
	}
	for name := range l.used {
		if !l.defined[name] {
			return nil, fmt.Errorf("%s is not defined", name)
		}
	}
	for name := range l.defined {
		if !l.used[name] {
			return nil, fmt.Errorf("%s is defined, and nothing refers to it", name)
		}
	}
	return found, nil
}

func (l *loader) group(name string) *node {
	if l.groups[name] == nil {
		l.groups[name] = &node{}
	}
	return l.groups[name]
}

// definition reads "NAME:" and the value it defines.
func (l *loader) definition() error {
	line := l.lines[l.nextLine]
	name, what, ok := strings.Cut(line.text, ":")
	switch {
	case line.depth != 0 || !ok || name == "" || kindBits[name] != 0 || strings.ContainsRune(name, ' '):
		return line.errorf("%q: want a name and a colon", line.text)
	case l.defined[name]:
		return line.errorf("%s is defined twice", name)
	}
	l.nextLine++
	n, err := l.value(line, strings.TrimSpace(what), nil)
	if err != nil {
		return err
	}
	if l.shared(n) {
		return line.errorf("%s is only another name", name)
	}
	*l.group(name) = *n
	l.defined[name] = true
	return nil
}

// shared reports whether n belongs to a definition. Lines that refer to it must
// not change it.
func (l *loader) shared(n *node) bool {
	for _, g := range l.groups {
		if g == n {
			return true
		}
	}
	return false
}

// value reads the rule for a value, with the lines below that belong to it. within
// is the object that contains it.
func (l *loader) value(line ruleLine, what string, within *node) (*node, error) {
	what, like, patterned := strings.Cut(what, "like /")
	what, names, named := strings.Cut(what, "named /")
	parts := strings.Split(strings.TrimSuffix(strings.TrimSpace(what), ","), ", ")
	n, err := l.kinds(line, parts[0])
	if err != nil {
		return nil, err
	}
	if l.shared(n) && (len(parts) > 1 || patterned || named) {
		return nil, line.errorf("a reference with conditions")
	}
	for _, s := range parts[1:] {
		if err := n.condition(s); err != nil {
			return nil, line.errorf("%v", err)
		}
	}
	if patterned {
		if n.pattern, err = expression(like); err != nil || n.types&tokenBit(wire.String) == 0 {
			return nil, line.errorf("text like /%s: %v", like, err)
		}
	}
	if named {
		if within == nil {
			return nil, line.errorf("names outside an object")
		}
		if within.otherNames, err = expression(names); err != nil {
			return nil, line.errorf("names like /%s: %v", names, err)
		}
	}
	below := l.nextLine < len(l.lines) && l.lines[l.nextLine].depth > line.depth
	holder := n
	if n.items != nil {
		holder = n.items
	}
	own := holder.types == tokenBit(wire.BeginObject) && !l.shared(holder)
	switch {
	case below && !own:
		return nil, l.lines[l.nextLine].errorf("a member of a value that is not an object defined here")
	case below:
		return n, l.members(holder, line.depth+1)
	case own && (parts[0] == "" || n.items != nil):
		return nil, line.errorf("%q: want a type or members", line.text)
	}
	return n, nil
}

func expression(s string) (*regexp.Regexp, error) {
	s, ok := strings.CutSuffix(s, "/")
	if !ok {
		return nil, fmt.Errorf("want / at the end")
	}
	return regexp.Compile(s)
}

// kinds reads the types that a value may have, or the name of a definition.
func (l *loader) kinds(line ruleLine, s string) (n *node, err error) {
	s = cmp.Or(s, "object")
	n = &node{}
	for kind := range strings.SplitSeq(s, " or ") {
		kind, of, isOf := strings.Cut(kind, " of ")
		b := kindBits[kind]
		switch {
		case b == 0 && kind == s && !strings.ContainsAny(s, " :,!*/"):
			l.used[s] = true
			return l.group(s), nil
		case b == 0 || n.types&b != 0 || isOf && kind != "list":
			return nil, line.errorf("%q: want kinds of values, or the name of a definition", s)
		case isOf:
			if n.items, err = l.kinds(line, of); err != nil {
				return nil, err
			}
		case kind == "keyword":
			n.maxLength = maxKeyword
		case kind == "whole":
			n.integer = true
		}
		n.types |= b
	}
	return n, nil
}

// condition adds a condition: the text after a comma.
func (n *node) condition(s string) error {
	words := strings.Fields(s)
	is := func(t wire.Token) bool { return n.types&tokenBit(t) != 0 }
	number := func(s string) (v float64) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || v < 0 {
			words = nil
		}
		return v
	}
	switch {
	case s == "other types ignored":
		n.lenient = true
		return nil
	case s == "a time" && is(wire.String):
		n.isTime = true
		return nil
	case s == "not empty" && is(wire.String):
		n.minLength = 1
		return nil
	case s == "not empty" && is(wire.BeginArray):
		n.minItems = 1
		return nil
	case len(words) == 3 && strings.HasPrefix(s, "at least ") && is(wire.Number):
		v := number(words[2])
		n.minimum = &v
	case len(words) == 4 && strings.HasPrefix(s, "at most ") && words[3] == "characters" && is(wire.String):
		n.maxLength = int(number(words[2]))
	case len(words) > 3 && strings.HasPrefix(s, "one of ") && is(wire.String):
		n.enum = words[2:]
	case len(words) == 3 && strings.HasPrefix(s, "counted as ") && is(wire.BeginArray):
		for k := range wire.Kind(wire.Kinds) {
			if k.String() == words[2] {
				n.itemKind, n.itemsAreEvents = k, true
			}
		}
		if !n.itemsAreEvents {
			words = nil
		}
	default:
		words = nil
	}
	if words == nil {
		return fmt.Errorf("%q does not apply to such a value", s)
	}
	return nil
}

// members reads the members of an object, which are indented to a depth.
func (l *loader) members(n *node, depth int) error {
	n.members = map[string]member{}
	first := l.lines[l.nextLine]
	for l.nextLine < len(l.lines) && l.lines[l.nextLine].depth >= depth {
		line := l.lines[l.nextLine]
		l.nextLine++
		if line.depth > depth {
			return line.errorf("it is indented too far")
		}
		name, what, _ := strings.Cut(line.text, " ")
		if name == ":" {
			if err := n.together(line, what); err != nil {
				return err
			}
			continue
		}
		name, must := strings.CutSuffix(name, "!")
		if _, twice := n.members[name]; twice || name == "*" && n.others != nil || name == "" {
			return line.errorf("%q: it exists already, or has no name", name)
		}
		c, err := l.value(line, what, n)
		if err != nil {
			return err
		}
		switch {
		case name != "*":
			n.members[name] = member{node: c}
			if must {
				n.required |= n.bitOf(name)
			}
			continue
		case must && (l.shared(c) || l.shared(c.items)):
			return line.errorf("a reference with *!")
		case must:
			c.needsValue = true
			if c.items != nil {
				c.items.needsValue = true
			}
		}
		n.others = c
	}
	if len(n.bitNames) > 32 {
		return first.errorf("%d members with conditions: want at most 32", len(n.bitNames))
	}
	for _, name := range n.bitNames {
		c, ok := n.members[name]
		if !ok {
			return first.errorf("%s is required, but is not a member", name)
		}
		c.bit = n.bitOf(name)
		n.members[name] = c
	}
	return nil
}

// together reads "A or B" and "A needs B and C".
func (n *node) together(line ruleLine, s string) error {
	bits := func(s, sep string) (b uint32) {
		for name := range strings.SplitSeq(s, sep) {
			b |= n.bitOf(name)
		}
		return b
	}
	if of, all, ok := strings.Cut(s, " needs "); ok {
		n.needs = append(n.needs, need{n.bitOf(of), bits(all, " and ")})
		return nil
	}
	if n.anyOf != 0 || !strings.Contains(s, " or ") {
		return line.errorf("%q: want one line of A or B, and such as A needs B and C", s)
	}
	n.anyOf = bits(s, " or ")
	return nil
}

// The rules for all events.
type rules struct {
	lines        map[string]*node // of intake v2 and RUM v3, by the name of their first member
	transactions *node            // documents of v1
	errors       *node
}

var allRules = sync.OnceValue(func() *rules {
	get := func(name string, roots ...string) map[string]*node {
		text, err := ruleTexts.ReadFile("rules/" + name + ".txt")
		if err == nil {
			var nodes map[string]*node
			if nodes, err = load(string(text), roots...); err == nil {
				return nodes
			}
		}
		panic(fmt.Sprintf("rules of %s: %v", name, err)) // cannot happen: they are embedded, and a test reads them
	}
	v1 := get("v1", "transactions", "errors")
	lines := get("v2", "metadata", "transaction", "span", "error", "metricset", "log")
	maps.Copy(lines, get("rumv3", "m", "x", "e"))
	return &rules{lines: lines, transactions: v1["transactions"], errors: v1["errors"]}
})
