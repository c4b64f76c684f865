package workload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"

	places "carronade/internal/place"
	"carronade/protocol"
)

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
	e := &protocol.Error{Doing: name, Err: fmt.Errorf("cannot read the workload: %w", err)}
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
	if isReport.Match(data[:min(len(data), 512)]) {
		return nil, &protocol.Error{
			Doing: name, Err: errors.New("is a report, not a workload"),
			Hint: `run the report's workload again with carronade report import FILE and carronade report replay ID; or put only the object "workload" of the report into a file`,
		}
	}
	body, err := ParseYAML(name, data)
	switch {
	case err != nil:
		return nil, err
	case body == nil:
		return nil, &protocol.Error{Doing: name, Err: errors.New("is empty"), Hint: fileHint}
	}
	items := []*yaml.Node{body}
	if body.Kind == yaml.SequenceNode && several {
		if items = body.Content; len(items) == 0 {
			return nil, &protocol.Error{Doing: name, Err: errors.New("is a list without a workload"), Hint: fileHint}
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

// document reads the mapping that is a workload.
func document(name string, body *yaml.Node) (*Document, error) {
	if body.Kind != yaml.MappingNode {
		return nil, &protocol.Error{Doing: place(name, body), Err: errors.New("must be a mapping of settings to values"), Hint: fileHint}
	}
	doc := new(Document)
	for pair := range slices.Chunk(body.Content, 2) {
		key, err := scalar(pair[0])
		if err != nil {
			return nil, &protocol.Error{Doing: place(name, pair[0]), Err: fmt.Errorf("a key %w", err), Hint: fileHint}
		}
		e := Entry{Name: key, Where: place(name, pair[0]) + ": " + key}
		if key == partsKey {
			if doc.Parts, err = parts(name, e.Where, pair[1]); err != nil {
				return nil, err
			}
			continue
		}
		if e.Values, err = values(pair[1]); err != nil {
			return nil, &protocol.Error{Doing: e.Where, Err: err}
		}
		doc.Entries = append(doc.Entries, e)
	}
	return doc, nil
}

// partsKey is the key of the parts.
const partsKey = "parts"

// parts reads the sequence of mappings that are the parts of a workload.
func parts(name, where string, list *yaml.Node) ([]*Document, error) {
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, &protocol.Error{Doing: where, Err: errors.New("must be a list of mappings, one for each load"), Hint: "such as - {weight: 20, op: produce}"}
	}
	var out []*Document
	for _, item := range list.Content {
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

// values are the texts of a scalar, a sequence of scalars, or a mapping of
// scalars as NAME=VALUE.
func values(n *yaml.Node) (out []string, err error) {
	switch n.Kind {
	case yaml.MappingNode:
		for pair := range slices.Chunk(n.Content, 2) {
			k, err := scalar(pair[0])
			if err != nil {
				return nil, err
			}
			v, err := scalar(pair[1])
			if err != nil {
				return nil, fmt.Errorf("%s %w", k, err)
			}
			out = append(out, k+"="+v)
		}
		return out, nil
	case yaml.SequenceNode:
		for _, item := range n.Content {
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
func scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("must be a plain value")
	case isNull(n):
		return "", errors.New("has no value")
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return strings.TrimRight(n.Value, "\n"), nil
	}
	return n.Value, nil
}
