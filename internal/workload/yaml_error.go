package workload

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"carronade/protocol"
)

const (
	fileHint       = "a workload file has lines such as \"rate: 50k/s\"; the keys are the names of the flags"
	referencesHint = "write the value itself, in quotes if it begins with &, * or !"
	quoteHint      = "put the value in quotes"
	bracketHint    = "close each bracket, and put a text with brackets or commas in quotes"
)

// ourWords are what the library's frequent errors mean for a workload. The first fits whose text is
// in "context: message".
var ourWords = []struct {
	library, says, hint string
	start               bool // the error is where the context begins
}{
	{"quoted scalar: found unexpected end", "a text in quotes does not end", "close the quote", true},
	{"unknown escape character", "an escape in double quotes is unknown", `write \\ for a backslash, or put the text in single quotes`, false},
	{"could not find expected ':'", "a colon is missing after the key", fileHint, true},
	{"mapping values are not allowed", "a colon cannot be here", "put a text with a colon in quotes, and begin the settings in the same column", false},
	{"mapping: did not find expected key", "this does not belong to the value before it", "begin the settings in the same column, and put the whole of a value in quotes", false},
	{"expected <document start>", "this does not belong to what is before it", "begin the settings in the same column, and put the whole of a value in quotes", false},
	{"expected '-' indicator", "an entry of the list does not begin with a dash", "begin all entries with a dash in the same column", false},
	{"block sequence entries are not allowed", "a list cannot begin in the line of its key", "begin it in the next line, or put the value in quotes", false},
	{"expected ',' or ']'", "a comma or ] is missing", bracketHint, false},
	{"expected ',' or '}'", "a comma or } is missing", bracketHint, false},
	{"flow node: did not find expected node content", "a value or a closing bracket is missing", bracketHint, false},
	{"block node: did not find expected node content", "a value cannot begin with this character", quoteHint, false},
	{"character that cannot start any token", "a value cannot begin with @, ` or %", quoteHint, false},
	{"block scalar: did not find expected comment", "a text that begins with > or | begins in the next line", quoteHint, false},
	{"incompatible YAML document", "a line with %YAML names another version than 1.1", "leave the line out", false},
	{"control characters are not allowed", "a control character cannot be in a file", `write it in double quotes, such as "\x07"`, false},
	{"UTF-8", "the text is not UTF-8", "save the file as UTF-8", false},
}

// malformedReference is the context of an error in an anchor, an alias or a tag.
var malformedReference = regexp.MustCompile(`scanning (an anchor|an alias|a tag)$`)

// problem is an error of the library in our words.
func (g *guard) problem(name string, data []byte, err error) error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return &protocol.Error{Doing: name, Err: err, Hint: fileHint}
	}
	out, mark := &protocol.Error{Err: errors.New(e.Message), Hint: fileHint}, e.Mark
	for _, w := range ourWords {
		if strings.Contains(e.ContextMsg+": "+e.Message, w.library) {
			out.Err, out.Hint = errors.New(w.says), w.hint
			if w.start {
				mark = e.ContextMark
			}
			break
		}
	}
	if malformedReference.MatchString(e.ContextMsg) {
		g.refused, mark = ErrReferences, e.ContextMark
	}
	if mark.Line == 0 { // of bytes that are no text, only the number is known
		before := data[:min(mark.Index, len(data))]
		mark.Line = 1 + bytes.Count(before, []byte("\n"))
		mark.Column = len(before) - bytes.LastIndexByte(before, '\n')
	}
	if tabIndents(data, mark.Line) {
		out.Hint = fmt.Sprintf("line %d is indented with a tab: use spaces", mark.Line)
	}
	switch {
	case errors.Is(g.refused, ErrReferences):
		out.Err, out.Hint = ErrReferences, referencesHint
	case g.refused != nil:
		out.Err, out.Hint = g.refused, fileHint
	}
	out.Doing = fmt.Sprintf("%s:%d:%d", name, mark.Line, mark.Column)
	return out
}

// tabIndents reports whether there is a tab before the text of a line.
func tabIndents(data []byte, number int) bool {
	for line := range bytes.Lines(data) {
		if number--; number == 0 {
			text := bytes.TrimLeft(line, " \t")
			return bytes.ContainsRune(line[:len(line)-len(text)], '\t')
		}
	}
	return false
}
