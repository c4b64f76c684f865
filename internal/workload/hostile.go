package workload

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a document, far above those of any workload. The parser needs time and memory that
// grow with the square of the numbers below, and its recursion is as deep as the document. So a
// document is refused before that, and the longest time to read one is a second or so.
const (
	// mostDepth limits how deep lists and mappings are in each other: a list of workloads whose
	// parts have lists is five deep.
	mostDepth = 16
	// mostTokens limits the words and signs: a setting has three or four.
	mostTokens = 20_000
	// mostSteps limits the steps that the parser's scanner takes for repeated characters, besides
	// those in proportion to the size.
	mostSteps = 100_000_000
)

// parseTokens parses a document within the bounds.
func parseTokens(name string, data []byte) (*ast.File, error) {
	if err := checkScan(name, data); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(data))
	if err := checkTokens(name, tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, yamlError(name, err)
	}
	return file, nil
}

// checkScan refuses a text for which the scanner would take too long. It looks ahead to the end of
// the line for each tab of a quoted text, to the end of a run of < for each of them, and copies a
// block of text for each empty line at its end.
func checkScan(name string, data []byte) error {
	steps, number, blank := 0, 0, false
	for line := range bytes.Lines(data) {
		number++
		what, before := "", blank
		if blank = len(bytes.TrimSpace(line)) == 0; blank && before {
			what, steps = "empty lines", steps+len(data)
		} else if tabs := bytes.Count(line, []byte{'\t'}); tabs > 0 {
			what, steps = "tabs", steps+tabs*len(line)
		}
		if n := longestRun(line, '<'); n > 2 {
			what, steps = "signs <", steps+n*n
		}
		if steps > mostSteps {
			return &Error{Where: fmt.Sprintf("%s:%d", name, number), Err: fmt.Errorf("has too many %s", what), Hint: fileHint}
		}
	}
	return nil
}

// longestRun returns the length of the longest run of a character.
func longestRun(line []byte, c byte) (longest int) {
	n := 0
	for _, b := range line {
		if b != c {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}

// checkTokens refuses documents with too many tokens, or too deep, or with what no workload may
// have.
func checkTokens(name string, tokens token.Tokens) error {
	flow := 0
	var block []int // columns of the lists and mappings around
	for i, t := range tokens {
		begins := false
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return &Error{Where: lineOf(name, t), Err: errNoReferences, Hint: "write the value itself, in quotes if it begins with &, * or !"}
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(0, flow-1)
		case token.SequenceEntryType, token.MappingKeyType:
			begins = true
		default:
			begins = i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType
		}
		if begins && flow == 0 {
			for len(block) > 0 && block[len(block)-1] >= t.Position.Column {
				block = block[:len(block)-1]
			}
			block = append(block, t.Position.Column)
		}
		if flow+len(block) > mostDepth {
			return &Error{Where: lineOf(name, t), Err: fmt.Errorf("has lists or mappings that are more than %d deep in each other", mostDepth), Hint: fileHint}
		}
	}
	if len(tokens) > mostTokens {
		return &Error{Where: lineOf(name, tokens[mostTokens]), Err: fmt.Errorf("has more than %d words and signs, the limit of a workload", mostTokens), Hint: fileHint}
	}
	return nil
}

// errNoReferences is the error of what makes a value depend on another one.
var errNoReferences = errors.New("uses anchors, aliases or tags, which a workload does not allow")

// lineOf returns "name:line".
func lineOf(name string, t *token.Token) string {
	if t == nil || t.Position == nil {
		return name
	}
	return fmt.Sprintf("%s:%d", name, t.Position.Line)
}
