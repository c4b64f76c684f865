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

	"github.com/nats-io/nats.go"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
)

// An agent that speaks NATS as it likes gets nowhere with subjects that are not its own.
func TestForeignSubjects(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	one, two := b.agent("one"), b.agent("two")
	m2 := agentMail(t, two)
	conn := one.link.conn
	stolen := make(chan *nats.Msg, 1000)
	denied := func(what string) {
		t.Helper()
		must(t, conn.FlushTimeout(longEnough))
		if err := conn.LastError(); !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(what)) {
			t.Errorf("%s: the server said %v, want that it is not permitted", what, err)
		}
	}
	for _, subject := range []string{"f.two.down", "f.two.up", "f.one.up", "f.*.down", "f.*.up", "f.>", ">", "*.*.*", "_INBOX.x", "$SYS.>", "f.one.down.x"} {
		if _, err := conn.ChanSubscribe(subject, stolen); err != nil {
			t.Fatal(err)
		}
		denied(`"` + subject + `"`)
	}
	// A queue group that takes the operator's messages from another agent, or the operator's own.
	for _, subject := range []string{"f.two.down", "f.*.up"} {
		if _, err := conn.ChanQueueSubscribe(subject, "q", stolen); err != nil {
			t.Fatal(err)
		}
		denied(`"` + subject + `"`)
	}
	for _, subject := range []string{"f.two.up", "f.two.down", "f.one.down", "f.two.up.x", "_INBOX.x", "$SYS.REQ.SERVER.PING"} {
		must(t, conn.Publish(subject, []byte("forged")))
		denied(`"` + subject + `"`)
	}
	must(t, b.operator.Send("two", []byte("for two")))
	m2.want("", "for two")
	must(t, two.Send([]byte("by two")))
	o.want("two", "by two")
	must(t, one.Send([]byte("by one")))
	o.want("one", "by one") // and nothing forged before it
	must(t, conn.FlushTimeout(longEnough))
	select {
	case m := <-stolen:
		t.Errorf("one got %q of %s", m.Data, m.Subject)
	default:
	}
	select {
	case l := <-m2.came:
		t.Errorf("two got %q", l.data)
	default:
	}
	// Nor the operator with what is not its own.
	conn = b.operator.link.conn
	if _, err := conn.ChanSubscribe(">", stolen); err != nil {
		t.Fatal(err)
	}
	denied(`">"`)
	must(t, conn.Publish("f.one.up", nil))
	denied(`"f.one.up"`)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	b := start(t)
	join := b.join("")
	a := b.connect(AgentConfig{Join: join, Dir: t.TempDir(), Name: "a"})
	assert.Equal(t, a.Name(), "a", "the name")
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
		if _, err := b.operator.Token(t.Context(), "", valid); err == nil {
			t.Errorf("a token that is valid for %v", valid)
		}
	}
	if _, err := b.operator.Token(t.Context(), "a.b", 0); !errors.Is(err, ErrName) {
		t.Errorf("a token for a name with a dot: %v", err)
	}
	j, err := b.operator.Token(t.Context(), "x", time.Hour)
	must(t, err)
	if left := j.Expires.Sub(b.clock.now()); left < 59*time.Minute || left > time.Hour {
		t.Errorf("valid for %v, want 1h", left)
	}

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
	if !errors.Is(old.Err(), ErrRevoked) {
		t.Errorf("the old one gave up with %v", old.Err())
	}
	if all, err := b.operator.Agents(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v: want one agent", all, err)
	}
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
	assert.Equal(t, l.wait("b", now), 0, "another address waits")
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
	again, _, err := connect(t.Context(), f.Address, f.Pin, h, own, &stamp{})
	must(t, err)
	defer again.Close()
	old.SetReadDeadline(time.Now().Add(longEnough))
	if _, err := io.Copy(io.Discard, old); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the old connection is still there")
	}
	assert.Equal(t, b.connected(), "a", "connected")
}

