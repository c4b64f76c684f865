package bus

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// An agent cannot send as another one or to another one, and an operator not as an agent: a connection that
// tries it ends, and the message is lost.
func TestForeignAddress(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	two := b.agent("two")
	m2 := agentMail(t, two)
	operator, _, err := connect(t.Context(), b.Addr(), b.pin, hello{Role: roleOperator}, b.operator.keys, &stamp{})
	must(t, err)
	defer operator.Close()
	for _, tt := range []struct {
		name, to string
		conn     *tls.Conn
	}{
		{"another agent", "two", b.raw("one")},
		{"itself", "three", b.raw("three")},
		{"no agent", "", operator},
	} {
		_, err := tt.conn.Write(append(messageFrame(tt.to, []byte("forged")), messageFrame("", []byte("after it"))...))
		must(t, err)
		tt.conn.SetReadDeadline(time.Now().Add(longEnough))
		_, err = io.Copy(io.Discard, tt.conn)
		assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded), "%s: the connection is still there", tt.name)
	}
	testkit.Until(t, "the log says why, of each", func() bool { return strings.Count(b.log.text(), "wrong kind of address") == 3 })
	must(t, b.operator.Send("two", []byte("for two")))
	m2.want("", "for two") // and nothing forged before it
	must(t, two.Send([]byte("by two")))
	o.want("two", "by two")
	must(t, b.operator.Send("one", []byte("it is not connected"))) // lost
}

// An agent that does not read is disconnected, with a reason in the log; others are not.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	b := start(t)
	conn, other := b.raw("slow"), b.agent("other")
	go ping(conn)
	operator, big := &session{}, make([]byte, MaxMessage)
	testkit.Until(t, "the server has lost its patience", func() bool {
		must(t, b.route(operator, "slow", big))
		return strings.Contains(b.log.text(), "agent slow disconnected: the other side does not read")
	})
	got := b.connected()
	assert.True(t, got == "other" && other.Connected(), "connected: %q", got)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	b := start(t)
	join := b.join("")
	assert.Equal(t, b.connect(AgentConfig{Join: join, Dir: t.TempDir(), Name: "a"}).Name(), "a", "the name")
	e := b.refused(AgentConfig{Join: join, Dir: t.TempDir(), Name: "b"}, ErrUsedToken)
	assert.True(t, strings.Contains(e.Hint, "fleet token"), "the hint is %q", e.Hint)
	b.refused(AgentConfig{Join: b.join(""), Dir: t.TempDir(), Name: "a"}, ErrNameTaken)
	b.refused(AgentConfig{Join: b.join("c"), Dir: t.TempDir(), Name: "b"}, ErrWrongName)
	b.refused(AgentConfig{Join: b.join("c"), Dir: t.TempDir(), Name: "b.c"}, ErrName)
	late := b.join("late")
	b.clock.advance(DefaultValid - 10*time.Second)
	b.connect(AgentConfig{Join: late, Dir: t.TempDir()})
	late = b.join("later")
	b.clock.advance(DefaultValid + time.Second)
	e = b.refused(AgentConfig{Join: late, Dir: t.TempDir()}, ErrExpiredToken)
	assert.True(t, strings.Contains(e.Error(), "valid until 20"), "%v does not say until when", e)
	// It stays known as expired for a day.
	b.clock.advance(keepTokens + time.Second)
	b.join("other") // a change that forgets it
	b.refused(AgentConfig{Join: late, Dir: t.TempDir()}, ErrWrongToken)
	for _, valid := range []time.Duration{-time.Second, time.Millisecond, longestValid + time.Second} {
		_, err := b.operator.Token(t.Context(), "", valid)
		assert.True(t, err != nil, "a token that is valid for %v", valid)
	}
	if _, err := b.operator.Token(t.Context(), "a.b", 0); !errors.Is(err, ErrName) {
		t.Errorf("a token for a name with a dot: %v", err)
	}
	j, err := b.operator.Token(t.Context(), "x", time.Hour)
	must(t, err)
	left := j.Expires.Sub(b.clock.now())
	assert.True(t, left >= 59*time.Minute && left <= time.Hour, "valid for %v, want 1h", left)
	// Nothing that is secret is stored or logged.
	used, err := ReadJoin(join)
	must(t, err)
	stored, err := os.ReadFile(filepath.Join(b.cfg.Dir, "agents.json"))
	must(t, err)
	f, err := readFile(filepath.Join(b.cfg.Dir, OperatorFile), parseOperatorFile)
	must(t, err)
	for _, secret := range []string{used.Token, j.Token, f.Seed, f.Seal} {
		assert.True(t, !strings.Contains(string(stored), secret), "agents.json has a secret")
		assert.True(t, !strings.Contains(b.log.text(), secret), "the log has a secret")
	}
}

