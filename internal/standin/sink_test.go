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

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"carronade/internal/conn/framing"
	"carronade/test/testkit/assert"
)

const sinkAnswer = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"

// startSink starts a sink for HTTP/1.1 and gRPC, and returns its address.
func startSink(t testing.TB) (d *Sink, addr string) {
	t.Helper()
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	d = NewSink(SinkOptions{Log: t.Output(), Answer: []byte(sinkAnswer), GRPC: "a sink", Counters: func() (string, []byte) { return "text/plain", fmt.Append(nil, d.Counts()) }})
	served := make(chan struct{})
	go func() { defer close(served); d.Serve(ln) }()
	t.Cleanup(func() {
		_ = ln.Close()
		d.Close()
		<-served
	})
	return d, ln.Addr().String()
}

// testBothWays runs a test on a sink on threads for many connections, if the system supports them, and with a
// goroutine for each connection. As it sets makeThreads, the test must not be parallel.
func testBothWays(t *testing.T, test func(t *testing.T, d *Sink, addr string)) {
	t.Helper()
	for _, way := range []struct {
		name    string
		threads func() *Threads
	}{{"threads", NewThreads}, {"goroutines", func() *Threads { return nil }}} {
		t.Run(way.name, func(t *testing.T) {
			makeThreads = way.threads
			defer func() { makeThreads = NewThreads }()
			d, addr := startSink(t)
			if way.name == "threads" && d.threads == nil {
				t.Skip("no pollers here")
			}
			test(t, d, addr)
		})
	}
}

func TestSink(t *testing.T) { testBothWays(t, testSink) }

func testSink(t *testing.T, d *Sink, addr string) {
	post := func(body io.Reader, fields ...string) {
		r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/any/path", body))(t)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		resp := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
		resp.Body.Close()
		assert.Equal(t, resp.StatusCode, http.StatusAccepted, "status")
	}
	for range 3 {
		post(bytes.NewReader(bytes.Repeat([]byte("x"), 300000)))
	}
	// In chunks, with Expect: 100-continue.
	post(io.MultiReader(strings.NewReader("abc"), strings.NewReader(strings.Repeat("y", 100000))), "Expect", "100-continue")
	c := d.Counts()
	assert.True(t, c.Requests == 4 && c.Bytes == 3*300000+100003 && c.Connections > 0, "counts %+v", c)
	resp, err := http.Get("http://" + addr + "/counts") //nolint:noctx // a test
	assert.OK(t, err)
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	assert.Equal(t, string(text), fmt.Sprint(c), "counters")
}

// TestSinkCalls: calls of gRPC are answered, in whatever pieces their frames arrive, as far as the client's window allows.
func TestSinkCalls(t *testing.T) { testBothWays(t, testSinkCalls) }

