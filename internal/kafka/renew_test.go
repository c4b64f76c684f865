package kafka

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// strictLogins makes a fake cluster limit the validity of logins. It counts
// logins, and requests that come between the parts of a login, which is wrong.
func strictLogins(c *kfake.Cluster, lifetime time.Duration, refuse func(nth int64) bool) (logins, wrong *atomic.Int64) {
	logins, wrong = new(atomic.Int64), new(atomic.Int64)
	var inLogin atomic.Bool // tests have one connection to one broker
	c.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.SupportedMechanisms = []string{cluster.MechPlain}
		if refuse(logins.Add(1)) {
			resp.ErrorCode = kerr.IllegalSaslState.Code
			return resp, nil, true
		}
		inLogin.Store(true)
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		inLogin.Store(false)
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.SessionLifetimeMillis = lifetime.Milliseconds()
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if inLogin.Load() {
			wrong.Add(1)
		}
		return nil, nil, false
	})
	return logins, wrong
}

// A login that ends is renewed on the connection. No request is lost, sent twice, or sent between the parts of the login.
func TestRenewLogin(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Setenv("TEST_SECRET", "canary")
	login := []string{"sasl-mechanism=PLAIN", "user=a", "password=env:TEST_SECRET"}
	for _, tt := range []struct {
		name   string
		given  []string
		refuse bool // the second login on a connection
	}{
		{name: "acks all"},
		{name: "acks 0", given: []string{"acks=0"}},
		{name: "idempotent", given: []string{"idempotent=true"}},
		{name: "refused", refuse: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.refuse { // its connections overlap, and a busy machine would mix up their requests
				t.Parallel()
			}
			c := eventsCluster(t, 3)
			var refuse atomic.Bool
			const lifetime = 300 * time.Millisecond
			logins, wrong := strictLogins(c, lifetime, func(int64) bool { return refuse.Swap(false) })
			p := openProducer(t, c.ListenAddrs(), nil, append(login, tt.given...)...)
			first := logins.Load()
			refuse.Store(tt.refuse)
			r := newRig(t, p)
			r.events = 5
			const total = 4500
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			out := r.sendAnd(total, func(int) { <-tick.C })
			got := tally(out)
			switch {
			case len(tt.given) == 1 && tt.given[0] == "acks=0":
				assert.Equal(t, got.unknown, int(total), "%+v of %d events", got, total)
			case got.acked != int(total):
				t.Errorf("%+v of %d events, want all acked", got, total)
			}
			n := logins.Load() - first
			assert.True(t, n >= 3, "%d logins besides the first, want at least one every %v", n, lifetime)
			// Where a connection replaces another one, the requests of both come in any order.
			assert.True(t, tt.refuse || wrong.Load() == 0, "%d requests came between the parts of a login", wrong.Load())
			lost := p.Metrics()[0].Reconnects
			if want := uint64(0); tt.refuse {
				want = 1
				assert.Equal(t, lost, want, "connections ended")
			} else if lost != want {
				t.Errorf("%d connections ended, want none", lost)
			}
			assert.True(t, p.renewed.Load() != 0, "no login was renewed")
		})
	}
}

// A failingMechanism fails while a test wants it to.
type failingMechanism struct {
	sasl.Mechanism
	failing *atomic.Bool
}

func (m failingMechanism) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	if m.failing.Load() {
		return nil, nil, errors.New("the token endpoint is unreachable")
	}
	return m.Mechanism.Authenticate(ctx, host)
}

// A login that is due when a run starts delays nothing while it cannot be renewed, as long as the old one is valid.
func TestRenewLoginAtTheStart(t *testing.T) {
	t.Setenv("TEST_SECRET", "canary")
	c := eventsCluster(t, 1)
	var failing atomic.Bool
	logins, wrong := strictLogins(c, time.Hour, func(int64) bool { return false })
	p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) {
		cfg.Security.Mechanism = failingMechanism{cfg.Security.Mechanism, &failing}
	}, "sasl-mechanism=PLAIN", "user=a", "password=env:TEST_SECRET")
	first := logins.Load()
	failing.Store(true)
	due := time.Now()
	for _, s := range p.senders {
		s.mu.Lock()
		for _, l := range s.lanes {
			l.link.term.Renew = due
		}
		s.mu.Unlock()
	}
	r := newRig(t, p)
	const total = 1000
	got := tally(r.send(total))
	assert.True(t, got.acked == total, "%+v of %d events, want all acked", got, total)
	assert.Equal(t, logins.Load()-first, 0, "logins while the mechanism failed")
	failing.Store(false)
	testkit.Until(t, "a login is renewed", func() bool { return p.renewed.Load() > 0 })
	assert.Equal(t, wrong.Load(), 0, "requests between the parts of a login")
	assert.Equal(t, p.Metrics()[0].Reconnects, 0, "connections ended")
}

