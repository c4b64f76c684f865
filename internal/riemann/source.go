package riemann

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/protocol"
)

// mostVerified bounds the events of a verified run: the server keeps all of them
// until they are read back, at a few hundred bytes per event.
const mostVerified = 1_000_000

// How reading back is paced.
const (
	mostChunk    = 100_000                // events per query: the server searches its whole index for each query
	leastChunk   = 10_000                 // likewise, in small runs
	queryTimeout = 30 * time.Second       // timeout of a query
	grace        = 2 * time.Second        // how long missing events may still arrive: in datagrams, and from asynchronous streams
	pollInterval = 200 * time.Millisecond // between two queries for them
)

// A source reads a run's events back from the server's index. It is used only
// for verification. A log is a stream, and an event's offset there is its index
// in the stream, which its unique service contains. The index keeps one event
// per host and service, so duplicates cannot be detected. Missing and changed
// events can.
type source struct {
	cfg    *config
	askers []*asker // of each stream's server
	began  time.Time
	logs   []indexLog
	last   atomic.Int64 // nanoseconds from began to the last completion
	tries  int          // queries that failed in a row

	corrupt atomic.Uint64
	example atomic.Pointer[string] // the first event that differed
	expired atomic.Bool            // events may have expired before they were read
}

// indexLog is the state of reading one stream.
type indexLog struct {
	ends  atomic.Int64 // index after the last event that was completed
	first atomic.Int64 // nanoseconds from began to the first completion; -1: none yet
	at    atomic.Int64 // everything before this index was delivered
	found []uint64     // a bit for each event
	chunk int64        // start of the chunk that was read and had holes; -1: none
}

// newSource makes a source. It sends no query before checkIndex or Receive.
func newSource(c *config) (*source, error) {
	s := &source{cfg: c, began: time.Now(), logs: make([]indexLog, c.clients)}
	for i := range s.logs {
		s.logs[i].first.Store(-1)
		s.logs[i].chunk = -1
	}
	for i := range c.clients {
		r, to, err := c.queryPlace(c.hosts[i%len(c.hosts)])
		if err != nil {
			return nil, err
		}
		if k := slices.IndexFunc(s.askers, func(a *asker) bool { return a.addr == to }); k >= 0 {
			s.askers = append(s.askers, s.askers[k])
			continue
		}
		a, err := newAsker(r, to, c.values)
		if err != nil {
			return nil, err
		}
		s.askers = append(s.askers, a)
	}
	return s, nil
}

// checkIndex checks before the run that the index can be queried.
func (s *source) checkIndex(ctx context.Context) error {
	for _, a := range s.askers {
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
		return &protocol.Error{Doing: "verify", Err: err, Hint: hint}
	}
	return nil
}

// watch returns a sink that notes in the source which events were sent.
func (s *source) watch(sink load.Sink) load.Sink { return watchingSink{sink, s} }

type watchingSink struct {
	load.Sink
	s *source
}

