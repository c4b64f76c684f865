// Package layout lays out text. For terminals it wraps, cuts and pads text, and
// makes tables that become narrower if necessary and pages of at most Columns
// columns. It also writes SVG, element by element, makes text literal in Markdown,
// and replaces characters that make a page unreadable or misleading. The HTML page
// of reports is not its work: package export writes that with html/template. It
// handles columns and escaping, and does not know what text and numbers mean.
// Its invariants: text is laid out first and colored last, so that color never moves
// a column; external text, once cleaned, cannot move the cursor; and text and attribute
// values reach markup only through functions that escape. Unescaped text (Raw) is a constant
// of this program or its own output.
package layout

// Columns is the width of a page.
const Columns = 80

// Style selects what a page may contain.
type Style struct {
	Color bool // ANSI colors; for terminals that support them, never for files
	ASCII bool // no block characters
}

// Codes that begin colors.
const (
	Bold   = "\x1b[1m"
	Dim    = "\x1b[2m"
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Plain  = "\x1b[0m" // ends a color
)

// Paint is text in a color if the style has colors.
func (s Style) Paint(code, text string) string {
	if !s.Color || text == "" || code == "" {
		return text
	}
	return code + text + Plain
}
