package riemann

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"carronade/internal/wire/riemann"
	"carronade/load"
	"carronade/target"
)

// mostVerified bounds what a verified run fires: the server holds all of it
// until it is read back, at some hundreds of bytes an event.
const mostVerified = 1_000_000

// How reading back is paced.
const (
	mostChunk  = 100_000                // events asked for at once: the server looks through its whole index for each query
	leastChunk = 10_000                 //
	askFor     = 30 * time.Second       // one query
	grace      = 2 * time.Second        // how long what was not found may still come: datagrams, and streams that work on their own
	pace       = 200 * time.Millisecond // between two looks for it
)

// A source reads back what a run fired, from the server's index. It is the
// reading side of verification only. A log is a stream, and an event's offset
// there its index in the stream: each has a service of its own that says so.
// The index keeps one event per host and service, so that a copy cannot be
// seen; what is not there, or not as it was sent, can.
type source struct {
	cfg   *config
	asks  []*asker // of each stream's server
	began time.Time
	logs  []indexLog
	last  atomic.Int64 // when something was completed last, since it was made
	tries int          // queries that failed in a row

	corrupt atomic.Uint64
	example atomic.Pointer[string] // the first that differed
	late    atomic.Bool            // events had expired before they were read
}

// indexLog is what is known of one stream.
type indexLog struct {
	ends  atomic.Int64 // index after the last event that was completed
	first atomic.Int64 // when the first was sent, since the source was made; -1: none was
	at    atomic.Int64 // everything before it was delivered
	found []uint64     // a bit for each event
	chunk int64        // what was looked at and had holes; -1: nothing
}

// newSource readies the reading side. Nothing is asked before Receive.
func newSource(c *config) (*source, error) {
	s := &source{cfg: c, began: time.Now(), logs: make([]indexLog, c.clients)}
	for i := range s.logs {
		s.logs[i].first.Store(-1)
		s.logs[i].chunk = -1
	}
	r, addr := c.transport, ""
	if c.values.String("query-address") != "" || c.transport.scheme != plainScheme && c.transport.scheme != tlsScheme {
		var err error
		if r, addr, err = queryAddress(c.url, c.values); err != nil {
			return nil, err
		}
	}
	for i := range c.clients {
		to := addr
		if to == "" {
			to = c.hosts[i%len(c.hosts)]
		}
		if k := slices.IndexFunc(s.asks, func(a *asker) bool { return a.addr == to }); k >= 0 {
			s.asks = append(s.asks, s.asks[k])
			continue
		}
		a, err := askerOf(r, to, c.values)
		if err != nil {
			return nil, err
		}
		s.asks = append(s.asks, a)
	}
	return s, nil
}

// try finds out before the run whether the index can be asked.
func (s *source) try(ctx context.Context) error {
	for _, a := range s.asks {
		_, err := a.ask(ctx, `service = "`+verifyName+`"`)
		a.close()
		if err == nil {
			continue
		}
		hint := "verifying reads the index over TCP: say where the server answers queries with --query-address HOST:5555, or leave --verify out"
		if answerErr := (*answerError)(nil); errors.As(err, &answerErr) {
			hint = "verifying reads the index: give the server one, (streams (index)), or leave --verify out"
		} else {
			err = a.explain(ctx, err)
		}
		return &target.Error{Doing: "verify", Err: err, Hint: hint}
	}
	return nil
}

// watch returns a sink that tells the source what was fired.
func (s *source) watch(sink load.Sink) load.Sink { return watching{sink, s} }

type watching struct {
	load.Sink
	s *source
}

// Complete implements load.Sink.
func (w watching) Complete(out []load.Outcome) {
	for i := range out {
		o := &out[i]
		if o.Sent < 0 {
			continue
		}
		l := &w.s.logs[o.Stream]
		now := int64(time.Since(w.s.began))
		w.s.last.Store(now)
		if l.first.Load() < 0 { // one lane completes a stream's, one call at a time
			l.first.Store(now)
		}
		if end := int64(o.First) + int64(o.Events); end > l.ends.Load() {
			l.ends.Store(end)
		}
	}
	w.Sink.Complete(out)
}

// Logs implements load.Source.
func (s *source) Logs() []string {
	names := make([]string, len(s.logs))
	for i := range names {
		names[i] = fmt.Sprintf("client-%d", i)
	}
	return names
}

// Lanes implements load.Source.
func (s *source) Lanes() int { return 1 }

// Rebalancing implements load.Source: nobody shares an index.
func (s *source) Rebalancing() time.Duration { return 0 }

// Wire implements load.Source. What queries take is not measured.
func (s *source) Wire() (written, read uint64) { return 0, 0 }

// Behind implements load.Source.
func (s *source) Behind() []int64 {
	behind := s.Positions()
	for i := range behind {
		behind[i] = s.logs[i].ends.Load() - behind[i]
	}
	return behind
}

// Starts implements target.Seekable: a run's events are its own.
func (s *source) Starts() []int64 { return make([]int64, len(s.logs)) }

// Positions implements target.Seekable.
func (s *source) Positions() []int64 {
	at := make([]int64, len(s.logs))
	for i := range at {
		at[i] = s.logs[i].at.Load()
	}
	return at
}

// Ends implements target.Seekable. It is known here what was fired; the server
// is not asked.
func (s *source) Ends(context.Context) ([]int64, error) {
	ends := make([]int64, len(s.logs))
	for i := range ends {
		ends[i] = s.logs[i].ends.Load()
	}
	return ends, nil
}

