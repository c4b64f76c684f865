package bus

import (
	"bufio"
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

// existing starts a NATS server as its administrator would, with TLS, and returns what an operator and the
// agent "a" connect with.
func existing(t *testing.T) (operator, a NATS) {
	t.Helper()
	testkit.OnlyConformance(t, "builds a NATS server: TestExistingNATSFails has what it may answer first")
	dir := t.TempDir()
	user := func(name string) (seedFile, public string) {
		own := newKeys(t)
		seed, err := own.sign.Seed()
		must(t, err)
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, seed, 0o600))
		return path, own.publicSign
	}
	operatorSeed, operatorKey := user("operator")
	agentSeed, agentKey := user("agent")
	ca, key := testkit.NewAuthority("test").Files(t)
	url := "tls://" + testkit.NATSServer(t, fmt.Sprintf(`
tls: { cert_file: %q, key_file: %q }
authorization: { users: [
  { nkey: %s, permissions: { publish: "f.*.down", subscribe: "f.*.up" } }
  { nkey: %s, permissions: { publish: "f.a.up", subscribe: "f.a.down" } }
] }`, ca, key, operatorKey, agentKey))
	return NATS{URL: url, NKeySeedFile: operatorSeed, CA: ca}, NATS{URL: url, NKeySeedFile: agentSeed, CA: ca}
}

func TestExistingNATS(t *testing.T) {
	t.Parallel()
	forOperator, forAgent := existing(t)
	log := &logged{}
	forOperator.Logf = log.logf
	o, err := ConnectOperatorNATS(t.Context(), forOperator)
	must(t, err)
	defer o.Close()
	in := &mail{t, make(chan letter, 100)}
	o.Receive(func(agent string, message []byte, at time.Time) { in.came <- letter{agent, message, at} })
	_, err = o.Seal("a", nil)
	assert.True(t, errors.Is(err, ErrNoAgent), "seal for an agent that has sent nothing: %v", err)
	cfg := AgentConfig{NATS: &forAgent, Name: "a", Dir: t.TempDir(), Logf: log.logf}
	a, err := ConnectAgent(t.Context(), cfg)
	must(t, err)
	defer a.Close()
	down := agentMail(t, a)
	must(t, a.Send([]byte("up")))
	in.want("a", "up")
	before := time.Now()
	must(t, o.Send("a", []byte("down")))
	l := down.next()
	assert.True(t, string(l.data) == "down" && !l.at.Before(before), "got %q at %v, sent at %v", l.data, l.at, before)
	must(t, a.Send(make([]byte, MaxMessage)))
	assert.Equal(t, len(in.next().data), MaxMessage, "bytes")
	sealed, err := o.Seal("a", []byte("secret"))
	must(t, err)
	got, err := a.Open(sealed)
	assert.True(t, err == nil && string(got) == "secret", "opened %q, %v", got, err)
	for _, err := range []error{
		func() error { _, err := o.Token(t.Context(), "", 0); return err }(),
		func() error { _, err := o.Agents(t.Context()); return err }(),
		o.Revoke(t.Context(), "a"),
	} {
		assert.True(t, errors.Is(err, ErrExternal), "got %v, want %v", err, ErrExternal)
	}
	// Credentials for another name.
	cfg.Name = "b"
	_, err = ConnectAgent(t.Context(), cfg)
	e, ok := errors.AsType[*advice.Error](err)
	assert.True(t, ok && strings.Contains(e.Hint, "f.b.down"), "with the permissions of another agent: %v", err)
	must(t, a.link.line.(*natsLine).conn.Publish("f.b.up", []byte("forged")))
	testkit.Until(t, "the log says what is denied", func() bool { return strings.Contains(log.text(), `"f.b.up"`) })
	// Unknown credentials, and an authority that did not sign.
	noCA, wrongKey := forOperator, forOperator
	noCA.CA = ""
	wrongKey.NKeySeedFile = filepath.Join(t.TempDir(), "seed")
	seed, err := newKeys(t).sign.Seed()
	must(t, err)
	must(t, os.WriteFile(wrongKey.NKeySeedFile, seed, 0o600))
	for want, n := range map[string]NATS{"unknown authority": noCA, "refused the credentials": wrongKey} {
		failsNATS(t, n, want)
	}
}

