package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// A fakeKind is a kind of target in virtual time: one lane, answers after a
// millisecond, and a log whose consumer finds what the test lets it find.
type fakeKind struct {
	perBatch     int           // room of the lane
	consumeDelay time.Duration // from an event's answer until it is consumed; 0: never
	stopDelay    time.Duration // from the request to stop until the source stops
	endsUnknown  bool          // requests for the ends of logs are not answered
	part         bool          // a batch's events are consumed one by one
	noAnswers    bool          // nothing is answered
	noRoom       bool          // no batch is taken
	service      time.Duration // 0: 1 ms
	spread       bool          // service times vary
	noSource     bool          // nothing can be read back
	slowFor      time.Duration // from opening, answers take three times as long
	openDelay    time.Duration // how long it takes to open
	noAssignment bool          // its reader never gets an assignment
	head         int64         // where the log begins at the end: what was before was deleted unread
	headErr      error         // or why the beginning is unknown
	stamped      bool
	// From lostFrom to lostUntil, after the start, it has no connection, and takes no batch; 0: it does not know its connections.
	lostFrom, lostUntil time.Duration
	feed                time.Duration // its reader gets an event as often while there is a connection; 0: only what was sent
	feedFor             time.Duration // how long, from opening; 0: always
	says                time.Duration // interval at which it says that the log is empty, while there is a connection; 0: never
	readEvery           time.Duration // how long its reader, which can pause, takes for a batch; 0: it cannot pause
	// sees reports whether a reader of committed events sees the event of an
	// index; the first aborted ones were aborted. nil: no transactions.
	sees    func(index uint64) bool
	aborted uint64

	session *fakeSession
}

func (*fakeKind) Name() string      { return "fake" }
func (*fakeKind) Schemes() []string { return []string{"fake"} }
func (*fakeKind) Ops() []string {
	return []string{workload.Produce, workload.Consume, workload.RoundTrip}
}
func (*fakeKind) Options() []protocol.Option              { return nil }
func (*fakeKind) Capabilities() protocol.KindCapabilities { return protocol.KindCapabilities{} }

func (m *fakeKind) Open(_ context.Context, spec protocol.Spec) (protocol.Session, error) {
	time.Sleep(m.openDelay)
	m.session = &fakeSession{m: m, run: uint32(spec.RunID), read: make(chan load.Arrival, 1<<16), began: time.Now(), ended: make(chan struct{})}
	return m.session, nil
}

type fakeSession struct {
	m         *fakeKind
	run       uint32
	sink      load.Sink
	began     time.Time
	read      chan load.Arrival
	end, seen atomic.Int64
	ended     chan struct{}
	paused    atomic.Bool
}

func (s *fakeSession) Target() load.Target { return fakeTarget{s} }
func (s *fakeSession) Source() load.Source {
	if s.m.noSource {
		return nil
	}
	if s.m.says > 0 {
		return answeringSource{fakeSource{s}}
	}
	return fakeSource{s}
}
func (s *fakeSession) Facts() map[string]any         { return map[string]any{} }
func (s *fakeSession) Warnings() []string            { return nil }
func (s *fakeSession) Close() error                  { return nil }
func (s *fakeSession) Partitioner() load.Partitioner { return load.Single() }
func (s *fakeSession) Client(int32) int              { return 0 }
func (s *fakeSession) Clients() int                  { return 1 }
func (s *fakeSession) Start(sink load.Sink) {
	s.sink = sink
	if s.m.lostFrom > 0 {
		time.AfterFunc(s.m.lostUntil, func() { sink.Ready(0, sink.Now()) })
	}
}

func (s *fakeSession) lost() bool {
	now := time.Since(s.began) // of a run that reads
	if s.sink != nil {
		now = s.sink.Now()
	}
	return now >= s.m.lostFrom && now < s.m.lostUntil
}

func (s *fakeSession) Connected() (n int, known bool) {
	switch {
	case s.m.lostFrom == 0:
		return 0, false
	case s.lost():
		return 0, true
	}
	return 1, true
}

func (s *fakeSession) Route(int32) load.Lane        { return fakeLane{s} }
func (s *fakeSession) Wire() (written, read uint64) { return 0, 0 }

func (s *fakeSession) Capabilities() (c protocol.SessionCapabilities) {
	if s.m.sees != nil {
		c.Transactions = s
	}
	return c
}

// A fakeTarget is the session as a target.
type fakeTarget struct{ *fakeSession }

