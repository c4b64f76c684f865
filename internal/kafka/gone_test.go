package kafka

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// After a broker or a leader disappears permanently, a run of a number of events ends
// soon after the timeout of one batch: the timeouts do not add up.
func TestGonePermanently(t *testing.T) {
	t.Parallel()
	const (
		timeout = 1500 * time.Millisecond
		events  = 10_000 // 500 batches a partition, 5 at a time: added up, the timeouts take longer than a rig waits
	)
	for _, tt := range []struct {
		name       string
		idempotent bool
		leader     bool // only the leader is gone
	}{
		{"a broker", false, false},
		{"a broker, idempotent", true, false},
		{"a leader", false, true},
		{"a leader, idempotent", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := eventsCluster(t, 2)
			p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) {
				cfg.RequestTimeout, cfg.DeliveryTimeout = timeout, timeout
				if tt.idempotent {
					cfg.RequestTimeout = time.Minute // the other limit decides
				}
			}, fmt.Sprintf("idempotent=%v", tt.idempotent))
			r := newRig(t, p)
			r.events = 10
			gone := false
			out := r.sendAnd(events, func(fired int) {
				if gone || fired < events/10 {
					return
				}
				gone = true
				if !tt.leader {
					c.Close()
					return
				}
				v := *p.metadata.view.Load()
				v.leaders = []int32{noLeader, v.leaders[1]}
				p.senders[0].update(&v)
			})
			if got := strings.Join(p.absent.Warnings(), "\n"); tt.leader == strings.Contains(got, "connecting to ") {
				t.Errorf("warnings in the report: %q", got)
			}
			got := tally(out)
			assert.True(t, got.failed >= events*4/10 && got.acked != 0, "%+v of %d events", got, events)
			for _, o := range out {
				assert.Must(t, (o.Failed <= 0 || o.Class != load.OK) && (o.Failed <= 0 || o.Text != ""), "failed without a reason: %+v", o)
			}
		})
	}
}

// When a leader comes back after batches failed, its lane serves the partition again.
func TestLeaderComesBack(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 2)
	p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) { cfg.RequestTimeout = time.Second })
	q := &readySink{countSink: countSink{start: time.Now(), completed: make(chan int, 10)}, ready: make(chan int, 10)}
	p.Start(q)
	before := p.Route(0)
	v := *p.metadata.view.Load()
	with := v.leaders
	v.leaders = []int32{noLeader, with[1]}
	p.senders[0].update(&v)
	assert.Equal(t, <-q.ready, -1, "Ready()")
	l := p.Route(0)
	assert.True(t, l != nil && l != before, "lane %v serves a partition that had no leader for a long time", l)
	v.leaders = with
	p.senders[0].update(&v)
	assert.Equal(t, p.Route(0), before, "lane")
	for _, m := range p.Metrics() {
		assert.True(t, m.Broker >= 0, "metrics of a broker that does not exist: %+v", m)
	}
}

// The time for which a batch waits for a connection or a leader is the system's, not the generator's
// lateness: the batch is free when it can be written.
func TestWaitingIsTheSystems(t *testing.T) {
	t.Parallel()
	for _, given := range [][]string{nil, idempotent} {
		for _, leader := range []bool{false, true} {
			t.Run(name(given, leader), func(t *testing.T) {
				t.Parallel()
				n := &badNet{}
				c := eventsCluster(t, 1, n.listen())
				p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) { cfg.Logf = func(string, ...any) {} }, given...)
				r := newRig(t, p)
				s := p.senders[0]
				l := s.lanes[0]
				v := *p.metadata.view.Load()
				assert.Must(t, l.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}) == 1,
					"not taken")
				if leader {
					away := v
					away.leaders = []int32{noLeader}
					s.update(&away)
				} else {
					n.setRefusing(true)
					testkit.Until(t, "the connection is lost", func() bool {
						s.mu.Lock()
						defer s.mu.Unlock()
						return l.link == nil
					})
				}
				l.Flush()
				back := r.Now()
				if leader {
					s.update(&v)
				} else {
					n.setRefusing(false)
				}
				o := r.awaitCompleted(1)[0]
				assert.Equal(t, o.Acked, 1, "acked, with the error %q", o.Text)
				assert.True(t, o.Free >= back && o.Free <= o.Sent, "it could be written from %v on and was sent at %v, but counts as free at %v", back, o.Sent, o.Free)
			})
		}
	}
}

