package apm

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	wire "carronade/internal/wire/apm"
)

func TestDiscard(t *testing.T) {
	s := start(t, Options{Discard: true})
	url := "http://" + s.Addr() + "/intake/v2/events?verbose"
	for range 3 {
		if code, text := post(t, url, bytes.Repeat([]byte("x"), 300000)); code != 202 || text != "" {
			t.Fatalf("got %d %q, want 202 and nothing", code, text)
		}
	}
	// In chunks, and asked for first.
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(strings.NewReader("abc"), strings.NewReader(strings.Repeat("y", 100000))))
	r.Header.Set("Expect", "100-continue")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if c := s.Counts(); resp.StatusCode != http.StatusAccepted || c.Requests != 4 || c.Bytes != 3*300000+100003 || c.Connections == 0 {
		t.Errorf("got %d, %+v, want 4 requests with 1000003 bytes", resp.StatusCode, c)
	}
	resp, err = http.Get("http://" + s.Addr() + "/debug/vars") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(text), `"apm-server.server.request.count":4`) {
		t.Errorf("got %s, want 4 requests", text)
	}
}

// Pipelined requests are answered each, in whatever pieces they come.
func TestDiscardPipelined(t *testing.T) {
	s := start(t, Options{Discard: true})
	one := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345"
	chunked := "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n"
	last := "POST / HTTP/1.1\r\nConnection: close\r\n\r\n"
	all := strings.Repeat(one+chunked, 50) + last
	for _, piece := range []int{1, 7, 100, len(all)} {
		c, err := net.Dial("tcp", s.Addr()) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for at := 0; at < len(all); at += piece {
				if _, err := io.WriteString(c, all[at:min(len(all), at+piece)]); err != nil {
					return
				}
			}
		}()
		got, err := io.ReadAll(bufio.NewReader(c))
		c.Close()
		if n := bytes.Count(got, []byte("HTTP/1.1 202 ")); n != 101 || err != nil {
			t.Errorf("in pieces of %d: %d answers, %v, want 101", piece, n, err)
		}
	}
}

func TestDiscardRefuses(t *testing.T) {
	for _, in := range []string{
		"PUT / HTTP/1.1\r\n\r\n", "POST / HTTP/3\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
		"POST / HTTP/1.1\r\nx\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "\r\n\r\n",
	} {
		if _, err := parseHead([]byte(in)); err == nil {
			t.Errorf("%q is taken", in)
		}
	}
	s := start(t, Options{Discard: true})
	c, err := net.Dial("tcp", s.Addr()) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "BREW / HTTP/1.1\r\n\r\n")
	if got, _ := io.ReadAll(c); !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
		t.Errorf("got %q, want 400 and the end", got)
	}
}

func FuzzDiscardHead(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if i := bytes.Index(in, headEnd); i >= 0 {
			if q, err := parseHead(in[:i+4]); err == nil && q.length < 0 {
				t.Error("a negative length")
			}
		}
	})
}

// One connection, one request after the other's answer; and many in flight.
func BenchmarkDiscard(b *testing.B) {
	body := bodyOf(b, wire.Makeup{Events: wire.Range{Min: 10, Max: 10}, Mix: [wire.Kinds]int{1, 0, 0, 0}}, 0)
	request := append(fmt.Appendf(nil, "POST /intake/v2/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n", len(body.Bytes)), body.Bytes...)
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d in flight", depth), func(b *testing.B) {
			s := start(b, Options{Discard: true})
			c, err := net.Dial("tcp", s.Addr()) //nolint:noctx // a test
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			many := bytes.Repeat(request, depth)
			answers := make([]byte, depth*len(answer202))
			b.SetBytes(int64(len(request)))
			b.ReportAllocs()
			for i := 0; i < b.N; i += depth {
				if _, err := c.Write(many); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, answers); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Bodies of hundreds of kilobytes, beside what a bare reader takes of a bare
// writer.
func BenchmarkDiscardLarge(b *testing.B) {
	body := bodyOf(b, wire.Makeup{Events: wire.Range{Min: 10, Max: 10}, Spans: wire.Range{Min: 10, Max: 10}, Frames: wire.Range{Min: 10, Max: 10}}, 0)
	request := append(fmt.Appendf(nil, "POST /intake/v2/events HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(body.Bytes)), body.Bytes...)
	b.Run("discard", func(b *testing.B) {
		s := start(b, Options{Discard: true})
		c, err := net.Dial("tcp", s.Addr()) //nolint:noctx // a test
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		b.SetBytes(int64(len(request)))
		answered := make(chan error)
		go func() {
			_, err := io.CopyN(io.Discard, c, int64(b.N*len(answer202)))
			answered <- err
		}()
		for range b.N {
			if _, err := c.Write(request); err != nil {
				b.Fatal(err)
			}
		}
		if err := <-answered; err != nil {
			b.Fatal(err)
		}
	})
	b.Run("bare", func(b *testing.B) {
		ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
		if err != nil {
			b.Fatal(err)
		}
		defer ln.Close()
		c, err := net.Dial("tcp", ln.Addr().String()) //nolint:noctx // a test
		if err != nil {
			b.Fatal(err)
		}
		in, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
		b.SetBytes(int64(len(request)))
		read := make(chan struct{})
		go func() {
			defer close(read)
			buf := make([]byte, 256<<10)
			for {
				if _, err := in.Read(buf); err != nil {
					return
				}
			}
		}()
		for range b.N {
			if _, err := c.Write(request); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
		<-read
	})
}
