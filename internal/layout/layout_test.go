package layout

import (
	"strings"
	"testing"
	"unicode/utf8"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
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
		t.Run(tt.name, func(t *testing.T) {
			assert.Same(t, Wrap(tt.text, tt.n), tt.want)
		})
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
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), strings.NewReplacer(Red, "", Dim, "", Plain, "").Replace(colored)); diff != "" {
				t.Errorf("color moves a column: %s", diff)
			}
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
		if Width(Cut(text, n)) > n || Width(CutMiddle(text, n)) > n {
			t.Fatalf("%q at %d: %q, %q", text, n, Cut(text, n), CutMiddle(text, n))
		}
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
