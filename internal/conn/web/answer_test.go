package web

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/test/testkit/assert"
)

var answers = []struct {
	name, in string
	status   int
	body     string
	close    bool
	rest     string // bytes after the answer
	end      bool   // it ends only with the connection
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
				assert.Must(t, a.Status == tt.status && string(a.Body) == tt.body && a.Size == int64(len(tt.body)) && a.Close == tt.close && string(rest) == tt.rest,
					"in pieces of %d: got %d %q close %v, then %q", piece, a.Status, a.Body, a.Close, rest)
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
				got := read(&a, tt.in)
				assert.True(t, reflect.DeepEqual(got, want), "%s after %s, read %d: got %+v, want %+v", tt.name, before.name, turn+1, got, want)
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
	_, done, err := a.Feed(in)
	assert.True(t, done && err == nil && len(a.Body) == KeptBody && a.Size == 1000000, "kept %d of %d bytes: %v", len(a.Body), a.Size, err)
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

// A connection that the server closed because it was idle is made again at once, every time.
func TestIdleConnectionsAreMadeAgain(t *testing.T) {
	t.Parallel()
	happened := 0
	l := &lane{State: State{S: &Lanes{Options: Options{Happened: func(string, time.Time, time.Duration) { happened++ }}, Sink: &clockSink{at: 10 * time.Second}}}}
	l.Accepts = l.accepts
	for _, tt := range []struct {
		since time.Duration
		want  bool
	}{{0, true}, {10*time.Second - time.Millisecond, false}} {
		here, there := net.Pipe()
		defer there.Close()
		k := newLink(l, here)
		k.startedAt, l.link = tt.since, k
		k.Kill(ErrServerClosed)
		assert.Equal(t, k.Lost(), tt.want, "whether it was lost, up since %v", tt.since)
	}
	assert.Equal(t, happened, 2, "lost connections in the report")
}

// A clockSink is a sink with a fixed time.
type clockSink struct{ at time.Duration }

func (s *clockSink) Now() time.Duration     { return s.at }
func (*clockSink) Complete([]load.Outcome)  {}
func (*clockSink) Ready(int, time.Duration) {}

// Overlapping pauses count once.
func TestOverlappingPausesCountOnce(t *testing.T) {
	t.Parallel()
	sink := &clockSink{at: time.Second}
	l := &lane{State: State{S: &Lanes{Sink: sink}, Closed: true}}
	for range 3 {
		l.Pause(sink.at, 10*time.Second)
	}
	sink.at = 5 * time.Second
	l.Pause(sink.at, 10*time.Second)
	assert.True(t, l.Metrics.Paused == 14*time.Second && l.Metrics.Throttled == 4,
		"paused for %v after %d answers, want 14s after 4", l.Metrics.Paused, l.Metrics.Throttled)
}

// Errors of documents are counted by text, in bounded memory.
func TestTally(t *testing.T) {
	var y Tally
	for i := range 3 * mostTexts {
		y.Add(strings.Repeat("x", i))
		y.Add("always")
	}
	all := y.All()
	assert.Equal(t, all["always"], 3*mostTexts, "counted")
	got, want := all["..."], uint64(2*mostTexts+1)
	assert.True(t, len(all) == mostTexts+1 && got == want, "%d texts and %d others, want %d and %d", len(all), got, mostTexts+1, want)
}
