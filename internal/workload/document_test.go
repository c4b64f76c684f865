package workload

import (
	"errors"
	"fmt"
	"runtime"
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
			got := err.Error()
			assert.True(t, strings.HasPrefix(got, "f.yaml") && strings.Contains(got, tt.want), "got %q, want f.yaml and %q in it", got, tt.want)
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
		e, ok := errors.AsType[*protocol.Error](err)
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
		if e, ok := errors.AsType[*protocol.Error](err); !ok || !strings.HasPrefix(e.Error(), tt.want) || !strings.Contains(e.Hint, tt.hint) {
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
		doc, err := ParseDocument("f", data)
		assert.Must(t, (doc == nil) != (err == nil), "got %v and %v, want either a document or an error", doc, err)
		if err == nil {
			_, _ = Resolve(kinds, nil, doc)
		}
		docs, err := ParseDocuments("f", data)
		assert.Must(t, (len(docs) == 0) != (err == nil), "got %d workloads and %v", len(docs), err)
	})
}

// post uses HTTP, and has a default port.
type post struct{ cannon }

func (post) Name() string      { return "post" }
func (post) Schemes() []string { return []string{"post+http", "post+https"} }
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
			e, ok := err.(*protocol.Error) //nolint:errorlint // as it is returned
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
		assert.True(t, len(got) == len(c.limits) && w.Duration("abort-on-fail") == c.delay && w.Verify() == c.verify,
			"%q: limits %q, delay %v, verify %v; want %q, %v, %v", c.file, got, w.Duration("abort-on-fail"), w.Verify(), c.limits, c.delay, c.verify)
		for i := range min(len(got), len(c.limits)) {
			assert.Equal(t, got[i], c.limits[i], "%q: limit", c.file)
		}
		for _, l := range w.Limits() { // a percentile with a limit is in the report
			assert.True(t, l.Stat != PercentileStat || l.Percentile != 99.5 || len(w.Percentiles()) == 1,
				"%q: percentiles %v", c.file, w.Percentiles())
		}
	}
}

