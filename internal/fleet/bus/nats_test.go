package bus

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
)

// existing starts a NATS server as its administrator would, with TLS, and returns what an operator
// and the agent "a" connect with.
func existing(t *testing.T, change func(*server.Options)) (operator, a NATS) {
	t.Helper()
	dir := t.TempDir()
	user := func(name string) (seedFile, public string) {
		own := newKeys(t)
		seed, err := own.sign.Seed()
		must(t, err)
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, seed, 0o600))
		return path, own.publicSign
	}
	allow := func(publish, subscribe string) *server.Permissions {
		return &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{publish}}, Subscribe: &server.SubjectPermission{Allow: []string{subscribe}}}
	}
	operatorSeed, operatorKey := user("operator")
	agentSeed, agentKey := user("agent")
	own := testkit.NewAuthority("test")
	ca, _ := own.Files(t)
	o := &server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own.Pair()}},
		Nkeys: []*server.NkeyUser{
			{Nkey: operatorKey, Permissions: allow("f.*.down", "f.*.up")},
			{Nkey: agentKey, Permissions: allow("f.a.up", "f.a.down")},
		},
	}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	assert.Must(t, s.ReadyForConnections(longEnough), "the server is not ready")
	url := "tls://" + s.Addr().String()
	return NATS{URL: url, NKeySeedFile: operatorSeed, CA: ca}, NATS{URL: url, NKeySeedFile: agentSeed, CA: ca}
}

func TestExistingNATS(t *testing.T) {
	t.Parallel()
	forOperator, forAgent := existing(t, nil)
	log := &logged{}
	forOperator.Logf = log.logf
	o, err := ConnectOperatorNATS(t.Context(), forOperator)
	must(t, err)
	defer o.Close()
	in := &mail{t, make(chan letter, 100)}
	o.Receive(func(agent string, message []byte, at time.Time) { in.came <- letter{agent, message, at} })
	if _, err := o.Seal("a", nil); !errors.Is(err, ErrNoAgent) {
		t.Errorf("seal for an agent that has sent nothing: %v", err)
	}
	cfg := AgentConfig{NATS: &forAgent, Name: "a", Dir: t.TempDir(), Logf: log.logf}
	a, err := ConnectAgent(t.Context(), cfg)
	must(t, err)
	defer a.Close()
	down := agentMail(t, a)
	must(t, a.Send([]byte("up")))
	in.want("a", "up")
	before := time.Now()
	must(t, o.Send("a", []byte("down")))
	if l := down.next(); string(l.data) != "down" || l.at.Before(before) {
		t.Errorf("got %q at %v, sent at %v", l.data, l.at, before)
	}
	must(t, a.Send(make([]byte, MaxMessage)))
	if l := in.next(); len(l.data) != MaxMessage {
		t.Errorf("got %d bytes", len(l.data))
	}
	sealed, err := o.Seal("a", []byte("secret"))
	must(t, err)
	if got, err := a.Open(sealed); err != nil || string(got) != "secret" {
		t.Errorf("opened %q, %v", got, err)
	}
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
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Hint, "f.b.down") {
		t.Errorf("with the permissions of another agent: %v", err)
	}
	must(t, a.link.conn.Publish("f.b.up", []byte("forged")))
	testkit.Until(t, "the log says what is denied", func() bool { return strings.Contains(log.text(), `"f.b.up"`) })
}

func TestExistingNATSFails(t *testing.T) {
	t.Parallel()
	good, _ := existing(t, nil)
	small, _ := existing(t, func(o *server.Options) { o.MaxPayload = 1000 })
	plain, _ := existing(t, func(o *server.Options) { o.TLSConfig = nil })
	wrongKey := good
	wrongKey.NKeySeedFile = filepath.Join(t.TempDir(), "seed")
	seed, err := newKeys(t).sign.Seed()
	must(t, err)
	must(t, os.WriteFile(wrongKey.NKeySeedFile, seed, 0o600))
	noCA := good
	noCA.CA = ""
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
		{"wrong key", wrongKey, "refused the credentials"},
		{"unknown authority", noCA, "unknown authority"},
		{"small messages", small, "1000 bytes only"},
		{"no TLS", plain, "the server has no TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := ConnectOperatorNATS(t.Context(), tt.n)
			if err == nil {
				o.Close()
				t.Fatal("connected")
			}
			if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret@") {
				t.Errorf("%T %v, want %q", err, err, tt.want)
			}
		})
	}
	plain.URL, plain.CA = strings.Replace(plain.URL, "tls", "nats", 1), ""
	o, err := ConnectOperatorNATS(t.Context(), plain) // loopback
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
		if got, err := tt.n.secure(); err != nil || got != tt.want {
			t.Errorf("%+v: TLS %v, %v, want %v", tt.n, got, err, tt.want)
		}
	}
}
