package ledger

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

// TestRemovedAtRandom loses pieces and removes ranges of a log before they are read, at random, and reports this to a ledger of
// each kind: lost events that reading passed are lost, and removed ones are unread, event by event.
func TestRemovedAtRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var out []load.Outcome
		end := int64(100)
		for end < 1000 {
			n := 1 + r.Int32N(30)
			out = append(out, ack(uint64(end-100), n, end, 1+uint32(end)))
			end += int64(n)
		}
		gone := ranges{}
		for i := r.IntN(20); i < len(out); i += 1 + r.IntN(20) {
			// Reading had just passed the previous piece when the following ones were removed.
			if at := out[i].Place; !gone.beyond(uint64(at)) {
				gone.add(uint64(at), uint64(min(at+1+r.Int64N(200), end)))
			}
		}
		lostAt := make([]bool, len(out))
		for i := range lostAt {
			lostAt[i] = r.IntN(10) == 0
		}
		for _, method := range []string{"batches", "batches and stamps", "stamps", "offsets"} {
			l := New(Config{Logs: 1, Start: []int64{100}, LogOf: sameLog, RunID: thisRun, Stamped: method != "batches" && method != "offsets"})
			bare := method == "stamps" || method == "offsets"
			for _, s := range gone.spans {
				l.Removed(0, int64(s.lo), int64(s.hi))
			}
			var lost, unread uint64
			for i, o := range out {
				if bare {
					o.Sum = 0
				}
				l.Fired([]load.Outcome{o})
				lo, hi := uint64(o.Place), uint64(o.Place)+uint64(o.Events)
				unread += gone.count(lo, hi)
				_, left := gone.cut(lo, hi)
				if lostAt[i] {
					lost += length(left)
					continue
				}
				for _, x := range left {
					a := piece1(int64(x.lo), int32(x.hi-x.lo), o.Sum)
					if x.hi-x.lo < hi-lo {
						a.Sum = 0 // the batch is not read as it was sent
					}
					if l.cfg.Stamped {
						for at := x.lo; at < x.hi; at++ {
							a.Stamps = append(a.Stamps, load.Stamp{Run: thisRun, Index: o.First + at - lo, Offset: int64(at)})
						}
					}
					l.Arrived([]load.Arrival{a})
				}
			}
			v := l.Verdict(whole(l, true), nil)
			switch got := v.Read + v.Lost + v.Unread; {
			case got != v.Acked || v.Removed != v.Unread || v.Duplicated+v.Reordered+v.Corrupted+v.Recovered+v.Foreign+v.Inexact > 0:
				t.Fatalf("seed %d, %s: %+v", seed, method, totals(v))
			case method == "stamps":
				// The place of a missing event is not known: as many may be removed as there was room for.
				assert.Must(t, v.Lost+v.Unread == lost+unread && v.Lost <= lost,
					"seed %d, %s: lost %d, unread %d; want %d and %d, or more unread", seed, method, v.Lost, v.Unread, lost, unread)
			case v.Lost != lost || v.Unread != unread:
				t.Fatalf("seed %d, %s: lost %d, unread %d; want %d and %d", seed, method, v.Lost, v.Unread, lost, unread)
			}
		}
	}
}

// events is how many events spans have.
func events(all []Span) (n uint64) {
	for _, s := range all {
		n += s.Hi - s.Lo
	}
	return n
}

// checkPlaces: the spans have as many events as the verdict, if there is room for all and if it is
// exact; of copies only with stamps, since without them it is not known of what they are.
func checkPlaces(t *rapid.T, got measure.Ledger, p *Places, stamped bool) {
	t.Helper()
	for _, k := range []struct {
		name  string
		spans []Span
		count uint64
		known bool
	}{
		{"lost", p.Lost, got.Lost, true},
		{"duplicated", p.Duplicated, got.Duplicated, stamped},
		{"reordered", p.Reordered, got.Reordered, true},
	} {
		if n := events(k.spans); n != k.count && k.known && len(k.spans) < MostPlaces && got.Inexact == 0 {
			t.Fatalf("%d %s events have a place, want %d", n, k.name, k.count)
		} else if n > k.count {
			t.Fatalf("%d %s events have a place, of %d", n, k.name, k.count)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stamped bool
		do      func(l *Ledger)
		want    Places
	}{
		{"all is well", false, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 2)})
		}, Places{}},
		{"lost", false, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2), ack(10, 5, 110, 3)})
			l.Arrived([]load.Arrival{piece1(105, 5, 2)})
		}, Places{Lost: []Span{{0, 0, 5}, {0, 10, 15}}}},
		{"late", false, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(10, 5, 100, 1), ack(0, 5, 105, 2), ack(5, 5, 110, 3)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 2), piece1(110, 5, 3)})
		}, Places{Reordered: []Span{{0, 0, 10}}}},
		{"a copy", true, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1)})
			a, again := stamped(100, 0, 5), stamped(105, 0, 5)
			a.Sum, again.Sum = 1, 1
			l.Arrived([]load.Arrival{a, again})
		}, Places{Duplicated: []Span{{0, 0, 5}}}},
		{"a part of a batch is lost", true, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 0)})
			l.Arrived([]load.Arrival{stamped(100, 0, 3)})
		}, Places{Lost: []Span{{0, 3, 5}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := one(tt.stamped, 0)
			tt.do(l)
			if _, got := l.Places(whole(l, true), nil); !cmp.Equal(tt.want, got) {
				t.Error(cmp.Diff(tt.want, got))
			}
		})
	}
}

// TestMostPlaces: more spans than there is room for are left out.
func TestMostPlaces(t *testing.T) {
	l := one(false, 0)
	for i := range uint64(MostPlaces + 10) {
		l.Fired([]load.Outcome{ack(2*i, 1, int64(2*i), uint32(i+1))})
	}
	v, got := l.Places(whole(l, true), nil)
	assert.True(t, len(got.Lost) == MostPlaces && v.Lost == MostPlaces+10,
		"%d of %d have a place, want %d", len(got.Lost), v.Lost, MostPlaces)
}
