package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v4"

	"carronade/protocol"
)

// Bounds of a document, far above those of any workload. Within maxDocument the library needs
// time in proportion to the size, but up to a kilobyte of memory for each byte.
const (
	maxDocument = 1 << 20 // bytes
	mostDepth   = 16      // lists or mappings in each other: those of a part of a workload in a list are five deep
	mostNodes   = 20_000  // keys, values, lists and mappings
	mostKey     = 256     // bytes
)

// Errors of a document that may be correct YAML.
var (
	ErrReferences = errors.New("uses anchors, aliases or tags, which a workload does not allow")
	ErrDepth      = fmt.Errorf("has lists or mappings that are more than %d deep in each other", mostDepth)
	errNodes      = fmt.Errorf("has more than %d keys and values, the limit of a workload", mostNodes)
)

// ParseYAML returns the value of the only document in a text, which is YAML or JSON; nil if
// there is none. It has only lists, mappings and texts as written, within the bounds, and no
// mapping has a key twice. An error is an *Error with a line; name is used in it.
func ParseYAML(name string, data []byte) (value *yaml.Node, err error) {
	defer func() { // another project's parser reads what others wrote
		if p := recover(); p != nil {
			value, err = nil, &protocol.Error{Doing: name, Err: errors.New("is not valid YAML"), Hint: fileHint}
		}
	}()
	if len(data) > maxDocument {
		return nil, &protocol.Error{Doing: name, Err: fmt.Errorf("is larger than %d KiB, the limit of a workload", maxDocument>>10), Hint: fileHint}
	}
	if json.Valid(data) {
		data = plainJSON(data)
	}
	g := new(guard)
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(g))
	for err == nil {
		var document yaml.Node
		if err = loader.Load(&document); err != nil || isNull(document.Content[0]) {
			continue
		}
		if value != nil {
			return nil, &protocol.Error{
				Doing: place(name, document.Content[0]), Err: errors.New("a second document begins here, but a file is one document"),
				Hint: "write several workloads as a list, each after a dash",
			}
		}
		value = document.Content[0]
	}
	switch {
	case !errors.Is(err, io.EOF):
		return nil, g.problem(name, data, err)
	case value == nil:
		return nil, nil
	}
	return value, g.check(name, value)
}

var (
	jsonEscape = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)`)
	jsonBreaks = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)
)

// plainJSON writes texts of JSON as YAML understands them: it has no surrogates in escapes, and
// takes more characters for ends of lines.
func plainJSON(data []byte) []byte {
	data = jsonEscape.ReplaceAllFunc(data, func(escape []byte) []byte {
		if len(escape) == 2 {
			return escape
		}
		high, _ := strconv.ParseUint(string(escape[2:6]), 16, 16)
		low, _ := strconv.ParseUint(string(escape[8:]), 16, 16)
		return []byte(string(utf16.DecodeRune(rune(high), rune(low))))
	})
	return []byte(jsonBreaks.Replace(string(data)))
}

// A guard keeps a document within the bounds: what costs much while it is parsed, the rest after.
// It implements yaml.LoaderLimitsPlugin and yaml.AliasDataPlugin.
type guard struct {
	begun   int // documents, lists and mappings while parsing
	nodes   int
	refused error
}

func (g *guard) refuse(err error) error {
	g.refused = err
	return err
}

func (g *guard) begin() error {
	if g.begun++; g.begun > mostNodes {
		return g.refuse(errNodes)
	}
	return nil
}

// CheckDepth implements yaml.LoaderLimitsPlugin.
func (g *guard) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > mostDepth {
		return g.refuse(ErrDepth)
	}
	return g.begin()
}

// CheckAlias implements yaml.LoaderLimitsPlugin. There are no aliases.
func (*guard) CheckAlias(_, _ int) error { return nil }

// NewAliasDataContext implements yaml.AliasDataPlugin.
func (g *guard) NewAliasDataContext(yaml.AliasDataServices) (yaml.AliasDataContext, error) {
	return g, nil
}

// BeginDocument implements yaml.AliasDataContext.
func (g *guard) BeginDocument() error { return g.begin() }

// EndDocument implements yaml.AliasDataContext.
func (*guard) EndDocument() error { return nil }

// DefineAnchor implements yaml.AliasDataContext.
func (g *guard) DefineAnchor(string, *yaml.Node) error { return g.refuse(ErrReferences) }

// ResolveAlias implements yaml.AliasDataContext.
func (g *guard) ResolveAlias(string) (*yaml.Node, bool, error) {
	return nil, false, g.refuse(ErrReferences)
}

// check refuses what a parsed document must not have.
func (g *guard) check(name string, n *yaml.Node) error {
	if g.nodes++; g.nodes > mostNodes {
		return &protocol.Error{Doing: place(name, n), Err: errNodes, Hint: fileHint}
	}
	if n.Style&yaml.TaggedStyle != 0 || n.Tag == "!" {
		return &protocol.Error{Doing: place(name, n), Err: ErrReferences, Hint: referencesHint}
	}
	lines := make(map[string]int)
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode {
			if err := checkKey(name, child, lines); err != nil {
				return err
			}
		}
		if err := g.check(name, child); err != nil {
			return err
		}
	}
	return nil
}

// checkKey checks a key of a mapping, whose keys before it have lines.
func checkKey(name string, key *yaml.Node, lines map[string]int) error {
	where, text := place(name, key), key.Value
	line, twice := lines[text]
	lines[text] = key.Line
	switch {
	case len(text) > mostKey:
		return &protocol.Error{Doing: where, Err: fmt.Errorf("has a key of %d bytes, and %d are the limit", len(text), mostKey), Hint: "no setting has such a name: check the quotes and the indentation"}
	case key.Tag == "!!merge":
		return &protocol.Error{Doing: where, Err: ErrReferences, Hint: referencesHint}
	case twice:
		return &protocol.Error{Doing: where + ": " + text, Err: fmt.Errorf("has a value already, in line %d", line), Hint: "leave one of them out"}
	}
	return nil
}

// isNull reports whether a node has no value.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// place returns "name:line", which editors and terminals show as a link.
func place(name string, n *yaml.Node) string { return fmt.Sprintf("%s:%d", name, n.Line) }
