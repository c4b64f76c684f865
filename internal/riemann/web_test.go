package riemann

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A webFake accepts events like the server, with other implementations of WebSocket and HTTP than the one under test.
type webFake struct {
	addr        string
	events      atomic.Uint64
	delay       atomic.Int64
	refuse      atomic.Bool
	short       atomic.Int64 // close a WebSocket after this many events; 0: never
	every       atomic.Int64 // refuse one event in this many; 0: none
	last        atomic.Int64 // close the HTTP connection after one answer in this many; 0: none
	asked, puts atomic.Int64
}

func webServe(t testing.TB) *webFake {
	t.Helper()
	f := &webFake{}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	f.addr = strings.TrimPrefix(srv.URL, "http://")
	return f
}

func (f *webFake) wait() {
	if d := time.Duration(f.delay.Load()); d > 0 {
		<-time.After(d)
	}
}

func (f *webFake) take(line []byte) string {
	e, err := wire.DecodeJSON(line)
	if err != nil {
		return `{"error":"not an event: ` + err.Error() + `"}`
	}
	if every := f.every.Load(); f.refuse.Load() || every > 0 && f.asked.Add(1)%every == 0 || e.Service == "" {
		return `{"error":"no room for such events"}`
	}
	f.events.Add(1)
	return "{}"
}

func (f *webFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/events" {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		f.wait()
		if last := f.last.Load(); last > 0 && f.puts.Add(1)%last == 0 {
			w.Header().Set("Connection", "close")
		}
		for line := range bytes.Lines(body) {
			io.WriteString(w, f.take(line)+"\n")
		}
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for n := int64(0); f.short.Load() == 0 || n < f.short.Load(); n++ {
		_, b, err := c.Read(r.Context())
		if err != nil {
			return
		}
		f.wait()
		if c.Write(r.Context(), websocket.MessageText, []byte(f.take(b))) != nil {
			return
		}
	}
}

func TestWebSuite(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, transport := range []string{webSocketScheme, httpScheme} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			f := webServe(t)
			protocoltest.Run(t, protocoltest.System{
				Kind: Kind{}, URL: transport + "://" + f.addr, Events: f.events.Load,
				Slow: func(d time.Duration) { f.delay.Store(int64(d)) }, Refuse: f.refuse.Store,
				RefuseWant: load.Rejected,
			})
		})
	}
}

// The server reads the shape's events over these transports.
func TestWebVerify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, transport string
		given           []string
		drop            float64
	}{
		{name: "WebSocket", transport: webSocketScheme},
		{name: "HTTP", transport: httpScheme},
		{name: "WebSocket, whole numbers", transport: webSocketScheme, given: []string{"metric-type=sint64", "attribute=env=a\"b"}},
		{name: "HTTP, floats", transport: httpScheme, given: []string{"metric-type=float", "time=none"}},
		{name: "WebSocket, loss", transport: webSocketScheme, drop: 0.05},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := startStandin(t, standinriemann.Options{Drop: tt.drop, Seed: 1})
			s := openSession(t, verifiedSpec(t, tt.transport+"://"+srv.AddrOf("ws")+"/events", 700, append(tt.given, "query-address="+srv.Addr())...))
			r, v := runVerified(t, s, load.Plan{BatchEvents: 7, MaxInFlight: 10, Measurement: load.Limits{Events: 700}}, nil)
			c := srv.Counts()
			if r.Measurement.Acked != 700 || v.Read != 700-c.Dropped || v.Lost != c.Dropped || v.Corrupted+v.Inexact > 0 {
				t.Errorf("acked %d, verdict %+v, the server: %v\n%v", r.Measurement.Acked, v, c, s.Warnings())
			}
			assert.Equal(t, (c.Dropped > 0), (tt.drop > 0), "whether events were dropped")
		})
	}
}

// Some events of a message may be refused.
func TestWebRefusesSome(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{webSocketScheme, httpScheme} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			f := webServe(t)
			f.every.Store(3)
			s := openSession(t, specOf(t, transport+"://"+f.addr))
			r := runChecked(t, s, load.Plan{BatchEvents: 5, Measurement: load.Limits{Events: 60}})
			assert.True(t, r.Measurement.Failed == 20 && r.Measurement.Acked == 40 && r.Classes[load.Rejected.String()] == 20,
				"failed %d, acked %d, classes %v; want a third refused", r.Measurement.Failed, r.Measurement.Acked, r.Classes)
			assert.Equal(t, f.events.Load(), 40, "events at the server")
		})
	}
}