// failsNATS expects that an operator cannot connect.
func failsNATS(t *testing.T, n NATS, want string) {
	t.Helper()
	o, err := ConnectOperatorNATS(t.Context(), n)
	if err == nil {
		o.Close()
		t.Fatalf("connected, want %q", want)
	}
	_, ok := errors.AsType[*advice.Error](err)
	assert.True(t, ok && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "secret@"), "%T %v, want %q", err, err, want)
}

// talkNATS listens and answers as a NATS server does to the first messages of a client.
func talkNATS(t *testing.T, info, answer string) (url string) {
	return "nats://" + testkit.Listen(t, func(c *net.TCPConn) {
		fmt.Fprintf(c, "INFO {\"version\":\"2.15.2\",\"proto\":1%s}\r\n", info)
		for lines := bufio.NewScanner(c); lines.Scan(); {
			if lines.Text() == "PING" {
				io.WriteString(c, answer+"\r\n")
			}
		}
	})
}

func TestExistingNATSFails(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	for _, tt := range []struct {
		name string
		n    NATS
		want string
	}{
		{"password", NATS{URL: "nats://user:secret@127.0.0.1:4222"}, "seen by others"},
		{"damaged", NATS{URL: "nats://user:secret@127.0.0.1:42%22"}, "names no host"},
		{"nothing", NATS{}, "names no host"},
		{"scheme", NATS{URL: "http://127.0.0.1"}, `the scheme "http" is not known`},
		{"two credentials", NATS{URL: "nats://127.0.0.1", Creds: "x", NKeySeedFile: "y"}, "two kinds"},
		{"no credentials", NATS{URL: "nats://127.0.0.1", Creds: filepath.Join(t.TempDir(), "x")}, "no such file"},
		{"no seed", NATS{URL: "nats://127.0.0.1", NKeySeedFile: filepath.Join(t.TempDir(), "x")}, "no such file"},
		{"no authority", NATS{URL: "nats://127.0.0.1", CA: filepath.Join(t.TempDir(), "x")}, "no such file"},
		{"no server", NATS{URL: "nats://" + l.Addr().String()}, "no server answers"},
		{"refused", NATS{URL: talkNATS(t, `,"max_payload":1048576`, "-ERR 'Authorization Violation'")}, "refused the credentials"},
		{"small messages", NATS{URL: talkNATS(t, `,"max_payload":1000`, "PONG")}, "1000 bytes only"},
		{"no TLS", NATS{URL: strings.Replace(talkNATS(t, `,"max_payload":1048576`, "PONG"), "nats", "tls", 1)}, "the server has no TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) { failsNATS(t, tt.n, tt.want) })
	}
	o, err := ConnectOperatorNATS(t.Context(), NATS{URL: talkNATS(t, `,"max_payload":1048576`, "PONG")}) // loopback
	must(t, err)
	o.Close()
	for _, tt := range []struct {
		n    NATS
		want bool
	}{
		{NATS{URL: "nats://10.0.0.1"}, true},
		{NATS{URL: "nats://10.0.0.1", Plain: true}, false},
		{NATS{URL: "tls://10.0.0.1", Plain: true}, true},
		{NATS{URL: "nats://127.0.0.1, nats://example.org"}, true},
		{NATS{URL: "nats://localhost:1,nats://[::1]:1"}, false},
		{NATS{URL: "nats://localhost", CA: "x"}, true},
	} {
		got, err := tt.n.secure()
		assert.True(t, err == nil && got == tt.want, "%+v: TLS %v, %v, want %v", tt.n, got, err, tt.want)
	}
}
