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

	"carronade/internal/kafkatest"
	"carronade/load"
)

// strictly makes a fake cluster take logins for some time only, and whatever
// comes between a handshake and its end as a fault. It counts logins, and what
// was said out of turn.
func strictly(c *kfake.Cluster, lifetime time.Duration, refuse func(nth int64) bool) (logins, wrong *atomic.Int64) {
	logins, wrong = new(atomic.Int64), new(atomic.Int64)
	var shaking atomic.Bool // one connection to one broker is what tests have
	c.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.SupportedMechanisms = []string{mechPlain}
		if refuse(logins.Add(1)) {
			resp.ErrorCode = kerr.IllegalSaslState.Code
			return resp, nil, true
		}
		shaking.Store(true)
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		shaking.Store(false)
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.SessionLifetimeMillis = lifetime.Milliseconds()
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if shaking.Load() {
			wrong.Add(1)
		}
		return nil, nil, false
	})
	return logins, wrong
}

// A login that ends is renewed on the connection, and nothing is lost, said
// twice, or between its parts.
func TestRenewLogin(t *testing.T) {
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
			c := fake(t, 3)
			var refuse atomic.Bool
			const lifetime = 300 * time.Millisecond
			logins, wrong := strictly(c, lifetime, func(int64) bool { return refuse.Swap(false) })
			p := opened(t, c.ListenAddrs(), nil, append(login, tt.given...)...)
			first := logins.Load()
			refuse.Store(tt.refuse)
			r := newRig(t, p)
			r.events = 5
			const total = 4500
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			out := r.fireAnd(total, func(int) { <-tick.C })
			got := tally(out)
			switch {
			case len(tt.given) == 1 && tt.given[0] == "acks=0":
				if got.unknown != int(total) {
					t.Errorf("%+v of %d events", got, total)
				}
			case got.acked != int(total):
				t.Errorf("%+v of %d events, want all acked", got, total)
			}
			if n := logins.Load() - first; n < 3 {
				t.Errorf("%d logins besides the first, want one every %v at least", n, lifetime)
			}
			if wrong.Load() > 0 {
				t.Errorf("%d requests came between the parts of a login", wrong.Load())
			}
			lost := p.Metrics()[0].Reconnects
			if want := uint64(0); tt.refuse {
				want = 1
				if lost != want {
					t.Errorf("%d connections ended, want the one whose login was refused", lost)
				}
			} else if lost != want {
				t.Errorf("%d connections ended, want none", lost)
			}
			if p.renewed.Load() == 0 {
				t.Error("no login was renewed")
			}
		})
	}
}

// A moody mechanism has nothing to say while a test wants it so.
type moody struct {
	sasl.Mechanism
	silent *atomic.Bool
}

func (m moody) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	if m.silent.Load() {
		return nil, nil, errors.New("the token's server is away")
	}
	return m.Mechanism.Authenticate(ctx, host)
}

// A login that is due when a run starts holds nothing up while what it takes to
// renew it cannot be had, as long as the old one is good.
func TestRenewLoginAtTheStart(t *testing.T) {
	t.Setenv("TEST_SECRET", "canary")
	c := fake(t, 1)
	var silent atomic.Bool
	logins, wrong := strictly(c, time.Hour, func(int64) bool { return false })
	p := opened(t, c.ListenAddrs(), func(cfg *config) {
		cfg.security.mechanism = moody{cfg.security.mechanism, &silent}
	}, "sasl-mechanism=PLAIN", "user=a", "password=env:TEST_SECRET")
	first := logins.Load()
	silent.Store(true)
	due := time.Now()
	for _, s := range p.senders {
		s.mu.Lock()
		for _, l := range s.lanes {
			l.link.term.renew = due
		}
		s.mu.Unlock()
	}
	r := newRig(t, p)
	const total = 1000
	if got := tally(r.fire(total)); got.acked != total {
		t.Errorf("%+v of %d events, want all acked", got, total)
	}
	if n := logins.Load() - first; n != 0 {
		t.Errorf("%d logins while there was nothing to say, want none", n)
	}
	silent.Store(false)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); p.renewed.Load() == 0 && time.Now().Before(deadline); {
		<-tick.C
	}
	if p.renewed.Load() == 0 || wrong.Load() > 0 {
		t.Errorf("%d logins were renewed with %d requests between their parts, want one and none", p.renewed.Load(), wrong.Load())
	}
	if lost := p.Metrics()[0].Reconnects; lost != 0 {
		t.Errorf("%d connections ended, want none", lost)
	}
}

// A real broker that ends sessions does not end ours, while firing and while
// reading.
func TestRealRenewLogin(t *testing.T) {
	needsKafka(t)
	c := kafkatest.Start(t, kafkatest.Config{Secure: true, Properties: map[string]string{"connections.max.reauth.ms": "1500"}})
	t.Setenv("KAFKA_RIGHT", kafkatest.Password(kafkatest.Alice))
	for _, mechanism := range []string{mechPlain, mechScram512} {
		t.Run(mechanism, func(t *testing.T) {
			topic := c.CreateTopic(t, 2, 1)
			c.Grant(t, kafkatest.Alice, topic, "ALL")
			given := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, map[string][]string{
				"tls-ca": {c.CAFile()}, "sasl-mechanism": {mechanism}, "user": {kafkatest.Alice}, "password": {"env:KAFKA_RIGHT"},
			})
			given.Verify = true
			s, err := open(t, given)
			if err != nil {
				t.Fatal(err)
			}
			p := s.(*session).out.(wireFiring).producer
			src := s.Source().(*wireSource)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			began := time.Now()
			var arrived atomic.Int64
			over := make(chan error, 1)
			go func() {
				over <- src.Receive(ctx, func() time.Duration { return time.Since(began) }, func(_ int, a []load.Arrival) {
					for i := range a {
						arrived.Add(int64(a[i].Events))
					}
				})
			}()
			r := newRig(t, p)
			r.events = 10
			const total = 12_000
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			out := r.fireAnd(total, func(int) { <-tick.C })
			if got := tally(out); got.acked != int(total) {
				t.Errorf("%+v of %d events, want all acked", got, total)
			}
			deadline := time.Now().Add(10 * time.Second)
			for arrived.Load() < int64(total) && time.Now().Before(deadline) {
				<-tick.C
			}
			cancel()
			<-over
			if got := arrived.Load(); got != int64(total) {
				t.Errorf("%d events arrived, want %d", got, total)
			}
			for name, n := range map[string]uint64{"connections ended": p.Metrics()[0].Reconnects, "fetching connections ended": src.reconnect.Load()} {
				if n != 0 {
					t.Errorf("%d %s, want none", n, name)
				}
			}
			if p.renewed.Load() < 3 || src.renewed.Load() < 3 {
				t.Errorf("logins renewed %d times while firing and %d while reading, want 3 at least", p.renewed.Load(), src.renewed.Load())
			}
		})
	}
}
