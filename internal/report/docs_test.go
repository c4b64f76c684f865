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

// A field is a path of docs/report.md with its type, and the meaning that its row has.
type field struct{ path, kind, meaning string }

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
			out = append(out, field{path: prefix + tag, kind: list + kind(t, ft)})
			continue
		}
		if before, ok := seen[ft]; ok {
			out = append(out, field{path: path, kind: "like `" + before + "`"})
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
		return "integer"
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

// docRow is a row of a table: fields of one type, their type with its unit, and their meaning.
var docRow = regexp.MustCompile("(?m)^\\| (`[a-z0-9_.\\[\\]]+`(?: `[a-z0-9_.\\[\\]]+`)*) ([^|,]+)(?:, [^|]+)? \\| ([^|]+) \\|$")

// documented returns the fields of the tables of docs/report.md.
func documented(t *testing.T) (list []field, page string) {
	t.Helper()
	page = string(assert.Value(os.ReadFile("../../docs/report.md"))(t))
	for _, m := range docRow.FindAllStringSubmatch(page, -1) {
		for name := range strings.FieldsSeq(m[1]) {
			list = append(list, field{strings.Trim(name, "`"), strings.TrimSpace(m[2]), m[3]})
		}
	}
	return list, page
}

// docs/report.md has a row for every field of the document, with its type, unit
// and meaning, and no others.
func TestDocumentIsDocumented(t *testing.T) {
	rows, _ := documented(t)
	var got, want []string
	for _, row := range rows {
		if !strings.HasPrefix(row.path, "times.") {
			got = append(got, row.path+": "+row.kind)
		}
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
	rows, page := documented(t)
	var got, want []string
	for _, row := range rows {
		if name, ok := strings.CutPrefix(row.path, "times."); ok {
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
	assert.True(t, strings.Contains(page, "`"+Schema+"`"), "docs/report.md does not name the schema %s", Schema)
}

// docs/report.md lists every reason why a run ends, and every mode.
func TestValuesAreDocumented(t *testing.T) {
	list, _ := documented(t)
	meaning := make(map[string]string)
	for _, row := range list {
		meaning[row.path] = row.meaning
	}
	for r := range endings {
		assert.True(t, strings.Contains(meaning["stopped"], "`"+string(r)+"`"), "the row of stopped lacks %s", r)
	}
	for _, mode := range []load.Mode{load.OpenLoop, load.ClosedLoop, load.FullSpeed, load.Consuming} {
		assert.True(t, strings.Contains(meaning["mode"], "`"+string(mode)+"`"), "the row of mode lacks %s", mode)
	}
}