func (t fakeTarget) Capabilities() load.TargetCapabilities {
	return load.TargetCapabilities{Connected: t.Connected, LogOf: func(int32) int32 { return 0 }, Stamped: t.m.stamped}
}

type fakeLane struct{ s *fakeSession }

func (fakeLane) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{} }
func (l fakeLane) ID() int                           { return 0 }
func (l fakeLane) Room(int32, uint64) int            { return max(1, l.s.m.perBatch) }
func (l fakeLane) Flush()                            {}
func (l fakeLane) Close() error                      { return nil }
func (l fakeLane) Fire(batches []load.Batch) int {
	s := l.s
	if s.m.noRoom || s.lost() {
		return 0
	}
	for i := range batches {
		batches[i].Bytes = 10
		batch, sent := batches[i], s.sink.Now()
		if s.m.noAnswers {
			continue
		}
		service := cmp.Or(s.m.service, time.Millisecond)
		if time.Since(s.began) < s.m.slowFor {
			service *= 3
		}
		if s.m.spread {
			service = time.Duration(float64(service) * (0.2 + rand.ExpFloat64()))
		}
		time.AfterFunc(service, func() {
			n := int64(batch.Events)
			base := s.end.Add(n) - n
			if s.m.consumeDelay > 0 {
				time.AfterFunc(s.m.consumeDelay, func() {
					if base < s.m.head {
						s.seen.Add(n)
						return
					}
					if !s.m.part {
						a := load.Arrival{Base: base, Events: batch.Events, Bytes: 10, Sum: 7}
						for k := range n {
							if s.m.stamped {
								a.Stamps = append(a.Stamps, load.Stamp{Run: s.run, Index: batch.First + uint64(k), Offset: base + k})
							}
						}
						s.read <- a
						return
					}
					for k := range n {
						time.AfterFunc(time.Duration(k)*s.m.consumeDelay, func() {
							s.read <- load.Arrival{Base: base + k, Events: 1, Bytes: 10, Sum: 7}
						})
					}
				})
			}
			s.sink.Complete([]load.Outcome{{Batch: batch, Sent: sent, Done: s.sink.Now(), Acked: batch.Events, Place: base, Sum: 7}})
		})
	}
	return len(batches)
}

type fakeSource struct{ *fakeSession }

func (s fakeSource) Capabilities() load.SourceCapabilities {
	c := load.SourceCapabilities{Connected: s.Connected, Seeker: s}
	if s.m.readEvery > 0 {
		c.Pause = s.paused.Store
	}
	return c
}
func (fakeSource) Logs() []string { return []string{"log-0"} }
func (fakeSource) Lanes() int     { return 1 }
func (fakeSource) Lag() []int64   { return []int64{-1} }
func (s fakeSource) Rebalancing() time.Duration {
	if s.m.noAssignment {
		return time.Since(s.began)
	}
	return 0
}
func (fakeSource) Starts() []int64                          { return []int64{0} }
func (s fakeSource) Positions() []int64                     { return []int64{s.seen.Load()} }
func (s fakeSource) Heads(context.Context) ([]int64, error) { return []int64{s.m.head}, s.m.headErr }

func (s fakeSource) Ends(ctx context.Context) ([]int64, error) {
	if s.m.endsUnknown {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []int64{s.end.Load()}, nil
}

func (s fakeSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []load.Arrival)) error {
	defer close(s.ended)
	var fed <-chan time.Time
	if s.m.feed > 0 {
		tick := time.NewTicker(s.m.feed)
		defer tick.Stop()
		fed = tick.C
	}
	for {
		select {
		case <-fed:
			if !s.lost() && (s.m.feedFor == 0 || time.Since(s.began) <= s.m.feedFor) {
				sink(0, []load.Arrival{{Base: s.seen.Add(1) - 1, Events: 1, Bytes: 10, At: now()}})
			}
		case <-ctx.Done():
			time.Sleep(s.m.stopDelay)
			return ctx.Err()
		case a := <-s.read:
			for again := true; again; again = s.paused.Load() {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(s.m.readEvery):
				}
			}
			a.At = now()
			sink(0, []load.Arrival{a})
			s.seen.Add(int64(a.Events))
		}
	}
}

// An answeringSource says that its log is empty.
type answeringSource struct{ fakeSource }

func (s answeringSource) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{Connected: s.Connected, Seeker: s, Answering: s}
}

func (s answeringSource) Emptied() []time.Duration {
	at := time.Since(s.began)
	if s.lost() {
		at = s.m.lostFrom
	}
	if s.m.feed > 0 && (s.m.feedFor == 0 || at < s.m.feedFor) {
		return []time.Duration{0} // its newest events came after that
	}
	return []time.Duration{at.Truncate(s.m.says)}
}

