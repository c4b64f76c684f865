package mongoose

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"carronade/internal/secret"
	"carronade/internal/workload"
)

// Limits of a document with options.
const (
	mostOptions  = 64 << 10 // bytes
	mostSections = 8        // within each other
)

var errDeep = errors.New("the sections are too deep")

// read gives options the values of a document, YAML or JSON, with the sections of options as maps.
func (v *values) read(text []byte) error {
	if len(text) > mostOptions {
		return fmt.Errorf("the options have at most %d KiB", mostOptions>>10)
	}
	doc, err := workload.ParseYAML("options", text)
	switch {
	case errors.Is(err, workload.ErrDepth):
		return errDeep
	case errors.Is(err, workload.ErrReferences):
		return errors.New("options have no anchors, aliases, tags and merged maps: write the values")
	case err != nil:
		return fmt.Errorf("neither YAML nor JSON: %w", err)
	case doc == nil:
		return nil
	case doc.Kind != yaml.MappingNode:
		return fmt.Errorf("options:%d: must be sections of options", doc.Line)
	}
	return v.readMap("", doc, 0)
}

func (v *values) readMap(above string, doc *yaml.Node, depth int) error {
	if depth > mostSections {
		return errDeep
	}
	for pair := range slices.Chunk(doc.Content, 2) {
		key, value := pair[0], pair[1]
		if key.Tag != "!!str" {
			return fmt.Errorf("options:%d: %q is not the name of an option", key.Line, key.Value)
		}
		name := strings.TrimPrefix(above+"-"+key.Value, "-")
		if name == "aliasing" {
			continue // mongoose's own document has its aliases there
		}
		if value.Kind == yaml.MappingNode && (find(name) == nil || find(name).kind != tMap) {
			if err := v.readMap(name, value, depth+1); err != nil {
				return err
			}
			continue
		}
		if err := v.readValue(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (v *values) readValue(name string, value *yaml.Node) error {
	to, hint, err := resolve(name, false)
	if err != nil {
		if hint != "" {
			err = fmt.Errorf("%w (%s)", err, hint)
		}
		return err
	}
	if to.option == nil {
		if to.refused != "" && value.Tag != "!!null" {
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
func textsOf(value *yaml.Node) ([]string, error) {
	if value.Tag == "!!null" {
		return nil, nil
	}
	if value.Kind == yaml.ScalarNode {
		one, err := textOfOne(value)
		return []string{one}, err
	}
	var all []string
	for _, n := range value.Content {
		one, err := textOfOne(n)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if value.Kind == yaml.SequenceNode {
		return []string{strings.Join(all, ",")}, nil
	}
	return all, nil
}

// textOfOne is a single value as text, "" without one. A number is in decimal digits.
func textOfOne(value *yaml.Node) (string, error) {
	if value.Kind != yaml.ScalarNode {
		return "", errors.New("a list or a map is within a value")
	}
	switch value.Tag {
	case "!!null":
		return "", nil
	case "!!bool", "!!int", "!!float":
		var x any
		err := value.Decode(&x)
		if f, ok := x.(float64); ok {
			return strconv.FormatFloat(f, 'f', -1, 64), err
		}
		return fmt.Sprint(x), err
	}
	return value.Value, nil
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