func testSinkCalls(t *testing.T, d *Sink, addr string) {
	const calls = 14000 // more than the client's window takes answers for
	var all bytes.Buffer
	all.Write(framing.PrefaceHead)
	all.Write(framing.PrefaceBody)
	w := http2.NewFramer(&all, nil)
	assert.OK(t, w.WriteSettings())
	assert.OK(t, w.WritePing(false, [8]byte{1, 2}))
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	bodies := 0
	for n := range calls {
		block.Reset()
		assert.OK(t, e.WriteField(hpack.HeaderField{Name: ":path", Value: fmt.Sprint("/", n%9)}))
		id := uint32(2*n + 1)
		half := block.Len() / 2
		assert.OK(t, w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes()[:half], PadLength: uint8(n % 3)}))
		assert.OK(t, w.WriteContinuation(id, true, block.Bytes()[half:]))
		assert.OK(t, w.WriteData(id, n%2 == 0, make([]byte, n%100)))
		if n%2 == 1 {
			assert.OK(t, w.WriteData(id, true, nil))
		}
		bodies += n % 100
	}
	assert.OK(t, w.WriteRSTStream(5, http2.ErrCodeCancel))
	for _, piece := range []int{7, 1000, all.Len()} {
		before := d.Counts()
		nc, err := net.Dial("tcp", addr) //nolint:noctx // a test
		assert.OK(t, err)
		written := make(chan struct{})
		go func() {
			defer close(written)
			for b := all.Bytes(); len(b) > 0; b = b[min(piece, len(b)):] {
				if _, err := nc.Write(b[:min(piece, len(b))]); err != nil {
					return
				}
			}
		}()
		r := http2.NewFramer(io.Discard, bufio.NewReader(nc))
		r.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		pings, answered, flow := 0, 0, 0
		for answered < calls {
			f := assert.Value(r.ReadFrame())(t)
			switch f := f.(type) {
			case *http2.PingFrame:
				assert.True(t, f.IsAck() && f.Data == [8]byte{1, 2}, "a ping %v", f)
				pings++
			case *http2.DataFrame:
				assert.Equal(t, string(f.Data()), "\x00\x00\x00\x00\x00", "message")
				if flow += 5; flow+5 > framing.DefaultWindow { // the window is used up: nothing more comes before an update
					<-written
					assert.Value(nc.Write(framing.AppendNumber(nil, framing.Window, 0, uint32(flow))))(t)
					flow = 0
				}
			case *http2.MetaHeadersFrame:
				if f.StreamEnded() {
					assert.True(t, f.RegularFields()[0] == hpack.HeaderField{Name: "grpc-status", Value: "0", Sensitive: true}, "trailers %v", f.Fields)
					answered++
				} else {
					assert.Equal(t, f.PseudoValue("status"), "200", "status")
				}
			}
		}
		nc.Close()
		assert.Equal(t, pings, 1, "pings answered")
		c := d.Counts()
		assert.Equal(t, c.Requests-before.Requests, calls, "calls")
		assert.Equal(t, c.Bytes-before.Bytes, uint64(bodies), "bytes")
	}
}

// Each of several pipelined requests is answered, in whatever pieces they arrive.
func TestSinkPipelined(t *testing.T) { testBothWays(t, testSinkPipelined) }

func testSinkPipelined(t *testing.T, _ *Sink, addr string) {
	one := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345"
	chunked := "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n"
	last := "POST / HTTP/1.1\r\nConnection: close\r\n\r\n"
	all := strings.Repeat(one+chunked, 50) + last
	for _, piece := range []int{1, 7, 100, len(all)} {
		c, err := net.Dial("tcp", addr) //nolint:noctx // a test
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

func TestSinkRefuses(t *testing.T) {
	for _, in := range []string{
		"PUT / HTTP/1.1\r\n\r\n", "POST / HTTP/3\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
		"POST / HTTP/1.1\r\nx\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "\r\n\r\n",
	} {
		_, err := parseHead([]byte(in))
		assert.True(t, err != nil, "%q is accepted", in)
	}
	testBothWays(t, func(t *testing.T, _ *Sink, addr string) {
		c, err := net.Dial("tcp", addr) //nolint:noctx // a test
		assert.OK(t, err)
		defer c.Close()
		_, _ = io.WriteString(c, "BREW / HTTP/1.1\r\n\r\n")
		got, _ := io.ReadAll(c)
		assert.True(t, strings.HasPrefix(string(got), "HTTP/1.1 400 "), "got %q, want 400 and a closed connection", got)
	})
}

// The skimmer's result does not depend on the pieces in which requests arrive.
func FuzzSink(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n"), uint8(3))
	f.Add([]byte("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nxBREW\r\n\r\n"), uint8(1))
	f.Add([]byte("POST / HTTP/1.0\r\n\r\nPOST / HTTP/1.1\r\n\r\n"), uint8(7))
	f.Add(bytes.Repeat([]byte("x"), maxRequest+10), uint8(255))
	f.Add(append(framing.AppendPreface(nil), framing.Append(nil, framing.Headers, framing.FlagEndStream, 1, 'x')...), uint8(2))
	d := NewSink(SinkOptions{Answer: []byte(sinkAnswer), GRPC: "x"})
	f.Cleanup(d.Close)
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		if bytes.Contains(in, []byte("GET ")) {
			return // a GET is answered by counters
		}
		skim := func(size int) (string, uint64, error) {
			k := sinkSkimmer{d: d, counts: new(sinkTally)}
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

func FuzzSinkHead(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if i := bytes.Index(in, headEnd); i >= 0 {
			q, err := parseHead(in[:i+4])
			assert.True(t, err != nil || q.length >= 0, "a negative length")
		}
	})
}
