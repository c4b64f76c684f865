package kafka

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/test/testkit/assert"
)

// unconnectedLane returns a lane of a producer that has started and has no connections.
func unconnectedLane(ctx context.Context, t *testing.T, given ...string) *lane {
	t.Helper()
	const addr = "127.0.0.1:9092"
	cfg := configFor(t, []string{addr}, func(c *cluster.Config) { c.Logf = func(string, ...any) {} }, given...)
	p := &producer{cfg: cfg, places: make([]cluster.Place, 1), metadata: newMetadataCache(cfg), batchPool: &batchPool{}, ctx: ctx, hurry: make(chan struct{}, 1)}
	v := &view{brokers: map[int32]string{1: addr}, leaders: []int32{1}, epochs: []int32{-1}, topics: []wire.Topic{{Name: cfg.Topic}}}
	p.metadata.view.Store(v)
	s := newSender(p, 0, 0, 1)
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
		name, acks  string
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
				format := wire.ProduceFormat{Version: 7, Acks: l.s.p.cfg.Acks}
				dials := 0
				conn.Keeper[link]{
					First: conn.ReconnectFirst,
					Dial: func(context.Context) (*link, error) {
						dials++
						here, there := net.Pipe()
						go serveOnce(there, tt.open, tt.answers)
						return newLink(l, here, format, l.s.p.metadata.view.Load().topics), nil
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