// A token for a name replaces the machine of that name.
func TestTokenReplaces(t *testing.T) {
	t.Parallel()
	b := start(t)
	old := b.agent("a")
	dir := t.TempDir()
	b.connect(AgentConfig{Join: b.join("a"), Dir: dir})
	select {
	case <-old.Done():
	case <-time.After(longEnough):
		t.Fatal("the old one got no message")
	}
	assert.True(t, errors.Is(old.Err(), ErrRevoked), "the old one gave up with %v", old.Err())
	all, err := b.operator.Agents(t.Context())
	assert.True(t, err == nil && len(all) == 1, "%v, %v: want one agent", all, err)
}

// After three wrong tokens an address waits; machines with keys do not.
func TestSlowed(t *testing.T) {
	t.Parallel()
	b := start(t)
	dir := t.TempDir()
	must(t, b.connect(AgentConfig{Join: b.join("a"), Dir: dir}).Close())
	good := b.join("good")
	j, err := ReadJoin(good)
	must(t, err)
	j.Token = strings.Repeat("A", len(j.Token))
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	must(t, j.Write(wrong))
	for range freeTries {
		b.refused(AgentConfig{Join: wrong, Dir: t.TempDir()}, ErrWrongToken)
	}
	b.refused(AgentConfig{Join: wrong, Dir: t.TempDir()}, ErrSlow)
	b.refused(AgentConfig{Join: good, Dir: t.TempDir()}, ErrSlow)
	testkit.Until(t, "the first is gone", func() bool { return b.connected() == "" })
	b.connect(AgentConfig{Dir: dir})
	b.clock.advance(firstWait + time.Second)
	b.refused(AgentConfig{Join: wrong, Dir: t.TempDir()}, ErrWrongToken)
	b.clock.advance(firstWait + time.Second)
	b.refused(AgentConfig{Join: good, Dir: t.TempDir()}, ErrSlow) // twice as long now
	b.clock.advance(firstWait + time.Second)
	b.connect(AgentConfig{Join: good, Dir: t.TempDir()})
}

func TestLimiter(t *testing.T) {
	t.Parallel()
	var l limiter
	now := time.Unix(1000, 0)
	for i := range 20 {
		l.failed("a", now)
		want := time.Duration(0)
		if i >= freeTries-1 {
			want = min(longestWait, firstWait<<(i-freeTries+1))
		}
		assert.Equal(t, l.wait("a", now), want, "after %d: wait", i+1)
	}
	assert.True(t, l.wait("b", now) == 0, "another address waits")
	now = now.Add(longestWait + forgetTries + time.Second)
	l.failed("a", now)
	assert.Equal(t, l.wait("a", now), 0, "long after: wait")
	for i := range 3 * mostTries {
		l.failed(fmt.Sprint(i), now)
	}
	assert.True(t, len(l.tries) <= mostTries, "%d addresses are remembered", len(l.tries))
}

