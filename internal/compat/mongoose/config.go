package mongoose

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// read gives options the values of a document, YAML or JSON, with the sections of options as maps.
func (v *values) read(text []byte) error {
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil
	}
	var doc yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.UseOrderedMap()); err != nil {
		line, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
		return fmt.Errorf("neither YAML nor JSON: %s", line)
	}
	return v.readMap("", doc, 0)
}

func (v *values) readMap(above string, doc yaml.MapSlice, depth int) error {
	if depth > 8 {
		return errors.New("the sections are too deep")
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
			all = append(all, fmt.Sprint(item.Key), fmt.Sprint(item.Value))
		}
		return all, nil
	case []any:
		var parts []string
		for _, one := range x {
			parts = append(parts, fmt.Sprint(one))
		}
		return []string{strings.Join(parts, ",")}, nil
	case string, bool, int64, uint64, float64, int:
		return []string{fmt.Sprint(x)}, nil
	}
	return nil, fmt.Errorf("a value of the type %T", value)
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

// getConfig answers with all options and their defaults.
func (a *api) getConfig(w http.ResponseWriter, r *http.Request) {
	is43 := a.program.Generation == "4.3"
	if wantsJSON(r) {
		writeJSON(w, tree(is43, a.defaults.jsonValue))
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Write([]byte(a.defaults.config(is43))) //nolint:errcheck // who asked has gone
}

// getSchema answers with all options and their types.
func (a *api) getSchema(w http.ResponseWriter, r *http.Request) {
	is43 := a.program.Generation == "4.3"
	if wantsJSON(r) {
		writeJSON(w, tree(is43, func(o *option) any { return o.kind }))
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Write([]byte(optionsDocument(is43, func(o *option) string { return strconv.Quote(o.kind) }))) //nolint:errcheck // who asked has gone
}

// fileOptions are the options that name files.
var fileOptions = []string{"item-data-input-file", "item-input-file", "item-output-file"}

// confine has the files that options name be in the folder of those of the remote API.
func (v *values) confine() error {
	if v.confined == "" {
		return nil
	}
	for _, name := range fileOptions {
		file := v.text(name)
		if file == "" || strings.HasPrefix(file, v.confined+string(filepath.Separator)) && filepath.Clean(file) == file {
			continue
		}
		if !filepath.IsLocal(file) {
			return fmt.Errorf("--%s: a run of the remote API names only files in %s: give a name without .. and without a leading /", name, v.confined)
		}
		v.given[name] = filepath.Join(v.confined, file)
	}
	return nil
}