// Heads implements target.Seekable: where events may have expired before they
// were read, what is not there is not lost.
func (s *source) Heads(context.Context) ([]int64, error) {
	heads := make([]int64, len(s.logs))
	if s.late.Load() {
		for i := range heads {
			heads[i] = s.logs[i].ends.Load()
		}
	}
	return heads, nil
}

// Receive implements load.Source. It follows what is fired, reads it in large
// chunks once, and what was not found again until it stays away.
func (s *source) Receive(ctx context.Context, now func() time.Duration, sink func(lane int, a []load.Arrival)) error {
	defer s.close()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		for i := range s.logs {
			if err := s.follow(ctx, int32(i), now, sink); err != nil {
				if s.tries++; ctx.Err() != nil || s.tries >= 3 {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// follow reads what a log has beyond where it was read to, chunk by chunk. A
// chunk with holes is looked at again while what is missing may still come.
func (s *source) follow(ctx context.Context, stream int32, now func() time.Duration, sink func(int, []load.Arrival)) error {
	l := &s.logs[stream]
	for {
		at, end := l.at.Load(), l.ends.Load()
		if at >= end {
			return nil
		}
		size := chunkOf(s.total())
		from := at - at%size
		to := min(from+size, end)
		fresh, err := s.read(ctx, stream, from, size, end, now, sink)
		if err != nil {
			return err
		}
		s.tries = 0
		again := l.chunk == from
		l.chunk = from
		quiet := time.Since(s.began)-time.Duration(s.last.Load()) > grace
		if !l.whole(from, to) && (!quiet || again && fresh) {
			return nil
		}
		l.at.Store(to)
		l.chunk = -1
	}
}

// total is how many events were fired.
func (s *source) total() int64 {
	n := int64(0)
	for i := range s.logs {
		n += s.logs[i].ends.Load()
	}
	return n
}

// chunkOf is how many events a query asks for: a power of ten, so that digits
// name them. For each query the server looks through its whole index, so that
// there should be few of them.
func chunkOf(total int64) int64 {
	if total > 20*leastChunk {
		return mostChunk
	}
	return leastChunk
}

// read asks for the events from..from+size-1 of a stream and delivers those that
// were not delivered before.
func (s *source) read(ctx context.Context, stream int32, from, size, end int64, now func() time.Duration, sink func(int, []load.Arrival)) (fresh bool, err error) {
	service := serviceOf(s.cfg.runID, stream, uint64(from))
	service = service[:len(service)-digitsOf(size)] + "%"
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	events, err := s.asks[stream].ask(asking, `service =~ `+quoted(service))
	if err != nil {
		return false, fmt.Errorf("read the index back from %s: %w", s.asks[stream].addr, err)
	}
	s.expiry(stream)
	l := &s.logs[stream]
	l.room(end)
	at := now()
	var all []indexed
	for i := range events {
		run, of, index, ok := parseService(events[i].Service)
		if !ok || run != s.cfg.runID || of != stream || int64(index) >= end || !l.mark(index) {
			continue
		}
		all = append(all, indexed{index, int64(riemann.EventSize(&events[i])), s.differs(&events[i], stream, index)})
	}
	slices.SortFunc(all, func(a, b indexed) int { return int(int64(a.index) - int64(b.index)) })
	s.deliver(stream, all, at, sink)
	return len(all) > 0, nil
}

// An indexed event is one that was found, and what is wrong with it.
type indexed struct {
	index uint64
	bytes int64
	wrong string
}

// mostPiece is how many events an arrival has at most.
const mostPiece = 1000

// deliver hands over what was found, consecutive sound events together.
func (s *source) deliver(stream int32, all []indexed, at time.Duration, sink func(int, []load.Arrival)) {
	for len(all) > 0 {
		n := 1
		for n < len(all) && n < mostPiece && all[0].wrong == "" && all[n].wrong == "" && all[n].index == all[0].index+uint64(n) {
			n++
		}
		a := load.Arrival{
			Log: stream, Base: int64(all[0].index), Events: int32(n), At: at, ProducerID: -1,
			Corrupt: all[0].wrong != "", Stamps: make([]load.Stamp, n),
		}
		for i := range a.Stamps {
			index := all[i].index
			a.Bytes += all[i].bytes
			a.Stamps[i] = load.Stamp{Run: s.cfg.runID, Stream: stream, Index: index, Offset: int64(index)}
		}
		if a.Corrupt {
			s.corrupt.Add(1)
			s.example.CompareAndSwap(nil, &all[0].wrong)
		}
		sink(0, []load.Arrival{a})
		all = all[n:]
	}
}

// expiry notes when events may have expired before they were read.
func (s *source) expiry(stream int32) {
	first := s.logs[stream].first.Load()
	if first >= 0 && time.Since(s.began)-time.Duration(first) > s.cfg.lasting()-time.Second {
		s.late.Store(true)
	}
}

func (s *source) close() {
	for _, a := range s.asks {
		a.close()
	}
}

// digitsOf is how many digits a power of ten counts.
func digitsOf(power int64) int { return int(math.Round(math.Log10(float64(power)))) }

// room makes the bits reach to an index.
func (l *indexLog) room(end int64) {
	if n := int(end+63) / 64; n > len(l.found) {
		l.found = append(l.found, make([]uint64, n-len(l.found))...)
	}
}

// mark notes that an event was found, and reports whether it is the first time.
func (l *indexLog) mark(index uint64) bool {
	w, bit := &l.found[index/64], uint64(1)<<(index%64)
	if *w&bit != 0 {
		return false
	}
	*w |= bit
	return true
}

// whole reports whether all events from..to-1 were found.
func (l *indexLog) whole(from, to int64) bool {
	for i := from; i < to; i++ {
		if l.found[i/64]&(1<<(i%64)) == 0 {
			return false
		}
	}
	return true
}
