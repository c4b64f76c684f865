package workload

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

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
