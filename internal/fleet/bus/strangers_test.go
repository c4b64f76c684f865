package bus

import (
	"crypto/tls"
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
