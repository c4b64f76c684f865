package standin

import (
	"context"
	"crypto/tls"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestSecurity(t *testing.T) {
	t.Parallel()
	own := testkit.NewAuthority("test")
	cert, key := own.Files(t)
	tlsOpt := kgo.DialTLSConfig(&tls.Config{RootCAs: own.Pool(), MinVersion: tls.VersionTLS12})
	mutual := kgo.DialTLSConfig(&tls.Config{RootCAs: own.Pool(), MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own.Pair()}})
	login := func(user, pass string) kgo.Opt {
		return kgo.SASL(scram.Auth{User: user, Pass: pass}.AsSha256Mechanism())
	}
	alice := []Login{{"SCRAM-SHA-256", "alice", "secret"}, {"PLAIN", "bob", "open"}}
	for _, test := range []struct {
		name string
		opts Options
		with []kgo.Opt
		ok   bool
	}{
		{"TLS", Options{TLS: standin.TLS{Cert: cert, Key: key}}, []kgo.Opt{tlsOpt}, true},
		{"TLS, discard", Options{TLS: standin.TLS{Cert: cert, Key: key}, Discard: true}, []kgo.Opt{tlsOpt}, true},
		{"TLS, plaintext client", Options{TLS: standin.TLS{Cert: cert, Key: key}}, nil, false},
		{"plaintext, TLS client", Options{}, []kgo.Opt{tlsOpt}, false},
		{"client certificate", Options{TLS: standin.TLS{Cert: cert, Key: key, ClientCA: cert}}, []kgo.Opt{mutual}, true},
		{"no client certificate", Options{TLS: standin.TLS{Cert: cert, Key: key, ClientCA: cert}}, []kgo.Opt{tlsOpt}, false},
		{"SCRAM", Options{SASL: alice}, []kgo.Opt{login("alice", "secret")}, true},
		{"PLAIN", Options{SASL: alice}, []kgo.Opt{kgo.SASL(plain.Auth{User: "bob", Pass: "open"}.AsMechanism())}, true},
		{"SCRAM over TLS", Options{SASL: alice, TLS: standin.TLS{Cert: cert, Key: key}}, []kgo.Opt{tlsOpt, login("alice", "secret")}, true},
		{"wrong password", Options{SASL: alice}, []kgo.Opt{login("alice", "guess")}, false},
		{"no login", Options{SASL: alice}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.opts.Listen, test.opts.InMemory = "127.0.0.1:0", true
			test.opts.Topics = []Topic{{"t", 1}}
			s := start(t, test.opts)
			ctx, timeout := testkit.Minute(t), time.Minute
			if !test.ok {
				timeout = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			err := client(t, s, append(test.with, kgo.RetryTimeout(timeout))...).ProduceSync(ctx, values(10)...).FirstErr()
			assert.Equal(t, (err == nil), test.ok, "got %v", err)
			want := uint64(0)
			if test.ok {
				want = 10
			}
			assert.Equal(t, s.Counts().Events, want, "counted events")
		})
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	cert, key := testkit.NewAuthority("test").Files(t)
	for _, test := range []struct {
		name string
		opts Options
	}{
		{"no such certificate", Options{TLS: standin.TLS{Cert: "/nowhere", Key: "/nowhere"}}},
		{"an invalid authority", Options{TLS: standin.TLS{Cert: cert, Key: key, ClientCA: key}}},
		{"no such address", Options{Listen: "256.0.0.1:0"}},
		{"a folder that is a file", Options{Listen: "127.0.0.1:0", DataDir: filepath.Join(cert, "data")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if s, err := Start(test.opts); err == nil {
				s.Close()
				t.Error("it started, want an error")
			}
		})
	}
}

// TestDataKept starts a broker with the data of an earlier one.
func TestDataKept(t *testing.T) {
	t.Parallel()
	opts := Options{Listen: "127.0.0.1:0", DataDir: t.TempDir()}
	s := assert.Value(Start(opts))(t)
	assert.OK(t, client(t, s).ProduceSync(testkit.Minute(t), values(100)...).FirstErr())
	assert.OK(t, s.Close())
	cl := client(t, start(t, opts), kgo.ConsumeTopics("t"))
	assert.Equal(t, len(consume(testkit.Minute(t), t, cl, 100)), 100, "records back")
}

// TestRetained produces more than may be kept and waits until the data are within
// the bound. After Close, the folder must be gone.
func TestRetained(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const retain = 4 << 20
	s := assert.Value(Start(Options{Listen: "127.0.0.1:0", Retain: retain, Topics: []Topic{{"t", 1}}}))(t)
	defer s.Close()
	assert.OK(t, bare(s.Addr(), produceFrame("t", 0, 1000, 500), 5, 64))
	got := s.Counts().Bytes
	assert.Must(t, got >= 6*retain, "produced %d bytes, too few for this test", got)
	testkit.Until(t, "no more than about what it retains is on the disk", func() bool { return used(t) <= 2*retain })
	assert.OK(t, s.Close())
	assert.Equal(t, used(t), 0, "bytes left")
}

// used is the number of bytes in the temporary folder.
func used(t *testing.T) (n int64) {
	t.Helper()
	_ = filepath.WalkDir(os.TempDir(), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // removed meanwhile
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}

// TestProduceAllocates checks that the discard broker allocates no memory for a
// request. The client is in the same process and allocates none either.
func TestProduceAllocates(t *testing.T) {
	s := start(t, Options{Listen: "127.0.0.1:0", Discard: true, Topics: []Topic{{"t", 1}}})
	frame := produceFrame("t", 0, 1000, 100)
	assert.OK(t, bare(s.Addr(), frame, 5, 100))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 2000
	assert.OK(t, bare(s.Addr(), frame, 5, n))
	runtime.ReadMemStats(&after)
	got := float64(after.Mallocs-before.Mallocs) / n
	assert.True(t, got <= 0.25, "a request allocates %.2f times, want 0 (connecting aside)", got)
}
