package run

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// Committed implements protocol.Transactional.
func (s *fakeSession) Committed() load.Source {
	if s.m.sees == nil {
		return nil
	}
	return &committedSource{fakeSource: fakeSource{s}}
}

func (s *fakeSession) EndTransactions() {}

func (s *fakeSession) Uncommitted(note func(stream int32, first, events uint64, aborted bool)) {
	note(0, 0, s.m.aborted, true)
}

// committedSource reads the events that the test lets a reader of committed
// events see.
type committedSource struct {
	fakeSource
	at atomic.Int64
}

func (c *committedSource) Positions() []int64 { return []int64{c.at.Load()} }

func (c *committedSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []load.Arrival)) error {
	end := c.end.Load()
	for i := range end {
		if c.m.sees(uint64(i)) {
			sink(0, []load.Arrival{{Base: i, Events: 1, At: now(), Stamps: []load.Stamp{{Run: c.run, Index: uint64(i), Offset: i}}}})
		}
	}
	c.at.Store(end)
	<-ctx.Done()
	return ctx.Err()
}

// TestTransactions verifies transactions with both readers.
func TestTransactions(t *testing.T) {
	for _, tt := range []struct {
		name string
		sees func(index uint64) bool
		want measure.Ledger
		code int
		text string
	}{
		{"no error", func(n uint64) bool { return n >= 40 }, measure.Ledger{CommittedRead: 160}, host.ExitOK, "nothing was lost or altered"},
		{"aborted ones are seen", func(n uint64) bool { return n >= 37 }, measure.Ledger{CommittedRead: 160, Phantom: 3}, host.ExitBroken, "3 aborted events seen by a read_committed consumer"},
		{"committed ones are not", func(n uint64) bool { return n >= 45 }, measure.Ledger{CommittedRead: 155, Lost: 5}, host.ExitBroken, "5 events lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{consumeDelay: time.Millisecond, stamped: true, sees: tt.sees, aborted: 40}
				doc, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "op=roundtrip", "verify=true", "count=200", "rate=100/s", "batch-events=1")})
				assert.OK(t, err)
				doc.Trust.OK = true // in virtual time it says nothing
				l := *doc.Ledger
				got := measure.Ledger{CommittedRead: l.CommittedRead, Phantom: l.Phantom, Lost: l.Lost}
				if got.Phantom != tt.want.Phantom || got.Lost != tt.want.Lost || got.CommittedRead != tt.want.CommittedRead || l.Committed != 160 || l.Aborted != 40 || l.Unread+l.Inexact != 0 || !l.Complete {
					t.Errorf("got %+v", l)
				}
				if c := doc.Checks; len(c) != 1 || c[0].Text != tt.text || doc.ExitCode() != tt.code {
					t.Errorf("checks %+v, exit code %d, want %q and %d", c, doc.ExitCode(), tt.text, tt.code)
				}
				<-m.session.ended
			})
		})
	}
}
