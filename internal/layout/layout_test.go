package layout

import (
	"encoding/xml"
	"html"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"carronade/test/testkit/assert"
)

func TestWrap(t *testing.T) {
	tests := []struct {
		name, text string
		n          int
		want       []string
	}{
		{"nothing", "", 10, []string{""}},
		{"a line", "one two", 7, []string{"one two"}},
		{"at blanks", "one two three", 7, []string{"one two", "three"}},
		{"a long word is cut", "a abcdefghij b", 4, []string{"a", "abcd", "efgh", "ij b"}},
		{"letters of two bytes", "größe größe", 5, []string{"größe", "größe"}},
		{"control characters", "a\x1b[2Jb\nc", 80, []string{"a [2Jb c"}},
	}
	for _, tt := range tests {
		assert.Same(t, Wrap(tt.text, tt.n), tt.want, "%s", tt.name)
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		text        string
		n           int
		end, middle string
	}{
		{"events-0", 8, "events-0", "events-0"},
		{"events-of-a-topic-0", 9, "events...", "eve...c-0"},
		{"events", 3, "...", "..."},
		{"events", 2, "..", ".."},
		{"events", 0, "", ""},
		{"größer als", 7, "größ...", "gr...ls"},
		{"a\rb", 3, "a b", "a b"},
	}
	for _, tt := range tests {
		assert.Equal(t, Cut(tt.text, tt.n), tt.end, "%q at %d", tt.text, tt.n)
		assert.Equal(t, CutMiddle(tt.text, tt.n), tt.middle, "%q at %d in the middle", tt.text, tt.n)
	}
}

func TestTable(t *testing.T) {
	rows := [][]string{{"name", "kind", "p99", "empty"}, {"a partition-0", "log", "1.20 ms", ""}, {"b", "x", " 850 us", ""}}
	tests := []struct {
		name    string
		table   Table
		columns int
		want    []string
	}{
		{"unlimited width", Table{Left: []int{1}}, 0, []string{"name           kind      p99  empty", "a partition-0  log   1.20 ms", "b              x      850 us"}},
		{"without empty columns", Table{Headings: 1, Left: []int{1}, Sparse: true}, 0, []string{"name           kind      p99", "a partition-0  log   1.20 ms", "b              x      850 us"}},
		{"automatic alignment", Table{Headings: 1, AutoAlign: true, Sparse: true}, 0, []string{"name           kind      p99", "a partition-0  log   1.20 ms", "b              x      850 us"}},
		{"smaller gaps", Table{Headings: 1, Sparse: true}, 27, []string{"name          kind     p99", "a partition-0  log 1.20 ms", "b                x  850 us"}},
		{"cut", Table{Headings: 1, Elastic: []int{0}, Sparse: true}, 22, []string{"name      kind     p99", "a part...  log 1.20 ms", "b            x  850 us"}},
		{"a minimum for elastic columns", Table{Headings: 1, Elastic: []int{0}, Keep: []int{9}, Sparse: true}, 16, []string{"name      kind    p99", "a part...  log 1.20ms", "b            x  850us"}},
		{"cut in the middle", Table{Headings: 1, Elastic: []int{0}, Middle: true, Sparse: true}, 22, []string{"name      kind     p99", "a p...n-0  log 1.20 ms", "b            x  850 us"}},
		{"cut, and without blanks in numbers", Table{Headings: 1, Elastic: []int{0}, Sparse: true}, 16, []string{"name kind    p99", "a...  log 1.20ms", "b       x  850us"}},
		{"no narrower than possible", Table{Headings: 1, Elastic: []int{0}, Sparse: true}, 5, []string{"name kind    p99", "a...  log 1.20ms", "b       x  850us"}},
		{"columns of a minimum width", Table{Headings: 1, Sparse: true, Gap: 1, MinWidth: 8}, 5, []string{"name              kind      p99", "a partition-0      log   1.20ms", "b                    x    850us"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range rows {
				tt.table.Row(r...)
			}
			got := tt.table.Lines(tt.columns, Style{})
			assert.Same(t, got, tt.want)
			tt.table.Paint(1, Red)
			colored := strings.Join(tt.table.Lines(tt.columns, Style{Color: true}), "\n")
			assert.True(t, strings.Contains(colored, Red+"x") || strings.Contains(colored, Red+" "), "nothing is red: %q", colored)
			diff := cmp.Diff(strings.Join(tt.want, "\n"), strings.NewReplacer(Red, "", Dim, "", Plain, "").Replace(colored))
			assert.True(t, diff == "", "color moves a column: %s", diff)
		})
	}
}

func TestPage(t *testing.T) {
	p := &Page{Style: Style{Color: true}}
	p.Title("a title")
	p.Section("Events")
	p.Pair(Yellow, "note", strings.Repeat("word ", 30))
	p.Pair("", "a label that is wider than its column", "text")
	p.Note("a remark")
	table := &Table{}
	table.Row("a", "1")
	p.Table(table)
	want := "a title\n\nEvents\n" +
		"  note          " + strings.TrimSpace(strings.Repeat("word ", 13)) + "\n" + strings.Repeat(" ", 16) + strings.TrimSpace(strings.Repeat("word ", 13)) + "\n" +
		strings.Repeat(" ", 16) + strings.TrimSpace(strings.Repeat("word ", 4)) + "\n" +
		"  a label that is wider than its column text\n  a remark\n  a  1\n"
	var b strings.Builder
	assert.OK(t, p.To(&b))
	assert.Same(t, strings.NewReplacer(Bold, "", Yellow, "", Dim, "", Plain, "").Replace(b.String()), want)
	on, off := strings.Count(b.String(), "\x1b["), strings.Count(b.String(), Plain)
	assert.True(t, on == 2*off && off == 4, "%d codes, of which %d end a color", on, off)
}

