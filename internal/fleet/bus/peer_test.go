package bus

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/door"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// pair returns the two ends of a connection after its TLS handshake, in the bubble of the test. What one
// writes waits until the other reads it.
func pair(t *testing.T) (a, b *peer) {
	t.Helper()
	certificate, err := newCertificate()
	must(t, err)
	own, err := tls.X509KeyPair(certificate, certificate)
	must(t, err)
	one, two := net.Pipe()
	server, client := tls.Server(one, serverTLS(own)), tls.Client(two, clientTLS(pinOf(own.Certificate[0])))
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	must(t, client.Handshake())
	must(t, <-done)
	return newPeer(server), newPeer(client)
}

// runs runs a peer and returns where its end is sent to, and its messages.
func runs(p *peer) (end chan error, got chan string) {
	end, got = make(chan error, 1), make(chan string, 100)
	go func() {
		end <- p.run(func(agent string, message []byte) error { got <- agent + ":" + string(message); return nil })
	}()
	return end, got
}

// A connection without messages stays, and ends with a goodbye after all that was sent before it.
func TestIdleAndGoodbye(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		endA, _ := runs(a)
		endB, gotB := runs(b)
		time.Sleep(time.Hour)
		for _, text := range []string{"first", "", "last"} {
			assert.Must(t, a.put(messageFrame("x", []byte(text))), "the connection has ended")
		}
		a.finish()
		assert.True(t, !a.put(messageFrame("x", nil)), "a message after the goodbye")
		why := <-endB
		assert.True(t, errors.Is(why, io.EOF), "the end is %v", why)
		for _, want := range []string{"x:first", "x:", "x:last"} {
			assert.Equal(t, <-gotB, want)
		}
		if why := <-endA; !errors.Is(why, io.EOF) { // the answer to the goodbye
			t.Errorf("the end is %v", why)
		}
	})
}

// A peer that is silent, or does not read, is noticed in time.
func TestDeadPeer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		other func(p *peer) // what the other side does
		want  error
		after time.Duration
	}{
		{"silent", func(p *peer) { p.read(func(string, []byte) error { return nil }) }, errSilent, silentFor},
		{"does not read", func(p *peer) { p.write() }, errStuck, pingEvery + stalledFor},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, b := pair(t)
				began := time.Now()
				go tt.other(b)
				end, _ := runs(a)
				why := <-end
				assert.True(t, errors.Is(why, tt.want), "the end is %v, want %v", why, tt.want)
				after := time.Since(began)
				assert.True(t, after == tt.after, "after %v, want %v", after, tt.after)
				b.end(nil)
			})
		})
	}
}

// What waits for a peer is bounded, also if it is many small messages.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	for _, size := range []int{MaxMessage, 1000} {
		a, b := pair(t)
		defer b.end(nil)
		frame := messageFrame("", make([]byte, size))
		for range 2 * mostQueued / len(frame) { // what is taken does not wait any more
			_, last := a.next()
			assert.Must(t, !last && a.put(frame), "the connection has ended")
		}
		a.next()
		n := 0
		for a.put(frame) {
			n++
		}
		want := mostQueued / (len(frame) + ofFrame)
		assert.True(t, n == want, "%d messages of %d bytes wait, want %d", n, size, want)
		why := a.run(nil)
		assert.True(t, errors.Is(why, errSlow), "the end is %v", why)
	}
}

