// Package layout lays out what a person reads in a terminal: text wrapped, cut
// and padded, tables that get narrower where they must, pages of at most
// Columns columns. It answers for columns alone and refuses to know what the
// words and numbers mean.
//
// Its invariant: text is laid out first and colored last, so that color never
// moves a column; and others' words, once cleaned, cannot move the cursor.
package layout

// Columns is how wide a page is.
const Columns = 80

// Style is how a page may be written.
type Style struct {
	Color bool // ANSI; for a terminal that wants it, never for a file
	ASCII bool // no block characters
}

// Colors, as the codes that begin them.
const (
	Bold   = "\x1b[1m"
	Dim    = "\x1b[2m"
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Plain  = "\x1b[0m" // ends them
)

// Paint is s in a color, where there are any.
func (s Style) Paint(code, text string) string {
	if !s.Color || text == "" || code == "" {
		return text
	}
	return code + text + Plain
}