func (s answeringSource) Patience() time.Duration { return s.m.says }

func resolve(t *testing.T, m *fakeKind, pairs ...string) *workload.Workload {
	t.Helper()
	var d workload.Document
	for _, p := range append([]string{"target=fake://here"}, pairs...) {
		name, v, _ := strings.Cut(p, "=")
		d.Add(name, "--"+name, v)
	}
	w := assert.Value(workload.Resolve([]protocol.Kind{m}, &d, nil))(t)
	return w
}

// TestInterruptions: the first interruption ends the current stage and leaves a report, an abort ends everything at once, and
// nothing hangs, whatever does not answer.
func TestInterruptions(t *testing.T) {
	for _, tt := range []struct {
		name        string
		m           fakeKind
		set         []string
		interrupt   time.Duration // 0: never
		abort       time.Duration
		most        time.Duration // until there is a report
		interrupted bool
		whole       bool // only an interruption could end it, and it waited for its answers
	}{
		{"sending", fakeKind{consumeDelay: time.Millisecond}, []string{"verify=true"}, time.Second, 0, 1100 * time.Millisecond, true, true},
		{"reading back", fakeKind{}, []string{"verify=true", "count=10"}, time.Second, 0, 1100 * time.Millisecond, true, false},
		{"reading back from a dead system", fakeKind{endsUnknown: true}, []string{"verify=true", "count=10"}, time.Second, 0, 1100 * time.Millisecond, true, false},
		{"a dead system, no interruption", fakeKind{endsUnknown: true}, []string{"verify=true", "count=10"}, 0, 0, 30 * time.Second, false, false},
		{"sending, and then reading back from a dead system", fakeKind{endsUnknown: true}, []string{"verify=true"}, time.Second, 2 * time.Second, 2100 * time.Millisecond, true, false},
		{"a source that does not stop", fakeKind{stopDelay: time.Hour}, []string{"verify=true", "count=10"}, time.Second, 0, 3 * time.Second, true, false},
		{"a source that does not stop, no interruption", fakeKind{stopDelay: time.Hour}, []string{"verify=true", "count=10"}, 0, 0, 30 * time.Second, false, false},
		{"a round trip that waits", fakeKind{}, []string{"op=roundtrip", "count=10"}, time.Second, 0, 1100 * time.Millisecond, true, false},
		{"a round trip that waits for a dead system", fakeKind{endsUnknown: true}, []string{"op=roundtrip", "count=10"}, time.Second, 0, 1100 * time.Millisecond, true, false},
		{"a round trip's sending, and then its waiting", fakeKind{endsUnknown: true}, []string{"op=roundtrip"}, time.Second, 2 * time.Second, 2100 * time.Millisecond, true, false},
		{"a closed loop that waits", fakeKind{}, []string{"op=roundtrip", "concurrency=3"}, time.Second, 2 * time.Second, 2100 * time.Millisecond, true, false},
		{"consuming", fakeKind{}, []string{"op=consume", "for=1h", "idle-timeout=1h"}, time.Second, 0, 1100 * time.Millisecond, true, false},
		{"consuming from a source that does not stop", fakeKind{stopDelay: time.Hour}, []string{"op=consume", "for=1h", "idle-timeout=1h"}, time.Second, 2 * time.Second, 2100 * time.Millisecond, true, false},
		{"reading", fakeKind{}, []string{"op=consume"}, time.Second, 0, 1100 * time.Millisecond, true, false},
		{"reading until nothing comes", fakeKind{}, []string{"op=consume", "idle-timeout=1h"}, time.Second, 0, 1100 * time.Millisecond, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				abort := make(chan struct{})
				if tt.interrupt > 0 {
					time.AfterFunc(tt.interrupt, cancel)
				}
				if tt.abort > 0 {
					time.AfterFunc(tt.abort, func() { close(abort) })
				}
				began := time.Now()
				doc := assert.Value(Execute(ctx, Job{Portable: true, Workload: resolve(t, &tt.m, tt.set...), Abort: abort}))(t)
				took := time.Since(began)
				assert.True(t, took <= tt.most, "it took %v, want %v at most", took, tt.most)
				assert.Equal(t, doc.Stopped == load.Interrupted, tt.interrupted, "stopped by %q", doc.Stopped)
				assert.True(t, !tt.interrupted || doc.Partial != tt.whole, "partial: got %v", doc.Partial)
				<-tt.m.session.ended
			})
		})
	}
}

