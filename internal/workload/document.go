package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	places "carronade/internal/place"
)

// maxDocument limits a workload file. A larger file is a mistake.
const maxDocument = 1 << 20

// A Document has settings as written, not yet checked.
type Document struct {
	Entries []Entry
	// Parts are several loads that run as one; see the package. The entries are those of the
	// whole.
	Parts []*Document
}

// An Entry is one setting as written.
type Entry struct {
	Name   string   // of the setting, or "target"
	Values []string // as typed; several only for a list
	Where  string   // "--rate", or "load.yaml:3: rate"
}

// Add appends what was given for a setting. A list collects the values of
// several entries, anything else keeps the last.
func (d *Document) Add(name, where string, values ...string) {
	d.Entries = append(d.Entries, Entry{Name: name, Values: values, Where: where})
}

// ReadFile reads a workload file: one workload, or a list of them.
func ReadFile(path string) ([]*Document, error) {
	f, err := places.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	return Read(path, f)
}

// Read reads workloads to the end. Name is used in errors.
func Read(name string, r io.Reader) ([]*Document, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	return ParseDocuments(name, data)
}

func unreadable(name string, err error) error {
	if inner, ok := errors.AsType[*os.PathError](err); ok {
		err = inner.Err // the message already has the path
	}
	e := &Error{Where: name, Err: fmt.Errorf("cannot read the workload: %w", err)}
	if errors.Is(err, syscall.EISDIR) {
		e.Hint = "give a file in it"
	}
	return e
}

// ParseDocument reads a workload written in YAML (or JSON, which is YAML): one
// mapping whose keys are settings. Values stay as written, so that they mean the same as in
// flags. A list is a sequence, or a mapping of names to values if its entries are NAME=VALUE.
// Name is used in errors.
func ParseDocument(name string, data []byte) (*Document, error) {
	docs, err := parse(name, data, false)
	if err != nil {
		return nil, err
	}
	return docs[0], nil
}

// ParseDocuments reads one workload, as ParseDocument does, or a sequence of
// them. There is at least one.
func ParseDocuments(name string, data []byte) ([]*Document, error) { return parse(name, data, true) }