func TestPin(t *testing.T) {
	t.Parallel()
	b := start(t)
	j, err := ReadJoin(b.join("a"))
	must(t, err)
	j.Pin = "sha256:" + strings.Repeat("0", 64)
	path := filepath.Join(t.TempDir(), "join.json")
	must(t, j.Write(path))
	b.refused(AgentConfig{Join: path, Dir: t.TempDir()}, ErrPin)
	// It said nothing to the wrong server: the token is still good.
	must(t, os.Remove(path))
	j.Pin = b.pin
	must(t, j.Write(path))
	b.connect(AgentConfig{Join: path, Dir: t.TempDir()})
	// A server that was set up again has another pin.
	must(t, b.Close())
	must(t, os.Remove(filepath.Join(b.cfg.Dir, certificateFile)))
	b.serve()
	testkit.Until(t, "the operator and the agent say so", func() bool { return strings.Contains(b.log.text(), ErrPin.Error()) })
}

func TestSecondIncarnation(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	dir, copied := t.TempDir(), t.TempDir()
	first := b.connect(AgentConfig{Join: b.join("a"), Dir: dir})
	must(t, os.CopyFS(copied, os.DirFS(dir)))
	e := b.refused(AgentConfig{Dir: copied}, ErrSecond)
	assert.True(t, strings.Contains(e.Error(), "from 127.0.0.1:"), "%v does not say where the first is", e)
	must(t, first.Send([]byte("still here")))
	o.want("a", "still here")
	must(t, first.Close())
	testkit.Until(t, "the first is gone", func() bool { return b.connected() == "" })
	second := b.connect(AgentConfig{Dir: copied})
	must(t, second.Send([]byte("second")))
	o.want("a", "second")
}

// The same process, which has lost its connection before the server knows, gets in.
func TestSameIncarnation(t *testing.T) {
	t.Parallel()
	b := start(t)
	dir := t.TempDir()
	must(t, b.connect(AgentConfig{Join: b.join("a"), Dir: dir}).Close())
	f, err := readFile(filepath.Join(dir, AgentFile), parseAgentFile)
	must(t, err)
	own, err := keysOf(f.Seed, f.Seal)
	must(t, err)
	h := hello{Role: roleAgent, Incarnation: "x"}
	testkit.Until(t, "the first is gone", func() bool { return b.connected() == "" })
	old, _, err := connect(t.Context(), f.Address, f.Pin, h, own, &stamp{})
	must(t, err)
	defer old.Close()
	go ping(old) // it is not its silence that ends it
	again, _, err := connect(t.Context(), f.Address, f.Pin, h, own, &stamp{})
	must(t, err)
	defer again.Close()
	old.SetReadDeadline(time.Now().Add(longEnough))
	_, err = io.Copy(io.Discard, old)
	assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded), "the old connection is still there")
	assert.Equal(t, b.connected(), "a", "connected")
}

// The machine of an agent is lost without a goodbye: its connection ends, and its key is free again.
func TestLostMachine(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	b := start(t)
	conn := b.raw("a") // sends nothing
	got := b.connected()
	assert.Must(t, got == "a", "connected: %q", got)
	testkit.Until(t, "the agent is gone", func() bool { return b.connected() == "" })
	conn.SetReadDeadline(time.Now().Add(longEnough))
	said, err := io.ReadAll(conn)
	assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded) && strings.Trim(string(said), "\x00") == "", "the server said %q, %v", said, err)
	testkit.Until(t, "the log says why", func() bool {
		return strings.Contains(b.log.text(), "agent a disconnected: nothing was received for 6s")
	})
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	b := start(t)
	dir := t.TempDir()
	a := b.connect(AgentConfig{Join: b.join("a"), Dir: dir})
	other := b.agent("other")
	unused := b.join("a")
	must(t, b.operator.Revoke(t.Context(), "a"))
	select {
	case <-a.Done():
	case <-time.After(longEnough):
		t.Fatal("the agent got no message")
	}
	assert.True(t, errors.Is(a.Err(), ErrRevoked) && !a.Connected(), "the agent ended with %v, connected %v", a.Err(), a.Connected())
	err := a.Send(nil)
	assert.True(t, errors.Is(err, ErrRevoked), "send: %v", err)
	b.refused(AgentConfig{Dir: dir}, ErrNoToken)
	b.refused(AgentConfig{Join: unused, Dir: dir}, ErrWrongToken)
	err = b.operator.Revoke(t.Context(), "a")
	assert.True(t, errors.Is(err, ErrNoAgent), "again: %v", err)
	assert.True(t, other.Connected(), "another agent was disconnected")
	b.connect(AgentConfig{Join: b.join("a"), Dir: dir})
	// It holds after a restart too.
	must(t, b.operator.Revoke(t.Context(), "a"))
	must(t, b.Close())
	b.serve()
	b.refused(AgentConfig{Dir: dir}, ErrNoToken)
}