// The machine of an agent is lost without a goodbye: its connection ends, and its key is free again.
func TestLostMachine(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	b := start(t)
	conn := b.raw("a") // answers no ping
	if got := b.connected(); got != "a" {
		t.Fatalf("connected: %q", got)
	}
	testkit.Until(t, "the agent is gone", func() bool { return b.connected() == "" })
	conn.SetReadDeadline(time.Now().Add(longEnough))
	if said, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(said), "Stale Connection") {
		t.Errorf("the server said %q, %v", said, err)
	}
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
	if !errors.Is(a.Err(), ErrRevoked) || a.Connected() {
		t.Errorf("the agent ended with %v, connected %v", a.Err(), a.Connected())
	}
	if err := a.Send(nil); !errors.Is(err, ErrRevoked) {
		t.Errorf("send: %v", err)
	}
	b.refused(AgentConfig{Dir: dir}, ErrNoToken)
	b.refused(AgentConfig{Join: unused, Dir: dir}, ErrWrongToken)
	if err := b.operator.Revoke(t.Context(), "a"); !errors.Is(err, ErrNoAgent) {
		t.Errorf("again: %v", err)
	}
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
	e, ok := errors.AsType[*Error](func() error {
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
	if l := o.next(); !bytes.Equal(l.data, big) {
		t.Errorf("got %d bytes", len(l.data))
	}
	must(t, b.operator.Send("a", big))
	if l := m.next(); !bytes.Equal(l.data, big) {
		t.Errorf("got %d bytes", len(l.data))
	}
	big = append(big, 'x')
	if err := a.Send(big); !errors.Is(err, ErrTooLarge) {
		t.Errorf("agent: %v", err)
	}
	if err := b.operator.Send("a", big); !errors.Is(err, ErrTooLarge) {
		t.Errorf("operator: %v", err)
	}
	// A client that does not ask us is cut off.
	conn := b.raw("raw")
	fmt.Fprintf(conn, "PUB f.raw.up %d\r\n", MaxMessage+1)
	go conn.Write(big)
	conn.SetReadDeadline(time.Now().Add(longEnough))
	said, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(said), "Maximum Payload Violation") {
		t.Errorf("the server said %q, %v", said, err)
	}
	must(t, a.Send([]byte("still here")))
	o.want("a", "still here")
}

// raw registers an agent and returns its connection, on which NATS's protocol has begun.
func (b *testBus) raw(name string) *tls.Conn {
	b.t.Helper()
	conn, a := b.greet(name)
	fmt.Fprintf(conn, "CONNECT {\"auth_token\":%q,\"verbose\":false,\"protocol\":1}\r\nPING\r\n", a.Ticket)
	said := ""
	for buf := make([]byte, 4096); !strings.Contains(said, "PONG\r\n"); {
		n, err := conn.Read(buf)
		must(b.t, err)
		said += string(buf[:n])
	}
	return conn
}

// greet registers an agent and returns its connection after the first exchange.
func (b *testBus) greet(name string) (*tls.Conn, answer) {
	b.t.Helper()
	j, err := ReadJoin(b.join(name))
	must(b.t, err)
	conn, a, err := connect(b.t.Context(), j.Address, j.Pin, hello{Role: roleAgent, Token: j.Token}, newKeys(b.t), &stamp{})
	must(b.t, err)
	b.t.Cleanup(func() { conn.Close() })
	return conn, a
}

func newKeys(t *testing.T) keys {
	t.Helper()
	seed, seal, err := newSeeds()
	must(t, err)
	own, err := keysOf(seed, seal)
	must(t, err)
	return own
}

// A session without the ticket of its first exchange, or with another one's, is not let in.
func TestTickets(t *testing.T) {
	t.Parallel()
	b := start(t)
	first, a := b.greet("first")
	used := b.raw("used")
	_ = used
	for name, ticket := range map[string]string{"none": "", "wrong": "x"} {
		conn, _ := b.greet(name)
		fmt.Fprintf(conn, "CONNECT {\"auth_token\":%q,\"verbose\":false}\r\nPING\r\n", ticket)
		conn.SetReadDeadline(time.Now().Add(longEnough))
		if said, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(said), "Authorization Violation") {
			t.Errorf("%s: the server said %q, %v", name, said, err)
		}
	}
	// Once only.
	if _, ok := b.gate.take(a.Ticket); !ok {
		t.Error("a ticket is not known")
	}
	if _, ok := b.gate.take(a.Ticket); ok {
		t.Error("a ticket is valid twice")
	}
	first.Close()
	unused, _ := b.greet("unused")
	unused.Close()
	testkit.Until(t, "no ticket is left of sessions that ended", func() bool {
		b.gate.mu.Lock()
		defer b.gate.mu.Unlock()
		return len(b.gate.tickets) == 0
	})
}

// What is not a client of ours gets nothing, and does no harm.
func TestStrangers(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	long := func(n uint32, data string) string {
		return string(binary.BigEndian.AppendUint32(nil, n)) + data
	}
	frame := func(data string) string { return long(uint32(len(data)), data) }
	inTLS := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	tests := []struct {
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
	}
	for _, tt := range tests {
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
			assert.True(t, !bytes.Contains(said, []byte("INFO")), "the server said %q", said)
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
		if _, err := readFrame(tt.conn, mostAnswer); (err == nil) != tt.good {
			t.Errorf("%s: %v", tt.name, err)
		}
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
		if _, err := b.operator.control(t.Context(), r); !errors.Is(err, errBroken) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	var more []*Operator
	for range MaxOperators - 1 {
		more = append(more, b.connectOperator())
	}
	if _, err := ConnectOperator(t.Context(), filepath.Join(b.cfg.Dir, OperatorFile)); !errors.Is(err, ErrFull) {
		t.Errorf("one operator too many: %v", err)
	}
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
