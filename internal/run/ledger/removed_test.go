package ledger

import (
	"math/rand/v2"
	"testing"

	"carronade/load"
	"carronade/test/testkit/assert"
)

// TestRemovedAtRandom loses pieces and removes ranges of a log before they are read, at
// random, and reports this to a ledger of each kind: lost events that reading passed
// are lost, and removed ones are unread, event by event.
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
			// Reading had just passed the previous piece when the following ones were
			// removed.
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
				// The place of a missing event is not known: as many may be removed as
				// there was room for.
				assert.Must(t, v.Lost+v.Unread == lost+unread && v.Lost <= lost,
					"seed %d, %s: lost %d, unread %d; want %d and %d, or more unread", seed, method, v.Lost, v.Unread, lost, unread)
			case v.Lost != lost || v.Unread != unread:
				t.Fatalf("seed %d, %s: lost %d, unread %d; want %d and %d", seed, method, v.Lost, v.Unread, lost, unread)
			}
		}
	}
}