// A registration that cannot be stored is not confirmed, and leaves the token valid.
func TestRegistrationOnDisk(t *testing.T) {
	t.Parallel()
	b := start(t)
	join, dir := b.join("a"), t.TempDir()
	path := b.registry.path
	b.registry.path = filepath.Join(t.TempDir(), "missing", "agents.json")
	e, ok := errors.AsType[*advice.Error](func() error {
		_, err := ConnectAgent(t.Context(), AgentConfig{Join: join, Dir: dir})
		return err
	}())
	assert.Must(t, ok && errors.Is(e, errDisk), "got %v, want that the disk cannot be written", e)
	b.registry.path = path
	b.connect(AgentConfig{Join: join, Dir: dir})
	f, err := os.ReadFile(path)
	must(t, err)
	content, err := parseRegistry(f)
	assert.True(t, err == nil && len(content.Agents) == 1 && content.Tokens[0].Used, "stored: %+v, %v", content, err)
}

func TestOversize(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	a := b.agent("a")
	m := agentMail(t, a)
	big := bytes.Repeat([]byte("x"), MaxMessage)
	must(t, a.Send(big))
	l := o.next()
	assert.True(t, bytes.Equal(l.data, big), "got %d bytes", len(l.data))
	must(t, b.operator.Send("a", big))
	l = m.next()
	assert.True(t, bytes.Equal(l.data, big), "got %d bytes", len(l.data))
	big = append(big, 'x')
	err := a.Send(big)
	assert.True(t, errors.Is(err, ErrTooLarge), "agent: %v", err)
	err = b.operator.Send("a", big)
	assert.True(t, errors.Is(err, ErrTooLarge), "operator: %v", err)
	// A client that does not ask us is cut off.
	for frame, want := range map[string]string{
		string(messageFrame("", big)):                                       "a message has at most 1 MiB",
		string(binary.BigEndian.AppendUint32(nil, mostFrame+1)):             "a frame of 1048641 bytes",
		string(binary.BigEndian.AppendUint32(nil, 1<<31)):                   "a frame of 2147483648 bytes",
		string(append(binary.BigEndian.AppendUint32(nil, 2), 9, 'a')):       "a frame ends within a name",
		string(append(binary.BigEndian.AppendUint32(nil, 4), "\x03a.b"...)): "an agent's name has",
	} {
		conn := b.raw("raw")
		go io.WriteString(conn, frame)
		conn.SetReadDeadline(time.Now().Add(longEnough))
		_, err := io.Copy(io.Discard, conn)
		assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded), "%s: the connection is still there", want)
		testkit.Until(t, "the log says "+want, func() bool { return strings.Contains(b.log.text(), "agent raw disconnected: "+want) })
	}
	must(t, a.Send([]byte("still here")))
	o.want("a", "still here")
}

