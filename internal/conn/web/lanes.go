package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/load"
	"carronade/measure"
)

// A Request is ready to be written: its head and its body in one piece. A batch in flight borrows it.
type Request interface {
	Bytes() []byte
	Plain() int64 // bytes of the body before compression
	// Release gives it back when neither a batch nor a write uses it.
	Release()
}

// A Source prepares the requests of a stream.
type Source interface {
	// Room returns how many events the request has left that contains an event of the stream.
	Room(first uint64) int
	// Prepare returns the request with these events, with times up to the given one.
	Prepare(first uint64, events int, at time.Time) (Request, error)
	// Plain is the size before compression of what Prepare would return.
	Plain(first uint64, events int) int64
}

// A Runner is a lane as Lanes uses it.
type Runner interface {
	load.Lane
	// Run starts the lane, until the context ends.
	Run(ctx context.Context)
	// Count returns the server that it sends to, and what it did so far.
	Count() (base string, m Metrics)
}

// Metrics count what a lane did.
type Metrics struct {
	Requests, Events, Bytes, Wire, Reconnects uint64
	Paused                                    time.Duration
	Throttled                                 uint64
}

// Options are what the lanes of a session have in common.
type Options struct {
	Dialer     conn.Dialer
	Bases      []string // host:port; lanes use them in turn
	Clients    int      // lanes of all generators together
	Portion    load.Portion
	Depth      int  // requests in flight on each lane
	Pollable   bool // sending threads may wait for answers of these lanes themselves
	Counted    bool // the lanes know their connections
	Scheduled  bool // events have due times
	Sticky     bool // a lane sends only its own requests
	RetryAfter bool // obey a server that asks to wait
	Timeout    time.Duration
	Redactor   *Redactor
	Happened   func(name string, began time.Time, length time.Duration) // see protocol.Spec
	// Evaluate says what became of the events of a batch. body is the beginning of the answer's body, or
	// all of it (whole).
	Evaluate func(status int, body []byte, whole bool, events int32) Verdict
}

// Lanes are the connections of a session. They implement load.Target, except for its Partitioner.
type Lanes struct {
	Options
	All      []Runner
	Failures conn.ConnectFailures // of connecting, during the run

	Sink    load.Sink
	Wall    time.Time // when the run started
	Written atomic.Uint64
	Read    atomic.Uint64

	ctx       context.Context // of the lanes' goroutines
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	pollers   socket.Pollers // of plaintext connections
	connected atomic.Int32   // lanes that have a connection
	withheld  atomic.Uint64  // events of a corpus that were not sent
}

// ErrRemainder is the error of a source for events that no request of a corpus has.
var ErrRemainder = errors.New("a remainder of the corpus")

// withholds notes a batch that is withheld because no request of a corpus has its events (see load.Batch). err is why
// it cannot be made.
func (s *Lanes) withholds(b *load.Batch, err error) bool {
	if b.Attempt > 0 || !errors.Is(err, ErrRemainder) {
		return false
	}
	s.withheld.Add(uint64(b.Events))
	return true
}

// Warnings say what was not sent, and which connections could not be made.
func (s *Lanes) Warnings() (list []string) {
	if n := s.withheld.Load(); n > 0 {
		list = append(list, fmt.Sprintf("%d events were not sent, because no recorded request can be cut to the rest of the --count or of a phase; with a count that is a multiple of the requests' events all are sent", n))
	}
	return append(list, s.Failures.Warnings()...)
}

// Init prepares them. They end with Close.
func (s *Lanes) Init(o Options) {
	s.Options = o
	s.ctx, s.cancel = context.WithCancel(context.Background())
}

// Base is the server of a lane.
func (o *Options) Base(lane int) string { return o.Bases[lane%len(o.Bases)] }

// Own returns the numbers of the lanes that this process connects.
func (o *Options) Own() (own []int) {
	for i := range o.Clients {
		if o.Portion.Has(i) {
			own = append(own, i)
		}
	}
	return own
}

// Connect makes lanes of HTTP/1.1 and their first connections. explain adds to an error of connecting.
func (s *Lanes) Connect(ctx context.Context, sources []Source, explain func(lane int, err error) error) error {
	own := s.Own()
	conns, err := s.Dial(ctx, own, explain)
	for k, i := range own { // also after an error: Close closes those that were made
		l := &lane{State: State{S: s, Num: i, Server: s.Base(i)}, sources: sources, first: conns[k]}
		l.Accepts = l.accepts
		s.All = append(s.All, l)
	}
	return err
}

