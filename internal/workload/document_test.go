package workload

import (
	"carronade/internal/testkit/assert"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseDocument(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     map[string][]string
	}{
		{"texts stay as written", "rate: 50_000\nfor: 20s\ncount: 1e6\nsize: '100-2000'\nverify: true\n", map[string][]string{
			"rate": {"50_000"}, "for": {"20s"}, "count": {"1e6"}, "size": {"100-2000"}, "verify": {"true"},
		}},
		{"lists and mappings", "header: [a=1, b=2]\nlabel: {team: payments, n: 3}\n", map[string][]string{
			"header": {"a=1", "b=2"}, "label": {"team=payments", "n=3"},
		}},
		{"one line", "rate: 1/s", map[string][]string{"rate": {"1/s"}}},
		{"JSON", `{"rate": 5, "for": "1s"}`, map[string][]string{"rate": {"5"}, "for": {"1s"}}},
		{"comments", "# a comment\nrate: 1/s # another\n", map[string][]string{"rate": {"1/s"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := ParseDocument("f.yaml", []byte(tt.in))
			assert.OK(t, err)
			got := map[string][]string{}
			for _, e := range doc.Entries {
				got[e.Name] = e.Values
			}
			assert.Same(t, got, tt.want)
		})
	}
}

func TestParseDocumentFaults(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", "is empty"},
		{"only a comment", "# nothing\n", "is empty"},
		{"a list", "- a\n- b\n", "must be a mapping"},
		{"two documents", "rate: 1\n---\nrate: 2\n", "second document"},
		{"a key twice", "rate: 1\nrate: 2\n", "f.yaml:2"},
		{"no value", "rate:\n", "has no value"},
		{"nested", "rate: {a: {b: c}}\n", "must be a plain value"},
		{"an anchor", "rate: &a 1\nfor: *a\n", "anchors"},
		{"a tab", "rate:\n\t- 1\n", "f.yaml:2"},
		{"a report", "{\n  \"schema\": \"carronade.report/1\",\n  \"trust\": {\"reasons\": []}}", "is a report"},
		{"a large report", `{"schema":"carronade.report/1","a":"` + strings.Repeat("a", maxDocument) + `"}`, "is a report"},
		{"a list of reports", `[{"schema":"carronade.report/1"}]`, "is a report"},
		{"too large", strings.Repeat("#", maxDocument+1), "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseDocument("f.yaml", []byte(tt.in))
			assert.Must(t, err != nil, "got no error")
			if got := err.Error(); !strings.HasPrefix(got, "f.yaml") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want f.yaml and %q in it", got, tt.want)
			}
		})
	}
}

// The hint for a line that is indented with a tab says so, and only for that line.
func TestParseDocumentTab(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a tab", "rate: 5\n\tfor: 5s\n", "line 2 is indented with a tab: use spaces"},
		{"a tab after blanks", "label:\n  a: b\n \t- c\n", "line 3 is indented with a tab: use spaces"},
		{"no tab", "rate: 5\nfor: @5s\n", fileHint},
		{"a tab elsewhere", "rate: 5\nfor:\t@5s\n", fileHint},
	} {
		_, err := ParseDocument("f.yaml", []byte(tt.in))
		if e, ok := errors.AsType[*Error](err); !ok || e.Hint != tt.want {
			t.Errorf("%s: got %+v, want the hint %q", tt.name, e, tt.want)
		}
	}
}

// A file is one workload, or a list of them.
func TestParseDocuments(t *testing.T) {
	for _, tt := range []struct {
		name, in, fault string
		want            []string // the first entry of each
	}{
		{name: "one", in: "rate: 1\n", want: []string{"f.yaml:1: rate"}},
		{name: "a list", in: "- rate: 1\n  for: 2s\n- count: 3\n", want: []string{"f.yaml:1: rate", "f.yaml:3: count"}},
		{name: "JSON", in: `[{"rate": 1}, {"rate": 2}]`, want: []string{"f.yaml:1: rate", "f.yaml:1: rate"}},
		{name: "an empty list", in: "[]", fault: "without a workload"},
		{name: "a text in the list", in: "- rate: 1\n- run it\n", fault: "f.yaml:2: must be a mapping"},
		{name: "an empty item", in: "- rate: 1\n-\n", fault: "must be a mapping"},
		{name: "a list in a list", in: "- - rate: 1\n", fault: "must be a mapping"},
		{name: "two documents", in: "rate: 1\n---\nrate: 2\n", fault: "second document"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs, err := ParseDocuments("f.yaml", []byte(tt.in))
			if tt.fault != "" {
				assert.Must(t, err != nil && strings.Contains(err.Error(), tt.fault), "got %v, want an error with %q", err, tt.fault)
				return
			}
			assert.OK(t, err)
			var got []string
			for _, d := range docs {
				got = append(got, d.Entries[0].Where)
			}
			assert.Same(t, got, tt.want)
		})
	}
}

func FuzzParseDocument(f *testing.F) {
	for _, s := range []string{"rate: 1", "a: [b, {c: d}]", "{", "\t", "? x", "a: &b *b", "- - -", "- a: 1\n- b: 2", "a: |\n b", "\"", "<<: *x", "!!str a: b"} {
		f.Add([]byte(s))
	}
	for _, tt := range hostile {
		f.Add([]byte(tt.make(256)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		began := time.Now()
		defer func() {
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%d bytes took %v", len(data), took)
			}
		}()
		doc, err := ParseDocument("f", data)
		assert.Must(t, (doc == nil) != (err == nil), "got %v and %v, want either a document or an error", doc, err)
		if err == nil {
			_, _ = Resolve(kinds, nil, doc)
		}
		if docs, err := ParseDocuments("f", data); (len(docs) == 0) == (err == nil) {
			t.Fatalf("got %d workloads and %v", len(docs), err)
		}
	})
}

func TestNearest(t *testing.T) {
	among := []string{"at", "rate", "retry", "repeat", "linger", "max-in-flight", "for"}
	for _, tt := range []struct{ text, want string }{
		{"rat", "rate"}, // and not "at"
		{"lingr", "linger"},
		{"lniger", "linger"},
		{"max-inflight", "max-in-flight"},
		{"compression", ""},
		{"x", ""},
		{"max", "max-in-flight"},
		{"foo", ""}, // as similar to "for" as any word of three letters
		{"fro", "for"},
		{"four", "for"},
	} {
		assert.Equal(t, Nearest(tt.text, among), tt.want, "%s", tt.text)
	}
}