// raw registers an agent and returns its connection after the first exchange.
func (b *testBus) raw(name string) *tls.Conn {
	b.t.Helper()
	j, err := ReadJoin(b.join(name))
	must(b.t, err)
	conn, _, err := connect(b.t.Context(), j.Address, j.Pin, hello{Role: roleAgent, Token: j.Token}, newKeys(b.t), &stamp{})
	must(b.t, err)
	b.t.Cleanup(func() { conn.Close() })
	return conn
}

// ping says on a connection that its client is there, until it ends.
func ping(conn *tls.Conn) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for err := error(nil); err == nil; _, err = conn.Write(make([]byte, 4)) {
		<-tick.C
	}
}

func newKeys(t *testing.T) keys {
	t.Helper()
	seed, seal, err := newSeeds()
	must(t, err)
	own, err := keysOf(seed, seal)
	must(t, err)
	return own
}

// What is not a client of ours gets nothing, and does no harm.
func TestStrangers(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	long := func(n uint32, data string) string { return string(binary.BigEndian.AppendUint32(nil, n)) + data }
	frame := func(data string) string { return long(uint32(len(data)), data) }
	inTLS := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	for _, tt := range []struct {
		name, send string
		tls        *tls.Config
		log        string
	}{
		{"HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", nil, "it does not speak TLS"},
		{"NATS", "CONNECT {}\r\nPING\r\n", nil, "it does not speak TLS"},
		{"nothing", "", nil, "EOF"},
		{"garbage", strings.Repeat("\x16\x03\x01\xff", 1000), nil, "tls: "},
		{"an old TLS", "", &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, NextProtos: []string{protocol}}, "unsupported versions"},
		{"TLS of others", "x", &tls.Config{InsecureSkipVerify: true}, "not an agent or operator of this version"},
		{"another protocol", "x", &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, "unsupported application protocols"},
		{"TLS and nothing", "", inTLS, "EOF"},
		{"NATS in TLS", "CONNECT {}\r\nPING\r\n", inTLS, "a frame of 1129270862 bytes"},
		{"a long frame", long(1<<31, "x"), inTLS, "a frame of 2147483648 bytes"},
		{"half a frame", long(100, "x"), inTLS, "EOF"},
		{"no JSON", frame("hello") + frame("x"), inTLS, "not one of ours"},
		{"no key", frame("{}") + frame("x"), inTLS, "not a user's public nkey"},
		{"no signature", frame(`{"role":"operator","key":"`+b.operator.keys.publicSign+`"}`) + frame(""), inTLS, "the signature is not by the key"},
		{"a wrong signature", frame(`{"role":"operator","key":"`+b.operator.keys.publicSign+`"}`) + frame(strings.Repeat("x", 64)), inTLS, "the signature is not by the key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from := len(b.log.text())
			var conn net.Conn
			conn, err := net.Dial("tcp", b.Addr())
			must(t, err)
			defer conn.Close()
			raw := conn
			if tt.tls != nil {
				conn = tls.Client(conn, tt.tls)
			}
			io.WriteString(conn, tt.send)
			raw.(*net.TCPConn).CloseWrite()
			conn.SetReadDeadline(time.Now().Add(longEnough))
			said, err := io.ReadAll(conn)
			assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded), "the server keeps the connection")
			assert.True(t, (tt.tls == nil || len(said) == 0) && !bytes.Contains(said, []byte("{")), "the server said %q", said)
			testkit.Until(t, "the log says "+tt.log, func() bool { return strings.Contains(b.log.text()[from:], tt.log) })
		})
	}
	a := b.agent("a")
	must(t, a.Send([]byte("all is well")))
	o.want("a", "all is well")
}