// TestMemoryLimit: a run whose process has nearly all of its memory ends with its report, which says so.
func TestMemoryLimit(t *testing.T) {
	for _, set := range [][]string{{"rate=10/s"}, {"op=consume", "for=1h", "idle-timeout=1h"}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			time.AfterFunc(time.Second, func() { cancel(fmt.Errorf("%w: 1 GiB", ErrMemory)) })
			m := fakeKind{}
			d := assert.Value(Execute(ctx, Job{Portable: true, Workload: resolve(t, &m, set...)}))(t)
			assert.True(t, d.Stopped == load.ByMemory && d.Partial && d.ExitCode() == host.ExitFailed, "%s: stopped by %q, partial %v, exit %d", set, d.Stopped, d.Partial, d.ExitCode())
			<-m.session.ended
		})
	}
}

// TestConcurrencyOfARoundTrip: a caller sends again when all events of its batch were consumed, and not before.
func TestConcurrencyOfARoundTrip(t *testing.T) {
	for _, tt := range []struct {
		name   string
		m      fakeKind
		events uint64 // in a second, by one caller
	}{
		{"one event", fakeKind{consumeDelay: 99 * time.Millisecond}, 10},
		{"events that arrive one by one", fakeKind{perBatch: 3, part: true, consumeDelay: 33 * time.Millisecond}, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pairs := []string{"op=roundtrip", "concurrency=1", "for=1s"}
				if tt.m.perBatch > 1 {
					pairs = append(pairs, "batch-events=3")
				}
				doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &tt.m, pairs...)}))(t)
				assert.Equal(t, doc.Totals.Sent, tt.events, "sent events")
				<-tt.m.session.ended
			})
		})
	}
}

// TestDeleted: events that the system itself deleted cannot be checked, are not lost, and make the verdict "cannot tell".
func TestDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fakeKind{consumeDelay: time.Millisecond, head: 50}
		doc, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "op=roundtrip", "verify=true", "count=200", "rate=100/s", "batch-events=1")})
		assert.OK(t, err)
		if l := doc.Ledger; l.Lost != 0 || l.Unread != 50 || l.Removed != 50 || l.Inexact != 0 || l.Read != 150 {
			t.Errorf("lost %d, unread %d, removed %d, inexact %d, read %d; want 0, 50, 50, 0, 150", l.Lost, l.Unread, l.Removed, l.Inexact, l.Read)
		}
		doc.Trust.OK = true // in virtual time it says nothing
		if c := doc.Checks; len(c) != 1 || c[0].Text != "cannot tell: 50 of 200 were removed before they were read (retention or deletion)" || doc.ExitCode() != host.ExitCannotTell {
			t.Errorf("checks %+v, exit code %d", c, doc.ExitCode())
		}
		<-m.session.ended
	})
}

// TestDeletedUnknown: if it is not known what the system deleted, missing events may be deleted or lost.
func TestDeletedUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fakeKind{consumeDelay: time.Millisecond, head: 50, headErr: errors.New("not the leader")}
		doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "op=roundtrip", "verify=true", "count=200", "batch-events=1")}))(t)
		if l := doc.Ledger; l.Lost != 0 || l.Unread != 50 || l.Removed != 0 || l.Read != 150 || l.Complete {
			t.Errorf("lost %d, unread %d, removed %d, read %d, complete %v; want 0, 50, 0, 150, false", l.Lost, l.Unread, l.Removed, l.Read, l.Complete)
		}
		doc.Trust.OK = true // in virtual time it says nothing
		const want = "reading back failed: cannot tell whether missing events were removed before they were read: not the leader"
		assert.True(t, slices.Contains(doc.Warnings, want) && doc.ExitCode() == host.ExitCannotTell,
			"warnings %q, exit code %d", doc.Warnings, doc.ExitCode())
		<-m.session.ended
	})
}

// TestNoReportWithoutSending: if the target cannot be opened, no report is made.
func TestNoReportWithoutSending(t *testing.T) {
	m := &fakeKind{}
	w := resolve(t, m, "count=1")
	w.Kind = refusing{m}
	doc, err := Execute(t.Context(), Job{Portable: true, Workload: w})
	assert.True(t, doc == nil && errors.Is(err, errRefused), "got %v and %v", doc, err)
}

var errRefused = errors.New("connection refused")

type refusing struct{ *fakeKind }

func (refusing) Open(context.Context, protocol.Spec) (protocol.Session, error) {
	return nil, errRefused
}
