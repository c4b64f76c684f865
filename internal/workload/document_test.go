package workload

import (
	"errors"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
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
		{"words that YAML 1.1 takes for switches", "a: yes\nb: [no, on, Off]\nc: y\nd: True\non: x\n", map[string][]string{
			"a": {"yes"}, "b": {"no", "on", "Off"}, "c": {"y"}, "d": {"True"}, "on": {"x"},
		}},
		{"numbers of other bases", "a: [010, 0o10, 0x1F, 0b11, 08]\nb: 1:30:00\nc: 190:20:30.5\n0x1: d\n1: e\n", map[string][]string{
			"a": {"010", "0o10", "0x1F", "0b11", "08"}, "b": {"1:30:00"}, "c": {"190:20:30.5"}, "0x1": {"d"}, "1": {"e"},
		}},
		{"what else has a type in YAML", "a: 2001-12-14t21:59:43.10-05:00\nb: [.inf, .NaN, -0, +5, 1_0.5_0]\nc: ['null', '~', '', nULL]\nd: =\n", map[string][]string{
			"a": {"2001-12-14t21:59:43.10-05:00"}, "b": {".inf", ".NaN", "-0", "+5", "1_0.5_0"}, "c": {"null", "~", "", "nULL"}, "d": {"="},
		}},
		{"signs without a meaning where they are", "a: <<\n'<<': 1\nb: p99<20ms\nc: a && b *c !d\n", map[string][]string{
			"a": {"<<"}, "<<": {"1"}, "b": {"p99<20ms"}, "c": {"a && b *c !d"},
		}},
		{"texts of several lines", "a: |\n  x\n  y\nb: >-\n  x\n  y\nc: x\n  y\nd: |+\n  x\n\ne: \"x\\n\\\n  y\\u00e9\"\n", map[string][]string{
			"a": {"x\ny"}, "b": {"x y"}, "c": {"x y"}, "d": {"x"}, "e": {"x\nyé"},
		}},
		{"characters in JSON", "{\"a\": \"\\ud83d\\ude00 \\\\ud83d\\\\ude00 \\/\", \"b\": \"\u0085\u2028😀\x7f\"}", map[string][]string{
			"a": {`😀 \ud83d\ude00 /`}, "b": {"\u0085\u2028😀\x7f"},
		}},
		{"files of Windows", "\ufeffa: 1\r\nb: 2\r\n", map[string][]string{"a": {"1"}, "b": {"2"}}},
		{"marks of a document", "%YAML 1.1\n---\na: 1\n...\n---\n", map[string][]string{"a": {"1"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := assert.Value(ParseDocument("f.yaml", []byte(tt.in)))(t)
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
		{"a key twice", "rate: 1\n'rate': 2\n", "f.yaml:2: rate: has a value already, in line 1"},
		{"a name twice", "label:\n  a: 1\n  a: 1\n", "f.yaml:3: a: has a value already, in line 2"},
		{"a key of a part twice", "parts:\n- {a: 1}\n- {a: 1, a: 2}\n", "f.yaml:3: a: has a value already, in line 3"},
		{"merged mappings", "rate: 1\n<<: {for: 5s}\n", "f.yaml:2: uses anchors"},
		{"a merged value", "label: {<<: {a: b}}\n", "f.yaml:1: uses anchors"},
		{"an alias", "header: *.x\n", "f.yaml:1:9: uses anchors"},
		{"half an alias", "header: *\n", "f.yaml:1:9: uses anchors"},
		{"a tag", "rate: !!str 1\n", "f.yaml:1: uses anchors, aliases or tags"},
		{"a tag without a name", "rate: ! 1\n", "f.yaml:1: uses anchors, aliases or tags"},
		{"a tag of the whole", "--- !!map\nrate: 1\n", "f.yaml:1: uses anchors, aliases or tags"},
		{"no key", "~: 1\n", "f.yaml:1: a key has no value"},
		{"a list for a key", "rate: 1\n[a]: 1\n", "f.yaml:2: a key must be a plain value"},
		{"no value", "rate:\n", "has no value"},
		{"nested", "rate: {a: {b: c}}\n", "must be a plain value"},
		{"an anchor", "rate: &a 1\n", "f.yaml:1:7: uses anchors"},
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
		{"no tab", "rate: 5\nfor: @5s\n", quoteHint},
		{"a tab elsewhere", "rate: 5\nfor:\t@5s\n", quoteHint},
	} {
		_, err := ParseDocument("f.yaml", []byte(tt.in))
		e, ok := errors.AsType[*Error](err)
		assert.True(t, ok && e.Hint == tt.want, "%s: got %+v, want the hint %q", tt.name, e, tt.want)
	}
}

// What is not YAML has a message with its place, and a hint what to do.
func TestParseDocumentSyntax(t *testing.T) {
	for _, tt := range []struct{ in, want, hint string }{
		{"a: 1\nb: \"c\nd: 2\n", "f.yaml:2:4: a text in quotes does not end", "close the quote"},
		{`a: "C:\data"`, "f.yaml:1:7: an escape in double quotes is unknown", `write \\ for`},
		{"a: 1\nrate=5\nfor: 5s\n", "f.yaml:2:1: a colon is missing after the key", "rate: 50k/s"},
		{"a: 1\nb: c: d\n", "f.yaml:2:5: a colon cannot be here", "put a text with a colon in quotes"},
		{"a: 1\n  b: 2\n", "f.yaml:2:4: a colon cannot be here", "in the same column"},
		{"a:\n  b: 1\n c: 2\n", "f.yaml:3:2: this does not belong to the value before it", "in the same column"},
		{"a: 'b' c\n", "f.yaml:1:8: this does not belong to the value before it", "the whole of a value in quotes"},
		{" a: 1\nb: 2\n", "f.yaml:2:1: this does not belong to what is before it", "in the same column"},
		{"- a: 1\nb: 1\n", "f.yaml:2:1: an entry of the list does not begin with a dash", "in the same column"},
		{"a: - b\n", "f.yaml:1:4: a list cannot begin in the line of its key", "in the next line"},
		{"a: [b\nc: d\n", "f.yaml:2:2: a comma or ] is missing", "close each bracket"},
		{"a: {b: c\nd: e\n", "f.yaml:2:2: a comma or } is missing", "close each bracket"},
		{"a: [b,\n", "f.yaml:2:1: a value or a closing bracket is missing", "close each bracket"},
		{"a: }\n", "f.yaml:1:4: a value cannot begin with this character", "in quotes"},
		{"a: `b\n", "f.yaml:1:4: a value cannot begin with @, ` or %", "in quotes"},
		{"a: 1\nrate: >10k\n", "f.yaml:2:9: a text that begins with > or | begins in the next line", "in quotes"},
		{"%YAML 1.2\n---\na: 1\n", "f.yaml:1:1: a line with %YAML names another version than 1.1", "leave the line out"},
		{"a: 1\nb: \x07\n", "f.yaml:2:4: a control character cannot be in a file", "in double quotes"},
		{"a: 1\nb: c\xff\n", "f.yaml:2:5: the text is not UTF-8", "save the file as UTF-8"},
		{"%a\n", "f.yaml:1:3: found unknown directive name", "rate: 50k/s"},
	} {
		_, err := ParseDocument("f.yaml", []byte(tt.in))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(e.Error(), tt.want) || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%q: got %+v, want %q and %q in the hint", tt.in, e, tt.want, tt.hint)
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
				assert.Must(t, err != nil && strings.Contains(err.Error(), tt.fault),
					"got %v, want an error with %q", err, tt.fault)
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
		doc, err := ParseDocument("f", data)
		assert.Must(t, (doc == nil) != (err == nil), "got %v and %v, want either a document or an error", doc, err)
		if err == nil {
			_, _ = Resolve(kinds, nil, doc)
		}
		docs, err := ParseDocuments("f", data)
		assert.Must(t, (len(docs) == 0) != (err == nil), "got %d workloads and %v", len(docs), err)
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