func name(given []string, leader bool) string {
	text := "no connection"
	if leader {
		text = "no leader"
	}
	if given != nil {
		text += ", idempotent"
	}
	return text
}

// The same for reads of records by their places.
func TestWaitingReadsAreTheSystems(t *testing.T) {
	t.Parallel()
	n := &badNet{}
	c := filled(t, 1, 10, 10, n.listen())
	s := spec(t, fakeURL(c.ListenAddrs()), nil)
	s.Op, s.Clients = cluster.OpRead, 1
	s.Logf = func(string, ...any) {}
	sess := assert.Value(open(t, s))(t)
	reader := sess.Target().(*itemReader)
	sink := &firstOutcome{start: time.Now(), came: make(chan load.Outcome, 1)}
	reader.Start(sink)
	client := reader.clients[0]
	n.setRefusing(true)
	assert.Must(t, client.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}) == 1,
		"not taken")
	client.Flush()
	testkit.Until(t, "no connection can be made", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return client.live[0].err != nil
	})
	back := sink.Now()
	n.setRefusing(false)
	o := <-sink.came
	assert.Equal(t, o.Acked, 1, "read, with the error %q", o.Text)
	assert.True(t, o.Free >= back && o.Free <= o.Sent, "it could be written from %v on and was sent at %v, but counts as free at %v", back, o.Sent, o.Free)
}

// A firstOutcome is a sink for one outcome.
type firstOutcome struct {
	start time.Time
	came  chan load.Outcome
}

func (s *firstOutcome) Now() time.Duration          { return time.Since(s.start) }
func (s *firstOutcome) Complete(out []load.Outcome) { s.came <- out[0] }
func (*firstOutcome) Ready(int, time.Duration)      {}

// unconnectedLane returns a lane of a producer that has started and has no connections.
func unconnectedLane(ctx context.Context, t *testing.T, given ...string) *lane {
	t.Helper()
	const addr = "127.0.0.1:9092"
	cfg := configFor(t, []string{addr}, func(c *cluster.Config) { c.Logf = func(string, ...any) {} }, given...)
	p := &producer{cfg: cfg, metadata: newMetadataCache(cfg), batchPool: &batchPool{}, ctx: ctx, hurry: make(chan struct{}, 1)}
	v := &view{brokers: map[int32]string{1: addr}, leaders: []int32{1}, epochs: []int32{-1}}
	p.metadata.view.Store(v)
	s := newSender(p, 0, 1)
	p.senders = []*sender{s}
	p.sink, p.startTime = &countSink{start: time.Now()}, time.Now()
	s.learn(v)
	return s.lanes[0]
}