// Complete implements load.Sink.
func (w watchingSink) Complete(out []load.Outcome) {
	for i := range out {
		o := &out[i]
		if o.Sent < 0 {
			continue
		}
		l := &w.s.logs[o.Stream]
		now := int64(time.Since(w.s.began))
		w.s.last.Store(now)
		if l.first.Load() < 0 { // calls for one stream are not concurrent
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

// Rebalancing implements load.Source: an index has no consumer groups.
func (s *source) Rebalancing() time.Duration { return 0 }

// Wire implements load.Source. The traffic of queries is not counted.
func (s *source) Wire() (written, read uint64) { return 0, 0 }

// Behind implements load.Source.
func (s *source) Lag() []int64 {
	behind := s.Positions()
	for i := range behind {
		behind[i] = s.logs[i].ends.Load() - behind[i]
	}
	return behind
}

// Starts implements load.Seeker: a log contains only the run's events.
func (s *source) Starts() []int64 { return make([]int64, len(s.logs)) }

// Positions implements load.Seeker.
func (s *source) Positions() []int64 {
	at := make([]int64, len(s.logs))
	for i := range at {
		at[i] = s.logs[i].at.Load()
	}
	return at
}

// Ends implements load.Seeker. It does not query the server, since the
// source knows which events were sent.
func (s *source) Ends(context.Context) ([]int64, error) {
	ends := make([]int64, len(s.logs))
	for i := range ends {
		ends[i] = s.logs[i].ends.Load()
	}
	return ends, nil
}

// Heads implements load.Seeker: if events may have expired before they were
// read, missing events do not count as lost.
func (s *source) Heads(context.Context) ([]int64, error) {
	heads := make([]int64, len(s.logs))
	if s.expired.Load() {
		for i := range heads {
			heads[i] = s.logs[i].ends.Load()
		}
	}
	return heads, nil
}

// Capabilities implements load.Source. The index keeps one event for each service, and no order.
func (s *source) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{Seeker: s, Undetected: []string{"duplicated", "reordered"}}
}

// Receive implements load.Source. It reads sent events in large chunks, and
// reads a chunk again until the missing events can no longer be expected.
func (s *source) Receive(ctx context.Context, now func() time.Duration, sink func(lane int, a []load.Arrival)) error {
	defer s.close()
	tick := time.NewTicker(pollInterval)
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

// follow reads the unread part of a log, chunk by chunk. It reads a chunk with
// holes again while the missing events may still arrive.
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
		if !l.allFound(from, to) && (!quiet || again && fresh) {
			return nil
		}
		l.at.Store(to)
		l.chunk = -1
	}
}

// total is how many events were sent.
func (s *source) total() int64 {
	n := int64(0)
	for i := range s.logs {
		n += s.logs[i].ends.Load()
	}
	return n
}

// chunkOf is how many events a query asks for: a power of ten, so that the
// leading digits of their indices select them. There should be few queries,
// since the server searches its whole index for each.
func chunkOf(total int64) int64 {
	if total > 20*leastChunk {
		return mostChunk
	}
	return leastChunk
}

// read queries the events from..from+size-1 of a stream and delivers those that
// were not delivered before. fresh reports that there were any.
func (s *source) read(ctx context.Context, stream int32, from, size, end int64, now func() time.Duration, sink func(int, []load.Arrival)) (fresh bool, err error) {
	service := serviceOf(s.cfg.runID, stream, uint64(from))
	service = service[:len(service)-digitsOf(size)] + "%"
	asking, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	events, err := s.askers[stream].ask(asking, `service =~ `+quoted(service))
	if err != nil {
		return false, fmt.Errorf("read the index back from %s: %w", s.askers[stream].addr, err)
	}
	s.noteExpiry(stream)
	l := &s.logs[stream]
	l.grow(end)
	at := now()
	var all []indexed
	for i := range events {
		run, of, index, ok := parseService(events[i].Service)
		if !ok || run != s.cfg.runID || of != stream || int64(index) >= end || !l.mark(index) {
			continue
		}
		all = append(all, indexed{index, int64(wire.EventSize(&events[i])), s.differs(&events[i], stream, index)})
	}
	slices.SortFunc(all, func(a, b indexed) int { return int(int64(a.index) - int64(b.index)) })
	s.deliver(stream, all, at, sink)
	return len(all) > 0, nil
}

// An indexed is an event that was found in the index.
type indexed struct {
	index uint64
	bytes int64
	wrong string // how it differs from what was sent; "": not
}

// mostPiece is the most events in an arrival.
const mostPiece = 1000

// deliver passes the events that were found to the sink, consecutive intact ones
// together.
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

// noteExpiry sets late if events may have expired before they were read.
func (s *source) noteExpiry(stream int32) {
	first := s.logs[stream].first.Load()
	if first >= 0 && time.Since(s.began)-time.Duration(first) > s.cfg.retention()-time.Second {
		s.expired.Store(true)
	}
}

func (s *source) close() {
	for _, a := range s.askers {
		a.close()
	}
}

// digitsOf is the exponent of a power of ten: the digits of the indices below it.
func digitsOf(power int64) int { return int(math.Round(math.Log10(float64(power)))) }

// grow extends found to contain all events before end.
func (l *indexLog) grow(end int64) {
	if n := int(end+63) / 64; n > len(l.found) {
		l.found = append(l.found, make([]uint64, n-len(l.found))...)
	}
}

// mark notes that an event was found, and reports whether that is the first time.
func (l *indexLog) mark(index uint64) bool {
	w, bit := &l.found[index/64], uint64(1)<<(index%64)
	if *w&bit != 0 {
		return false
	}
	*w |= bit
	return true
}

// allFound reports whether all events from..to-1 were found.
func (l *indexLog) allFound(from, to int64) bool {
	for i := from; i < to; i++ {
		if l.found[i/64]&(1<<(i%64)) == 0 {
			return false
		}
	}
	return true
}
