package secret

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A span is a part of a text.
type span struct{ from, to int }

// A yamlFile knows where its tokens are.
type yamlFile struct {
	text string
	at   map[*token.Token]span
	odd  bool // what should be a name does not look like one
}

// plainName is a setting's name without quotes. What else YAML allows is more often a line
// of something else, such as "curl -H 'Authorization: x".
var plainName = regexp.MustCompile(`^[\w.\-/@$%+*<~]+(?: +[\w.\-/]+)*$`)

// readYAML reads a text whose documents are maps or lists in block style. comments are its
// comments.
func readYAML(text string) (documents []node, comments []span, err error) {
	defer asError(&err) // another project's parser reads what others wrote
	if isDeep(text) {
		return nil, nil, errGrammar
	}
	tokens := lexer.Tokenize(text)
	y := yamlFile{text: text, at: make(map[*token.Token]span, len(tokens))}
	done := 0
	for _, t := range tokens {
		origin := strings.TrimSpace(t.Origin)
		if origin == "" {
			continue
		}
		from := done + len(text[done:]) - len(strings.TrimLeft(text[done:], " \t\r\n"))
		done = from + len(origin)
		switch {
		case t.Type == token.DoubleQuoteType && strings.HasPrefix(text[from:], `"`): // its escapes may be missing
			done = quoteEnd(text, from)
		case !strings.HasPrefix(text[from:], origin):
			return nil, nil, errGrammar
		}
		y.at[t] = span{from, done}
		if t.Type == token.CommentType {
			comments = append(comments, y.at[t])
		}
	}
	if strings.TrimSpace(text[done:]) != "" {
		return nil, nil, errGrammar
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, nil, err
	}
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		n := y.node(d.Body, 0)
		if n.kind == scalar || !n.block {
			return nil, nil, errGrammar
		}
		documents = append(documents, n)
	}
	if len(documents) == 0 || y.odd {
		return nil, nil, errGrammar
	}
	return documents, comments, nil
}

// mostWithin is how many brackets or marks of YAML may be within one another: its parser
// takes a time that grows with the square of their number.
const mostWithin = 64

// isDeep reports whether brackets, or marks such as those of items and tags, are nested more
// than those of a file are.
func isDeep(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > mostWithin {
			return true
		}
	}
	marks := 0 // one behind the other
	for word := range strings.FieldsSeq(text) {
		if marks++; word != "-" && word != "?" && word[0] != '!' && word[0] != '&' {
			marks = 0
		}
		if marks > mostWithin {
			return true
		}
	}
	return false
}

// asError makes the panic of a parser an error.
func asError(err *error) {
	if recover() != nil {
		*err = errGrammar
	}
}

// node converts a value; without tokens of its own, it is at a position.
func (y *yamlFile) node(in ast.Node, at int) node {
	n := node{start: at, from: at, to: at}
	switch v := in.(type) {
	case *ast.MappingNode:
		n.kind, n.block = table, !v.IsFlowStyle
		for _, one := range v.Values {
			n.below = append(n.below, y.setting(one)...)
		}
		y.cover(&n, v.Start, v.End)
	case *ast.MappingValueNode:
		n.kind, n.block = table, true
		n.below = y.setting(v)
		y.cover(&n)
	case *ast.SequenceNode:
		n.kind, n.block = list, !v.IsFlowStyle
		for _, one := range v.Values {
			n.below = append(n.below, y.node(one, at))
		}
		y.cover(&n, v.Start, v.End)
	case *ast.TagNode:
		n = y.marked(v.Start, v.Value, at)
	case *ast.AnchorNode:
		n = y.marked(v.Start, v.Value, at)
	case *ast.AliasNode:
		n = y.marked(v.Start, v.Value, at)
	case *ast.LiteralNode:
		y.cover(&n, v.Start, v.Value.GetToken())
		n.text = y.text[n.from:n.to]
		if i := strings.IndexByte(n.text, '\n'); i >= 0 && len(strings.TrimSpace(n.text[i:])) > 0 {
			n.text = n.text[i+1:]
			head := y.text[n.from : n.from+i+1]
			n.write = func(s string) string { return head + s }
		}
	case nil:
	default:
		y.cover(&n, in.GetToken())
		n.text = y.text[n.from:n.to]
		switch {
		case strings.HasPrefix(n.text, `"`):
			n.text, n.write = in.GetToken().Value, writeJSON
		case strings.HasPrefix(n.text, "'"):
			n.text = in.GetToken().Value
			n.write = func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
		}
	}
	return n
}

// marked is a value with a tag or an anchor.
func (y *yamlFile) marked(mark *token.Token, value ast.Node, at int) node {
	n := y.node(value, at)
	from := n.from
	y.cover(&n, mark)
	if n.write == nil && n.kind == scalar && from > n.from {
		head := y.text[n.from:from]
		n.write = func(s string) string { return head + s }
	} else if write := n.write; write != nil {
		head := y.text[n.from:from]
		n.write = func(s string) string { return head + write(s) }
	}
	return n
}

// setting is a setting of a map, and its name as a value, which may have a secret if the
// text is not what its grammar says.
func (y *yamlFile) setting(v *ast.MappingValueNode) []node {
	at := y.at[v.Start].to
	var name ast.Node = v.Key
	if long, ok := name.(*ast.MappingKeyNode); ok { // ? name
		name = long.Value
	}
	key := y.node(name, at)
	n := y.node(v.Value, at)
	n.name, n.start = strings.TrimSpace(key.text), key.from
	if n.kind == scalar && n.to > n.from && strings.Contains(y.text[at:n.from], "\n") {
		n.block = true
	}
	if n.kind == scalar || !n.block {
		// What looks like a comment behind a secret belongs to it if the text is one of
		// properties.
		rest := strings.TrimRight(y.text[n.to:n.to+lineLength(y.text[n.to:])], " \t\r")
		if body := strings.TrimLeft(rest, " \t"); isLikelyName(n.name) && strings.HasPrefix(body, "#") {
			if n.from == n.to {
				n.from += len(rest) - len(body)
			}
			n.to += len(rest)
		}
	}
	if key.write == nil && (!plainName.MatchString(n.name) || strings.Contains(n.name, " ") && secretWord.MatchString(n.name)) {
		y.odd = true
	}
	key.name, key.isName = "", true
	return []node{n, key}
}

// cover extends a node to what is below it, and to tokens.
func (y *yamlFile) cover(n *node, tokens ...*token.Token) {
	first := n.from == n.to
	extend := func(from, to int) {
		if first {
			n.from, n.to, first = from, to, false
		}
		n.from, n.to = min(n.from, from), max(n.to, to)
	}
	for _, b := range n.below {
		if b.start < b.to {
			extend(b.start, b.to)
		}
	}
	for _, t := range tokens {
		if s, ok := y.at[t]; ok {
			extend(s.from, s.to)
		}
	}
	n.start = n.from
}
