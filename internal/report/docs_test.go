package report

import (
	"encoding/json"
	"math/rand/v2"
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

// fields lists the JSON of a type, a row per name. A type that was already listed is one row, "like ..." with its first path.
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
var docRow = regexp.MustCompile("(?m)^\\| (`[a-z0-9_.,{}\\[\\]]+`(?: `[a-z0-9_.,{}\\[\\]]+`)*) ([^|,]+)(?:, [^|]+)? \\| ([^|]+) \\|$")

// documented returns the fields of the tables of docs/report.md.
func documented(t *testing.T) (list []field, page string) {
	t.Helper()
	page = string(assert.Value(os.ReadFile("../../docs/report.md"))(t))
	for _, m := range docRow.FindAllStringSubmatch(page, -1) {
		for name := range strings.FieldsSeq(m[1]) {
			prefix, last, joined := strings.Cut(strings.Trim(name, "`"), "{") // a.{b,c}: a.b and a.c
			if !joined {
				prefix, last = "", prefix
			}
			for one := range strings.SplitSeq(strings.TrimSuffix(last, "}"), ",") {
				list = append(list, field{prefix + one, strings.TrimSpace(m[2]), m[3]})
			}
		}
	}
	return list, page
}

// docs/report.md has a row for every field of the document, with its type, unit and meaning, and no others.
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

// The citation is a command line for the same workload.
func TestCiteIsACommand(t *testing.T) {
	d := &Document{
		Op: "produce", Target: "kafka://h:9092/t?x=1",
		Workload: map[string]any{"header": []any{"a=1", "b=two words", "c=it's"}, "verify": true, "fresh": false, "rate": "10k", "partitions": "0,1"},
		Settings: []Setting{
			{Name: "target", Value: "kafka://h:9092/t?x=1", Independent: true},
			{Name: "op", Value: "produce", Independent: true},
			{Name: "rate", Value: "10k", Independent: true},
			{Name: "header", Type: "list", Value: "a=1 b=two words c=it's", Independent: true},
			{Name: "verify", Type: "boolean", Value: "true", Independent: true},
			{Name: "fresh", Type: "boolean", Value: "false", Independent: true},
			{Name: "partitions", Value: "0,1", Independent: true},
			{Name: "linger", Value: "5ms", Independent: true, Default: true},
			{Name: "quiet", Value: "true"},
		},
	}
	want := `'kafka://h:9092/t?x=1' --op produce --rate 10k --header a=1 --header 'b=two words' --header 'c=it'\''s' --verify --fresh=false --partitions 0,1`
	assert.Equal(t, d.CommandArgs(), want)
	d.Workload = struct {
		Verify bool `json:"verify"`
	}{true} // as in a report that was just made
	got := d.CommandArgs()
	assert.True(t, strings.Contains(got, " --verify --fresh"), "got %s, want only the switch", got)
}

// Nothing is known about a run that was killed before its first interval, not even that nothing failed.
func TestCiteOfNothing(t *testing.T) {
	d := &Document{Op: "produce", Target: "null://"}
	d.Totals.RateOf = RateAcked
	got := Cite(d)
	assert.True(t, !strings.Contains(got, "no failures") && strings.Contains(got, "no event was counted"), "got %s", got)
}

// An output is read back as it was, and keeps its end if it is too large.
func TestOutput(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var noise strings.Builder
	for range 4000 {
		for range 50 {
			noise.WriteByte(byte('!' + rnd.IntN(90)))
		}
		noise.WriteByte('\n')
	}
	for _, tt := range []struct {
		name, text string
		cut        int64
		most       int
		shortened  bool
	}{
		{"a log", strings.Repeat("a line\n", 1000), 0, 1 << 20, false},
		{"the end of one", "a line\n", 99, 1 << 20, false},
		{"one that does not compress", noise.String(), 5, 50_000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutput(tt.text, tt.cut, tt.most)
			b := assert.Value(json.Marshal(o))(t)
			var read Output
			assert.OK(t, json.Unmarshal(b, &read))
			got := assert.Value(read.Text())(t)
			assert.True(t, strings.HasSuffix(tt.text, got) && got != "" && (got != tt.text) == tt.shortened,
				"got %d bytes of %d", len(got), len(tt.text))
			assert.True(t, o.Bytes == int64(len(got)) && o.CutBytes-tt.cut == int64(len(tt.text)-len(got)) && len(o.Gzip) <= tt.most*4/3+4,
				"got %d bytes after %d, in %d", o.Bytes, o.CutBytes, len(o.Gzip))
			before := tt.text[:len(tt.text)-len(got)]
			assert.True(t, before == "" || strings.HasSuffix(before, "\n"), "it begins in the middle of a line")
		})
	}
	assert.True(t, NewOutput("", 0) == nil, "nothing printed is something")
}

// FuzzOutput: any stored text gives either a bounded text or an error.
func FuzzOutput(f *testing.F) {
	f.Add(newOutput("a line\n", 0, 1<<20).Gzip)
	f.Add("H4sI")
	f.Add("")
	f.Fuzz(func(t *testing.T, stored string) {
		text, err := (&Output{Gzip: stored}).Text()
		assert.True(t, err != nil || len(text) <= 2*mostOutput, "%d bytes", len(text))
	})
}
