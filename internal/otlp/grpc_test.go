package otlp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"carronade/internal/conn/framing"
	"carronade/internal/conn/socket"
	"carronade/internal/conn/web"
	"carronade/internal/otlp/standin"
	"carronade/internal/otlp/wire"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// A peer is the server of one connection, with frames of golang.org/x/net: it answers probes, and the rest as a test says.
type peer struct {
	t  testing.TB
	nc net.Conn
	*http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
	calls int
}

// servePeers starts a server. Each connection begins with settings; call is called with each complete request, and
// the stream that it came on, counted from 1 on each connection.
func servePeers(t testing.TB, settings []http2.Setting, call func(p *peer, stream uint32, n int, message []byte) (goOn bool)) (addr string) {
	t.Helper()
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer nc.Close()
				stop := make(chan struct{})
				defer close(stop)
				go func() {
					select {
					case <-t.Context().Done():
						nc.Close()
					case <-stop:
					}
				}()
				servePeer(t, nc, settings, call)
			})
		}
	})
	return ln.Addr().String()
}

func servePeer(t testing.TB, nc net.Conn, settings []http2.Setting, call func(p *peer, stream uint32, n int, message []byte) bool) {
	in := bufio.NewReader(nc)
	if _, err := io.CopyN(io.Discard, in, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	p := &peer{t: t, nc: nc, Framer: http2.NewFramer(nc, in)}
	p.enc = hpack.NewEncoder(&p.block)
	_ = p.WriteSettings(settings...)
	bodies := map[uint32][]byte{}
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = p.WriteSettingsAck()
			}
		case *http2.PingFrame:
			_ = p.WritePing(true, f.Data)
		case *http2.DataFrame:
			b := append(bodies[f.StreamID], f.Data()...)
			bodies[f.StreamID] = b
			if n := uint32(len(f.Data())); n > 0 {
				_ = p.WriteWindowUpdate(0, n)
				if !f.StreamEnded() {
					_ = p.WriteWindowUpdate(f.StreamID, n)
				}
			}
			if !f.StreamEnded() {
				continue
			}
			delete(bodies, f.StreamID)
			if len(b) == framing.MessageHead { // a probe
				p.answer(f.StreamID, "0", "", nil)
				continue
			}
			if p.calls++; !call(p, f.StreamID, p.calls, b) {
				return
			}
		}
	}
}

// answer answers a call: with a message, if it is accepted.
func (p *peer) answer(stream uint32, status, message string, body []byte) {
	fields := []string{":status", "200", "content-type", "application/grpc"}
	if status == "0" {
		p.headers(stream, false, fields...)
		b := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
		_ = p.WriteData(stream, false, append(b, body...))
		fields = nil
	}
	fields = append(fields, "grpc-status", status)
	if message != "" {
		fields = append(fields, "grpc-message", message)
	}
	p.headers(stream, true, fields...)
}

func (p *peer) headers(stream uint32, end bool, fields ...string) {
	p.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: p.block.Bytes(), EndStream: end, EndHeaders: true})
}