// A signature is good for one connection only, and covers all that is said.
func TestSignature(t *testing.T) {
	t.Parallel()
	b := start(t)
	own := b.operator.keys
	open := func() *tls.Conn {
		conn, err := tls.Dial("tcp", b.Addr(), clientTLS(b.pin))
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	data, err := json.Marshal(hello{Role: roleControl, Key: own.publicSign, Request: &request{Do: "agents"}})
	must(t, err)
	one := open()
	text, err := signed(one, data)
	must(t, err)
	signature, err := own.sign.Sign(text)
	must(t, err)
	for _, tt := range []struct {
		name string
		conn *tls.Conn
		data []byte
		good bool
	}{
		{"on another connection", open(), data, false},
		{"another request", open(), bytes.Replace(data, []byte("agents"), []byte("revoke"), 1), false},
		{"as it was signed", one, data, true},
	} {
		must(t, writeFrame(tt.conn, tt.data))
		must(t, writeFrame(tt.conn, signature))
		_, err := readFrame(tt.conn, mostAnswer)
		assert.True(t, (err == nil) == tt.good, "%s: %v", tt.name, err)
	}
}

// Only the operator's key may ask the server for anything, or command agents.
func TestOnlyTheOperator(t *testing.T) {
	t.Parallel()
	b := start(t)
	own := newKeys(t)
	for _, h := range []hello{
		{Role: roleOperator},
		{Role: roleControl, Request: &request{Do: "token"}},
		{Role: roleControl, Request: &request{Do: "revoke", Agent: "a"}},
		{Role: "other"},
		{},
	} {
		if conn, _, err := connect(t.Context(), b.Addr(), b.pin, h, own, &stamp{}); err == nil {
			conn.Close()
			t.Errorf("%+v was answered", h)
		}
	}
	for _, r := range []request{{Do: "other"}, {}, {Do: "token", Seconds: -1}, {Do: "token", Seconds: 1 << 62}} {
		_, err := b.operator.control(t.Context(), r)
		assert.True(t, errors.Is(err, errBroken), "%+v: %v", r, err)
	}
	var more []*Operator
	for range MaxOperators - 1 {
		more = append(more, b.connectOperator())
	}
	_, err := ConnectOperator(t.Context(), filepath.Join(b.cfg.Dir, OperatorFile))
	assert.True(t, errors.Is(err, ErrFull), "one operator too many: %v", err)
	must(t, more[0].Close())
}

// A client that finds something else at the address says so.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	own := newKeys(t)
	certificate, err := newCertificate()
	must(t, err)
	pair, err := tls.X509KeyPair(certificate, certificate)
	must(t, err)
	for _, tt := range []struct {
		name string
		tls  *tls.Config
		say  string
		want error
	}{
		{"HTTP", nil, "HTTP/1.1 400 Bad Request\r\n\r\n", ErrNotTLS},
		{"closes", nil, "", nil},
		{"other TLS", &tls.Config{Certificates: []tls.Certificate{pair}}, "", ErrNotBus},
		{"h2", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}, "", ErrNotBus},
		{"an old TLS", &tls.Config{Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS12, NextProtos: []string{protocol}}, "", ErrNotBus},
		{"nonsense", serverTLS(pair), "\x00\x00\x00\x01{", nil},
		{"a long answer", serverTLS(pair), "\xff\x00\x00\x01{", nil},
		{"an unknown reason", serverTLS(pair), "\x00\x00\x00\x15{\"refused\":\"\\u001b[\"}", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := testkit.Listen(t, func(c *net.TCPConn) {
				conn := net.Conn(c)
				if tt.tls != nil {
					conn = tls.Server(conn, tt.tls)
				}
				defer conn.Close()
				io.WriteString(conn, tt.say)
				io.CopyN(io.Discard, conn, 1)
			})
			_, _, err := connect(t.Context(), addr, pinOf(pair.Certificate[0]), hello{Role: roleAgent}, own, &stamp{})
			assert.True(t, err != nil && (tt.want == nil || errors.Is(err, tt.want)), "got %v, want %v", err, tt.want)
			assert.True(t, !strings.ContainsRune(fmt.Sprint(err), '\x1b'), "%q has a control character", err)
		})
	}
}
