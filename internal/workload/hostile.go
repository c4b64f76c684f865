package workload

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"regexp"

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
	// mostTokens limits the tokens: a setting has three or four.
	mostTokens = 20_000
	// mostIndicators limits the characters that may make tokens, before any is made. Far more of them
	// than tokens may stand in texts.
	mostIndicators = 10 * mostTokens
	// mostKey limits the length of a key in bytes. The parser keeps the keys above each value with it.
	mostKey = 256
	// mostSteps limits the steps that the parser's scanner takes for repeated characters, besides
	// those in proportion to the size.
	mostSteps = 100_000_000
	// tabsAStep is how many bytes it looks at behind a tab in the time of a step, which copies one.
	tabsAStep = 4
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
		return nil, yamlError(name, data, err)
	}
	return file, nil
}

// checkScan refuses a text for which the scanner would take too long, or make too many tokens. It
// looks ahead to the end of the line for each tab of a quoted text, to the end of a run of < for
// each of them, and copies a block of text for each empty line at its end.
func checkScan(name string, data []byte) error {
	var r region
	steps, number, signs, blank := 0, 0, 0, false
	for line := range lines(data) {
		number++
		what, before := "", blank
		plain := r.next(line)
		if blank = len(bytes.TrimSpace(line)) == 0; blank && before {
			what, steps = "empty lines", steps+r.size
		} else if n := ahead(line); n > 0 && !plain && r.double {
			what, steps = "tabs", steps+n/tabsAStep
		}
		if n := runs(line, '<'); n > 0 {
			what, steps = "characters <", steps+n
		}
		if !plain {
			signs += indicators(line)
		}
		if signs > mostIndicators {
			what = "characters with a meaning in YAML"
		}
		if steps > mostSteps || signs > mostIndicators {
			return &Error{Where: fmt.Sprintf("%s:%d", name, number), Err: fmt.Errorf("has too many %s", what), Hint: "put a long payload in a file: payload: file(NAME)"}
		}
	}
	return nil
}

// A region is what is known of the text before a line without the scanner. Where something is not
// certain, it takes what costs more.
type region struct {
	size   int  // bytes since the last line that certainly ends each block of text before it
	ends   bool // a line that begins in column 1 does so
	begun  bool // there was a line with more than a remark
	quotes bool // there was a quote of which the end is not certain, or a mapping in braces
	double bool // there was a double quote
}

var (
	// keyLine begins a mapping or a list, and so what is in it is in a column behind the first.
	keyLine = regexp.MustCompile(`^(- |[A-Za-z0-9_-]+:[ \r\n])`)
	// singleQuoted is a setting with a text in single quotes that ends in its line.
	singleQuoted = regexp.MustCompile(`^ *(- )?[A-Za-z0-9_-]+: +'([^']|'')*'[ ]*[\r\n]*$`)
)

// next takes the next line, and reports whether it is certainly a setting whose value is a text in
// single quotes: nothing in that has a meaning.
func (r *region) next(line []byte) (quoted bool) {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0:
	case bytes.HasPrefix(line, []byte("---")):
		if r.begun || len(text) > 3 { // the scanner forgets the column of the mapping
			r.begun, r.ends = true, false
		}
	case !r.begun && text[0] == '#':
	case !r.begun:
		r.begun, r.ends = true, keyLine.Match(line)
	}
	if r.ends && line[0] > ' ' {
		r.size = 0
	}
	r.size += len(line)
	if !r.quotes && singleQuoted.Match(line) {
		return true
	}
	r.quotes = r.quotes || bytes.ContainsAny(line, `'"{`)
	r.double = r.double || bytes.IndexByte(line, '"') >= 0
	return false
}

// ahead returns how many bytes of the line are after its tabs, in all.
func ahead(line []byte) (sum int) {
	for i, c := range line {
		if c == '\t' {
			sum += len(line) - i
		}
	}
	return sum
}

// lines returns the lines of a text with their ends, which are LF, CR, or both: the scanner takes
// each of them.
func lines(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			end := len(data)
			if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
				end = i + 1
				if data[i] == '\r' && end < len(data) && data[end] == '\n' {
					end++
				}
			}
			if !yield(data[:end]) {
				return
			}
			data = data[end:]
		}
	}
}

// runs returns the sum of the squares of the lengths of the runs of a character. A single one is
// no run.
func runs(line []byte, c byte) (sum int) {
	n := 0
	for i, b := range line {
		if b == c {
			n++
		}
		if b != c || i == len(line)-1 {
			if n > 1 {
				sum += n * n
			}
			n = 0
		}
	}
	return sum
}

// indicators returns how many characters of a line can end a token or be one; a line with text
// is at least one.
func indicators(line []byte) (n int) {
	for i, c := range line {
		switch c {
		case '-', '?':
			if i+1 == len(line) || line[i+1] <= ' ' {
				n++
			}
		case '[', ']', '{', '}', ',', ':', '&', '*', '!', '|', '>', '%', '#', '\'', '"', '@', '`':
			n++
		}
	}
	if n == 0 && len(bytes.TrimSpace(line)) > 0 {
		return 1
	}
	return n
}

// checkTokens refuses documents with too many tokens, or too deep, or with what no workload may
// have.
func checkTokens(name string, tokens token.Tokens) error {
	flow := 0
	var block []int       // columns of the lists and mappings around
	var last *token.Token // before this one, except for comments
	for i, t := range tokens {
		begins := false
		if key := keyOf(last, t); key != nil && len(key.Value) > mostKey {
			return &Error{Where: lineOf(name, key), Err: fmt.Errorf("has a key of %d bytes, and %d are the limit", len(key.Value), mostKey), Hint: "no setting has such a name: check the quotes and the indentation"}
		}
		if t.Type != token.CommentType {
			last = t
		}
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
		return &Error{Where: lineOf(name, tokens[mostTokens]), Err: fmt.Errorf("has more than %d tokens, the limit of a workload", mostTokens), Hint: fileHint}
	}
	return nil
}

// keyOf returns the key among two tokens that follow each other; nil: none of them is one.
func keyOf(last, t *token.Token) *token.Token {
	switch {
	case last == nil || t.Type == token.CommentType:
		return nil
	case last.Type == token.MappingKeyType:
		return t
	case t.Type == token.MappingValueType:
		return last
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