func parse(name string, data []byte, several bool) (docs []*Document, err error) {
	// The parser has a history of panics on malformed input.
	defer func() {
		if p := recover(); p != nil {
			docs, err = nil, &Error{Where: name, Err: errors.New("is not valid YAML"), Hint: fileHint}
		}
	}()
	if isReport.Match(data[:min(len(data), 512)]) {
		return nil, &Error{
			Where: name, Err: errors.New("is a report, not a workload"),
			Hint: `run the report's workload again with carronade report import FILE and carronade report replay ID; or put only the object "workload" of the report into a file`,
		}
	}
	body, err := parseYAML(name, data)
	if err != nil {
		return nil, err
	}
	items := []ast.Node{body}
	if list, ok := body.(*ast.SequenceNode); ok && several {
		if items = list.Values; len(items) == 0 {
			return nil, &Error{Where: name, Err: errors.New("is a list without a workload"), Hint: fileHint}
		}
	}
	for _, item := range items {
		doc, err := document(name, item)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// parseYAML returns the only document of the text.
func parseYAML(name string, data []byte) (body ast.Node, err error) {
	if len(data) > maxDocument {
		return nil, &Error{Where: name, Err: fmt.Errorf("is larger than %d KiB, the limit of a workload", maxDocument>>10), Hint: fileHint}
	}
	file, err := parseTokens(name, data)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Docs {
		if d == nil || d.Body == nil || d.Body.Type() == ast.NullType {
			continue
		}
		if body != nil {
			return nil, &Error{
				Where: place(name, d.Body), Err: errors.New("a second document begins here, but a file is one document"),
				Hint: "write several workloads as a list, each after a dash",
			}
		}
		body = d.Body
	}
	if body == nil {
		return nil, &Error{Where: name, Err: errors.New("is empty"), Hint: fileHint}
	}
	return body, nil
}

// document reads the mapping that is a workload.
func document(name string, body ast.Node) (*Document, error) {
	pairs, ok := mapping(body)
	if !ok {
		return nil, &Error{Where: place(name, body), Err: errors.New("must be a mapping of settings to values"), Hint: fileHint}
	}
	doc := new(Document)
	for _, pair := range pairs {
		key, err := scalar(pair.Key)
		if err != nil {
			return nil, &Error{Where: place(name, pair.Key), Err: fmt.Errorf("a key %w", err), Hint: fileHint}
		}
		if key == partsKey {
			if doc.Parts, err = parts(name, pair); err != nil {
				return nil, err
			}
			continue
		}
		e := Entry{Name: key, Where: place(name, pair.Key) + ": " + key}
		if e.Values, err = values(pair.Value); err != nil {
			return nil, &Error{Where: e.Where, Err: err}
		}
		doc.Entries = append(doc.Entries, e)
	}
	return doc, nil
}

// partsKey is the key of the parts.
const partsKey = "parts"

// parts reads the sequence of mappings that are the parts of a workload.
func parts(name string, pair *ast.MappingValueNode) ([]*Document, error) {
	where := place(name, pair.Key) + ": " + partsKey
	list, ok := pair.Value.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return nil, &Error{Where: where, Err: errors.New("must be a list of mappings, one for each load"), Hint: "such as - {weight: 20, op: produce}"}
	}
	var out []*Document
	for _, item := range list.Values {
		doc, err := document(name, item)
		if err != nil {
			return nil, err
		}
		out = append(out, doc)
	}
	return out, nil
}

// isReport recognizes the beginning of a report as JSON, or of a list of them.
var isReport = regexp.MustCompile(`^\s*\[?\s*\{\s*"schema"\s*:\s*"carronade\.report/`)

const fileHint = "a workload file has lines such as \"rate: 50k/s\"; the keys are the names of the flags"

// place returns "name:line", which editors and terminals show as a link.
func place(name string, n ast.Node) string {
	if n == nil {
		return name
	}
	return lineOf(name, n.GetToken())
}

func yamlError(name string, data []byte, err error) error {
	var e yaml.Error
	if !errors.As(err, &e) {
		return &Error{Where: name, Err: err, Hint: fileHint}
	}
	out := &Error{Where: lineOf(name, e.GetToken()), Err: errors.New(e.GetMessage()), Hint: fileHint}
	if t := e.GetToken(); t != nil && t.Position != nil && tabIndents(data, t.Position.Line) {
		out.Hint = fmt.Sprintf("line %d is indented with a tab: use spaces", t.Position.Line)
	}
	return out
}

// tabIndents reports whether there is a tab before the text of a line.
func tabIndents(data []byte, number int) bool {
	for line := range bytes.Lines(data) {
		if number--; number == 0 {
			text := bytes.TrimLeft(line, " \t")
			return bytes.ContainsRune(line[:len(line)-len(text)], '\t')
		}
	}
	return false
}

func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// values are the texts of a scalar, a sequence of scalars, or a mapping of
// scalars as NAME=VALUE.
func values(n ast.Node) ([]string, error) {
	if pairs, ok := mapping(n); ok {
		var out []string
		for _, pair := range pairs {
			k, err := scalar(pair.Key)
			if err != nil {
				return nil, err
			}
			v, err := scalar(pair.Value)
			if err != nil {
				return nil, fmt.Errorf("%s %w", k, err)
			}
			out = append(out, k+"="+v)
		}
		return out, nil
	}
	if list, ok := n.(*ast.SequenceNode); ok {
		var out []string
		for _, item := range list.Values {
			v, err := scalar(item)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	v, err := scalar(n)
	if err != nil {
		return nil, err
	}
	return []string{v}, nil
}

// scalar is a scalar's text as written, without its quotes: 50_000, 10s and 1e6 arrive as they
// would from a command line.
func scalar(n any) (string, error) {
	switch n := n.(type) {
	case *ast.LiteralNode:
		return strings.TrimRight(n.Value.Value, "\n"), nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return strings.TrimSpace(n.(ast.Node).GetToken().Value), nil
	case *ast.NullNode:
		return "", errors.New("has no value")
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.TagNode:
		return "", errNoReferences
	}
	return "", errors.New("must be a plain value")
}
