package layout

import (
	"encoding/xml"
	"html"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

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
		assert.Must(t, len(got.Inside) <= 0 && (got.Text == got.B || strings.ContainsAny(s, "\r\n\t")),
			"%q reads as %+v", w.String(), got)
	})
}