// TestPeers: what a server of gRPC may do, and what becomes of the events.
func TestPeers(t *testing.T) {
	t.Parallel()
	partial := wire.AppendAnswer(nil, wire.Partial{Rejected: 4, Message: "too old"})
	for _, tt := range []struct {
		name                           string
		settings                       []http2.Setting
		options                        map[string]string
		call                           func(p *peer, stream uint32, n int, message []byte) bool
		events, acked, failed, unknown uint64
		class                          load.Class
		text                           string
	}{
		{name: "answers in parts of one frame each", call: func(p *peer, s uint32, _ int, _ []byte) bool {
			p.answer(s, "0", "", nil)
			return true
		}, events: 100, acked: 100},
		{name: "a partial success", call: func(p *peer, s uint32, _ int, _ []byte) bool {
			p.answer(s, "0", "", partial)
			return true
		}, events: 20, acked: 12, failed: 8, class: load.Rejected, text: "partial success: too old"},
		{name: "a code", call: func(p *peer, s uint32, _ int, _ []byte) bool {
			p.answer(s, "14", "queue%20is full", nil)
			return true
		}, events: 20, failed: 20, class: load.Throttled, text: "UNAVAILABLE: queue is full"},
		{
			name: "small windows and one stream", settings: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 100}, {ID: http2.SettingMaxConcurrentStreams, Val: 1}},
			call: func(p *peer, s uint32, _ int, m []byte) bool {
				if n := binary.BigEndian.Uint32(m[1:]); int(n) != len(m)-framing.MessageHead {
					p.t.Errorf("a message of %d bytes says %d", len(m)-framing.MessageHead, n)
				}
				p.answer(s, "0", "", nil)
				return true
			}, events: 200, acked: 200,
		},
		{name: "a refused stream", call: func(p *peer, s uint32, _ int, _ []byte) bool {
			_ = p.WriteRSTStream(s, http2.ErrCodeRefusedStream)
			return true
		}, events: 20, failed: 20, class: load.Refused, text: "the server refused the stream"},
		{name: "a reset stream", call: func(p *peer, s uint32, n int, _ []byte) bool {
			if n == 1 {
				_ = p.WriteRSTStream(s, http2.ErrCodeInternal)
			} else {
				p.answer(s, "0", "", nil)
			}
			return true
		}, events: 20, acked: 10, unknown: 10, class: load.Disconnected, text: "the server reset the stream: INTERNAL_ERROR"},
		{name: "goaway", call: func(p *peer, s uint32, n int, _ []byte) bool {
			_ = p.WriteGoAway(s, http2.ErrCodeNo, nil)
			p.answer(s, "0", "", nil)
			return true
		}, events: 50, acked: 50},
		{name: "goaway before the request", call: func(p *peer, s uint32, n int, _ []byte) bool {
			_ = p.WriteGoAway(s-1, http2.ErrCodeNo, nil)
			return true
		}, events: 20, failed: 20, class: load.Refused, text: "before it took the request"},
		{name: "no status", call: func(p *peer, s uint32, _ int, _ []byte) bool {
			p.headers(s, true, ":status", "200")
			return true
		}, events: 10, unknown: 10, class: load.Protocol, text: "without a grpc-status"},
		{name: "a proxy", call: func(p *peer, s uint32, _ int, _ []byte) bool {
			p.headers(s, true, ":status", "502")
			return true
		}, events: 10, unknown: 10, class: load.Disconnected, text: "502 Bad Gateway"},
		{name: "the connection ends", call: func(p *peer, s uint32, n int, _ []byte) bool {
			if n == 2 {
				return false
			}
			p.answer(s, "0", "", nil)
			return true
		}, events: 30, acked: 20, unknown: 10, class: load.Disconnected, text: "connection lost"},
		{name: "silence", options: map[string]string{"request-timeout": "100ms"}, call: func(p *peer, s uint32, n int, _ []byte) bool {
			if n > 1 {
				p.answer(s, "0", "", nil)
			}
			return true
		}, events: 20, acked: 10, unknown: 10, class: load.Timeout, text: load.TextNoAnswer},
		{name: "headers that end after the call", options: map[string]string{"request-timeout": "1s"}, call: func(p *peer, s uint32, n int, _ []byte) bool {
			if n > 1 {
				p.answer(s, "0", "", nil)
				return true
			}
			p.block.Reset()
			_ = p.enc.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: p.block.Bytes(), EndStream: true})
			for reset := false; ; { // until the client has given up the call, and begun another one
				f, err := p.ReadFrame()
				if err != nil {
					return false
				}
				switch f.(type) {
				case *http2.RSTStreamFrame:
					reset = true
				case *http2.HeadersFrame:
					if reset {
						p.block.Reset()
						_ = p.enc.WriteField(hpack.HeaderField{Name: "grpc-status", Value: "3"})
						_ = p.WriteContinuation(s, true, p.block.Bytes())
						return true
					}
				}
			}
		}, events: 20, acked: 10, unknown: 10, class: load.Timeout, text: load.TextNoAnswer},
		{name: "not HTTP/2", call: func(p *peer, _ uint32, n int, _ []byte) bool {
			_, _ = p.nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			return n > 1
		}, events: 10, unknown: 10, class: load.Protocol, text: "another protocol may answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr := servePeers(t, tt.settings, tt.call)
			options := map[string]string{"events": "10", "clients": "1"}
			for k, v := range tt.options {
				options[k] = v
			}
			r := send(t, "otlp+grpc://"+addr, tt.events, options)
			counted(t, r, tt.acked, tt.failed, tt.unknown)
			if tt.text != "" {
				assert.True(t, len(r.Failures) > 0 && strings.Contains(r.Failures[0].Text, tt.text) && r.Classes[tt.class.String()] == tt.failed+tt.unknown,
					"failures %+v, classes %v; want %q of class %s", r.Failures, r.Classes, tt.text, tt.class)
			}
		})
	}
}

// TestDeadConnection: a connection on which nothing comes, not even the answer to a ping, is replaced.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	var dead atomic.Bool
	addr := servePeers(t, nil, func(p *peer, s uint32, _ int, _ []byte) bool {
		if dead.CompareAndSwap(false, true) {
			<-p.t.Context().Done()
			return false
		}
		p.answer(s, "0", "", nil)
		return true
	})
	r := send(t, "otlp+grpc://"+addr, 100, map[string]string{"events": "10", "clients": "1", "request-timeout": "1s"})
	m := &r.Measurement
	assert.True(t, m.Acked >= 60 && m.Acked+m.Unknown == 100, "%d acked, %d unknown", m.Acked, m.Unknown)
}

