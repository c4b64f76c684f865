package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

var answers = []struct {
	name   string
	in     string
	status int
	body   string
	close  bool
	rest   string // bytes after the answer
	end    bool   // it ends only with the connection
}{
	{name: "accepted", in: "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nDate: x\r\n\r\nHTTP/1.1 202", status: 202, rest: "HTTP/1.1 202"},
	{name: "with a body", in: "HTTP/1.1 400 Bad Request\r\ncontent-length:  5 \r\n\r\n{\"a\"}", status: 400, body: `{"a"}`},
	{name: "without words", in: "HTTP/1.1 202\r\nContent-Length: 1\r\n\r\nx", status: 202, body: "x"},
	{name: "chunks", in: "HTTP/1.1 503 No\r\nTransfer-Encoding: Chunked\r\n\r\n4;a=b\r\nabcd\r\n0A \r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nrest", status: 503, body: "abcd0123456789", rest: "rest"},
	{name: "close", in: "HTTP/1.1 413 Large\r\nConnection: foo, Close\r\nContent-Length: 2\r\n\r\nno", status: 413, body: "no", close: true},
	{name: "1.0", in: "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200, close: true},
	{name: "1.0 kept", in: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", status: 200},
	{name: "no content", in: "HTTP/1.1 204 None\r\n\r\n", status: 204},
	{name: "after 100", in: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", status: 202},
	{name: "up to the end", in: "HTTP/1.1 200 OK\r\n\r\nall of this", status: 200, body: "all of this", close: true, end: true},
	{name: "two equal lengths", in: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", status: 200, body: "x"},
}

func TestAnswers(t *testing.T) {
	for _, tt := range answers {
		t.Run(tt.name, func(t *testing.T) {
			var a Answer
			for piece := 1; piece <= len(tt.in); piece++ {
				a.Reset()
				rest, done := []byte(tt.in), false
				for at := 0; at < len(rest) && !done; {
					n, d, err := a.Feed(rest[at:min(len(rest), at+piece)])
					assert.OK(t, err, "in pieces of %d", piece)
					if at, done = at+n, d; done {
						rest = rest[at:]
					}
				}
				assert.Must(t, done != tt.end, "in pieces of %d: done %v before the connection's end", piece, done)
				if tt.end {
					rest = nil
					assert.Must(t, a.End(), "not done at the connection's end")
				}
				if a.Status != tt.status || string(a.Body) != tt.body || a.Size != int64(len(tt.body)) || a.Close != tt.close || string(rest) != tt.rest {
					t.Fatalf("in pieces of %d: got %d %q close %v, then %q", piece, a.Status, a.Body, a.Close, rest)
				}
			}
		})
	}
}

// An answer is read the same after any other, whose head was remembered, and after itself.
func TestAnswerAfterAnother(t *testing.T) {
	read := func(a *Answer, in string) Answer {
		a.Reset()
		_, done, err := a.Feed([]byte(in))
		assert.Must(t, err == nil && (done || a.End()), "%q: %v", in, err)
		got := *a
		got.head, got.keep, got.seen = nil, nil, nil
		got.Body = bytes.Clone(got.Body)
		return got
	}
	for _, before := range answers {
		for _, tt := range answers {
			want := read(&Answer{}, tt.in)
			var a Answer
			read(&a, before.in)
			for turn := range 2 {
				if got := read(&a, tt.in); !reflect.DeepEqual(got, want) {
					t.Errorf("%s after %s, read %d: got %+v, want %+v", tt.name, before.name, turn+1, got, want)
				}
			}
		}
	}
}

func TestAnswersRefused(t *testing.T) {
	tests := []struct{ name, in string }{
		{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n\r\n"},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n"},
		{"no number", "HTTP/1.1 2x2 OK\r\n\r\n"},
		{"bare line feeds", "HTTP/1.1 202 OK\nContent-Length: 0\r\n\r\n"},
		{"a folded field", "HTTP/1.1 202 OK\r\nA: b\r\n c\r\n\r\n"},
		{"space before the colon", "HTTP/1.1 202 OK\r\nContent-Length : 0\r\n\r\n"},
		{"negative length", "HTTP/1.1 202 OK\r\nContent-Length: -1\r\n\r\n"},
		{"two lengths", "HTTP/1.1 202 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"},
		{"length and chunks", "HTTP/1.1 202 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"gzip", "HTTP/1.1 202 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
		{"bad chunk", "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"},
		{"long chunk", "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"},
		{"endless head", "HTTP/1.1 202 OK\r\n" + strings.Repeat("A: b\r\n", maxHead)},
		{"upgrade", "HTTP/1.1 101 Switching\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range []int{1, 7, len(tt.in)} {
				var a Answer
				var err error
				for at := 0; at < len(tt.in) && err == nil; {
					var n int
					var done bool
					n, done, err = a.Feed([]byte(tt.in[at:min(len(tt.in), at+piece)]))
					assert.Must(t, !done, "in pieces of %d: accepted as an answer", piece)
					at += n
				}
				assert.True(t, errors.Is(err, ErrAnswer), "in pieces of %d: got error %v, want ErrAnswer", piece, err)
			}
		})
	}
}

func TestAnswerIsBounded(t *testing.T) {
	var a Answer
	in := []byte("HTTP/1.1 400 Bad\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("e", 1000000))
	if _, done, err := a.Feed(in); !done || err != nil || len(a.Body) != KeptBody || a.Size != 1000000 {
		t.Errorf("kept %d of %d bytes: %v", len(a.Body), a.Size, err)
	}
	ok := []byte("HTTP/1.1 202 Accepted\r\nX-Content-Type-Options: nosniff\r\nDate: Sat, 21 Nov 2026 12:31:41 GMT\r\nContent-Length: 0\r\n\r\n")
	assert.Equal(t, testing.AllocsPerRun(100, func() { a.Reset(); _, _, _ = a.Feed(ok) }), 0, "allocations an answer")
}

// Any bytes, in any pieces, are read the same; and net/http accepts the same answers.
func FuzzAnswer(f *testing.F) {
	for _, tt := range answers {
		f.Add([]byte(tt.in), byte(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, piece byte) {
		var whole, pieces Answer
		n, done, err := whole.Feed(in)
		assert.Must(t, n <= len(in), "took %d of %d bytes", n, len(in))
		at, pdone := 0, false
		var perr error
		for at < len(in) && !pdone && perr == nil {
			var k int
			k, pdone, perr = pieces.Feed(in[at:min(len(in), at+1+int(piece))])
			at += k
		}
		assert.Must(t, done == pdone && ((err == nil) == (perr == nil) || len(in) >= maxHead),
			"whole: %v %v, in pieces: %v %v", done, err, pdone, perr)
		if !done {
			return
		}
		assert.Must(t, n == at && whole.Status == pieces.Status && bytes.Equal(whole.Body, pieces.Body) &&
			whole.Close == pieces.Close, "whole and pieces differ: %+v, %+v", whole, pieces)
		again := Answer{seen: whole.seen}
		again.Reset()
		if k, _, err := again.Feed(in); k != n || err != nil || again.Status != whole.Status || !bytes.Equal(again.Body, whole.Body) || again.Close != whole.Close || again.Retry != whole.Retry {
			t.Fatalf("read again: %+v (%v), want %+v", again, err, whole)
		}
		r := bufio.NewReader(bytes.NewReader(in[:n]))
		for {
			resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodPost}) //nolint:bodyclose // read to its end, of memory
			if err != nil {
				t.Skip("net/http is stricter about names of fields")
			}
			body, err := io.ReadAll(resp.Body)
			if resp.StatusCode < 200 && err == nil {
				continue
			}
			assert.Must(t, resp.StatusCode == whole.Status && (err != nil || int64(len(body)) == whole.Size),
				"net/http reads %d with %d bytes (%v), want %d with %d", resp.StatusCode, len(body), err, whole.Status, whole.Size)
			return
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	var a Answer
	ok := []byte("HTTP/1.1 202 Accepted\r\nX-Content-Type-Options: nosniff\r\nDate: Sat, 21 Nov 2026 12:31:41 GMT\r\nContent-Length: 0\r\n\r\n")
	b.ReportAllocs()
	for range b.N {
		a.Reset()
		_, done, err := a.Feed(ok)
		assert.Must(b, done && err == nil, "%v", err)
	}
}

// The raw sums of two parts combine to the raw sum of both.
func TestSumsAreJoined(t *testing.T) {
	all := make([]byte, 1000)
	for i := range all {
		all[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 7, 500, 999, 1000} {
		got := field.Multiply(field.Shift(len(all)-n), rawSum(all[:n])) ^ rawSum(all[n:])
		assert.Equal(t, got, rawSum(all), "%d bytes and the rest", n)
	}
	assert.True(t, rawSum(all) != crc32.ChecksumIEEE(all), "the raw sum has the inversions")
}

var benches = []struct {
	name string
	m    Makeup
}{
	{"10x0x0", Makeup{Events: Range{10, 10}, Mix: [Kinds]int{Transaction: 1}}},
	{"10x10x10", Makeup{Events: Range{10, 10}, Spans: Range{10, 10}, Frames: Range{10, 10}}},
}

// Stamping an uncompressed body.
func BenchmarkStamp(b *testing.B) {
	for _, bb := range benches {
		b.Run(bb.name, func(b *testing.B) {
			body := maker(b, bb.m).Make(0)
			b.SetBytes(int64(body.Plain))
			b.ReportAllocs()
			for i := range b.N {
				body.Stamp(1, uint64(i), timeMin+int64(i))
			}
		})
	}
}

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