// Dial makes connections for lanes. After an error some of them may be nil.
func (s *Lanes) Dial(ctx context.Context, own []int, explain func(lane int, err error) error) ([]net.Conn, error) {
	conns := make([]net.Conn, len(own))
	err := conn.DialMany(ctx, len(own), func(ctx context.Context, k int) error {
		nc, err := s.Dialer.Dial(ctx, s.Base(own[k]))
		if err != nil {
			return explain(own[k], err)
		}
		conns[k] = nc
		return nil
	})
	return conns, err
}

// Close ends all connections.
func (s *Lanes) Close() {
	s.cancel()
	for _, l := range s.All {
		l.Close()
		if l, ok := l.(*lane); ok && l.first != nil {
			l.first.Close()
		}
	}
	s.tasks.Wait()
}

// Go runs a task of a lane, which Close waits for.
func (s *Lanes) Go(task func()) { s.tasks.Go(task) }

// Poller returns the poller that reads a lane's connection; nil: a goroutine does.
func (s *Lanes) Poller(lane int) *socket.Poller { return s.pollers.Of(lane) }

// Note notes that a lane has a connection now, or has lost it.
func (s *Lanes) Note(connected int32) { s.connected.Add(connected) }

// Alone reports whether a lane without a connection must fail its batches: no other can send them.
func (s *Lanes) Alone() bool { return s.connected.Load() == 0 || !s.Shares() }

// Method says how sending threads wait.
func (s *Lanes) Method() string { return s.pollers.Method() }

// Client implements load.Target.
func (s *Lanes) Client(stream int32) int { return int(stream) }

// Clients implements load.Target.
func (s *Lanes) Clients() int { return s.Options.Clients }

// Connected counts the connections at the moment. net/http does not say which connections it has.
func (s *Lanes) Connected() (n int, known bool) { return int(s.connected.Load()), s.Counted }

// Connections counts those of a start.
func (s *Lanes) Connections() int { return len(s.All) }

// Route implements load.Target.
func (s *Lanes) Route(stream int32) load.Lane { return s.All[int(stream)-s.Portion.From] }

// Wire implements load.Target: bytes of HTTP, before TLS.
func (s *Lanes) Wire() (written, read uint64) { return s.Written.Load(), s.Read.Load() }

// Start implements load.Target.
func (s *Lanes) Start(sink load.Sink) {
	s.Sink = sink
	s.Wall = time.Now().Add(-sink.Now())
	for _, l := range s.All {
		l.Run(s.ctx)
	}
}

// Shares reports whether events need no order. It is false with several servers, since the head
// of a request names its server, and over TLS or without pollers, where a body
// may still be in use by a write when its answer comes.
func (s *Lanes) Shares() bool {
	return s.Scheduled && !s.Sticky && len(s.Bases) == 1 && (!s.Counted || s.Polls())
}

// TargetCapabilities are those of the session's target, which is the poller.
func (s *Lanes) TargetCapabilities(poller load.Poller) load.TargetCapabilities {
	return load.TargetCapabilities{Shares: s.Shares(), Connections: s.Connections, Connected: s.Connected, Poller: poller}
}

// Poll implements load.Poller: with plaintext connections, the sending threads
// wait for the answers themselves.
func (s *Lanes) Poll(t, of int) load.PollWaiter {
	if !s.Polls() {
		return nil
	}
	if w := s.pollers.Make(t, of, func() time.Duration { return s.Sink.Now() }, !s.Scheduled); w != nil {
		return w
	}
	return nil
}

// Polls reports whether sending threads may wait in pollers.
func (s *Lanes) Polls() bool { return s.Pollable && socket.Polls }

// mostAtOnce bounds the connections that are used before Start returns, at about ten
// microseconds each. The others follow, in the lead that a run with many connections has.
const mostAtOnce = 256

// AtOnce reports whether a lane uses its first connection before Start returns.
func (s *Lanes) AtOnce(lane int) bool { return lane-s.Portion.From < mostAtOnce }

// Servers counts what each server got. url makes the address of one.
func (s *Lanes) Servers(url func(base string) string) []measure.Client {
	var all []measure.Client
	for _, base := range s.Bases {
		c := measure.Client{Broker: url(base)}
		for _, l := range s.All {
			of, m := l.Count()
			if of != base {
				continue
			}
			c.Requests += m.Requests
			c.Batches += m.Requests
			c.Events += m.Events
			c.Bytes += m.Bytes
			c.WireBytes += m.Wire
			c.Reconnects += m.Reconnects
			c.ThrottleSeconds += m.Paused.Seconds()
		}
		if c.Batches > 0 {
			c.EventsPerBatch = float64(c.Events) / float64(c.Batches)
		}
		if c.Bytes > 0 {
			c.CompressionRatio = float64(c.WireBytes) / float64(c.Bytes)
		}
		all = append(all, c)
	}
	return all
}
