package ledger

import (
	"testing"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// stamped returns consecutive events of this run, as they are read from an offset on.
func stamped(base int64, first uint64, n int32) load.Arrival {
	a := load.Arrival{Base: base, Events: n}
	for i := range n {
		a.Stamps = append(a.Stamps, load.Stamp{Run: thisRun, Index: first + uint64(i), Offset: base + int64(i)})
	}
	return a
}

func TestTransactions(t *testing.T) {
	type lg = measure.Ledger
	for _, tt := range []struct {
		name          string
		read, visible []load.Arrival
		whole         bool
		feed          func(l *Ledger)
		want          lg
	}{
		{
			"all is well",
			[]load.Arrival{stamped(0, 0, 30)},
			[]load.Arrival{stamped(0, 0, 10), stamped(20, 20, 10)},
			true, nil,
			lg{Acked: 30, Read: 30, Committed: 20, CommittedRead: 20, Aborted: 10},
		},
		{
			"an aborted one is visible",
			[]load.Arrival{stamped(0, 0, 30)},
			[]load.Arrival{stamped(0, 0, 13), stamped(20, 20, 10)},
			true, nil,
			lg{Acked: 30, Read: 30, Committed: 20, CommittedRead: 20, Aborted: 10, Phantom: 3},
		},
		{
			"a committed one is hidden",
			[]load.Arrival{stamped(0, 0, 30)},
			[]load.Arrival{stamped(0, 0, 8), stamped(20, 20, 10)},
			true, nil,
			lg{Acked: 30, Read: 30, Lost: 2, Committed: 20, CommittedRead: 18, Aborted: 10},
		},
		{
			"aborted ones are missing",
			[]load.Arrival{stamped(0, 0, 10), stamped(20, 20, 10)},
			[]load.Arrival{stamped(0, 0, 10), stamped(20, 20, 10)},
			true, nil,
			lg{Acked: 30, Read: 20, Committed: 20, CommittedRead: 20, Aborted: 10},
		},
		{
			"committed ones are missing",
			[]load.Arrival{stamped(0, 0, 20)},
			[]load.Arrival{stamped(0, 0, 10)},
			true, nil,
			lg{Acked: 30, Read: 20, Lost: 10, Committed: 20, CommittedRead: 10, Aborted: 10},
		},
		{
			"the reader of committed ones was late",
			[]load.Arrival{stamped(0, 0, 30)},
			[]load.Arrival{stamped(20, 20, 10)},
			true, func(l *Ledger) { l.Hidden(0, 0, 10) },
			lg{Acked: 30, Read: 30, Unread: 10, Removed: 10, Committed: 20, CommittedRead: 10, Aborted: 10},
		},
		{
			"the reader of committed ones did not reach the end",
			[]load.Arrival{stamped(0, 0, 30)},
			[]load.Arrival{stamped(0, 0, 10)},
			false, nil,
			lg{Acked: 30, Read: 30, Unread: 10, Committed: 20, CommittedRead: 10, Aborted: 10},
		},
		{
			"a transaction whose end is not known",
			[]load.Arrival{stamped(0, 0, 30)},
			[]load.Arrival{stamped(0, 0, 10)},
			true, func(l *Ledger) { l.Uncommitted(0, 20, 10, false) },
			lg{Acked: 30, Read: 30, Committed: 10, CommittedRead: 10, Aborted: 10},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Config{Logs: 1, LogOf: sameLog, RunID: thisRun, Stamped: true})
			l.Fired([]load.Outcome{ackAt(0, 0, 10, 0), ackAt(0, 10, 10, 10), ackAt(0, 20, 10, 20)})
			l.Arrived(tt.read)
			l.Uncommitted(0, 10, 10, true)
			l.Visible(tt.visible)
			if tt.feed != nil {
				tt.feed(l)
			}
			l.FinishVisible(whole(l, tt.whole))
			tt.want.Complete = tt.whole
			assert.Same(t, totals(l.Verdict(whole(l, true), nil)), tt.want)
		})
	}
}
