package mongoose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"carronade/internal/secret"
)

// Limits of a document with options. The parser takes a time that grows with the square of the
// depth of brackets.
const (
	mostOptions  = 64 << 10 // bytes
	mostBrackets = 64       // that are open
	mostSections = 8        // within each other
)

// read gives options the values of a document, YAML or JSON, with the sections of options as maps.
func (v *values) read(text []byte) error {
	doc, err := parseOptions(text)
	if err != nil {
		return err
	}
	return v.readMap("", doc, 0)
}

// parseOptions parses a document of others. It has values and sections alone: a short one with
// aliases would stand for a long one.
func parseOptions(text []byte) (doc yaml.MapSlice, err error) {
	// The parser has a history of panics on malformed input.
	defer func() {
		if p := recover(); p != nil {
			doc, err = nil, errors.New("neither YAML nor JSON")
		}
	}()
	switch {
	case len(text) > mostOptions:
		return nil, fmt.Errorf("the options have at most %d KiB", mostOptions>>10)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, nil
	case isDeep(text):
		return nil, errDeep
	}
	invalid := func(err error) error {
		line, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
		return fmt.Errorf("neither YAML nor JSON: %s", line)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, invalid(err)
	}
	var found references
	for _, d := range file.Docs {
		if d != nil && d.Body != nil {
			ast.Walk(&found, d.Body)
		}
	}
	if found {
		return nil, errors.New("options have no anchors, aliases, tags and merged maps: write the values")
	}
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.UseOrderedMap()); err != nil {
		return nil, invalid(err)
	}
	return doc, nil
}

var errDeep = errors.New("the sections are too deep")

// isDeep reports whether more brackets are open at some place than a document with options has.
func isDeep(text []byte) bool {
	open := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		}
		if open > mostBrackets {
			return true
		}
	}
	return false
}

// references reports whether a document refers to itself or to types.
type references bool

// Visit implements ast.Visitor.
func (r *references) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		*r = true
		return nil
	}
	return r
}

func (v *values) readMap(above string, doc yaml.MapSlice, depth int) error {
	if depth > mostSections {
		return errDeep
	}
	for _, item := range doc {
		key, ok := item.Key.(string)
		if !ok {
			return fmt.Errorf("%v is not the name of an option", item.Key)
		}
		name := strings.TrimPrefix(above+"-"+key, "-")
		if name == "aliasing" {
			continue // mongoose's own document has its aliases there
		}
		if sub, is := item.Value.(yaml.MapSlice); is && (find(name) == nil || find(name).kind != tMap) {
			if err := v.readMap(name, sub, depth+1); err != nil {
				return err
			}
			continue
		}
		if err := v.readValue(name, item.Value); err != nil {
			return err
		}
	}
	return nil
}

func (v *values) readValue(name string, value any) error {
	to, hint, err := resolve(name, false)
	if err != nil {
		if hint != "" {
			err = fmt.Errorf("%w (%s)", err, hint)
		}
		return err
	}
	if to.option == nil {
		if to.refused != "" && value != nil {
			return fmt.Errorf("%s: %s", dotted(name), to.refused)
		}
		return nil // it does nothing here
	}
	texts, err := textsOf(value)
	if err != nil {
		return fmt.Errorf("%s: %w", dotted(name), err)
	}
	if len(texts) == 1 && to.option.kind != tMap && to.option.kind != tList {
		if java := to.option.check(texts[0]); java != "" {
			return fmt.Errorf("%s: %q is not a %s", dotted(name), texts[0], strings.ToLower(java))
		}
	}
	if to.value != "" {
		texts = []string{to.value}
	}
	v.set(to.option, texts)
	return nil
}

