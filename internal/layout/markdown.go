package layout

import "strings"

// markdownEscaper escapes what has a meaning in Markdown within a line of a
// table.
var markdownEscaper = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", "&", "&amp;", "[", "\\[", "]", "\\]",
	"\n", " ", "\r", " ", "\t", " ",
)

// Markdown makes a text literal, including text from other programs, in one line.
func Markdown(s string) string { return markdownEscaper.Replace(withoutControls(s)) }

// MarkdownCode formats a text as code, in one line. If it has what may be HTML, it is an element with
// entities, which is text also where backquotes mean nothing.
func MarkdownCode(s string) string {
	switch {
	case s == "":
		return ""
	case strings.Contains(s, "<"):
		return "<code>" + Markdown(s) + "</code>"
	}
	s = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "|", "\\|").Replace(withoutControls(s))
	if !strings.Contains(s, "`") {
		return "`" + s + "`"
	}
	fence := "``" // longer than any run of backquotes in it, so that text from other programs stays inside
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + " " + s + " " + fence
}

// withoutControls replaces control characters, which move a cursor.
func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}