// hostile are texts of n bytes for which a parser may need much time or memory.
var hostile = []struct {
	name string
	make func(n int) string
	want string // in the error; "": it is a workload
}{
	{"brackets", repeated("["), "16 deep"},
	{"braces", repeated("{a: "), "16 deep"},
	{"both", repeated("[{"), "16 deep"},
	{"lists in lists", repeated("- "), "16 deep"},
	{"explicit keys", repeated("? "), "16 deep"},
	{"brackets one after the other", func(n int) string { return "a: [" + repeated("[],")(n-5) + "]" }, "f.yaml:1:59996: has more than 20000 keys"},
	{"anchors", repeated("&a "), "anchors"},
	{"aliases", repeated("- *a\n"), "anchors"},
	{"tags", repeated("- !a\n"), "tags"},
	{"tags of one value", repeated("!a "), "f.yaml:1:4: this does not belong"},
	{"a thousand millions of aliases", func(int) string {
		text := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
		for c := 'b'; c < 'j'; c++ {
			p := string(c - 1)
			text += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 9) + "*" + p + "]\n"
		}
		return text
	}, "anchors"},
	{"keys", numbered("k%d:\n"), "more than 20000 keys"},
	{"equal keys", repeated("kk:\n"), "f.yaml:2: kk: has a value already, in line 1"},
	{"documents", repeated("---\n"), "more than 20000 keys"},
	{"ends of documents", repeated("...\n"), "is empty"},
	{"entries", repeated("- 1\n"), "more than 20000 keys"},
	{"entries without values", repeated("-\n"), "more than 20000 keys"},
	{"empty lines after a text", func(n int) string { return "a: |\n b" + strings.Repeat("\n", n) }, ""},
	{"empty lines after a long text", func(n int) string { return "a: |\n " + strings.Repeat("b", n/2) + strings.Repeat("\n", n/2) }, ""},
	{"lines of blanks", func(n int) string { return "a: >\n b" + strings.Repeat("\n ", n/2) }, ""},
	{"empty lines after lines in column 1", columnOne("--- |\n"), "must be a mapping"},
	{"the same after a mapping", columnOne("a: b\n--- |\n"), "second document"},
	{"the same after a quote", columnOne("\"x\" |\n"), "f.yaml:1:5: this does not belong"},
	{"the same after a blank", columnOne(" |\n"), "must be a mapping"},
	{"the same after a remark", columnOne("x # a\n |\n"), "f.yaml:2:2: this does not belong"},
	{"the same after a tag", columnOne("!a |\n"), "tags"},
	{"empty lines of CR", func(n int) string { return "a: |\r b" + strings.Repeat("\r", n) }, ""},
	{"empty lines of CR and LF", func(n int) string { return "a: |\r\n b" + strings.Repeat("\r\n", n/2) }, ""},
	{"tabs in a text", func(n int) string { return "a: \"" + strings.Repeat("\t", n) + "x\"\n" }, ""},
	{"tabs after a text in single quotes", func(n int) string { return "a: 'x'\nb: \"" + strings.Repeat("\t", n) + "x\"\n" }, ""},
	{"tabs in what looks like single quotes", func(n int) string { return "a: \"\n b: 'x\", \"" + strings.Repeat("\t", n) + "x'\n" }, "f.yaml:2:10: a text in quotes does not end"},
	{"signs", func(n int) string { return "a: " + strings.Repeat("<", n) + "\n" }, ""},
	{"runs of signs", func(n int) string { return "a: " + strings.Repeat(strings.Repeat("<", n/32)+" ", 32) + "\n" }, ""},
	{"a long key", longKey("%s:\n"), "has a key of 131072 bytes"},
	{"a long key in quotes", longKey("\"%s\":\n"), "has a key of 131072 bytes"},
	{"a long key of its own", longKey("? %s\n:\n"), "has a key of 131072 bytes"},
	{"a long key and remarks", longKey("? # a\n %s # b\n:\n"), "has a key of 131072 bytes"},
	{"a long key in a flow", func(n int) string {
		return "{" + strings.Repeat("k", n/2) + ": [" + strings.Repeat("1,", n/4) + "1]}\n"
	}, "has a key of 131072 bytes"},
	{"dashes", repeated("-"), "must be a mapping"},
	{"quotes", repeated("'"), "must be a mapping"},
	{"quotes apart", repeated("' "), "f.yaml:1:5: this does not belong"},
	{"open texts", repeated("a: \"b\n"), "f.yaml:2:5: this does not belong"},
	{"escapes", repeated("\"\\q"), "f.yaml:1:2: an escape"},
	{"directives", repeated("%a\n"), "f.yaml:1:3: found unknown directive name"},
	{"colons", repeated(": "), "16 deep"},
	{"commas", repeated(","), "f.yaml:1:1: a value cannot begin"},
	{"flow without values", func(n int) string { return "a: [" + strings.Repeat(",", n) + "]" }, "f.yaml:1:5: a value or a closing bracket is missing"},
	{"flow of values", func(n int) string { return "a: [" + strings.Repeat("a,", n/2) + "]" }, "more than 20000 keys"},
	{"flow of keys", func(n int) string { return "{" + strings.Repeat("a,", n/2) + "}" }, "has a value already"},
	{"comments", repeated("#\n"), "is empty"},
	{"tabs", repeated("\t"), "is empty"},
	{"folded lines", repeated(" a\n"), "must be a mapping"},
	{"nothing", repeated("\n"), "is empty"},
	{"zeros", repeated("\x00"), "f.yaml:1:1: a control character"},
}

// columnOne returns a function that makes a block of text whose lines begin in column 1, and empty lines.
func columnOne(begin string) func(n int) string {
	return func(n int) string { return begin + strings.Repeat("b", n/2) + "\nb: c\n" + strings.Repeat("\n", n/2) }
}

// longKey returns a function that makes a mapping below a long key.
func longKey(form string) func(n int) string {
	return func(n int) string { return fmt.Sprintf(form, strings.Repeat("k", n/2)) + numbered("  a%d: 1\n")(n/2) }
}

// numbered returns a function that repeats a text with numbers.
func numbered(form string) func(n int) string {
	return func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
}

func repeated(text string) func(n int) string {
	return func(n int) string { return strings.Repeat(text, n/len(text)+1)[:n] }
}

