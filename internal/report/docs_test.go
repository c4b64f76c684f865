package report

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A field is a row of docs/report.md: a path and a type.
type field struct{ path, kind string }

// fields lists the JSON of a type, a row per name. A type that was already
// listed is one row, "like ..." with its first path.
func fields(t *testing.T, typ reflect.Type, prefix string, seen map[reflect.Type]string) []field {
	t.Helper()
	var out []field
	for f := range typ.Fields() {
		if !f.IsExported() {
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if f.Anonymous && tag == "" {
			out = append(out, fields(t, ft, prefix, seen)...)
			continue
		}
		assert.Must(t, tag != "", "%s.%s has no JSON name", typ, f.Name)
		if tag == "-" {
			continue
		}
		path, list := prefix+tag, ""
		if ft.Kind() == reflect.Slice {
			ft, path, list = ft.Elem(), path+"[]", "list of "
		}
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() != reflect.Struct || ft == reflect.TypeFor[time.Time]() || ft == reflect.TypeFor[measure.Summary]() {
			out = append(out, field{prefix + tag, list + kind(t, ft)})
			continue
		}
		if before, ok := seen[ft]; ok {
			out = append(out, field{path, "like `" + before + "`"})
			continue
		}
		seen[ft] = path
		out = append(out, fields(t, ft, path+".", seen)...)
	}
	return out
}

func kind(t *testing.T, typ reflect.Type) string {
	t.Helper()
	switch typ {
	case reflect.TypeFor[time.Time]():
		return "RFC 3339"
	case reflect.TypeFor[measure.Summary]():
		return "times"
	}
	switch typ.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Map:
		return "object"
	case reflect.Interface:
		return "any"
	}
	t.Fatalf("no word for %s", typ)
	return ""
}

var docRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_.\\[\\]]+)` \\| ([^|]+) \\| ([^|]*) \\| ([^|]+) \\|$")

// docs/report.md has a row for every field of the document, with its type, unit
// and meaning, and no others.
func TestDocumentIsDocumented(t *testing.T) {
	page := assert.Value(os.ReadFile("../../docs/report.md"))(t)
	var got, want []string
	for _, m := range docRow.FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(m[1], "times.") {
			continue
		}
		got = append(got, m[1]+": "+strings.TrimSpace(m[2]))
	}
	for _, f := range fields(t, reflect.TypeFor[Document](), "", map[reflect.Type]string{}) {
		want = append(want, f.path+": "+f.kind)
	}
	assert.Must(t, len(want) >= 100, "the document has %d fields?", len(want))
	slices.Sort(got)
	slices.Sort(want)
	assert.Same(t, got, want, "fields and rows of docs/report.md")
}

// The documented rows of a time are those of a summary.
func TestTimesAreDocumented(t *testing.T) {
	page := assert.Value(os.ReadFile("../../docs/report.md"))(t)
	var got, want []string
	for _, m := range docRow.FindAllStringSubmatch(string(page), -1) {
		if name, ok := strings.CutPrefix(m[1], "times."); ok {
			got = append(got, name)
		}
	}
	data := assert.Value(json.Marshal(measure.Summarize(measure.NewHistogram(), nil, nil)))(t)
	var names map[string]any
	assert.OK(t, json.Unmarshal(data, &names))
	for name := range names {
		want = append(want, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	assert.Same(t, got, want, "fields and rows of docs/report.md")
	assert.True(t, strings.Contains(string(page), "`"+Schema+"`"), "docs/report.md does not name the schema %s", Schema)
}

// docs/report.md lists every reason why a run ends, and every mode.
func TestValuesAreDocumented(t *testing.T) {
	page := assert.Value(os.ReadFile("../../docs/report.md"))(t)
	rows := make(map[string]string)
	for _, m := range docRow.FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = m[4]
	}
	for r := range endings {
		assert.True(t, strings.Contains(rows["stopped"], "`"+string(r)+"`"), "the row of stopped lacks %s", r)
	}
	for _, mode := range []load.Mode{load.OpenLoop, load.ClosedLoop, load.FullSpeed, load.Consuming} {
		assert.True(t, strings.Contains(rows["mode"], "`"+string(mode)+"`"), "the row of mode lacks %s", mode)
	}
}