// A closing connection says when it is closed.
type closing struct {
	net.Conn
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

// TestFirstExchange: a connection that does not get as far as a key ends after two seconds, however far it came.
func TestFirstExchange(t *testing.T) {
	inTLS := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	for _, tt := range []struct {
		name, send string
		tls        *tls.Config
	}{
		{"nothing", "", nil},
		{"half a handshake", "\x16\x03\x01\x00\xff\x01", nil},
		{"a handshake", "", inTLS},
		{"half a hello", "\x00\x00\x00\x7f{", inTLS},
		{"a hello and no signature", "\x00\x00\x00\x02{}", inTLS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			own := assert.Value(certificate(dir))(t)
			r := assert.Value(openRegistry(filepath.Join(dir, "agents.json"), time.Now))(t)
			synctest.Test(t, func(t *testing.T) {
				s := &Server{cfg: ServerConfig{Logf: t.Logf, now: time.Now}, door: door.New(door.Places), registry: r, tls: serverTLS(own)}
				mine, theirs := net.Pipe()
				defer mine.Close()
				began, closed := time.Now(), time.Time{}
				go s.serve(s.door.Enter(closing{theirs, func() { closed = time.Now() }}))
				conn := mine
				if tt.tls != nil {
					conn = tls.Client(mine, tt.tls)
				}
				go io.WriteString(conn, tt.send)
				if tt.send == "" && tt.tls != nil {
					go conn.(*tls.Conn).Handshake()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Equal(t, closed.Sub(began), door.FirstExchange)
			})
		})
	}
}

// TestStrangersKeepNobodyOut: connections that show no key have few places. They make no agent leave, and an agent
// that comes gets in, also from their address.
func TestStrangersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	one := b.agent("one")
	var crowd []net.Conn
	for range 10 * door.FromOne {
		conn := assert.Value(net.Dial("tcp", b.Addr()))(t)
		defer conn.Close()
		crowd = append(crowd, conn)
	}
	for k, conn := range crowd[:len(crowd)-door.FromOne] { // they made room
		conn.SetReadDeadline(time.Now().Add(longEnough))
		n, err := conn.Read(make([]byte, 1))
		if e, ok := err.(net.Error); n > 0 || ok && e.Timeout() { //nolint:errorlint // of the connection itself
			t.Fatalf("connection %d is still there: %d bytes, %v", k, n, err)
		}
	}
	two := b.agent("two")
	assert.OK(t, one.Send([]byte("still here")))
	o.want("one", "still here")
	assert.OK(t, two.Send([]byte("new")))
	o.want("two", "new")
	assert.True(t, strings.Count(b.log.text(), "refused") <= door.FromOne, "the log has a line for each: %s", b.log.text())
}

// TestMadeRoom: an agent whose first connection had to make room tries again.
func TestMadeRoom(t *testing.T) {
	t.Parallel()
	b := start(t)
	join := assert.Value(ReadJoin(b.join("a")))(t)
	var closed atomic.Int64
	join.Address = testkit.Listen(t, func(c *net.TCPConn) {
		if closed.Add(1) < mostDials {
			return
		}
		to, err := net.Dial("tcp", b.Addr())
		if err != nil {
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, c) }()
		_, _ = io.Copy(c, to)
	})
	assert.Equal(t, b.connect(AgentConfig{Given: &join, Dir: t.TempDir()}).Name(), "a")
}

// TestDayOfAFleet: a day of a fleet in fast time leaves the server, an agent and the operator with the memory that they
// had after its first hour: in each hour agents and operators connect and leave, strangers fail, tokens are made and
// expire unused, and messages go both ways.
func TestDayOfAFleet(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 2,400 connections with TLS")
	b := start(t)
	o := b.operatorMail()
	stays := b.agent("stays")
	received := agentMail(t, stays)
	join, dir := b.join("comes"), t.TempDir()
	var before int64
	for hour := range 24 {
		for i := range 50 {
			a := assert.Value(ConnectAgent(t.Context(), AgentConfig{Join: join, Dir: dir, Logf: b.log.logf}))(t)
			assert.OK(t, a.Send([]byte("hello")))
			o.want("comes", "hello")
			assert.OK(t, a.Close())
			other := assert.Value(ConnectOperator(t.Context(), b.cfg.Dir+"/"+OperatorFile))(t)
			assert.Value(other.Token(t.Context(), fmt.Sprintf("unused-%d-%d", hour, i), time.Minute))(t)
			assert.OK(t, other.Close())
		}
		for i := range 2000 {
			text := fmt.Sprint("message ", i)
			assert.OK(t, stays.Send([]byte(text)))
			o.want("stays", text)
			assert.OK(t, b.operator.Send("stays", []byte(text)))
			received.want("", text)
		}
		b.clock.advance(time.Hour)
		b.log.mu.Lock()
		b.log.lines = nil // the test's
		b.log.mu.Unlock()
		if hour == 0 {
			before = testkit.Heap()
		}
	}
	grown := testkit.Heap() - before
	assert.True(t, grown < 2<<20, "the fleet has grown by %d KiB in 23 hours", grown>>10)
}
