package riemann

import (
	"testing"

	"pgregory.net/rapid"

	"carronade/load"
)

// However runs are split and shortened, their messages stay in order, each
// occurs once, and the sums do not change.
func TestRunsStayConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q runs
		var passed, first, seq uint64
		var events, bytes, wire int64
		nextSeq, nextFirst := uint64(0), uint64(0)
		var gotEvents, gotBytes, gotWire int64
		complete := func(r run) {
			if r.batch.Seq != nextSeq || r.batch.First != nextFirst {
				t.Fatalf("got batch %d with event %d, want %d with %d", r.batch.Seq, r.batch.First, nextSeq, nextFirst)
			}
			nextSeq += r.batches()
			nextFirst += uint64(r.batch.Events)
			gotEvents += int64(r.batch.Events)
			gotBytes += r.batch.Bytes
			gotWire += r.wire
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1: // send
				batches := rapid.Uint64Range(1, 50).Draw(t, "batches")
				each := rapid.Uint64Range(1, 5).Draw(t, "each")
				size := int64(batches*each) * rapid.Int64Range(10, 99).Draw(t, "size")
				size += rapid.Int64Range(0, 7).Draw(t, "uneven")
				r := q.push()
				passed += batches
				*r = run{last: passed, wire: size + 7, sent: -1, batch: load.Batch{
					Seq: seq, First: first, Events: int32(batches * each), Bytes: size, Batches: int32(batches),
				}}
				seq, first = seq+batches, first+batches*each
				events, bytes, wire = events+int64(batches*each), bytes+size, wire+size+7
			case 2: // a part was written
				if q.empty() {
					continue
				}
				i := rapid.Uint64Range(q.head, q.tail-1).Draw(t, "run")
				if n := q.at(i).batches(); n > 1 {
					q.split(i, rapid.Uint64Range(1, n-1).Draw(t, "cut"))
				}
			case 3: // answers
				if q.empty() {
					continue
				}
				r := q.at(q.head)
				if n := rapid.Uint64Range(1, r.batches()).Draw(t, "answers"); n < r.batches() {
					complete(r.cut(n))
				} else {
					complete(*r)
					q.head++
				}
			}
		}
		for last := nextSeq; !q.empty(); q.head++ {
			r := q.at(q.head)
			if r.first() != last {
				t.Fatalf("a run begins with message %d, want %d", r.first(), last)
			}
			last = r.last
			complete(*r)
		}
		if gotEvents != events || gotBytes != bytes || gotWire != wire || nextSeq != seq {
			t.Errorf("got %d events, %d bytes, %d on the wire, want %d, %d, %d", gotEvents, gotBytes, gotWire, events, bytes, wire)
		}
	})
}
