package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Token is a kind of JSON token (RFC 8259).
type Token uint8

// The tokens.
const (
	EndOfText   Token = iota
	BeginObject       // {
	EndObject         // }
	BeginArray        // [
	EndArray          // ]
	Key               // a member's name
	String
	Number
	Bool
	Null
)

// maxDepth is how deep objects and arrays may be nested.
const maxDepth = 128

// ErrJSON is wrapped by the errors of a text that is not JSON.
var ErrJSON = errors.New("not JSON")

// Tokens reads one JSON text in place, token by token: it copies and allocates
// nothing. The zero value is ready after Reset.
type Tokens struct {
	// LooseText accepts control characters after an escape in a string, as Elastic's decoder does.
	LooseText bool

	p          []byte
	start, end int
	depth      int
	want       want
	arrays     [maxDepth / 64]uint64 // bit d: there is an array at depth d+1
}

type want uint8

const (
	wantValue want = iota
	wantFirstKey
	wantKey
	wantColon
	wantFirstItem
	wantMore // a comma, or the end of what is open
	wantEnd
)

// Reset starts to read p.
func (t *Tokens) Reset(p []byte) { t.p, t.start, t.end, t.depth, t.want = p, 0, 0, 0, wantValue }

// Raw returns the last token's bytes: of keys and strings those between the
// quotes, including escapes.
func (t *Tokens) Raw() []byte {
	if t.start < t.end && t.p[t.start] == '"' {
		return t.p[t.start+1 : t.end-1]
	}
	return t.p[t.start:t.end]
}

// Start is where the last token begins, including quotes.
func (t *Tokens) Start() int { return t.start }

// End is where the last token ends.
func (t *Tokens) End() int { return t.end }

// Depth is how many objects and arrays are open.
func (t *Tokens) Depth() int { return t.depth }

// Unquote decodes the raw bytes of a key or a string.
func Unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	var s string
	quoted := append(append([]byte{'"'}, raw...), '"')
	if json.Unmarshal(quoted, &s) != nil {
		return string(raw)
	}
	return s
}

func (t *Tokens) bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s at byte %d", ErrJSON, fmt.Sprintf(format, args...), t.end)
}

// skip skips white space and returns the byte at t.end; 0 at the end.
func (t *Tokens) skip() byte {
	for ; t.end < len(t.p); t.end++ {
		if c := t.p[t.end]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// Next reads the next token. At the end of the text it returns EndOfText. An error
// is final.
func (t *Tokens) Next() (Token, error) {
	c := t.skip()
	switch t.want {
	case wantColon:
		if c != ':' {
			return 0, t.bad("a name without a colon")
		}
		t.end++
		c, t.want = t.skip(), wantValue
	case wantMore:
		if c == ',' {
			t.end++
			c, t.want = t.skip(), wantValue
			if !t.inArray() {
				t.want = wantKey
			}
		}
	}
	t.start = t.end
	if t.end == len(t.p) {
		if t.want == wantEnd {
			return EndOfText, nil
		}
		return 0, t.bad("it ends too early")
	}
	switch t.want {
	case wantMore:
		return t.close(c)
	case wantFirstKey, wantKey:
		if c == '}' && t.want == wantFirstKey {
			return t.close(c)
		}
		if c != '"' {
			return 0, t.bad("%q, want a name", c)
		}
		t.want = wantColon
		return Key, t.str()
	case wantFirstItem:
		if c == ']' {
			return t.close(c)
		}
	case wantEnd:
		return 0, t.bad("%q after the end", c)
	}
	return t.value(c)
}

func (t *Tokens) inArray() bool { return t.arrays[(t.depth-1)>>6]>>((t.depth-1)&63)&1 != 0 }

func (t *Tokens) open(array uint64, first want) error {
	if t.depth == maxDepth {
		return t.bad("more than %d levels", maxDepth)
	}
	word, bit := &t.arrays[t.depth>>6], t.depth&63
	*word = *word&^(1<<bit) | array<<bit
	t.depth++
	t.end++
	t.want = first
	return nil
}

func (t *Tokens) close(c byte) (Token, error) {
	array := t.inArray()
	if c != ']' && c != '}' || array != (c == ']') {
		return 0, t.bad("%q, want a comma or an end", c)
	}
	t.depth--
	t.end++
	t.after()
	if array {
		return EndArray, nil
	}
	return EndObject, nil
}

// after sets what may follow a value.
func (t *Tokens) after() {
	if t.want = wantMore; t.depth == 0 {
		t.want = wantEnd
	}
}

func (t *Tokens) value(c byte) (Token, error) {
	switch c {
	case '{':
		return BeginObject, t.open(0, wantFirstKey)
	case '[':
		return BeginArray, t.open(1, wantFirstItem)
	case '"':
		t.after()
		return String, t.str()
	case 't':
		return Bool, t.word("true")
	case 'f':
		return Bool, t.word("false")
	case 'n':
		return Null, t.word("null")
	}
	if c == '-' || '0' <= c && c <= '9' {
		return Number, t.number()
	}
	return 0, t.bad("%q, want a value", c)
}

func (t *Tokens) word(w string) error {
	if len(t.p)-t.end < len(w) || string(t.p[t.end:t.end+len(w)]) != w {
		return t.bad("not a literal of JSON")
	}
	t.end += len(w)
	t.after()
	return nil
}

// str reads a string, including its quotes.
func (t *Tokens) str() error {
	loose := false
	for i := t.end + 1; i < len(t.p); i++ {
		switch c := t.p[i]; {
		case c == '"':
			t.end = i + 1
			return nil
		case c == '\\':
			n := escape(t.p[i:])
			if n == 0 {
				t.end = i
				return t.bad("an invalid escape")
			}
			i += n - 1
			loose = t.LooseText
		case c < ' ' && !loose:
			t.end = i
			return t.bad("a control character in a string")
		}
	}
	t.end = len(t.p)
	return t.bad("a string without end")
}

// escape is the length of the escape that p begins with; 0 if it is invalid.
func escape(p []byte) int {
	if len(p) < 2 {
		return 0
	}
	switch p[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(p) < 6 {
			return 0
		}
		for _, c := range p[2:6] {
			if l := c | 0x20; (c < '0' || c > '9') && (l < 'a' || l > 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (t *Tokens) digits() int {
	from := t.end
	for t.end < len(t.p) && t.p[t.end]-'0' <= 9 {
		t.end++
	}
	return t.end - from
}

func (t *Tokens) number() error {
	if t.p[t.end] == '-' {
		t.end++
	}
	first := t.end
	if n := t.digits(); n == 0 || n > 1 && t.p[first] == '0' {
		return t.bad("not a number")
	}
	if t.end < len(t.p) && t.p[t.end] == '.' {
		t.end++
		if t.digits() == 0 {
			return t.bad("not a number")
		}
	}
	if t.end < len(t.p) && t.p[t.end]|0x20 == 'e' {
		t.end++
		if t.end < len(t.p) && (t.p[t.end] == '+' || t.p[t.end] == '-') {
			t.end++
		}
		if t.digits() == 0 {
			return t.bad("not a number")
		}
	}
	t.after()
	return nil
}

// Skip reads to the end of the value that begins with tok, the last token.
func (t *Tokens) Skip(tok Token) error {
	if tok != BeginObject && tok != BeginArray {
		return nil
	}
	for depth := t.depth; t.depth >= depth; {
		if _, err := t.Next(); err != nil {
			return err
		}
	}
	return nil
}
