package apm

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A scriptedServer answers GET /, accepts the request without events, and then calls its script for each request; n counts from 0
// over all connections. The request's body has not been read. If the script returns false, the connection is closed.
type scriptedServer struct {
	ln     net.Listener
	n      atomic.Int64
	script script
	wg     sync.WaitGroup
	mu     sync.Mutex
	conns  map[net.Conn]bool
}

func newScriptedServer(t testing.TB, script script) *scriptedServer {
	t.Helper()
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &scriptedServer{ln: ln, script: script, conns: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	t.Cleanup(s.stop)
	return s
}

func (s *scriptedServer) url() string { return "apm+http://" + s.ln.Addr().String() }

func (s *scriptedServer) stop() {
	s.ln.Close()
	s.cut()
	s.wg.Wait()
}

func (s *scriptedServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

func (s *scriptedServer) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			s.serve(c)
			c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

func (s *scriptedServer) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		length := 0
		for {
			field, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if field == "\r\n" {
				break
			}
			if v, ok := strings.CutPrefix(field, "Content-Length: "); ok {
				length, _ = strconv.Atoi(strings.TrimSpace(v))
			}
		}
		if strings.HasPrefix(line, "GET ") {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			continue
		}
		body, _ := r.Peek(min(length, 4096))
		if i := strings.IndexByte(string(body), '\n'); i == length-1 { // only the metadata
			r.Discard(length)
			io.WriteString(c, accepted)
			continue
		}
		if !s.script(int(s.n.Add(1)-1), c, r, length) {
			return
		}
	}
}

const accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"

func respond(c net.Conn, r *bufio.Reader, length int, answer string) bool {
	r.Discard(length)
	_, err := io.WriteString(c, answer)
	return err == nil
}

// A script answers the n-th request, whose body has not been read.
type script func(n int, c net.Conn, r *bufio.Reader, length int) bool

// fourth accepts each request but the fourth.
func fourth(fault func(c net.Conn, r *bufio.Reader, length int) bool) script {
	return func(n int, c net.Conn, r *bufio.Reader, length int) bool {
		if n == 3 {
			return fault(c, r, length)
		}
		return respond(c, r, length, accepted)
	}
}

// fourthGets answers the fourth request so, and closes its connection if it shall.
func fourthGets(answer string, closes bool) script {
	return fourth(func(c net.Conn, r *bufio.Reader, length int) bool { return respond(c, r, length, answer) && !closes })
}