// A lost WebSocket is opened again, with a new handshake, and the run continues.
func TestSocketReconnects(t *testing.T) {
	t.Parallel()
	f := webServe(t)
	f.short.Store(150)
	s := openSession(t, specOf(t, webSocketScheme+"://"+f.addr, "reconnect-backoff=1ms"))
	r := runChecked(t, s, load.Plan{BatchEvents: 1, MaxInFlight: 20, Schedule: load.Constant(2000), Measurement: load.Limits{Time: 400 * time.Millisecond}})
	assert.True(t, r.Measurement.Sent == 800 && r.Measurement.Acked >= 400 && r.Measurement.Failed == 0,
		"sent %d: %d acked, %d failed, %d unknown; want most of 800 acked", r.Measurement.Sent, r.Measurement.Acked, r.Measurement.Failed, r.Measurement.Unknown)
	got := s.Brokers()[0].Reconnects
	assert.True(t, got >= 3, "%d connections beyond the first, want some", got)
	got = f.events.Load()
	assert.True(t, got >= r.Measurement.Acked, "%d acked, but the server accepted %d", r.Measurement.Acked, got)
}

// Servers and proxies close an HTTP connection after a number of answers and say so. The lane then writes
// nothing more on it, so that no event is unknown, and connects again without a pause.
func TestHTTPReconnects(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	f := webServe(t)
	f.last.Store(10)
	s := openSession(t, specOf(t, httpScheme+"://"+f.addr, "reconnect-backoff=20s"))
	r := runChecked(t, s, load.Plan{BatchEvents: 1, Measurement: load.Limits{Events: 200}})
	assert.Equal(t, r.Measurement.Acked, 200, "%+v, failures %+v", r.Measurement.Counts, r.Failures)
	got := s.Brokers()[0].Reconnects
	assert.True(t, got >= 19, "%d connections beyond the first, want 19", got)
}