type noSink struct{}

func (noSink) Now() time.Duration       { return time.Second }
func (noSink) Complete([]load.Outcome)  {}
func (noSink) Ready(int, time.Duration) {}

// TestFramesBeforeUse: what a server says before the lane uses the connection counts, and nothing is written before the
// preface; a server that only asks, and reads nothing, is left.
func TestFramesBeforeUse(t *testing.T) {
	t.Parallel()
	s := &session{}
	s.Init(web.Options{Bases: []string{"a:1"}, Depth: 1, Timeout: time.Minute, Happened: func(string, time.Time, time.Duration) {}})
	s.Sink = noSink{}
	l := newGRPCLane(s, 0, nil, nil)
	ours, theirs := net.Pipe()
	k := &grpcLink{l: l}
	k.Init(ours, k, &l.Mu, s.Sink.Now)
	l.begin()
	k.Attach(nil)
	_, err := k.receive(framing.Append(nil, framing.Settings, 0, 0, 0, framing.SettingStreams, 0, 0, 0, 7), socket.Arrival{})
	assert.OK(t, err)
	l.up(k)
	l.Mu.Lock()
	assert.Equal(t, l.mostOpen, 7, "streams")
	l.Mu.Unlock()
	preface := make([]byte, len(http2.ClientPreface))
	assert.Value(io.ReadFull(theirs, preface))(t)
	assert.Equal(t, string(preface), http2.ClientPreface, "written first")
	ping := framing.Append(nil, framing.Ping, 0, 0, make([]byte, 8)...)
	_, err = k.receive(bytes.Repeat(ping, mostControls+1), socket.Arrival{})
	assert.ErrorHas(t, err, "asks for answers and does not read them", "pings")
	l.Mu.Lock()
	k.Bury(err)
	l.Mu.Unlock()
}

// TestLargeRequests: messages of many frames, larger than all windows, arrive whole.
func TestLargeRequests(t *testing.T) {
	t.Parallel()
	s := start(t, standin.Options{})
	r := send(t, "otlp+grpc://"+s.GRPCAddr(), 6000, map[string]string{"events": "1000", "signal": "logs", "body-size": "2KiB", "clients": "1", "max-in-flight": "4"})
	counted(t, r, 6000, 0, 0)
	assert.Equal(t, s.Counts().Events(), 6000, "events at the stand-in")
}

// TestDiscards: a server that discards answers every request, also many at once, and says what it is.
func TestDiscards(t *testing.T) {
	t.Parallel()
	s := start(t, standin.Options{Discard: true})
	for _, url := range []string{"otlp+http://" + s.Addr(), "otlp+grpc://" + s.GRPCAddr(), "otlp+grpc://" + s.Addr()} {
		for _, options := range []map[string]string{
			{"events": "10"}, {"events": "1", "clients": "2", "max-in-flight": "50"}, {"events": "50", "signal": "logs", "body-size": "100KiB", "clients": "1", "max-in-flight": "4"},
		} {
			c := openSpec(t, specOf(t, url, options))
			counted(t, fire(t, c, load.Plan{Measurement: load.Limits{Events: 1000}}), 1000, 0, 0)
			assert.True(t, c.Facts()["discards"] == true, "facts %v", c.Facts())
			assert.OK(t, c.Close())
		}
	}
	assert.True(t, s.Counts().Requests > 1000 && s.Counts().Events() == 0, "counts %v", s.Counts())
}

// TestLargeHeaders: headers that are larger than a frame of the server go in several.
func TestLargeHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, standin.Options{})
	large := strings.Repeat("x", 70<<10)
	for _, options := range []map[string]string{{"header": "X-Large: " + large}, {"header": "X-Large: " + large, "max-in-flight": "8"}} {
		counted(t, send(t, "otlp+grpc://"+s.GRPCAddr(), 1000, options), 1000, 0, 0)
	}
}

// TestRetry: only what the specification calls retryable is sent again.
func TestRetry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status string
		acked  uint64
	}{{"14", 10}, {"3", 0}} {
		addr := servePeers(t, nil, func(p *peer, s uint32, n int, _ []byte) bool {
			if n == 1 {
				p.answer(s, tt.status, "", nil)
			} else {
				p.answer(s, "0", "", nil)
			}
			return true
		})
		s := openSpec(t, specOf(t, "otlp+grpc://"+addr, map[string]string{"events": "10", "clients": "1"}))
		r := fire(t, s, load.Plan{Retry: 3, Measurement: load.Limits{Events: 10}})
		counted(t, r, tt.acked, 10-tt.acked, 0)
	}
}
