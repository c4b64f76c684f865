package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"carronade/load"
	"carronade/payload"
	"carronade/protocol"
)

// Kind is a protocol for an example: an event is a line, a batch is some lines
// and an empty one, and its answer is a line with the number of events taken.
type Kind struct{}

// Name implements protocol.Kind.
func (Kind) Name() string { return "lines" }

// Schemes implements protocol.Kind.
func (Kind) Schemes() []string { return []string{"lines"} }

// Ops implements protocol.Kind.
func (Kind) Ops() []string { return []string{"produce"} }

// Options implements protocol.Kind. Each row gives an option a flag, help, a key
// in workload files, checks and a place in the report.
func (Kind) Options() []protocol.Option {
	return []protocol.Option{
		{Name: "size", Word: "SIZE", Default: "100", Group: "events", Independent: true, Help: "bytes of a line"},
		{Name: "most-lines", Type: protocol.Int, Default: "100", Group: "batching", Independent: true, Help: "most lines of a batch"},
	}
}

// Capabilities implements protocol.Kind: it can no more than every kind.
func (Kind) Capabilities() protocol.KindCapabilities { return protocol.KindCapabilities{} }

// Open implements protocol.Kind.
func (Kind) Open(ctx context.Context, s protocol.Spec) (protocol.Session, error) {
	gen, err := payload.New(payload.Spec{Seed: s.Seed, Size: s.Options.String("size"), Payload: "text"})
	if err != nil {
		return nil, &protocol.Error{Doing: "make the events", Err: err, Hint: "carronade help events lists the forms"}
	}
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.URL.Host)
	if err != nil {
		return nil, &protocol.Error{Doing: "connect to " + s.URL.Host, Err: err, Hint: "is a server of lines listening there?"}
	}
	l := &lane{conn: conn, gen: gen, most: s.Options.Int("most-lines"), slots: make(chan load.Batch, max(1, s.MaxInFlight))}
	return &session{lane: l}, nil
}

// A session is a connection.
type session struct{ lane *lane }

func (s *session) Target() load.Target   { return target{s.lane} }
func (s *session) Source() load.Source   { return nil }
func (s *session) Facts() map[string]any { return nil }
func (s *session) Warnings() []string    { return nil }
func (s *session) Close() error          { return s.lane.Close() }

func (s *session) Capabilities() protocol.SessionCapabilities { return protocol.SessionCapabilities{} }

// A target has one stream and one lane. It says what it waits for.
type target struct{ lane *lane }

func (t target) Partitioner() load.Partitioner { return load.Single() }
func (t target) Client(int32) int              { return 0 }
func (t target) Clients() int                  { return 1 }
func (t target) Route(int32) load.Lane         { return t.lane }
func (t target) Wire() (uint64, uint64)        { return t.lane.written.Load(), t.lane.read.Load() }

func (t target) Capabilities() load.TargetCapabilities {
	return load.TargetCapabilities{Pending: t.lane.pending}
}

func (t target) Start(sink load.Sink) {
	l := t.lane
	l.sink, l.write, l.ended = sink, make(chan []byte, cap(l.slots)), make(chan struct{})
	go l.writer()
	go l.reader()
}

// A lane sends over the connection. Batches in flight wait in slots, in the
// order in which they were taken, which is that of their answers.
type lane struct {
	conn net.Conn
	gen  *payload.Generator
	sink load.Sink
	most int

	slots chan load.Batch
	fresh []load.Batch // taken and not flushed
	buf   []byte
	write chan []byte   // never full: each entry has a batch that has a slot
	ended chan struct{} // closed when the reader and the connection have ended

	full          atomic.Bool
	closed        bool
	written, read atomic.Uint64
}

func (l *lane) ID() int { return 0 }

func (l *lane) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{} }

// pending says what a run waits for that does not go on.
func (l *lane) pending() []string {
	return []string{fmt.Sprintf("%d batches in flight", len(l.slots))}
}