// The buffer for an answer that does not end is bounded.
func TestEndlessAnswer(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	addr := testkit.Listen(t, func(nc *net.TCPConn) {
		defer nc.Close()
		if served.Add(1) == 1 {
			io.WriteString(nc, "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n") // the probe
			return
		}
		io.WriteString(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n0\r\n")
		for line := []byte("X: " + strings.Repeat("y", 8<<10) + "\r\n"); ; {
			if _, err := nc.Write(line); err != nil {
				return
			}
		}
	})
	s := openSession(t, specOf(t, httpScheme+"://"+addr))
	r := runChecked(t, s, load.Plan{BatchEvents: 1, Measurement: load.Limits{Events: 1}})
	assert.True(t, r.Measurement.Unknown == 1 && r.Classes[load.Protocol.String()] == 1 &&
		strings.Contains(r.Failures[0].Text, "does not end"), "%+v, failures %+v", r.Measurement.Counts, r.Failures)
}

func framingConfig(t testing.TB) (*config, *encoder) {
	t.Helper()
	c := &config{path: eventsPath, batchEvents: 3, shape: shapeOf(t, nil)}
	return c, newEncoder(c.shape, 0, 3)
}

// messageSize finds the ends of messages.
func TestWebMessageSize(t *testing.T) {
	t.Parallel()
	c, p := framingConfig(t)
	c.shape = shapeOf(t, map[string]string{"description": strings.Repeat("x", 70_000)})
	long := newEncoder(c.shape, 0, 1)
	c.shape = shapeOf(t, map[string]string{"description": "none", "host": "a", "service": "b", "tag": "none", "state": "none", "ttl": "none"})
	short := newEncoder(c.shape, 0, 1)
	c.widestJSON = widestJSON([]*encoder{p})
	for name, web := range map[string]framing{"WebSocket": newWebSocketFraming(c), "HTTP": newHTTPFraming(c, "h:1")} {
		t.Run(name, func(t *testing.T) {
			for size, p := range map[string]*encoder{"usual": p, "long": long, "short": short} {
				var b []byte
				var ends []int
				for i := range 20 {
					b, _ = web.append(b, p, uint64(i), 1, 1+i%3, time.Now())
					ends = append(ends, len(b))
					assert.True(t, size != "usual" || i != 0 || len(b) <= web.size(),
						"a message of %d bytes, more than %d", len(b), web.size())
				}
				at := 0
				for i, end := range ends {
					at += web.messageSize(b[at:])
					assert.Must(t, at == end, "%s: message %d ends at %d, found %d", size, i, end, at)
				}
			}
		})
	}
}

func TestSocketAnswers(t *testing.T) {
	web := &webSocketFraming{}
	frame := func(op byte, text string) string { return string([]byte{0x80 | op, byte(len(text))}) + text }
	ok, ping := frame(1, "{}"), frame(opPing, "hello")
	bad := frame(1, `{"error":"why"}`)
	for _, tt := range []struct {
		name, in               string
		messages, events, acks int
		msg, rest, err         string
		refused                int32
	}{
		{name: "a run of acks", in: ok + ok + ok + bad, messages: 9, events: 1, acks: 3, rest: bad},
		{name: "no more than expected", in: ok + ok + ok, messages: 2, events: 1, acks: 2, rest: ok},
		{name: "a refusal", in: bad + ok, messages: 9, events: 1, msg: bad, rest: ok, refused: 1},
		{name: "several events", in: ok + bad + ok + ok, messages: 9, events: 3, msg: ok + bad + ok, rest: ok, refused: 1},
		{name: "not all of them", in: ok + bad, messages: 9, events: 3, rest: ok + bad},
		{name: "a ping among them", in: ok + ping + ok, messages: 9, events: 2, msg: ok + ping + ok},
		{name: "a binary answer", in: frame(2, "{}"), messages: 1, events: 1, msg: frame(2, "{}")},
		{name: "cut short", in: ok[:3], messages: 1, events: 1, rest: ok[:3]},
		{name: "closed", in: frame(opClose, "\x03\xf0bad json"), messages: 1, events: 1, rest: frame(opClose, "\x03\xf0bad json"), err: "1008 bad json"},
		{name: "masked", in: "\x81\x82aaaa{}", messages: 1, events: 1, rest: "\x81\x82aaaa{}", err: "masked"},
		{name: "in pieces", in: "\x01\x02{}", messages: 1, events: 1, rest: "\x01\x02{}", err: "several frames"},
		{name: "compressed", in: "\xc1\x02{}", messages: 1, events: 1, rest: "\xc1\x02{}", err: "extension"},
		{name: "oversized", in: "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", messages: 1, events: 1, rest: "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", err: "more than"},
		{name: "not HTTP any more", in: "HTTP/1.1 400 Bad", messages: 1, events: 1, rest: "HTTP/1.1 400 Bad", err: "several frames"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			acks, msg, rest, err := web.answers([]byte(tt.in), tt.messages, tt.events)
			assert.True(t, acks == tt.acks && string(msg) == tt.msg && string(rest) == tt.rest,
				"got %d acks, %q, rest %q; want %d, %q, %q", acks, msg, rest, tt.acks, tt.msg, tt.rest)
			assert.True(t, (err != nil) == (tt.err != "") && (err == nil || strings.Contains(err.Error(), tt.err)),
				"error %v, want %q", err, tt.err)
			if msg == nil {
				return
			}
			refused, text, err := web.refusals(msg, int32(tt.events))
			assert.True(t, err == nil && refused == tt.refused && (text == "why") == (refused > 0),
				"refused %d (%q), %v; want %d", refused, text, err, tt.refused)
		})
	}
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	web := &httpFraming{}
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n{}\n{}\n"
	const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3\r\n{}\n\r\n4;x=y\r\n{}\n\n\r\n0\r\nX: y\r\n\r\n"
	for _, tt := range []struct {
		name, in, rest, err string
		refused             int32
		text                string
	}{
		{name: "by length", in: ok + "HTTP", rest: "HTTP"},
		{name: "in chunks", in: chunked + ok, rest: ok},
		{name: "one event refused", in: "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{}\n{\"error\":\"no\"}", refused: 1, text: "no"},
		{name: "a line that was not read, and those behind it", in: "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"error\":\"no\"}", refused: 2, text: "no"},
		{name: "fewer answer lines", in: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", refused: 1, text: "fewer answer lines"},
		{name: "more lines", in: "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{}\n{}\n{}", err: "not sent"},
		{name: "no lines", in: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", err: "neither"},
		{name: "a status", in: "HTTP/1.1 503 Busy\r\nContent-Length: 8\r\n\r\ncome\nby", rest: "HTTP/1.1 503 Busy\r\nContent-Length: 8\r\n\r\ncome\nby"},
		{name: "a status with words", in: "HTTP/1.1 503 Busy\r\nContent-Length: 7\r\n\r\ncome\nby", refused: 1<<31 - 1, text: "HTTP 503 Busy: come"},
		{name: "an interim response first", in: "HTTP/1.1 100 Continue\r\n\r\n" + ok},
		{name: "half a head", in: ok[:10], rest: ok[:10]},
		{name: "half a body", in: ok[:len(ok)-1], rest: ok[:len(ok)-1]},
		{name: "half a chunk", in: chunked[:60], rest: chunked[:60]},
		{name: "half a trailer", in: chunked[:len(chunked)-2], rest: chunked[:len(chunked)-2]},
		{name: "until the end", in: "HTTP/1.0 200 OK\r\n\r\n{}", rest: "HTTP/1.0 200 OK\r\n\r\n{}", err: "connection"},
		{name: "another protocol", in: "220 smtp", rest: "220 smtp", err: "not HTTP"},
		{name: "an odd status", in: "HTTP/1.1 OK\r\n\r\n", rest: "HTTP/1.1 OK\r\n\r\n", err: "not HTTP"},
		{name: "an odd length", in: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", rest: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", err: "length"},
		{name: "an odd chunk", in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", rest: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", err: "chunk"},
		{name: "an endless length", in: "HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n", rest: "HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n", err: "mebibyte"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, msg, rest, err := web.answers([]byte(tt.in), 1, 2)
			assert.Equal(t, string(rest), tt.rest, "rest %q", rest)
			refused, text := int32(0), ""
			if msg != nil {
				refused, text, err = web.refusals(msg, 2)
			}
			assert.True(t, (err != nil) == (tt.err != "") && (err == nil || strings.Contains(err.Error(), tt.err)),
				"error %v, want %q", err, tt.err)
			assert.True(t, refused == tt.refused && strings.HasPrefix(text, tt.text),
				"refused %d (%q), want %d (%q)", refused, text, tt.refused, tt.text)
		})
	}
}

// The fields of a head that say how long an answer is, and whether the connection
// goes on, in all forms that servers and proxies write.
func TestHTTPHeads(t *testing.T) {
	t.Parallel()
	for _, tt := range testkit.Table[struct {
		Name, Fields string
		Last         bool
		Err          string
	}](t, "testdata/heads.yaml") {
		t.Run(tt.Name, func(t *testing.T) {
			web := &httpFraming{}
			_, msg, _, err := web.answers([]byte("HTTP/1.1 200 OK\r\n"+tt.Fields+"\r\n\r\n{}"), 1, 1)
			assert.Must(t, (err != nil) == (tt.Err != "") && (err == nil || strings.Contains(err.Error(), tt.Err)),
				"error %v, want %q", err, tt.Err)
			if tt.Err == "" && (msg == nil || web.closing() != tt.Last) {
				t.Errorf("the last of its connection: %v, want %v (%q)", web.closing(), tt.Last, msg)
			}
		})
	}
	for in, last := range map[string]bool{
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}":                                                      true,
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\n{}":                            false,
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, Upgrade\r\n\r\n{}":                   false,
		"HTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}": false,
	} {
		web := &httpFraming{}
		_, msg, _, err := web.answers([]byte(in), 1, 1)
		assert.True(t, err == nil && msg != nil && web.closing() == last, "%q: the last of its connection: %v, %v, want %v", in, web.closing(), err, last)
	}
	web := &httpFraming{}
	_, _, _, err := web.answers([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"), 1, 1)
	assert.True(t, err != nil, "an upgrade without a request is accepted")
}

func FuzzWebAnswers(f *testing.F) {
	f.Add([]byte("\x81\x02{}\x81\x0f{\"error\":\"why\"}"), uint8(1))
	f.Add([]byte("\x81\x7e\x00\x02{}"), uint8(3))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n0\r\n\r\n"), uint8(1))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\n"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		events := int(n%5) + 1
		for _, web := range []framing{&webSocketFraming{}, &httpFraming{}} {
			left := b
			for {
				acks, msg, rest, err := web.answers(left, 3, events)
				assert.Must(t, len(rest) <= len(left) && acks <= 3 && (acks <= 0 || msg == nil),
					"%d acks and %d bytes of %d left, an answer of %d bytes", acks, len(rest), len(left), len(msg))
				if msg != nil {
					refused, _, _ := web.refusals(msg, int32(events))
					assert.Must(t, refused >= 0, "refused %d", refused)
				}
				if err != nil || acks == 0 && msg == nil {
					break
				}
				assert.Must(t, len(rest) != len(left), "an answer of no bytes")
				left = rest
			}
		}
	})
}

// Another implementation of the protocol can read our frames. The suite uses it
// as server; this test covers the other encodings of a frame's length.
func TestSocketFrames(t *testing.T) {
	t.Parallel()
	got := make(chan int, 10)
	srv := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(1 << 20)
		for {
			_, b, err := c.Read(r.Context())
			if err != nil {
				return
			}
			assert.True(t, len(bytes.Trim(b, "x")) == 0, "a payload of %d bytes is not what was sent", len(b))
			got <- len(b)
		}
	})
	addr := strings.TrimPrefix(srv.URL, "http://")
	nc := assert.Value(net.Dial("tcp", addr))(t)
	defer nc.Close()
	c, p := framingConfig(t)
	c.widestJSON = widestJSON([]*encoder{p})
	web := newWebSocketFraming(c)
	assert.OK(t, web.handshake(context.Background(), nc, addr))
	for _, n := range []int{0, 1, 125, 126, 127, 65535, 65536, 70001} {
		b := web.put(nil, bytes.Repeat([]byte("x"), n), true)
		assert.Equal(t, web.messageSize(b), len(b), "message size of a frame")
		assert.Value(nc.Write(b))(t)
		assert.Equal(t, <-got, n, "bytes at the server")
	}
}