// TestHostile: no text needs more time or memory than its size explains, and what
// is refused for its form says so. A parser that is quadratic does not end before the test's timeout.
func TestHostile(t *testing.T) {
	const (
		size = 256 << 10
		most = 2 << 10 // bytes of memory for each byte of text
	)
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			text := []byte(tt.make(size))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := ParseDocuments("f.yaml", text)
			runtime.ReadMemStats(&after)
			each := (after.TotalAlloc - before.TotalAlloc) / uint64(len(text))
			assert.True(t, each <= most, "it took %d bytes of memory for each of the text, want at most %d", each, most)
			assert.True(t, tt.want != "" || err == nil, "%v", err)
			assert.True(t, tt.want == "" || err != nil && strings.HasPrefix(err.Error(), "f.yaml") &&
				strings.Contains(err.Error(), tt.want), "got %v, want f.yaml and %q in an error", err, tt.want)
		})
	}
}

// TestLargeDocuments: bounds are far above what a workload needs.
func TestLargeDocuments(t *testing.T) {
	one := "- target: kafka://127.0.0.1:9092/orders\n  rate: 50k/s\n  for: 30s\n  header: [a=1, b=2]\n  label: {team: payments, n: 3}\n"
	for _, tt := range []struct{ name, text string }{
		{"many workloads", strings.Repeat(one, 500)},
		{"a long list", "target: null://\nlabel:\n" + strings.Repeat("  - a=1\n", 5000)},
		{"a long text", "target: null://\npayload: '" + strings.Repeat("x", 900<<10) + "'\n"},
		{"many empty lines", "target: null://\n" + strings.Repeat("\n\n# a remark\n\n", 1000) + "rate: 1/s\n"},
		{"two empty lines between workloads", strings.Repeat(one+"# "+strings.Repeat("x", 400)+"\n"+"\n\n\n", 500)},
		{"a remark, a beginning, and empty lines", "# a\n---\n" + strings.Repeat(one+"# "+strings.Repeat("x", 400)+"\n"+"\n\n\n", 500)},
		{"a text with tabs", "target: null://\npayload: '{\"a\":\"" + strings.Repeat(strings.Repeat("x", 50)+"\t", 12_000) + "\"}'\n"},
		{"a text with tabs in double quotes", "target: null://\npayload: \"" + strings.Repeat(strings.Repeat("x", 300)+"\t", 1000) + "\"\n"},
		{"a text with tabs, without quotes", "target: null://\npayload: x" + strings.Repeat(strings.Repeat("x", 50)+"\t", 12_000) + "x\n"},
		{"a text of JSON", "target: null://\npayload: '[1" + strings.Repeat(",1", 300_000) + "]'\n"},
		{"parts", "target: null://\nparts:\n" + strings.Repeat("  - weight: 1\n    header: [a=1]\n    label: {b: c}\n", 100)},
		{"as deep as can be", "- target: null://\n  parts:\n    - label:\n        - a=1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Value(ParseDocuments("f.yaml", []byte(tt.text)))(t) })
	}
}

func TestSystemSettings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pairs []string
		want  string // in the error; "" is none
	}{
		{"a command with its flags", []string{"system-cmd=apm-server -e", "system-flag=output.elasticsearch.hosts=127.0.0.1:9200", "system-mem=4GiB"}, ""},
		{"a revision, built", []string{"system-cmd={tree}/server", "system-git=.", "system-checkout=main", "system-build=make"}, ""},
		{"only watched", []string{"system-pid=1", "system-vars=http://127.0.0.1:8200/debug/vars"}, ""},
		{"two systems", []string{"system-cmd=a", "system-pid=1"}, "--system-cmd already gives the system"},
		{"a flag without a command", []string{"system-flag=a=b"}, "goes with --system-cmd or --system-image"},
		{"a build without a repository", []string{"system-build=make"}, "goes with --system-git"},
		{"a secret in clear", []string{"system-cmd=a", "system-env=API_TOKEN=s3cret"}, "looks like a secret"},
		{"a login in clear", []string{"system-cmd=a", "system-flag=cloud.auth=elastic:s3cret"}, "looks like a secret"},
		{"a secret by reference", []string{"system-cmd=a", "system-env=API_TOKEN=env:TOKEN"}, ""},
		{"a header in clear", []string{"system-vars=http://127.0.0.1/", "system-header=Authorization=Bearer s3cret"}, "must be NAME=env:VARIABLE"},
		{"a build that is not started", []string{"system-git=.", "system-build=make"}, "goes with --system-cmd or --system-image"},
		{"an address for a remote", []string{"system-cmd=a", "system-git=.", "system-checkout=main", "system-fetch=https://me:s3cret@h/r"}, "the name of a remote"},
		{"a revision in words", []string{"revision=4.1.0-rc2, heap 8g"}, ""},
		{"a revision in words and a repository", []string{"revision=4.1", "system-git=."}, "--system-git already gives the revision"},
		{"a revision in words and its branch", []string{"revision=4.1", "system-branch=release/4"}, ""},
		{"a commit and its branch", []string{"system-cmd=a", "system-git=.", "system-checkout=0123abc", "system-branch=main"}, ""},
		{"a branch of nothing", []string{"system-cmd=a", "system-branch=main"}, "goes with --system-git or --revision"},
		{"a branch with a blank", []string{"revision=4.1", "system-branch=my branch"}, "must be the name of a branch"},
		{"a revision of two lines", []string{"revision=4.1\n4.2"}, "must be a text of 1 to 100 characters in one line"},
		{"a long revision", []string{"revision=" + strings.Repeat("x", 101)}, "must be a text of 1 to 100 characters in one line"},
		{"no processors", []string{"system-cmd=a", "system-cpus=0"}, "from 0.01 on"},
		{"no memory", []string{"system-cmd=a", "system-mem=1"}, "1MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d Document
			d.Add("target", "target", "cannon://127.0.0.1:1")
			for _, p := range tt.pairs {
				name, v, _ := strings.Cut(p, "=")
				d.Add(name, "--"+name, v)
			}
			_, err := Resolve(kinds, &d, nil)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q in it", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "s3cret"):
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
}

// TestSystemIsMasked puts a secret into each setting that may contain one: the workload in a report must not
// show it, and must be refused as a workload until the secret is put back.
func TestSystemIsMasked(t *testing.T) {
	const canary = "kestrel-3310"
	for _, tt := range []struct {
		name   string
		pairs  []string
		want   string // shown
		filled bool   // the secret is a reference: usable again as it is
	}{
		{"a setting", []string{"system-cmd=server -E output.elasticsearch.password=" + canary}, "output.elasticsearch.password=***", false},
		{"a quoted value", []string{"system-cmd=server --password 'a " + canary + "'"}, "--password ***", false},
		{"a script", []string{"system-cmd=sh -c 'exec server --password " + canary + "'"}, "--password ***", false},
		{"arguments of an image", []string{"system-image=i", "system-arg=--password", "system-arg=" + canary}, `"--password","***"`, false},
		{"an address in the environment", []string{"system-cmd=a", "system-env=DB=postgres://me:" + canary + "@h/"}, "DB=postgres://***@h/", false},
		{"an address in a flag", []string{"system-cmd=a", "system-flag=hosts=http://me:" + canary + "@h/"}, "hosts=http://***@h/", false},
		{"a reference", []string{"system-cmd=a", "system-env=API_TOKEN=env:T"}, "API_TOKEN=env:T", true},
		{"readiness", []string{"system-cmd=a", "system-ready=http://me:" + canary + "@h/"}, "http://***@h/", false},
		{"vars", []string{"system-vars=http://me:" + canary + "@h/"}, "http://***@h/", false},
		{"metrics", []string{"system-metrics=http://h/?token=" + canary}, "token=***", false},
		{"a shell's words", []string{"system-git=.", "system-cmd=a", "system-build=make && make install"}, `make && make install`, true},
		{"a build", []string{"system-git=.", "system-cmd=a", "system-build=make TOKEN=" + canary}, "TOKEN=***", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d Document
			d.Add("target", "target", "cannon://127.0.0.1:1")
			for _, p := range tt.pairs {
				name, v, _ := strings.Cut(p, "=")
				d.Add(name, "--"+name, v)
			}
			w := assert.Value(Resolve(kinds, &d, nil))(t)
			text := assert.Value(w.MarshalJSON())(t)
			assert.True(t, !strings.Contains(string(text), canary) && strings.Contains(string(text), tt.want),
				"the workload shows %s, want %s in it", text, tt.want)
			again := assert.Value(Read("report.json", strings.NewReader(string(text))))(t)
			_, err := Resolve(kinds, &Document{}, again[0])
			assert.Equal(t, err == nil, tt.filled, "as a workload again: %v", err)
			assert.True(t, err == nil || strings.Contains(err.Error(), "the placeholder of a secret"), "got %v, want the reason", err)
		})
	}
}
