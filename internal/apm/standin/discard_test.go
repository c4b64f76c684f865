package standin

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"carronade/internal/apm/wire"
	"carronade/internal/standin"
	"carronade/test/testkit/assert"
)

// testBothWays runs a test on the discard server on threads for many connections, if the system
// supports them, and with a goroutine for each connection. As it sets makeThreads,
// the test must not be parallel.
func testBothWays(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	for _, way := range []struct {
		name    string
		threads func() *standin.Threads
	}{{"threads", standin.NewThreads}, {"goroutines", func() *standin.Threads { return nil }}} {
		t.Run(way.name, func(t *testing.T) {
			makeThreads = way.threads
			defer func() { makeThreads = standin.NewThreads }()
			s := start(t, Options{Discard: true})
			if way.name == "threads" && s.sink.threads == nil {
				t.Skip("no pollers here")
			}
			test(t, s)
		})
	}
}

func TestDiscard(t *testing.T) { testBothWays(t, testDiscard) }

func testDiscard(t *testing.T, s *Server) {
	url := "http://" + s.Addr() + "/intake/v2/events?verbose"
	for range 3 {
		code, text := post(t, url, bytes.Repeat([]byte("x"), 300000))
		assert.Must(t, code == 202 && text == "", "got %d %q, want 202 and nothing", code, text)
	}
	// In chunks, with Expect: 100-continue.
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(strings.NewReader("abc"), strings.NewReader(strings.Repeat("y", 100000))))
	r.Header.Set("Expect", "100-continue")
	resp, err := http.DefaultClient.Do(r)
	assert.OK(t, err)
	resp.Body.Close()
	if c := s.Counts(); resp.StatusCode != http.StatusAccepted || c.Requests != 4 || c.Bytes != 3*300000+100003 || c.Connections == 0 {
		t.Errorf("got %d, %+v, want 4 requests with 1000003 bytes", resp.StatusCode, c)
	}
	resp, err = http.Get("http://" + s.Addr() + "/debug/vars") //nolint:noctx // a test
	assert.OK(t, err)
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	assert.True(t, strings.Contains(string(text), `"apm-server.server.request.count":4`), "got %s, want 4 requests", text)
}

// Each of several pipelined requests is answered, in whatever pieces they arrive.
func TestDiscardPipelined(t *testing.T) { testBothWays(t, testDiscardPipelined) }

func testDiscardPipelined(t *testing.T, s *Server) {
	one := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345"
	chunked := "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n"
	last := "POST / HTTP/1.1\r\nConnection: close\r\n\r\n"
	all := strings.Repeat(one+chunked, 50) + last
	for _, piece := range []int{1, 7, 100, len(all)} {
		c, err := net.Dial("tcp", s.Addr()) //nolint:noctx // a test
		assert.OK(t, err)
		go func() {
			for at := 0; at < len(all); at += piece {
				if _, err := io.WriteString(c, all[at:min(len(all), at+piece)]); err != nil {
					return
				}
			}
		}()
		got, err := io.ReadAll(bufio.NewReader(c))
		c.Close()
		n := bytes.Count(got, []byte("HTTP/1.1 202 "))
		assert.True(t, n == 101 && err == nil, "in pieces of %d: %d answers, %v, want 101", piece, n, err)
	}
}

func TestDiscardRefuses(t *testing.T) {
	for _, in := range []string{
		"PUT / HTTP/1.1\r\n\r\n", "POST / HTTP/3\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
		"POST / HTTP/1.1\r\nx\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "\r\n\r\n",
	} {
		_, err := parseHead([]byte(in))
		assert.True(t, err != nil, "%q is accepted", in)
	}
	testBothWays(t, func(t *testing.T, s *Server) {
		c, err := net.Dial("tcp", s.Addr()) //nolint:noctx // a test
		assert.OK(t, err)
		defer c.Close()
		_, _ = io.WriteString(c, "BREW / HTTP/1.1\r\n\r\n")
		got, _ := io.ReadAll(c)
		assert.True(t, strings.HasPrefix(string(got), "HTTP/1.1 400 "), "got %q, want 400 and a closed connection", got)
	})
}

// The skimmer's result does not depend on the pieces in which requests arrive.
func FuzzSkim(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n"), uint8(3))
	f.Add([]byte("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nxBREW\r\n\r\n"), uint8(1))
	f.Add([]byte("POST / HTTP/1.0\r\n\r\nPOST / HTTP/1.1\r\n\r\n"), uint8(7))
	f.Add(bytes.Repeat([]byte("x"), maxRequest+10), uint8(255))
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		if bytes.Contains(in, []byte("GET ")) {
			return // a GET is answered by counters
		}
		skim := func(size int) (string, uint64, error) {
			k := skimmer{counts: new(sinkCounts)}
			var err error
			for p := in; len(p) > 0 && err == nil; {
				n := min(size, len(p))
				if s := k.Skippable(); s > 0 && size%2 == 0 { // skipped, as by the kernel
					n = int(min(s, int64(len(p))))
					err = k.Skip(int64(n))
				} else {
					_, err = k.Take(p[:n])
				}
				p = p[n:]
			}
			if err == nil {
				err = k.End()
			}
			return string(k.out), k.counts.bytes.Load(), err
		}
		out, n, err := skim(len(in) + 1)
		pieceOut, pieceN, pieceErr := skim(int(piece) + 1)
		assert.True(t, out == pieceOut && n == pieceN && fmt.Sprint(err) == fmt.Sprint(pieceErr),
			"at once %q, %d bytes, %v; in pieces %q, %d bytes, %v", out, n, err, pieceOut, pieceN, pieceErr)
	})
}

func FuzzDiscardHead(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if i := bytes.Index(in, headEnd); i >= 0 {
			q, err := parseHead(in[:i+4])
			assert.True(t, err != nil || q.length >= 0, "a negative length")
		}
	})
}

// One connection, with one request in flight and with many.
func BenchmarkDiscard(b *testing.B) {
	body := bodyOf(b, wire.Makeup{Events: wire.Range{Min: 10, Max: 10}, Mix: [wire.Kinds]int{1, 0, 0, 0}}, 0)
	request := append(fmt.Appendf(nil, "POST /intake/v2/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n", len(body.Bytes)), body.Bytes...)
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d in flight", depth), func(b *testing.B) {
			s := start(b, Options{Discard: true})
			c, err := net.Dial("tcp", s.Addr()) //nolint:noctx // a test
			assert.OK(b, err)
			defer c.Close()
			many := bytes.Repeat(request, depth)
			answers := make([]byte, depth*len(answer202))
			b.SetBytes(int64(len(request)))
			b.ReportAllocs()
			for i := 0; i < b.N; i += depth {
				assert.Value(c.Write(many))(b)
				assert.Value(io.ReadFull(c, answers))(b)
			}
		})
	}
}