// A broker that closes its connections is asked for another one at once only if it was of
// use, or was open for long: otherwise the lane pauses, longer each time.
func TestReconnectPauses(t *testing.T) {
	t.Parallel()
	const (
		lasts = 30 * time.Second
		open  = time.Millisecond            // how long a connection is open
		long  = conn.ReconnectMost + open   // how long it is if that shows that it was of use
		each  = int(lasts/long) + 1         // connections without a pause, if each is open for long
		short = conn.ReconnectMost - 2*open // how long it is if it may have been of no use
	)
	for _, tt := range []struct {
		name        string
		acks        string
		open        time.Duration
		asks        bool // the lane sends a request on each connection
		answers     bool // and the broker answers it
		least, most int  // connections
	}{
		{"closed at once", "1", open, false, false, 26, 44},
		{"closed after a request", "1", open, true, false, 26, 44},
		{"closed after an answer", "1", open, true, true, int(lasts/open) / 2, int(lasts/open) + 1},
		{"idle, closed after long", "1", long, false, false, each, each},
		{"idle, closed before", "1", short, false, false, 14, each - 2},
		{"closed long after a request", "1", long, true, false, each, each},
		{"without acks, closed at once", "0", open, false, false, 26, 44},
		{"without acks, closed after a request", "0", open, true, false, 450, 750},
		{"without acks, closed long after a request", "0", long, true, false, each, each},
		{"without acks, idle, closed after long", "0", long, false, false, each, each},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), lasts)
				defer cancel()
				l := unconnectedLane(ctx, t, "acks="+tt.acks)
				format := wire.ProduceFormat{Version: 7, Topic: l.s.p.cfg.Topic, Acks: l.s.p.cfg.Acks}
				dials := 0
				conn.Keeper[link]{
					First: conn.ReconnectFirst,
					Dial: func(context.Context) (*link, error) {
						dials++
						here, there := net.Pipe()
						go serveOnce(there, tt.open, tt.answers)
						return newLink(l, here, format), nil
					},
					Failed: l.down,
					Serve: func(k *link) conn.Next {
						if tt.asks {
							go k.exchange(kmsg.NewPtrSASLHandshakeRequest())
						}
						return l.serve(k)
					},
				}.Run(ctx, nil)
				assert.True(t, dials >= tt.least && dials <= tt.most,
					"%d connections in %v, want %d to %d", dials, lasts, tt.least, tt.most)
			})
		})
	}
}

// serveOnce reads what comes for a time, answers the first request if it shall, and closes the connection.
func serveOnce(nc net.Conn, open time.Duration, answers bool) {
	time.AfterFunc(open, func() { nc.Close() })
	var head [12]byte
	if _, err := io.ReadFull(nc, head[:]); err == nil && answers {
		answer := append([]byte{0, 0, 0, 10}, head[8:12]...) // its correlation id
		_, _ = nc.Write(append(answer, make([]byte, 6)...))  // no error, no mechanisms
	}
	_, _ = io.Copy(io.Discard, nc)
}

// The same for a reader of single records: only an answer to a request of it, or a long time, shows that
// a connection was of use.
func TestReadLinkPauses(t *testing.T) {
	t.Parallel()
	const (
		lasts = 30 * time.Second
		open  = time.Millisecond
	)
	for _, tt := range []struct {
		name        string
		open        time.Duration
		answers     bool
		least, most int // connections
	}{
		{"closed at once", open, false, 26, 44},
		{"closed after an answer", open, true, 450, 750},
		{"closed after long", conn.ReconnectMost + open, false, 26, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), lasts)
				defer cancel()
				lost := 0
				cfg := configFor(t, []string{"127.0.0.1:9092"}, func(c *cluster.Config) {
					c.Logf = func(string, ...any) {}
					c.Happened = func(string, time.Time, time.Duration) { lost++ }
				})
				r := &itemReader{cfg: cfg, metadata: newMetadataCache(cfg), ctx: ctx, hurry: make(chan struct{}, 1), sink: &countSink{start: time.Now()}}
				c := &readClient{r: r, links: map[int32]*readLink{}}
				k := newReadLink(c, 1)
				c.links[1], r.clients = k, []*readClient{c}
				dials := 0
				conn.Keeper[readLink]{
					First: conn.ReconnectFirst,
					Dial: func(context.Context) (*readLink, error) {
						dials++
						here, there := net.Pipe()
						go serveOnce(there, tt.open, false)
						k.answered = 0
						if tt.answers {
							k.answered = 1
						}
						c.mu.Lock()
						k.conn = here
						c.mu.Unlock()
						n, known := r.Connected()
						assert.True(t, n == 1 && known, "%d connections, %t; want 1", n, known)
						return k, nil
					},
					Failed: k.giveUp,
					Serve:  k.use,
				}.Run(ctx, nil)
				assert.True(t, dials >= tt.least && dials <= tt.most,
					"%d connections in %v, want %d to %d", dials, lasts, tt.least, tt.most)
				assert.True(t, lost >= dials-1 && int(r.lost.Load()) == lost,
					"%d of %d connections were lost, and %d are counted", lost, dials, r.lost.Load())
				n, _ := r.Connected()
				assert.True(t, n == 0, "%d connections at the end, want 0", n)
			})
		})
	}
}
