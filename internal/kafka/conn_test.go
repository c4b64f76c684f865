package kafka

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A badNet listens for connections and injects faults into them.
type badNet struct {
	mu    sync.Mutex
	conns map[*badConn]bool
	// readBudget returns the number of bytes after which a connection is reset; 0: never.
	readBudget func() int
	// While paused, reads block until release is closed.
	paused  atomic.Bool
	release chan struct{}
	// mangle changes answers before they are sent.
	mangle   atomic.Pointer[func([]byte) []byte]
	tinyBuf  bool
	refusing bool // resets new connections
}

type badConn struct {
	net.Conn
	n      *badNet
	budget int
}

func (c *badConn) reset() {
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Conn.Close()
}

func (c *badConn) Read(b []byte) (int, error) {
	if c.n.paused.Load() {
		<-c.n.release
	}
	if c.n.tinyBuf {
		b = b[:min(len(b), 4<<10)]
	}
	n, err := c.Conn.Read(b)
	if c.budget > 0 {
		if c.budget -= n; c.budget <= 0 {
			c.reset()
			return 0, io.ErrUnexpectedEOF
		}
	}
	return n, err
}

func (c *badConn) Write(b []byte) (int, error) {
	if m := c.n.mangle.Load(); m != nil {
		if _, err := c.Conn.Write((*m)(slices.Clone(b))); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (n *badNet) resetAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.reset()
		delete(n.conns, c)
	}
}

func (n *badNet) setRefusing(on bool) {
	n.mu.Lock()
	n.refusing = on
	n.mu.Unlock()
	if on {
		n.resetAll()
	}
}

func (n *badNet) listen() kfake.Opt {
	n.conns = map[*badConn]bool{}
	n.release = make(chan struct{})
	return kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if err != nil {
			return nil, err
		}
		return &badNetListener{l, n}, nil
	})
}

// A badNetListener is one of several listeners of a badNet.
type badNetListener struct {
	net.Listener
	n *badNet
}

func (l *badNetListener) Accept() (net.Conn, error) {
	b := l.n
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		bc := &badConn{Conn: c, n: b}
		if b.readBudget != nil {
			bc.budget = b.readBudget()
		}
		b.conns[bc] = true
		deaf := b.refusing
		b.mu.Unlock()
		if b.tinyBuf {
			c.(*net.TCPConn).SetReadBuffer(16 << 10)
		}
		if deaf {
			bc.reset()
			continue
		}
		return bc, nil
	}
}

func TestConnectionResets(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	const events = 20_000
	for _, tt := range []struct {
		name  string
		given []string
		batch int
	}{
		{"acks 1", nil, 100},
		{"idempotent", idempotent, 100},
		{"idempotent, full batches", append(slices.Clone(idempotent), "batch-size=64KiB"), 0},
		{"idempotent, zstd", append(slices.Clone(idempotent), "compression=zstd"), 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(3, 4))
			n := &badNet{}
			c := eventsCluster(t, 3, kfake.NumBrokers(2), n.listen())
			p := openProducer(t, c.ListenAddrs(), withStamps, tt.given...)
			n.mu.Lock()
			n.readBudget = func() int { return 1 + rnd.IntN(200_000) }
			n.mu.Unlock()
			r := newRig(t, p)
			r.events = tt.batch
			resets := 0
			out := r.sendAnd(events, func(fired int) {
				if fired > resets*events/10 {
					resets++
					n.resetAll()
				}
			})
			n.mu.Lock()
			n.readBudget = nil
			n.mu.Unlock()
			got := tally(out)
			ends := 0
			for _, e := range endOffsets(t, c.ListenAddrs()) {
				ends += int(e)
			}
			assert.True(t, got.failed <= 0, "got %+v", got)
			if tt.given == nil {
				assert.True(t, got.unknown != 0, "got %+v: no connection broke", got)
				checkAtMostOnce(t, p, out, readBack(t, c.ListenAddrs(), ends))
				return
			}
			assert.True(t, got.acked == events && got.retries != 0, "got %+v", got)
			if strings.Contains(tt.name, "zstd") {
				readBack(t, c.ListenAddrs(), events) // compressed events have no stamps
				return
			}
			checkInOrder(t, p, readBack(t, c.ListenAddrs(), events), events)
		})
	}
}

