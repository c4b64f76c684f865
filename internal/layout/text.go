package layout

import (
	"strings"
	"unicode/utf8"
)

// Width counts runes, which equals columns for all text printed here.
func Width(s string) int { return utf8.RuneCountInString(s) }

// PadLeft puts blanks before s until it has n columns.
func PadLeft(s string, n int) string { return strings.Repeat(" ", max(n-Width(s), 0)) + s }

// PadRight puts blanks after s until it has n columns.
func PadRight(s string, n int) string { return s + strings.Repeat(" ", max(n-Width(s), 0)) }

// Wrap breaks text at blanks into one or more lines of at most n columns. Longer
// words are cut, so that a long address cannot break the page.
func Wrap(text string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(Clean(text)) {
		for Width(word) > n {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:n])), string(runes[n:])
		}
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// Hang breaks text at blanks into lines of at most n columns, the first of which begins with a
// label. The others begin below the text after it.
func Hang(label, text string, n int) string {
	indent := Width(label)
	if n <= 2*indent {
		return label + text // no room: the terminal breaks it
	}
	return label + strings.Join(Wrap(text, n-indent), "\n"+strings.Repeat(" ", indent))
}

// Clean makes external text safe to print, so that a system's answer cannot move
// the cursor or change the direction of text. It replaces control characters by blanks.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unreadable(r, 1) {
			return ' '
		}
		return r
	}, s)
}

const ellipsis = "..."

// Cut shortens s to n columns at its end.
func Cut(s string, n int) string {
	if s = Clean(s); Width(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-len(ellipsis), 0)]) + ellipsis[:min(max(n, 0), len(ellipsis))]
}

// CutMiddle shortens s to n columns in its middle, because names of partitions and
// of gauges differ at their ends.
func CutMiddle(s string, n int) string {
	if s = Clean(s); Width(s) <= n {
		return s
	}
	r := []rune(s)
	tail := max((n-len(ellipsis))/2, 0)
	return string(r[:max(n-len(ellipsis)-tail, 0)]) + ellipsis[:min(max(n, 0), len(ellipsis))] + string(r[len(r)-tail:])
}
