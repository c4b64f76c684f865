package layout

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Markup collects markup. Its zero value is ready to use. It is not safe for
// concurrent use.
type Markup struct {
	b    bytes.Buffer
	open []string
}

// Open begins an element with attributes given as name, value, name, value.
// Names are constants of the program.
func (w *Markup) Open(tag string, attributes ...string) {
	w.tag(tag, attributes)
	w.b.WriteByte('>')
	w.open = append(w.open, tag)
}

// Empty writes an element without content.
func (w *Markup) Empty(tag string, attributes ...string) {
	w.tag(tag, attributes)
	w.b.WriteString("/>")
}

func (w *Markup) tag(tag string, attributes []string) {
	w.b.WriteByte('<')
	w.b.WriteString(tag)
	for i := 0; i+1 < len(attributes); i += 2 {
		w.b.WriteByte(' ')
		w.b.WriteString(attributes[i])
		w.b.WriteString(`="`)
		w.Text(attributes[i+1])
		w.b.WriteByte('"')
	}
}

// Close ends the innermost element that is open.
func (w *Markup) Close() {
	n := len(w.open) - 1
	w.b.WriteString("</")
	w.b.WriteString(w.open[n])
	w.b.WriteByte('>')
	w.open = w.open[:n]
}

// Line breaks the line, to make the source readable.
func (w *Markup) Line() { w.b.WriteByte('\n') }

// Element writes an element that contains only text.
func (w *Markup) Element(tag, text string, attributes ...string) {
	w.Open(tag, attributes...)
	w.Text(text)
	w.Close()
}

// Text writes text, escaped for content and for attributes in double quotes, and
// readable.
func (w *Markup) Text(s string) {
	last := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		var with string
		switch {
		case r == '<':
			with = "&lt;"
		case r == '>':
			with = "&gt;"
		case r == '&':
			with = "&amp;"
		case r == '"':
			with = "&#34;"
		case r == '\'':
			with = "&#39;"
		case unreadable(r, n):
			with = "\uFFFD"
		default:
			i += n
			continue
		}
		w.b.WriteString(s[last:i])
		w.b.WriteString(with)
		i += n
		last = i
	}
	w.b.WriteString(s[last:])
}

// Readable returns p with U+FFFD in place of characters that XML 1.0 does not allow
// (control characters, invalid UTF-8), so that one invalid byte in an error text
// cannot make a picture or a page unreadable, and of those that change the direction
// of text, because they make text misleading. It may return p itself.
func Readable(p []byte) []byte {
	var out []byte
	last := 0
	for i := 0; i < len(p); {
		r, n := rune(p[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(p[i:])
		}
		if unreadable(r, n) {
			out = append(append(out, p[last:i]...), "\uFFFD"...)
			last = i + n
		}
		i += n
	}
	if last == 0 {
		return p
	}
	return append(out, p[last:]...)
}

// unreadable reports whether a character of n bytes is replaced.
func unreadable(r rune, n int) bool {
	return r == utf8.RuneError && n == 1 || r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 ||
		r == 0xfffe || r == 0xffff || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Raw writes the program's own markup unescaped.
func (w *Markup) Raw(s string) { w.b.WriteString(s) }

// Bytes is the written markup. It remains owned by the Markup.
func (w *Markup) Bytes() []byte { return w.b.Bytes() }

// String is the written markup.
func (w *Markup) String() string { return w.b.String() }

// Number prints a coordinate with at most one decimal: smaller differences are not
// visible, and there are thousands of coordinates.
func Number(v float64) string { return string(AppendNumber(nil, v)) }

// AppendNumber appends a coordinate.
func AppendNumber(b []byte, v float64) []byte {
	n := len(b)
	b = strconv.AppendFloat(b, v, 'f', 1, 64)
	b = bytes.TrimSuffix(b, []byte(".0"))
	if string(b[n:]) == "-0" {
		b = append(b[:n], '0')
	}
	return b
}

// MarkupID makes an identifier of letters, digits and dashes from any text.
func MarkupID(s string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(s) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
			continue
		}
		dash = true
	}
	return b.String()
}