func TestHang(t *testing.T) {
	for _, tt := range []struct {
		label, text string
		n           int
		want        string
	}{
		{"error: ", "one two three", 20, "error: one two three"},
		{"error: ", "one two three", 19, "error: one two\n       three"},
		{"error: ", "one two three", 15, "error: one two\n       three"},
		{"", "one two three", 7, "one two\nthree"},
		{"error: ", "one two three", 14, "error: one two three"},
	} {
		assert.Equal(t, Hang(tt.label, tt.text, tt.n), tt.want, "%q in %d columns", tt.text, tt.n)
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two three", 7)
	f.Add("größe \x1b[2J", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = max(n%200, 1)
		for _, l := range Wrap(text, n) {
			assert.Must(t, Width(l) <= n && !strings.ContainsAny(l, "\x1b\r\n") && utf8.ValidString(l), "%q at %d: %q", text, n, l)
		}
		assert.Must(t, Width(Cut(text, n)) <= n && Width(CutMiddle(text, n)) <= n, "%q at %d: %q, %q", text, n, Cut(text, n), CutMiddle(text, n))
	})
}

// TestMarkdownCode: no text from elsewhere is markup, also where code is not known.
func TestMarkdownCode(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"p99 < 5 ms & more":        "<code>p99 &lt; 5 ms &amp; more</code>",
		"a_b":                      "`a_b`",
		"a`b":                      "`` a`b ``",
		"<img src=x onerror=a(1)>": "<code>&lt;img src=x onerror=a(1)></code>",
		"</code>`|*<b>":            "<code>&lt;/code>\\`\\|\\*&lt;b></code>",
	} {
		assert.Equal(t, MarkdownCode(text), want, "%q", text)
	}
}

// TestClean: external text moves no cursor and changes no direction.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"a b": "a b", "a\tb\nc": "a b c", "\x1b[31mred": " [31mred", "a\u202eb\u2066c": "a b c", "\x9b1m\x7f\xff": " 1m  ", "é\ufffd": "é ",
	} {
		assert.Equal(t, Clean(text), want, "%q", text)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain text", "p99 = 1.2 ms", "p99 = 1.2 ms"},
		{"markup", `<b a="1" c='2'>&amp;</b>`, "&lt;b a=&#34;1&#34; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;"},
		{"lines and tabs stay", "a\n\tb", "a\n\tb"},
		{"control characters", "a\x00\x1b[31m\x7f\u0085", "a\uFFFD\uFFFD[31m\uFFFD\uFFFD"},
		{"no UTF-8", "a\xff\xfeb", "a\uFFFD\uFFFDb"},
		{"changed text direction", "a\u202eb\u2066c", "a\uFFFDb\uFFFDc"},
		{"other scripts", "grün 日本 🙂", "grün 日本 🙂"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Markup
			w.Text(c.text)
			assert.Equal(t, w.String(), c.want)
			got := string(Readable([]byte(c.text)))
			assert.True(t, html.EscapeString(got) == c.want, "readable: got %q, want the text of %q", got, c.want)
		})
	}
}

func TestElements(t *testing.T) {
	var w Markup
	w.Open("a", "b", `"<>`)
	w.Element("c", "<d>")
	w.Empty("e", "f", "g")
	w.Close()
	assert.Equal(t, w.String(), `<a b="&#34;&lt;&gt;"><c>&lt;d&gt;</c><e f="g"/></a>`)
}

func TestNumberAndID(t *testing.T) {
	for v, want := range map[float64]string{1: "1", 1.25: "1.2", -0.01: "0", -3.5: "-3.5", 1e6: "1000000"} {
		assert.Equal(t, Number(v), want, "%v", v)
	}
	assert.Equal(t, MarkupID(" Host, bytes/s <x> "), "host-bytes-s-x", "identifier")
}

// Any text results in XML with one element and that text.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "plain", `]]><script>"'&`, "\x00\xff\u202e\ufffe", "a\r\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var w Markup
		w.Element("a", s, "b", s)
		var got struct {
			XMLName xml.Name `xml:"a"`
			B       string   `xml:"b,attr"`
			Text    string   `xml:",chardata"`
			Inside  []struct {
				XMLName xml.Name
			} `xml:",any"`
		}
		assert.OK(t, xml.Unmarshal([]byte(w.String()), &got), "%q is not XML", w.String())
		if readable := string(Readable([]byte(s))); got.Text != readable && !strings.Contains(s, "\r") {
			t.Fatalf("%q reads as %q, and is readable as %q", w.String(), got.Text, readable)
		}
		assert.Must(t, len(got.Inside) <= 0 && (got.Text == got.B || strings.ContainsAny(s, "\r\n\t")), "%q reads as %+v", w.String(), got)
	})
}

// A table as Markdown and as CSV: alignment, and no formula for a spreadsheet.
func TestTableForms(t *testing.T) {
	table := layoutTable()
	assert.Equal(t, table.Markdown(), "| name | n | text |\n| --- | ---: | --- |\n| =cmd() | -1.5 | - x |\n", "Markdown")
	table.AutoAlign, table.TightRule = true, true
	assert.Equal(t, table.Markdown(), "| name | n | text |\n|---:|---:|---|\n| =cmd() | -1.5 | - x |\n", "Markdown of other alignment")
	var b strings.Builder
	assert.OK(t, table.CSV(&b))
	assert.Equal(t, b.String(), "name,n,text\n'=cmd(),-1.5,'- x\n", "CSV")
}

func layoutTable() *Table {
	t := &Table{Headings: 1, Left: []int{2}}
	t.Row("name", "n", "text")
	t.Row("=cmd()", "-1.5", "- x")
	return t
}