func (l *lane) Room(int32, uint64) int {
	select {
	case <-l.ended:
		return 0
	default:
		return l.most
	}
}

// Fire encodes the batches for which slots are free.
func (l *lane) Fire(batches []load.Batch) int {
	for i := range batches {
		if len(l.slots)+len(l.fresh) == cap(l.slots) {
			l.full.Store(true)
			// A slot may have become free before the reader could see full.
			if len(l.slots)+len(l.fresh) == cap(l.slots) || !l.full.CompareAndSwap(true, false) {
				return i
			}
		}
		s := &batches[i]
		begin := len(l.buf)
		for n := range uint64(s.Events) {
			l.buf = append(l.line(s.First+n), '\n')
		}
		s.Bytes = int64(len(l.buf) - begin)
		l.buf = append(l.buf, '\n')
		l.fresh = append(l.fresh, *s)
	}
	return len(batches)
}

func (l *lane) line(n uint64) []byte {
	begin := len(l.buf)
	out := l.gen.AppendValue(l.buf, n)
	for i := begin; i < len(out); i++ {
		if out[i] == '\n' || out[i] == '\r' {
			out[i] = ' '
		}
	}
	return out
}

// Flush hands the encoded batches to the writer, and notes in their slots when
// it did.
func (l *lane) Flush() {
	if len(l.fresh) == 0 {
		return
	}
	now := l.sink.Now()
	for _, s := range l.fresh {
		s.FirstSent = now
		l.slots <- s
	}
	l.write <- slices.Clone(l.buf)
	l.fresh, l.buf = l.fresh[:0], l.buf[:0]
}

func (l *lane) writer() {
	for b := range l.write {
		n, err := l.conn.Write(b)
		l.written.Add(uint64(n))
		if err != nil {
			l.conn.Close() // the reader completes what is in flight
		}
	}
}

// reader completes batches as they are answered. When the connection has ended,
// it completes those still in flight as unknown.
func (l *lane) reader() {
	in := bufio.NewScanner(l.conn)
	for in.Scan() {
		l.read.Add(uint64(len(in.Bytes()) + 1))
		taken, err := strconv.Atoi(strings.TrimSpace(in.Text()))
		var s load.Batch
		select {
		case s = <-l.slots:
		default: // an answer without a batch: later answers cannot be matched
			l.conn.Close()
			continue
		}
		o := load.Outcome{Batch: s, Sent: s.FirstSent, Done: l.sink.Now(), Place: -1}
		if err != nil || taken < 0 || taken > int(s.Events) {
			o.Failed, o.Class, o.Text = s.Events, load.Protocol, "the answer is not a number of events"
		} else {
			o.Acked, o.Failed = int32(taken), s.Events-int32(taken)
			if o.Failed > 0 {
				o.Class, o.Text = load.Rejected, "the server took fewer events than were sent"
			}
		}
		l.complete(o)
	}
	l.giveUp()
	close(l.ended)
}

// giveUp completes what is in flight on a connection that has ended.
func (l *lane) giveUp() {
	for {
		select {
		case s := <-l.slots:
			l.complete(load.Outcome{
				Batch: s, Sent: s.FirstSent, Done: l.sink.Now(), Place: -1,
				Unknown: s.Events, Class: load.Refused, Text: "the connection ended before the answer",
			})
		default:
			return
		}
	}
}

func (l *lane) complete(o load.Outcome) {
	l.sink.Complete([]load.Outcome{o})
	if l.full.CompareAndSwap(true, false) {
		l.sink.Ready(0, o.Done)
	}
}

// Close ends the connection and completes what is in flight.
func (l *lane) Close() error {
	if l.closed || l.sink == nil {
		return nil
	}
	l.closed = true
	l.Flush()
	close(l.write)
	err := l.conn.Close()
	<-l.ended
	l.giveUp() // batches that were sent while the reader was ending
	return err
}
