package workload

import (
	"errors"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/protocol"
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

// post uses HTTP, and has a default port.
type post struct{ cannon }

func (post) Name() string              { return "post" }
func (post) Schemes() []string         { return []string{"post+http", "post+https"} }
func (post) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{DefaultPort: func(string) string { return "8200" }}
}

// mail also uses HTTP, and has no default port.
type mail struct{ cannon }

func (mail) Name() string      { return "mail" }
func (mail) Schemes() []string { return []string{"mail+http"} }

// For an unknown scheme, the error suggests the address that was most likely meant.
func TestUnknownScheme(t *testing.T) {
	all := []protocol.Kind{cannon{}, gun{}, mail{}, post{}}
	for _, tt := range []struct{ name, typed, hint string }{
		{"as in browsers, with the port", "http://127.0.0.1:8200", "did you mean post+http://127.0.0.1:8200?"},
		{"with the port, and a path", "https://apm:8200/intake", "did you mean post+https://apm:8200/intake?"},
		{"with another port", "http://h:80", "did you mean mail+http://h:80 or post+http://h:80?"},
		{"without a port", "http://h", "did you mean mail+http://h or post+http://h?"},
		{"a transport of only one kind", "https://h", "did you mean post+https://h?"},
		{"the port of one", "tcp://h:1415", "did you mean gun://h:1415?"},
		{"of several hosts", "tcp://h:1415,i:1415/x", "did you mean gun://h:1415,i:1415/x?"},
		{"mistyped", "gnu://h:8200", "did you mean gun://h:8200?"},
		{"a password", "http://me:pw@h:8200", "did you mean post+http://h:8200?"},
		{"nothing near", "amqp://h:1", "targets look like cannon:// or gun://127.0.0.1:1415 or mail+http:// or post+http://127.0.0.1:8200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := ParseTarget(all, tt.typed)
			e, ok := err.(*Error) //nolint:errorlint // as it is returned
			assert.True(t, ok && e.Hint == tt.hint && strings.Contains(e.Error(), "unknown scheme"),
				"got %v with %+v, want the hint %q", err, e, tt.hint)
		})
	}
}

func TestExtent(t *testing.T) {
	rate := load.Constant(1000)
	for _, tt := range []struct {
		name   string
		plan   load.Plan
		events uint64
		length time.Duration
	}{
		{"for a time", load.Plan{Schedule: rate, Measurement: load.Limits{Time: 2 * time.Second}}, 2000, 2 * time.Second},
		{"with a warm-up", load.Plan{Schedule: rate, WarmupTime: time.Second, Measurement: load.Limits{Time: 2 * time.Second}}, 3000, 3 * time.Second},
		{"a number of events", load.Plan{Schedule: rate, WarmupTime: time.Second, Measurement: load.Limits{Events: 501}}, 1501, 1500 * time.Millisecond},
		{"a number of events, or a time", load.Plan{Schedule: rate, Measurement: load.Limits{Events: 5000, Time: time.Second}}, 1000, time.Second},
		{"a shape that ends", load.Plan{Schedule: load.Until(rate, time.Second)}, 1000, time.Second},
		{"without an end", load.Plan{Schedule: rate}, 0, 0},
		{"without a schedule", load.Plan{WarmupEvents: 10, Measurement: load.Limits{Events: 20, Time: time.Second}}, 30, 0},
		{"without a schedule, for a time", load.Plan{WarmupTime: time.Second, Measurement: load.Limits{Time: time.Second}}, 0, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events, length := extent(&tt.plan)
			assert.True(t, events == tt.events && length == tt.length,
				"got %d events in %v, want %d in %v", events, length, tt.events, tt.length)
		})
	}
}

// Limits in a file are a list or one text, and what ends a run may be given without a delay.
func TestLimitsOfFiles(t *testing.T) {
	for _, c := range []struct {
		file   string
		limits []string
		delay  time.Duration
		verify bool
	}{
		{"slo: [p99<20ms, 'throughput >= 5k/s']\nabort-on-fail: true\n", []string{"p99 < 20 ms", "throughput >= 5 k/s"}, 0, false},
		{"slo: p99.5<1s\nabort-on-fail: 30s\n", []string{"p99.5 < 1 s"}, 30 * time.Second, false},
		{"slo: [lost=0]\n", []string{"lost = 0"}, 0, true},
	} {
		file := assert.Value(ParseDocument("load.yaml", []byte("target: cannon://a:1/t\nrate: 10k/s\n"+c.file)))(t)
		w, err := Resolve(kinds, nil, file)
		if err != nil {
			t.Errorf("%q: %v", c.file, err)
			continue
		}
		var got []string
		for _, l := range w.Limits() {
			got = append(got, l.String())
		}
		if len(got) != len(c.limits) || w.Duration("abort-on-fail") != c.delay || w.Verify() != c.verify {
			t.Errorf("%q: limits %q, delay %v, verify %v; want %q, %v, %v", c.file, got, w.Duration("abort-on-fail"), w.Verify(), c.limits, c.delay, c.verify)
		}
		for i := range min(len(got), len(c.limits)) {
			assert.Equal(t, got[i], c.limits[i], "%q: limit", c.file)
		}
		for _, l := range w.Limits() { // a percentile with a limit is in the report
			assert.True(t, l.Stat != PercentileStat || l.Percentile != 99.5 || len(w.Percentiles()) == 1,
				"%q: percentiles %v", c.file, w.Percentiles())
		}
	}
}
