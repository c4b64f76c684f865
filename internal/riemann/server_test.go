package riemann

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A fake is a server whose answers a test decides.
type fake struct {
	t    testing.TB
	addr string
	ln   net.Listener

	mu           sync.Mutex
	conns        map[net.Conn]bool
	events       uint64
	connected    int // connections so far
	invalidConns int // connections that sent something other than frames
	refusal      string
	delay        time.Duration // delay of answers
	delayEnd     chan struct{} // closed to end the delay
	paused       chan struct{} // not nil: nothing is read until it is closed
	resetting    bool          // new connections are reset at once
	resetConns   int           // connections that were reset

	// reply answers message number n with events of a connection; nil: like a
	// real server. A nil answer sends none, and false ends the connection.
	reply func(n int, nc net.Conn) ([]byte, bool)
}

// serve starts a fake; conf is nil without TLS.
func serve(t testing.TB, conf *tls.Config) *fake {
	t.Helper()
	f := &fake{t: t, conns: map[net.Conn]bool{}}
	f.listen("127.0.0.1:0", conf)
	return f
}

func (f *fake) listen(addr string, conf *tls.Config) {
	f.t.Helper()
	ln := assert.Value(net.Listen("tcp", addr))(f.t)
	f.ln, f.addr = ln, ln.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			deaf := f.resetting
			if deaf {
				f.resetConns++
			} else {
				f.conns[nc] = true
				f.connected++
			}
			f.mu.Unlock()
			if deaf {
				reset(nc)
				continue
			}
			wg.Go(func() {
				served := nc
				if conf != nil {
					served = tls.Server(nc, conf)
				}
				f.serveConn(served)
				nc.Close()
				f.mu.Lock()
				delete(f.conns, nc)
				f.mu.Unlock()
			})
		}
	})
	f.t.Cleanup(func() {
		ln.Close()
		f.slow(0)
		f.pause(false)
		f.resetAll()
		wg.Wait()
	})
}

// serveConn answers until the connection ends.
func (f *fake) serveConn(nc net.Conn) {
	var b []byte
	buf := make([]byte, 64<<10)
	n := 0
	for {
		f.mu.Lock()
		paused := f.paused
		f.mu.Unlock()
		if paused != nil {
			<-paused
		}
		got, err := nc.Read(buf)
		if err != nil {
			return
		}
		b = append(b, buf[:got]...)
		for {
			msg, rest, err := wire.NextFrame(b, 64<<20)
			if err != nil {
				f.mu.Lock()
				f.invalidConns++
				f.mu.Unlock()
				return
			}
			if rest == nil {
				break
			}
			b = rest
			m, err := wire.DecodeMsg(msg)
			if err != nil {
				f.t.Errorf("the server got an invalid message: %v", err)
				return
			}
			answer, ok := f.answer(&m, &n, nc)
			if len(answer) > 0 { // even an empty write fails after CloseWrite
				if _, err := nc.Write(answer); err != nil {
					return
				}
			}
			if !ok {
				return
			}
		}
	}
}

func (f *fake) answer(m *wire.Msg, n *int, nc net.Conn) ([]byte, bool) {
	if m.Query != "" {
		return []byte(wire.Ack), true
	}
	f.mu.Lock()
	reply, by, off, refusal := f.reply, f.delay, f.delayEnd, f.refusal
	if refusal == "" {
		f.events += uint64(len(m.Events))
	}
	f.mu.Unlock()
	if by > 0 {
		select {
		case <-time.After(by):
		case <-off:
		}
	}
	*n++
	switch {
	case reply != nil:
		return reply(*n-1, nc)
	case refusal != "":
		return wire.AppendFramed(nil, &wire.Msg{HasOK: true, Error: refusal}), true
	}
	return []byte(wire.Ack), true
}

func (f *fake) taken() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}

// invalid is how many connections ended because they sent something other than frames.
func (f *fake) invalid() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.invalidConns
}

func (f *fake) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connected
}

func (f *fake) waitConnections(n int) {
	f.t.Helper()
	testkit.Until(f.t, "the server has the connections", func() bool { return f.connections() >= n })
}

func (f *fake) refuse(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = text
}

func (f *fake) answers(reply func(n int, nc net.Conn) ([]byte, bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reply = reply
}

// slow delays every answer; 0 ends that.
func (f *fake) slow(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.delayEnd != nil {
		close(f.delayEnd)
		f.delayEnd = nil
	}
	if f.delay = by; by > 0 {
		f.delayEnd = make(chan struct{})
	}
}

func (f *fake) pause(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case on && f.paused == nil:
		f.paused = make(chan struct{})
	case !on && f.paused != nil:
		close(f.paused)
		f.paused = nil
	}
}

func (f *fake) setResetting(on bool) {
	f.mu.Lock()
	f.resetting = on
	f.mu.Unlock()
	if on {
		f.resetAll()
	}
}

func (f *fake) resetAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for nc := range f.conns {
		reset(nc)
		f.resetConns++
	}
}

// resets is how many connections were reset so far.
func (f *fake) resets() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resetConns
}

func reset(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	nc.(*net.TCPConn).SetLinger(0)
	nc.Close()
}

// specOf makes a spec with the kind's defaults and options of the form "name=value".
func specOf(t testing.TB, text string, given ...string) protocol.Spec {
	t.Helper()
	u := &url.URL{}
	u.Scheme, u.Host, _ = strings.Cut(text, "://")
	if i := strings.IndexByte(u.Host, '/'); i >= 0 {
		u.Host, u.Path = u.Host[:i], u.Host[i:]
	}
	v := protocol.Values{}
	for _, o := range (Kind{}).Options() {
		if o.Default != "" {
			v[o.Name] = []string{o.Default}
		}
	}
	set := map[string]bool{}
	for _, g := range given {
		k, x, _ := strings.Cut(g, "=")
		if !set[k] {
			v[k] = nil
		}
		v[k], set[k] = append(slices.Clone(v[k]), x), true
	}
	return protocol.Spec{URL: u, Op: opProduce, Options: v, Given: set, Seed: 1, RunID: 1, BatchEvents: 1, MaxInFlight: 1000, Clients: max(1, v.Int("clients")), Logf: t.Logf}
}

func openSession(t testing.TB, s protocol.Spec) *session {
	t.Helper()
	got, err := Kind{}.Open(t.Context(), s)
	if err != nil {
		var e *protocol.Error
		assert.Must(t, !errors.As(err, &e), "%v (%s)", err, e.Hint)
		t.Fatal(err)
	}
	t.Cleanup(func() { assert.OK(t, got.Close()) })
	return got.(*session)
}
