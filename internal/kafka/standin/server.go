package standin

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/standin"
)

// A Server is a running stand-in.
type Server interface {
	// Addr is the address that the stand-in listens on, host:port.
	Addr() string
	// Counts returns the counts so far. It is safe to call at any time, also
	// after Close.
	Counts() Counts
	// Close ends the stand-in and its connections, and removes its temporary
	// data.
	Close() error
}

// Counts says what a stand-in received and served.
type Counts struct {
	Connections uint64 `json:"connections"` // accepted
	Requests    uint64 `json:"requests"`    // answered, or accepted without an answer (acks=0)
	Batches     uint64 `json:"batches"`     // record batches accepted
	Events      uint64 `json:"events"`      // records accepted, according to the batches' headers
	Bytes       uint64 `json:"bytes"`       // of record batches accepted, headers included
	Refused     uint64 `json:"refused"`     // records answered with an error
	Served      uint64 `json:"served"`      // records served by fetches (discard broker)
	ServedBytes uint64 `json:"served_bytes"`
}

func (c *Counts) add(o Counts) {
	c.Connections += o.Connections
	c.Requests += o.Requests
	c.Batches += o.Batches
	c.Events += o.Events
	c.Bytes += o.Bytes
	c.Refused += o.Refused
	c.Served += o.Served
	c.ServedBytes += o.ServedBytes
}

// String is the line that a stand-in prints when it ends.
func (c Counts) String() string {
	s := fmt.Sprintf("%d connections, %d requests; took %d events in %d batches (%d bytes)",
		c.Connections, c.Requests, c.Events, c.Batches, c.Bytes)
	if c.Refused > 0 {
		s += fmt.Sprintf(", refused %d", c.Refused)
	}
	if c.Served > 0 {
		s += fmt.Sprintf("; served %d events (%d bytes)", c.Served, c.ServedBytes)
	}
	return s
}

// A tally is the counts of one connection. Each connection has its own, so that
// connections do not share a cache line; readers sum them.
type tally struct {
	requests, batches, events, bytes, refused, served, servedBytes atomic.Uint64

	_ [64]byte
}

func (t *tally) counts() Counts {
	return Counts{
		Connections: 1, Requests: t.requests.Load(), Batches: t.batches.Load(), Events: t.events.Load(),
		Bytes: t.bytes.Load(), Refused: t.refused.Load(),
		Served: t.served.Load(), ServedBytes: t.servedBytes.Load(),
	}
}

// A front accepts connections, reads frames, answers some requests and forwards
// the others to the broker behind it.
type front struct {
	opts   Options
	ln     net.Listener
	broker *broker
	log    *discardLog // nil: the broker gets the records
	dice   *standin.Dice
	server *standin.SharedQueue // nil: answers wait for nothing
	record *standin.Recorder    // nil: none

	maxFetchWait time.Duration // bounds how long a fetch waits

	ctx       context.Context
	cancel    context.CancelFunc
	conns     standin.Conns[*tally]
	closed    Counts // of closed connections; conns locks it
	closeOnce func() error
}

// Start starts a stand-in. The returned server runs until Close.
func Start(opts Options) (Server, error) {
	opts = opts.withDefaults()
	if err := opts.Check(); err != nil {
		return nil, err
	}
	tlsConfig, err := opts.TLS.Config()
	if err != nil {
		return nil, err
	}
	rec, err := standin.OpenRecord(opts.Record)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		_ = rec.Close()
		return nil, fmt.Errorf("listening on %s: %w", opts.Listen, err)
	}
	advertise := opts.Advertise
	if advertise == "" {
		advertise = advertised(ln.Addr())
	}
	broker, err := startBroker(opts, advertise)
	if err != nil {
		ln.Close()
		_ = rec.Close()
		return nil, err
	}
	f := &front{opts: opts, record: rec, broker: broker, maxFetchWait: maxFetchWait}
	f.conns.Log, f.conns.Ended = opts.Log, func(t *tally) { f.closed.add(t.counts()) }
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.dice = standin.NewRuleDice(opts.Seed, opts.Errors)
	f.server = standin.NewSharedQueue(opts.Capacity)
	if opts.Discard {
		f.log = newDiscardLog(opts, broker)
	}
	f.ln = rec.WrapOuter(standin.WithFaults(rec.WrapInner(ln), opts.Delay, opts.Stall, opts.Capacity.On(), time.Now()))
	if tlsConfig != nil {
		f.ln = tls.NewListener(f.ln, tlsConfig)
	}
	f.closeOnce = sync.OnceValue(f.end)
	f.conns.Serving.Go(func() { standin.Accept(f.ln, f.serve) })
	return f, nil
}

// produceError draws whether a partition of a produce request is refused, and
// returns the error code; 0 accepts it.
func (f *front) produceError() int16 {
	if i := f.dice.Draw(); i >= 0 {
		return f.opts.Errors[i].What
	}
	return 0
}

// admit passes the records of a partition of a produce request to the server, and
// returns the error code if its queue is full; 0: they will be served at done.
func (f *front) admit(records int64) (done time.Time, code int16) {
	done, ok := f.server.Arrive(int(records))
	if !ok {
		return done, codeThrottled
	}
	return done, 0
}

// advertised is the address given to clients. For a wildcard address it is this
// machine's loopback address; other machines need Options.Advertise.
func advertised(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func (f *front) Addr() string { return f.ln.Addr().String() }

func (f *front) Counts() Counts {
	f.conns.Lock()
	defer f.conns.Unlock()
	sum := f.closed
	for _, t := range f.conns.Open {
		sum.add(t.counts())
	}
	return sum
}

func (f *front) Close() error { return f.closeOnce() }

func (f *front) end() error {
	f.cancel()
	err := f.ln.Close()
	f.conns.Close()
	// Close the broker first: a connection may be waiting for its answer.
	if e := f.broker.close(); err == nil {
		err = e
	}
	f.conns.Serving.Wait()
	if e := f.record.Close(); err == nil {
		err = e
	}
	return err
}

func (f *front) serve(nc net.Conn) {
	c := newConn(f, nc)
	if ended := f.conns.Enter(nc, &c.tally); ended != nil {
		go func() { ended(c.serve()) }()
	}
}