// Faults of a server or a connection, and the outcomes that they lead to.
func TestFaults(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	// Only two cases are about the time limit of a request. In all others no stall of the machine may exceed it.
	with := func(name, value string) map[string]string {
		return map[string]string{"clients": "1", "events": "5", "spans": "0", "request-timeout": "1m", name: value}
	}
	small, large := with("frames", "3"), with("frames", "10000")
	hasty := with("request-timeout", "5s")
	reluctant := with("frames", "10000")
	reluctant["request-timeout"] = "5s"
	long := `{"accepted":0,"errors":[{"message":"` + strings.Repeat("no ", 100_000) + `"}]}`
	for _, tt := range []struct {
		name    string
		options map[string]string
		script  script
		class   load.Class
		failed  uint64 // of 10 batches of 5 events
		unknown uint64
		text    string
	}{
		{
			name: "chunked answers are read", options: small,
			script: func(_ int, c net.Conn, r *bufio.Reader, length int) bool {
				return respond(c, r, length, "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n13\r\nccepted\":5}        \r\n0\r\n\r\n")
			},
		},
		{
			name: "a connection for each answer", options: small,
			script: func(_ int, c net.Conn, r *bufio.Reader, length int) bool {
				respond(c, r, length, "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
				return false
			},
		},
		{
			name: "503 after half of the requests", options: small,
			script: func(n int, c net.Conn, r *bufio.Reader, length int) bool {
				if n < 5 {
					return respond(c, r, length, accepted)
				}
				return respond(c, r, length, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 45\r\n\r\n{\"accepted\":0,\"errors\":[{\"message\":\"full\"}]} ")
			},
			class: load.Throttled, failed: 25, text: "503 Service Unavailable",
		},
		{
			name: "an answer longer than its buffer", options: small,
			script: fourthGets(fmt.Sprintf("HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s", len(long), long), false),
			class:  load.Rejected, failed: 5, text: "400",
		},
		{
			name: "closed without an answer", options: small, script: fourthGets("", true),
			class: load.Disconnected, unknown: 5, text: "the server closed the connection",
		},
		{
			name: "an answer cut short", options: small, script: fourthGets("HTTP/1.1 202 Accepted\r\nContent-Length: 40\r\n\r\n{\"accep", true),
			class: load.Disconnected, unknown: 5, text: "the server closed the connection",
		},
		{
			name: "chunks cut short", options: small, script: fourthGets("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", true),
			class: load.Disconnected, unknown: 5, text: "the server closed the connection",
		},
		{
			name: "garbage", options: small, script: fourthGets("SSH-2.0-OpenSSH_9.2\r\n\r\n", false),
			class: load.Protocol, unknown: 5, text: "HTTP/1.1",
		},
		{name: "silence", options: hasty, script: fourthGets("", false), class: load.Timeout, unknown: 5, text: "no answer within"},
		{
			name: "too large, answered before it was read", options: large,
			script: fourth(func(c net.Conn, r *bufio.Reader, length int) bool {
				io.WriteString(c, "HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\n\r\n")
				// Closed for writing, so that no reset overtakes the answer.
				c.(*net.TCPConn).CloseWrite()
				r.Discard(length)
				return false
			}),
			class: load.TooLarge, failed: 5, text: "413",
		},
		{
			name: "stops reading", options: reluctant,
			script: fourth(func(c net.Conn, _ *bufio.Reader, _ int) bool {
				io.Copy(io.Discard, &trickle{c: c, left: 1000})
				return false
			}),
			class: load.Timeout, unknown: 5, text: "no answer within",
		},
	} {
		onIOMethods(t, tt.name, func(t *testing.T, selectIO func(*session)) {
			s := newScriptedServer(t, tt.script)
			sess := open(t, s.url(), tt.options)
			selectIO(sess)
			r := fire(t, sess, load.Plan{Measurement: load.Limits{Events: 50}})
			c := r.Measurement.Counts
			assert.True(t, c.Failed == tt.failed && c.Unknown == tt.unknown && c.Acked+c.Failed+c.Unknown == 50,
				"acked %d, failed %d, unknown %d; want %d failed and %d unknown of 50", c.Acked, c.Failed, c.Unknown, tt.failed, tt.unknown)
			if tt.text == "" {
				return
			}
			assert.True(t, len(r.Failures) != 0 && strings.Contains(r.Failures[0].Text, tt.text) && r.Classes[tt.class.String()] != 0,
				"failures %v, classes %v; want %q of class %s", r.Failures, r.Classes, tt.text, tt.class)
		})
	}
}

// onIOMethods runs a test as in runs with and without a schedule, whose sending threads wait by different methods.
func onIOMethods(t *testing.T, name string, test func(t *testing.T, selectIO func(*session))) {
	for _, scheduled := range []bool{false, true} {
		t.Run(fmt.Sprintf("%s/scheduled=%t", name, scheduled), func(t *testing.T) {
			t.Parallel()
			test(t, func(s *session) { s.Scheduled = scheduled })
		})
	}
}

// A trickle reads a few bytes and then waits until the connection ends.
type trickle struct {
	c    net.Conn
	left int
}

func (r *trickle) Read(p []byte) (int, error) {
	if r.left > 0 {
		n, err := r.c.Read(p[:min(len(p), r.left)])
		r.left -= n
		return n, err
	}
	// Only a write notices the other side's end. Clients ignore interim responses.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		r.c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := r.c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}

// Without a schedule, the server closes connections while the sending thread waits
// for them, with and without an answer before, and the counts stay correct.
func TestRestarts(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	onIOMethods(t, "cut", func(t *testing.T, selectIO func(*session)) {
		const requests = 3000
		s := newScriptedServer(t, func(n int, c net.Conn, r *bufio.Reader, length int) bool {
			return n%101 != 100 && respond(c, r, length, accepted) && n%97 != 96
		})
		sess := open(t, s.url(), map[string]string{"clients": "100", "max-in-flight": "3", "events": "5", "spans": "0"})
		selectIO(sess)
		c := fire(t, sess, load.Plan{Measurement: load.Limits{Events: 5 * requests}, Threads: 2}).Measurement.Counts
		assert.True(t, c.Sent == 5*requests && c.Acked+c.Failed+c.Unknown == c.Sent && c.Acked >= c.Sent/2 && c.Unknown > 0,
			"sent %d, acked %d, failed %d, unknown %d; want %d sent once each, most of them acked", c.Sent, c.Acked, c.Failed, c.Unknown, 5*requests)
		reconnects := uint64(0)
		for _, b := range sess.Brokers() {
			reconnects += b.Reconnects
		}
		assert.True(t, reconnects >= requests/101, "%d connections were made again, want one for each that was cut", reconnects)
	})
}

// A run against a server that never comes back ends.
func TestServerNeverComesBack(t *testing.T) {
	t.Parallel()
	s := newScriptedServer(t, func(_ int, c net.Conn, r *bufio.Reader, length int) bool { return respond(c, r, length, accepted) })
	sess := open(t, s.url(), map[string]string{"clients": "1", "events": "5", "spans": "0", "request-timeout": "200ms"})
	s.stop()
	r := fire(t, sess, load.Plan{Measurement: load.Limits{Events: 100}})
	if c := r.Measurement.Counts; c.Acked > 0 || c.Failed+c.Unknown != 100 || r.Classes["refused"] != c.Failed || r.Classes["disconnected"] != c.Unknown {
		t.Errorf("acked %d, failed %d, unknown %d, classes %v; want 100, those that failed refused and the unknown ones disconnected", c.Acked, c.Failed, c.Unknown, r.Classes)
	}
	got := strings.Join(sess.Warnings(), "\n")
	assert.True(t, strings.Contains(got, "connecting to ") && strings.Contains(got, "refused"), "the warnings do not say why: %q", got)
}

// Retry-After is obeyed only with the option retry-after.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		obey, wait string        // s
		least      time.Duration // that the run takes
	}{{"false", "100000", 0}, {"true", "1", time.Second}} { // with more than a day the test would not end
		t.Run(tt.obey, func(t *testing.T) {
			t.Parallel()
			s := newIntake(t, false)
			var n atomic.Int64
			s.reply(func(w http.ResponseWriter, _ int) bool {
				if n.Add(1) > 1 {
					return false
				}
				w.Header().Set("Retry-After", tt.wait)
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			})
			sess := open(t, s.url(), map[string]string{"clients": "1", "events": "1", "spans": "0", "retry-after": tt.obey})
			began := time.Now()
			r := fire(t, sess, load.Plan{Measurement: load.Limits{Events: 5}})
			assert.True(t, time.Since(began) >= tt.least, "it took %v, want %v or more", time.Since(began), tt.least)
			c := r.Measurement.Counts
			assert.True(t, c.Acked == 4 && c.Failed == 1, "acked %d, failed %d; want 4 and 1", c.Acked, c.Failed)
		})
	}
}

// The same faults, for requests that net/http sends.
func TestFaultsOfHTTPLanes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer string // of the fourth request
		want   load.Outcome
	}{
		{
			name: "chunks cut short", answer: "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
			want: load.Outcome{Unknown: 5, Class: load.Disconnected},
		},
		{
			name: "an answer cut short", answer: "HTTP/1.1 202 Accepted\r\nContent-Length: 40\r\n\r\n{\"accep",
			want: load.Outcome{Unknown: 5, Class: load.Disconnected},
		},
		{
			name: "chunks", answer: "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nE\r\n{\"accepted\":5}\r\n0\r\n\r\n",
			want: load.Outcome{Acked: 5},
		},
		{
			name: "an answer that ends with its connection", answer: "HTTP/1.1 202 Accepted\r\n\r\n{\"accepted\":5}",
			want: load.Outcome{Acked: 5},
		},
		{
			name: "a long answer", answer: "HTTP/1.1 202 Accepted\r\nContent-Length: 9000\r\n\r\n{\"accepted\":5}" + strings.Repeat(" ", 9000-14),
			want: load.Outcome{Acked: 5},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScriptedServer(t, func(n int, c net.Conn, r *bufio.Reader, length int) bool {
				if n == 3 {
					respond(c, r, length, tt.answer)
				} else {
					respond(c, r, length, accepted)
				}
				return false
			})
			var out []load.Outcome
			fire(t, open(t, s.url(), map[string]string{"clients": "1", "events": "5", "spans": "0", "keep-alive": "false"}), load.Plan{
				Measurement: load.Limits{Events: 25}, Observe: func(o []load.Outcome) { out = append(out, o...) },
			})
			assert.Must(t, len(out) == 5, "%d outcomes of 5 batches", len(out))
			o := out[3]
			assert.True(t, o.Acked == tt.want.Acked && o.Failed == tt.want.Failed && o.Unknown == tt.want.Unknown && o.Class == tt.want.Class && o.Sent >= 0,
				"got %+v, want %+v", o, tt.want)
		})
	}
}

// Without a connection, a batch was not sent, and has no service time.
func TestNeverSent(t *testing.T) {
	t.Parallel()
	s := newScriptedServer(t, func(_ int, c net.Conn, r *bufio.Reader, length int) bool { return respond(c, r, length, accepted) })
	sess := open(t, s.url(), map[string]string{"clients": "1", "events": "5", "spans": "0", "keep-alive": "false"})
	s.stop()
	var out []load.Outcome
	fire(t, sess, load.Plan{Measurement: load.Limits{Events: 25}, Observe: func(o []load.Outcome) { out = append(out, o...) }})
	assert.Must(t, len(out) == 5, "%d outcomes of 5 batches", len(out))
	for _, o := range out {
		assert.True(t, o.Failed == 5 && o.Class == load.Refused && o.Sent < 0 && o.Wire == 0,
			"got %+v, want 5 failed that were not sent", o)
	}
}