// A slowMechanism takes a while for the first message while a test wants that.
type slowMechanism struct {
	sasl.Mechanism
	slow *atomic.Bool
}

func (m slowMechanism) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	if m.slow.Load() {
		<-time.After(200 * time.Millisecond)
	}
	return m.Mechanism.Authenticate(ctx, host)
}

// When a renewal comes so late that the login has ended, nothing is sent before it: the broker would close the connection.
func TestRenewLoginLate(t *testing.T) {
	t.Setenv("TEST_SECRET", "canary")
	c := eventsCluster(t, 3)
	var slow atomic.Bool
	logins, wrong := strictLogins(c, time.Hour, func(int64) bool { return false })
	p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) {
		cfg.Security.Mechanism = slowMechanism{cfg.Security.Mechanism, &slow}
	}, "sasl-mechanism=PLAIN", "user=a", "password=env:TEST_SECRET")
	first := logins.Load()
	var early atomic.Int64
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if logins.Load() == first {
			early.Add(1)
		}
		return nil, nil, false
	})
	r := newRig(t, p)
	slow.Store(true)
	over := time.Now()
	for _, s := range p.senders {
		s.mu.Lock()
		for _, l := range s.lanes {
			l.link.term = cluster.LoginTerm{Renew: over, Ends: over}
		}
		s.mu.Unlock()
	}
	const total = 1000
	got := tally(r.send(total))
	assert.True(t, got.acked == total, "%+v of %d events, want all acked", got, total)
	if early.Load() > 0 || wrong.Load() > 0 || p.renewed.Load() != 1 || p.Metrics()[0].Reconnects > 0 {
		t.Errorf("%d requests after the end of the login, %d within the next, %d renewals, %d connections ended; want one renewal, and nothing else",
			early.Load(), wrong.Load(), p.renewed.Load(), p.Metrics()[0].Reconnects)
	}
}

// A real broker that limits sessions ends none of ours, neither while producing nor while consuming.
func TestRealRenewLogin(t *testing.T) {
	testkit.OnlyConformance(t, "takes half a minute: TestRenewLogin has another broker, TestRealSecurity the logins")
	// A renewal begins at least 5 % of the time before its end: one second here. Within
	// that, also a broker on a busy machine has to read what was sent before.
	c := kafkatest.Start(t, kafkatest.Config{Secure: true, Properties: map[string]string{"connections.max.reauth.ms": "20000"}})
	t.Setenv("KAFKA_RIGHT", kafkatest.Password(kafkatest.Alice))
	for _, mechanism := range []string{cluster.MechPlain, cluster.MechScram512} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			topic := c.CreateTopic(t, 2, 1)
			c.Grant(t, kafkatest.Alice, topic, "ALL")
			given := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, map[string][]string{
				"tls-ca": {c.CAFile()}, "sasl-mechanism": {mechanism}, "user": {kafkatest.Alice}, "password": {"env:KAFKA_RIGHT"},
			})
			given.Verify = true
			s := assert.Value(open(t, given))(t)
			p := s.(*session).out.(*producer)
			src := s.Source().(*wireSource)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			began := time.Now()
			var arrived atomic.Int64
			done := make(chan error, 1)
			go func() {
				done <- src.Receive(ctx, func() time.Duration { return time.Since(began) }, func(_ int, a []load.Arrival) {
					for i := range a {
						arrived.Add(int64(a[i].Events))
					}
				})
			}()
			r := newRig(t, p)
			r.events = 10
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			total := 0
			for renewed := false; !renewed && time.Since(began) < time.Minute; {
				renewed = p.renewed.Load() > 0 && src.renewed.Load() > 0 // and then once more
				const n = 1000
				total += n
				r.outcomes, r.completed = nil, map[[2]uint64]int{}
				got := tally(r.sendAnd(n, func(int) { <-tick.C }))
				assert.Must(t, got.acked == n, "%+v of %d events, want all acked", got, n)
			}
			testkit.Until(t, "all events have arrived", func() bool { return arrived.Load() >= int64(total) })
			cancel()
			<-done
			assert.Equal(t, arrived.Load(), int64(total), "events arrived")
			for name, n := range map[string]uint64{"connections ended": p.Metrics()[0].Reconnects, "fetching connections ended": src.failedConns.Load()} {
				assert.Equal(t, n, 0, "%s", name)
			}
			assert.True(t, p.renewed.Load() > 0 && src.renewed.Load() > 0,
				"logins renewed %d times while producing and %d while consuming, want once at least", p.renewed.Load(), src.renewed.Load())
		})
	}
}