// While a broker is unavailable for a while, events wait, and arrive afterwards.
func TestBrokerAwayAndBack(t *testing.T) {
	t.Parallel()
	n := &badNet{}
	c := eventsCluster(t, 2, n.listen())
	p := openProducer(t, c.ListenAddrs(), withStamps, idempotent...)
	r := newRig(t, p)
	r.events = 10
	gone := false
	out := r.sendAnd(2000, func(fired int) {
		if fired > 1000 && !gone {
			gone = true
			n.setRefusing(true)
			time.AfterFunc(300*time.Millisecond, func() { n.setRefusing(false) })
		}
	})
	got := tally(out)
	assert.Must(t, got.acked == 2000, "got %+v", got)
	checkInOrder(t, p, readBack(t, c.ListenAddrs(), 2000), 2000)
	m := p.Metrics()
	assert.True(t, m[0].Reconnects > 0, "no reconnects: %+v", m)
}

// When a broker disappears permanently and another takes over, the batches that the
// engine had queued at its lane go to the other.
func TestBrokerReplaced(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, given := range [][]string{nil, idempotent} {
		t.Run(strings.Join(given, " "), func(t *testing.T) {
			t.Parallel()
			n := &badNet{}
			c := eventsCluster(t, 4, kfake.NumBrokers(2), n.listen())
			p := openProducer(t, c.ListenAddrs(), withStamps, given...)
			// Both brokers lead partitions, and then one disappears.
			for part := range int32(4) {
				assert.OK(t, c.MoveTopicPartition("events", part, part%2))
			}
			run := assert.Value(load.New(load.Plan{Schedule: load.Constant(5000), Linger: time.Millisecond, Measurement: load.Limits{Time: 2 * time.Second}}, p))(t)
			replaced := make(chan struct{})
			time.AfterFunc(300*time.Millisecond, func() {
				n.setRefusing(true)
				time.AfterFunc(300*time.Millisecond, func() {
					defer close(replaced)
					err := c.RemoveNode(1)
					assert.True(t, err == nil, "%v", err)
					n.setRefusing(false)
				})
			})
			run.Start()
			res := assert.Value(run.Wait())(t)
			<-replaced
			h := res.Measurement.Counts
			assert.True(t, h.Unsent == 0 && h.Failed == 0 && h.Acked+h.Unknown == 10_000, "%+v", h)
			assert.True(t, given == nil || h.Acked == 10_000, "%+v", h)
		})
	}
}

func TestSlowReader(t *testing.T) {
	t.Parallel()
	const events = 5000
	n := &badNet{tinyBuf: true}
	c := eventsCluster(t, 2, n.listen())
	for _, given := range [][]string{nil, {"send-buffer=16KiB"}} {
		p := openProducer(t, c.ListenAddrs(), nil, given...)
		out := newRig(t, p).send(events)
		got, want := tally(out), (tallies{acked: events})
		assert.Must(t, got == want, "got %+v, want %+v", got, want)
	}
	readBack(t, c.ListenAddrs(), 2*events)
}

// While a broker does not read, batches wait behind the full socket because of the
// tested system: Free is raised to the time when bytes could be written again.
func TestBackpressureCountsForTheSystem(t *testing.T) {
	t.Parallel()
	n := &badNet{}
	c := eventsCluster(t, 1, n.listen())
	p := openProducer(t, c.ListenAddrs(), nil, "send-buffer=16KiB", "batch-size=32KiB")
	r := newRig(t, p)
	r.limit = 300
	n.paused.Store(true)
	var again atomic.Int64 // when the broker reads again: some time after the socket became full
	go func() {
		defer close(n.release)
		defer n.paused.Store(false)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for full := 0; full < 20 && r.Now() < 50*time.Second; <-tick.C {
			if strings.Contains(strings.Join(p.Pending(), "\n"), "because the socket is full") {
				full++
			}
		}
		again.Store(int64(r.Now()))
	}()
	out := r.send(60_000)
	raised := 0
	for _, o := range out {
		assert.True(t, o.Free <= o.Sent, "free at %v, but sent at %v, before that", o.Free, o.Sent)
		if o.Free >= time.Duration(again.Load()) {
			raised++
		}
	}
	assert.True(t, raised != 0, "no batch waited behind the full socket")
}

// A batch that is never answered ends as unknown: after the request timeout, or if it is
// idempotent, after the delivery timeout and several attempts.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		limit   time.Duration // a stall of the machine must leave time for a retry
		given   []string
		retries bool
	}{
		{"plain", 2 * time.Second, []string{"request-timeout=2s"}, false},
		{"idempotent", 5 * time.Second, append(slices.Clone(idempotent), "request-timeout=1s", "delivery-timeout=5s"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := eventsCluster(t, 1)
			c.ControlKey(wire.ProduceKey, func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				return nil, nil, true // handled, and never answered
			})
			out := newRig(t, openProducer(t, c.ListenAddrs(), nil, tt.given...)).send(5)
			got := tally(out)
			assert.Must(t, got.unknown == 5 && (got.retries > 0) == tt.retries, "got %+v, want 5 unknown", got)
			assert.True(t, out[0].Class == load.Timeout && out[0].Done >= tt.limit, "%+v", out[0])
		})
	}
}

