package mongoose

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/sobek/ast"
	"github.com/grafana/sobek/parser"

	"carronade/internal/scenario"
)

// mostCommas limits the commas that are inserted into a script.
const mostCommas = 100

// A source is a script while it is repaired.
type source struct {
	path     string
	text     string
	warnings []string
}

// parseScript parses a script. A script with a syntax error is repaired in one way, unless strict: in
// a string on the line of the error, from ${ %{ or #{ to the matching brace, quotes belong to
// the string. With commas, commas that are missing between the members of a map are inserted,
// too. The error is a *scenario.Fault.
func parseScript(s *scenario.Script, strict, commas bool) (*ast.Program, *source, error) {
	r := &source{path: s.Path, text: s.Source}
	program, wrong := r.parse()
	if wrong == nil || strict {
		return program, r, r.fault(wrong)
	}
	for lines := map[int]bool{}; wrong != nil && !lines[wrong.line]; program, wrong = r.parse() {
		lines[wrong.line] = true
		before := len(r.warnings)
		r.text, r.warnings = escapeQuotes(s.Path, s.Source, lines)
		if len(r.warnings) == before {
			break
		}
	}
	for range mostCommas {
		if wrong == nil {
			return program, r, nil
		}
		at, after := missingComma(r.text, wrong.offset(r.text))
		if at < 0 {
			break
		}
		line, column := lineOf(r.text, at)
		place := fmt.Sprintf("%s:%d:%d", r.path, line, column)
		if !commas {
			return nil, r, &scenario.Fault{At: place, Text: "a comma is missing after " + after, Hint: "--repair inserts it"}
		}
		r.text = r.text[:at] + "," + r.text[at:]
		r.warnings = append(r.warnings, fmt.Sprintf("%s: a comma is missing after %s: it was inserted", place, after))
		program, wrong = r.parse()
	}
	return program, r, r.fault(wrong)
}

// A syntaxError is the first error of a script.
type syntaxError struct {
	line, column int // from 1; the column in bytes
	text         string
}

// offset is the error's offset in the script.
func (e *syntaxError) offset(src string) int {
	at := 0
	for n := 1; n < e.line; n++ {
		i := strings.IndexByte(src[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	return min(at+e.column-1, len(src))
}

func (r *source) parse() (*ast.Program, *syntaxError) {
	program, err := parser.ParseFile(nil, r.path, r.text, 0, parser.WithDisableSourceMaps)
	var all parser.ErrorList
	switch {
	case err == nil:
		return program, nil
	case errors.As(err, &all) && len(all) > 0:
		return nil, &syntaxError{line: all[0].Position.Line, column: all[0].Position.Column, text: all[0].Message}
	}
	return nil, &syntaxError{line: 1, column: 1, text: err.Error()}
}

// fault is nil if nothing is wrong.
func (r *source) fault(e *syntaxError) error {
	if e == nil {
		return nil
	}
	return &scenario.Fault{At: fmt.Sprintf("%s:%d:%d", r.path, e.line, e.column), Text: "syntax error: " + e.text}
}

// lineOf is the line and the column of an offset, from 1.
func lineOf(src string, at int) (line, column int) {
	return 1 + strings.Count(src[:at], "\n"), at - strings.LastIndexByte(src[:at], '\n')
}

// escapeQuotes returns the script with the quotes inside of expressions escaped, in strings
// that begin on these lines, and a warning for each string.
func escapeQuotes(path, src string, lines map[int]bool) (repaired string, warnings []string) {
	starts := []int{0}
	for i := range len(src) {
		if src[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	on := func(i int) bool {
		line, found := slices.BinarySearch(starts, i)
		if found {
			line++
		}
		return lines[line]
	}
	var b strings.Builder
	done := 0
	for _, t := range tokens(src, func(src string, i int) int {
		if on(i) {
			if end := longStringEnd(src, i); src[end-1] == src[i] && end > i+1 {
				return end
			}
		}
		return stringEnd(src, i)
	}) {
		if quote := src[t.start]; t.kind != textToken || quote != '"' && quote != '\'' || !on(t.start) || t.end < t.start+2 {
			continue
		}
		text := src[t.start:t.end]
		escaped := escape(text)
		if escaped == text {
			continue
		}
		b.WriteString(src[done:t.start])
		b.WriteString(escaped)
		done = t.end
		line, column := lineOf(src, t.start)
		warnings = append(warnings, fmt.Sprintf("%s:%d:%d: quotes inside of an expression belong to the text: it was read as %s", path, line, column, escaped))
	}
	b.WriteString(src[done:])
	return b.String(), warnings
}

// longStringEnd is stringEnd, but quotes inside of an expression are not the end. An
// expression ends on its line.
func longStringEnd(src string, i int) int {
	quote := src[i]
	for i++; i < len(src); i++ {
		switch c := src[i]; {
		case c == quote:
			return i + 1
		case c == '\\' && i+1 < len(src):
			i++
		case c == '\r' || c == '\n':
			return i
		case (c == '$' || c == '%' || c == '#') && strings.HasPrefix(src[i+1:], "{"):
			if end := braceEnd(src, i+2); end > 0 {
				i = end - 1
			}
		}
	}
	return len(src)
}

// braceEnd is the offset after the brace that matches the one before i, 0 if the line has none.
func braceEnd(src string, i int) int {
	for depth := 1; i < len(src); i++ {
		switch src[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '\r', '\n':
			return 0
		}
	}
	return 0
}

// escape escapes the quotes inside of a string.
func escape(text string) string {
	var b strings.Builder
	last := len(text) - 1
	for i := 0; i <= last; i++ {
		if text[i] == '\\' && i < last {
			b.WriteByte(text[i])
			i++
		} else if text[i] == text[0] && i > 0 && i < last {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// missingComma returns the offset at which a comma is missing, and the member of a map that is
// before it, if the error at this offset is the name of the next member. Otherwise at is -1.
func missingComma(src string, offset int) (at int, after string) {
	all := tokens(src, stringEnd)
	text := func(i int) string {
		if i < 0 || i >= len(all) {
			return ""
		}
		return src[all[i].start:all[i].end]
	}
	for i, t := range all {
		if t.start != offset {
			continue
		}
		if i < 1 || t.kind == punctToken || text(i+1) != ":" {
			break
		}
		value, shown := i-1, text(i-1)
		if shown == "}" || shown == "]" {
			shown = map[string]string{"}": "{...}", "]": "[...]"}[shown]
			for depth := 1; depth > 0 && value > 0; {
				value--
				switch text(value) {
				case "}", "]":
					depth++
				case "{", "[":
					depth--
				}
			}
		} else if all[i-1].kind == punctToken {
			break
		}
		if text(value-1) == ":" {
			shown = text(value-2) + ": " + shown
		}
		return all[i-1].end, shown
	}
	return -1, ""
}
