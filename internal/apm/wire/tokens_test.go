package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// walk reads all tokens and returns them as text.
func walk(p []byte) (string, error) {
	var t Tokens
	t.Reset(p)
	var out strings.Builder
	for {
		tok, err := t.Next()
		if err != nil || tok == EndOfText {
			return out.String(), err
		}
		switch tok {
		case Key, String:
			out.WriteString("'" + Unquote(t.Raw()) + "'")
		default:
			out.Write(t.Raw())
		}
		out.WriteByte(' ')
	}
}

func TestTokens(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"object", ` {"a" : [1, -2.5e+3,true ,null,"x\u0041\n"], "b":{}} `, "{ 'a' [ 1 -2.5e+3 true null 'xA\n' ] 'b' { } } "},
		{"array", `[]`, "[ ] "},
		{"word", `false`, "false "},
		{"number", `0`, "0 "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := walk([]byte(tt.in))
			assert.True(t, err == nil && got == tt.want, "got %q, %v, want %q", got, err, tt.want)
		})
	}
	for _, in := range []string{"", "{", `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{]`, `[}`, "01", "-", "1.", "1e", `"`, `"\x"`, "\"\n\"", "nul", "{} x", `{1:2}`, strings.Repeat("[", 200)} {
		_, err := walk([]byte(in))
		assert.True(t, errors.Is(err, ErrJSON), "%.20q: got %v, want an error", in, err)
	}
}

func TestTokensSkip(t *testing.T) {
	var s Tokens
	s.Reset([]byte(`[{"a":[1,{"b":2}]},7]`))
	_, _ = s.Next()
	tok, _ := s.Next()
	assert.OK(t, s.Skip(tok))
	if tok, err := s.Next(); tok != Number || string(s.Raw()) != "7" || err != nil {
		t.Errorf("after skipping: %v %q %v", tok, s.Raw(), err)
	}
}

// Tokens accepts the same texts as the standard library, except for its limit of depth.
func FuzzTokens(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2.5e3,true,null,"x\u0041"],"b":{}}`))
	f.Add([]byte(`[[[{"":""}]],"\\\""]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		_, err := walk(in)
		if err != nil && strings.Contains(err.Error(), "levels") {
			return
		}
		got, want := err == nil, json.Valid(in)
		assert.True(t, got == want, "%q: got %v (%v), want %v", in, got, err, want)
	})
}

func BenchmarkTokens(b *testing.B) {
	p := maker(b, benches[0].m).Make(0).Bytes
	line := p[:strings.IndexByte(string(p), '\n')]
	var t Tokens
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for range b.N {
		t.Reset(line)
		for {
			tok := assert.Value(t.Next())(b)
			if tok == EndOfText {
				break
			}
		}
	}
}