// textsOf is a value as values.set takes it.
func textsOf(value any) ([]string, error) {
	switch x := value.(type) {
	case nil:
		return nil, nil
	case yaml.MapSlice:
		var all []string
		for _, item := range x {
			name, err := textOfOne(item.Key)
			if err != nil {
				return nil, err
			}
			value, err := textOfOne(item.Value)
			if err != nil {
				return nil, err
			}
			all = append(all, name, value)
		}
		return all, nil
	case []any:
		var parts []string
		for _, one := range x {
			part, err := textOfOne(one)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		return []string{strings.Join(parts, ",")}, nil
	}
	one, err := textOfOne(value)
	return []string{one}, err
}

// textOfOne is a single value as text, "" without one.
func textOfOne(value any) (string, error) {
	switch x := value.(type) {
	case nil:
		return "", nil
	case string, bool, int64, uint64, float64, int:
		return fmt.Sprint(x), nil
	}
	return "", errors.New("a list or a map is within a value")
}

// tree is all options as sections, with of as their values.
func tree(is43 bool, of func(o *option) any) map[string]any {
	root := map[string]any{}
	for i := range options {
		o := &options[i]
		if !inVersion(o, is43) {
			continue
		}
		parts := strings.Split(o.name, "-")
		at := root
		for _, part := range parts[:len(parts)-1] {
			next, ok := at[part].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[part] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = of(o)
	}
	return root
}

// inVersion reports whether 4.2 or 4.3 has an option: each has one that the other has not.
func inVersion(o *option, is43 bool) bool {
	return !(o.name == "load-op-recycle" && is43 || strings.HasPrefix(o.name, "load-op-recycle-") && !is43)
}

// jsonValue is the value of an option in JSON.
func (v *values) jsonValue(o *option) any {
	text := v.text(o.name)
	switch {
	case o.kind == tList:
		return slices.Concat([]string{}, v.list(o.name))
	case o.kind == tMap:
		pairs, _ := v.pairs(o.name)
		all := map[string]string{}
		for _, p := range pairs {
			all[p[0]] = p[1]
		}
		return all
	case text == "":
		return nil
	case o.kind == tBool:
		return v.flag(o.name)
	case o.kind == tInt || o.kind == tLong:
		return v.number(o.name)
	case o.kind == tDouble:
		return v.float(o.name)
	}
	return text
}

// wantsJSON reports whether an answer is JSON; otherwise it is YAML.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "json") && !strings.Contains(accept, "yaml")
}

func writeJSON(w http.ResponseWriter, doc any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(doc) //nolint:errcheck // who asked has gone
}

// public returns a copy without secrets. Others can read it over the API.
func (v *values) public() *values {
	c, mask := v.clone(), new(secret.Mask)
	for name, text := range v.given {
		o := find(name)
		if o.kind != tMap {
			c.given[name] = mask.Value(name, text)
			continue
		}
		pairs, err := v.pairs(name)
		if err != nil {
			c.given[name] = secret.Hidden
			continue
		}
		var shown []string
		same := true
		for _, p := range pairs {
			value := mask.Value(p[0], p[1])
			same = same && value == p[1]
			shown = append(shown, p[0], value)
		}
		if !same {
			c.set(o, shown)
		}
	}
	return c
}

// is43 reports whether the API is that of 4.3, not that of 4.2.
func (a *api) is43() bool { return a.program.Generation == "4.3" }

// getConfig answers with all options and their defaults.
func (a *api) getConfig(w http.ResponseWriter, r *http.Request) {
	v := a.defaults.public()
	a.writeOptions(w, r, v.jsonValue, v.yamlValue)
}

// getSchema answers with all options and their types.
func (a *api) getSchema(w http.ResponseWriter, r *http.Request) {
	a.writeOptions(w, r, func(o *option) any { return o.kind }, func(o *option) string { return strconv.Quote(o.kind) })
}

// writeOptions answers with all options, and with what they have in JSON or in YAML.
func (a *api) writeOptions(w http.ResponseWriter, r *http.Request, inJSON func(o *option) any, inYAML func(o *option) string) {
	if wantsJSON(r) {
		writeJSON(w, tree(a.is43(), inJSON))
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Write([]byte(optionsDocument(a.is43(), inYAML))) //nolint:errcheck // who asked has gone
}
