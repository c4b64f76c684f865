package apm

import (
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	wire "carronade/internal/wire/apm"
)

//go:embed schema/*.json
var schemas embed.FS

// A node is one JSON Schema, compiled: as much of the language as Elastic's
// schemas use.
type node struct {
	types     uint8 // bits of tokens, 0: any
	integer   bool  // numbers must be whole
	minLength int
	maxLength int // in code points; 0: any
	pattern   *regexp.Regexp
	enum      []string // strings
	minimum   *float64
	minItems  int
	items     *node
	members   map[string]*node
	names     *regexp.Regexp // of members that have no node of their own; nil: any
	rest      *node          // for those
	closed    bool           // no others
	required  []string

	// What members together must fulfil. Those that are asked about have a
	// number, their place in noted.
	noted []string
	must  bool        // it says something, or is bad
	any   []condition // one of them holds
	when  []implication

	counts  wire.Kind // the kind of event that each item is
	counted bool
}

// A condition asks that members are there with one of some types, all of them.
type condition []struct {
	member int // in noted
	types  uint8
}

type implication struct{ when, then condition }

func bit(t wire.Token) uint8 {
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
	case wire.Null:
		return 32
	}
	return 0
}

var typeBits = map[string]uint8{"object": 1, "array": 2, "string": 4, "number": 8, "integer": 8, "boolean": 16, "null": 32}

var typeNames = []string{"an object", "an array", "a string", "a number", "a boolean", "null"}

// known are the words of JSON Schema that compile understands.
var known = []string{
	"type", "properties", "required", "items", "enum", "pattern", "patternProperties", "additionalProperties",
	"minLength", "maxLength", "minimum", "minItems", "anyOf", "allOf",
}

type types []string

// UnmarshalJSON takes one type or several.
func (t *types) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = make(types, 1)
	return json.Unmarshal(b, &(*t)[0])
}

func (t types) bits() (b uint8) {
	for _, name := range t {
		b |= typeBits[name]
	}
	return b
}

type memberTypes struct {
	Properties map[string]struct{ Type types }
	Required   []string
}

// Elastic's decoder is at times of another mind than its schemas, and it is the
// decoder that a server judges by. To it null is as good as nothing wherever it
// stands, but for headers and samples, which must say something; and a port
// given as text is a whole number.
var wholeNumber = regexp.MustCompile(`^[+-]?[0-9]+$`)

// compile reads a schema. It fails where the schema says something that would
// not be looked at.
func compile(raw []byte) (*node, error) {
	var words map[string]json.RawMessage
	if err := json.Unmarshal(raw, &words); err != nil {
		return nil, err
	}
	for w := range words {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("the word %q is not understood", w)
		}
	}
	var s struct {
		Type                 types
		Properties           map[string]json.RawMessage
		PatternProperties    map[string]json.RawMessage
		AdditionalProperties json.RawMessage
		Items                json.RawMessage
		Required             []string
		Enum                 []*string
		Pattern              string
		MinLength, MaxLength int
		MinItems             int
		Minimum              *float64
		AnyOf                []memberTypes
		AllOf                []struct{ If, Then memberTypes }
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	n := &node{
		types: s.Type.bits(), integer: slices.Contains(s.Type, "integer") && !slices.Contains(s.Type, "number"),
		minLength: s.MinLength, maxLength: s.MaxLength, minimum: s.Minimum, minItems: s.MinItems,
		required: s.Required, members: map[string]*node{},
	}
	for _, e := range s.Enum {
		if e != nil {
			n.enum = append(n.enum, *e)
		}
	}
	var err error
	if s.Pattern != "" {
		if n.pattern, err = regexp.Compile(s.Pattern); err != nil {
			return nil, err
		}
	}
	for name, raw := range s.Properties {
		if n.members[name], err = compile(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if c := n.members[name]; name == "port" && c.integer && c.types&bit(wire.String) != 0 {
			c.pattern = wholeNumber
		}
	}
	if s.Items != nil {
		if n.items, err = compile(s.Items); err != nil {
			return nil, fmt.Errorf("items: %w", err)
		}
	}
	if len(s.PatternProperties) > 1 {
		return nil, fmt.Errorf("%d patterns of names: want one", len(s.PatternProperties))
	}
	for p, raw := range s.PatternProperties {
		if n.names, err = regexp.Compile(p); err != nil {
			return nil, err
		}
		if n.rest, err = compile(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		n.rest.types &^= bit(wire.Null)
		n.rest.must = true
		if n.rest.items != nil {
			n.rest.items.must = true
		}
	}
	switch a := string(s.AdditionalProperties); {
	case a == "false":
		n.closed = true
	case a != "" && a != "true":
		if n.rest, err = compile(s.AdditionalProperties); err != nil {
			return nil, fmt.Errorf("additional: %w", err)
		}
	}
	for _, m := range s.AnyOf {
		n.any = append(n.any, n.condition(m))
	}
	for _, m := range s.AllOf {
		n.when = append(n.when, implication{n.condition(m.If), n.condition(m.Then)})
	}
	for _, name := range n.required {
		n.note(name)
	}
	if len(n.noted) > maxNoted {
		return nil, fmt.Errorf("%d members that depend on each other: want at most %d", len(n.noted), maxNoted)
	}
	return n, nil
}

// condition: Elastic's require each member that they name.
func (n *node) condition(m memberTypes) (c condition) {
	for _, name := range m.Required {
		b := m.Properties[name].Type.bits()
		if b == 0 {
			b = 0xff
		}
		c = append(c, struct {
			member int
			types  uint8
		}{n.note(name), b})
	}
	return c
}

// note gives a member a number.
func (n *node) note(name string) int {
	if i := slices.Index(n.noted, name); i >= 0 {
		return i
	}
	n.noted = append(n.noted, name)
	return len(n.noted) - 1
}

// The schemas of all events, by how a line or document is told apart.
type rules struct {
	v2, rum      map[string]*node // of lines, by the name they begin with
	transactions *node            // documents of v1
	errors       *node
}

var allRules = sync.OnceValue(func() *rules {
	get := func(name string) *node {
		raw, err := schemas.ReadFile("schema/" + name + ".json")
		if err != nil {
			panic(err) // embedded: a test reads them all
		}
		n, err := compile(raw)
		if err != nil {
			panic(fmt.Sprintf("schema %s: %v", name, err))
		}
		return n
	}
	r := &rules{
		v2: map[string]*node{
			"metadata": get("v2-metadata"), "transaction": get("v2-transaction"), "span": get("v2-span"),
			"error": get("v2-error"), "metricset": get("v2-metricset"),
		},
		rum:          map[string]*node{"m": get("rumv3-metadata"), "x": get("rumv3-transaction"), "e": get("rumv3-error")},
		transactions: get("v1-transactions"), errors: get("v1-errors"),
	}
	count := func(n *node, k wire.Kind) *node {
		n.counted, n.counts = true, k
		return n.items
	}
	x := r.rum["x"]
	count(x.members["y"], wire.Span)
	count(x.members["me"], wire.Metricset)
	count(count(r.transactions.members["transactions"], wire.Transaction).members["spans"], wire.Span)
	count(r.errors.members["errors"], wire.Error)
	return r
})