// A topic that is deleted and created again has another id.
func TestTopicCreatedAgain(t *testing.T) {
	t.Parallel()
	for _, given := range [][]string{nil, idempotent} {
		t.Run(strings.Join(given, " "), func(t *testing.T) {
			c := eventsCluster(t, 2)
			p := openProducer(t, c.ListenAddrs(), withStamps, given...)
			cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...)))(t)
			defer cl.Close()
			adm := kadm.NewClient(cl)
			r := newRig(t, p)
			got := tally(r.send(100))
			assert.Must(t, got.acked == 100, "got %+v", got)
			assert.Value(adm.DeleteTopic(t.Context(), "events"))(t)
			assert.Value(adm.CreateTopic(t.Context(), 2, 1, nil, "events"))(t)
			r.outcomes, r.completed = nil, map[[2]uint64]int{}
			got = tally(r.send(100))
			assert.Must(t, got.acked == 100 && got.retries != 0, "after the topic was created again: %+v", got)
			readBack(t, c.ListenAddrs(), 100)
		})
	}
}

func TestThrottleIsHonoured(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 1)
	first := true
	c.ControlKey(wire.ProduceKey, func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if !first {
			return nil, nil, false
		}
		first = false
		return answerAll(kreq.(*kmsg.ProduceRequest), 0, 200), nil, true
	})
	p := openProducer(t, c.ListenAddrs(), nil)
	r := newRig(t, p)
	r.limit, r.events = 1, 1
	out := r.send(2)
	wait := out[1].Sent - out[0].Done
	assert.True(t, wait >= 200*time.Millisecond, "sent %v after being asked to wait 200 ms", wait)
	m := p.Metrics()[0]
	assert.True(t, m.Throttled == 1 && m.Throttle == 200*time.Millisecond, "metrics %+v", m)
}

// Answers that violate the protocol end the connection. Their batches are completed as protocol errors.
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		mangle func([]byte) []byte
		text   string
	}{
		{"another correlation", func(b []byte) []byte { b[7] += 3; return b }, "where 1 was expected"},
		{"a huge size", func(b []byte) []byte { b[0] = 0x7f; return b }, "length does not fit"},
		{"cut short inside", func(b []byte) []byte { b[3] -= 4; return b[:len(b)-4] }, "truncated"},
		{"another protocol", func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n") }, "length does not fit"},
		{"twice", func(b []byte) []byte { return append(b, b...) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &badNet{}
			c := eventsCluster(t, 1, n.listen())
			p := openProducer(t, c.ListenAddrs(), nil)
			n.mangle.Store(&tt.mangle)
			out := newRig(t, p).send(1)
			o := out[0]
			if tt.text == "" { // the first answer was right; the second one hits no batch
				assert.Equal(t, o.Acked, 1, "%+v", o)
				return
			}
			assert.True(t, o.Unknown == 1 && o.Class == load.Protocol && strings.Contains(o.Text, tt.text),
				"class %v, text %q", o.Class, o.Text)
		})
	}
}

func TestViewOfMetadata(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 4, kfake.NumBrokers(2))
	b := newMetadataCache(configFor(t, c.ListenAddrs(), nil))
	defer b.disconnect()
	v := assert.Value(b.fetch(context.Background()))(t)
	assert.True(t, len(v.leaders) == 4 && len(v.brokers) == 2 && v.hasIDs(), "%+v", v)
	b.changed = func(*view) {}
	b.update(v)
	to := 1 - v.leaders[2]
	b.updateLeader(2, to, v.epochs[2]+1)
	assert.Equal(t, b.view.Load().leaders[2], to, "leader")
	// A view that was fetched before is older.
	b.update(v)
	assert.Equal(t, b.view.Load().leaders[2], to, "leader, after an older view")
	b.updateLeader(2, 99, v.epochs[2]+9) // an unknown broker
	assert.Equal(t, b.view.Load().leaders[2], to, "leader")
	other := configFor(t, c.ListenAddrs(), func(c *cluster.Config) { c.SetTopic("no-such-topic") })
	_, err := newProducer(context.Background(), other, nil)
	assert.ErrorHas(t, err, fmt.Sprint(kerr.UnknownTopicOrPartition.Message))
}
