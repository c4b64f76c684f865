package ledger

import (
	"testing"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// keyed is an event of a compacted log, by stream and index, with its offset and key. A
// stream below 0 is from another run.
type keyed struct {
	offset     int64
	stream     int32
	index, key uint64
}

func arrivedKeys(es ...keyed) (as []load.Arrival) {
	for _, e := range es {
		s := load.Stamp{Run: thisRun, Stream: e.stream, Index: e.index, Offset: e.offset, Key: e.key}
		if e.stream < 0 {
			s.Run = thisRun + 1
		}
		as = append(as, load.Arrival{Base: e.offset, Events: 1, Stamps: []load.Stamp{s}})
	}
	return as
}

// ackAt returns an answer without a checksum.
func ackAt(stream int32, first uint64, n int32, place int64) load.Outcome {
	o := ack(first, n, place, 0)
	o.Stream = stream
	return o
}

func TestCompacted(t *testing.T) {
	type lg = measure.Ledger
	for _, tt := range []struct {
		name     string
		do       func(l *Ledger)
		complete bool
		want     lg
	}{
		{"everything is there", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 4, 100)})
			l.Arrived(arrivedKeys(keyed{100, 0, 0, 1}, keyed{101, 0, 1, 2}, keyed{102, 0, 2, 1}, keyed{103, 0, 3, 2}))
		}, true, lg{Complete: true, Acked: 4, Read: 4}},
		{"the last of each key", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 4, 100)})
			l.Arrived(arrivedKeys(keyed{102, 0, 2, 1}, keyed{103, 0, 3, 2}))
		}, true, lg{Complete: true, Acked: 4, Read: 2, Compacted: 2}},
		{"read before the answer", func(l *Ledger) {
			l.Arrived(arrivedKeys(keyed{102, 0, 2, 1}, keyed{103, 0, 3, 2}))
			l.Fired([]load.Outcome{ackAt(0, 0, 4, 100)})
		}, true, lg{Complete: true, Acked: 4, Read: 2, Compacted: 2}},
		{"the last of a key is not there, an older one is", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 4, 100)})
			l.Arrived(arrivedKeys(keyed{100, 0, 0, 1}, keyed{103, 0, 3, 2}))
		}, true, lg{Complete: true, Acked: 4, Read: 2, Lost: 1, Compacted: 1}},
		{"nothing of a key is there", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 4, 100)})
			l.Arrived(arrivedKeys(keyed{103, 0, 3, 2}))
		}, true, lg{Complete: true, Acked: 4, Read: 1, Lost: 1, Compacted: 2}},
		{"answers out of order", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 2, 2, 102), ackAt(0, 0, 2, 100)})
			l.Arrived(arrivedKeys(keyed{102, 0, 2, 1}, keyed{103, 0, 3, 2}))
		}, true, lg{Complete: true, Acked: 4, Read: 2, Compacted: 2}},
		{"replaced by a foreign one", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 2, 100)})
			l.Arrived(arrivedKeys(keyed{102, -1, 9, 1}, keyed{103, -1, 9, 2}))
		}, true, lg{Complete: true, Acked: 2, Read: 2, Compacted: 2, Foreign: 2}},
		{"a foreign one is older", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 2, 102)})
			l.Arrived(arrivedKeys(keyed{100, -1, 9, 1}, keyed{103, 0, 1, 2}))
		}, true, lg{Complete: true, Acked: 2, Read: 2, Lost: 1, Foreign: 1}},
		{"replaced by one that was not answered", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 2, 100), {Batch: load.Batch{First: 2, Events: 2}, Unknown: 2, Place: -1}})
			l.Arrived(arrivedKeys(keyed{102, 0, 2, 1}, keyed{103, 0, 3, 2}))
		}, true, lg{Complete: true, Acked: 2, Read: 2, Recovered: 2, Compacted: 2}},
		{"two clients", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(1, 0, 2, 102), ackAt(0, 0, 2, 100)})
			l.Arrived(arrivedKeys(keyed{102, 1, 0, 1}, keyed{103, 1, 1, 2}))
		}, true, lg{Complete: true, Acked: 4, Read: 2, Compacted: 2}},
		{"two clients, last one not known", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(1, 0, 2, -1), ackAt(0, 0, 2, -1)})
			l.Arrived(arrivedKeys(keyed{102, 1, 0, 1}, keyed{103, 1, 1, 2}))
		}, true, lg{Complete: true, Acked: 4, Read: 2, Unread: 2}},
		{"one client, places not known", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 2, -1), ackAt(0, 2, 2, -1)})
			l.Arrived(arrivedKeys(keyed{101, 0, 1, 2}, keyed{102, 0, 2, 1}))
		}, true, lg{Complete: true, Acked: 4, Read: 2, Lost: 1, Compacted: 1}},
		{"not read to the end", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 4, 100)})
			l.Arrived(arrivedKeys(keyed{102, 0, 2, 1}))
		}, false, lg{Acked: 4, Read: 1, Unread: 1, Compacted: 2}},
		{"not read to the end, where a later one may lie", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 4, 100)})
			l.Arrived(arrivedKeys(keyed{103, 0, 3, 2}))
		}, false, lg{Acked: 4, Read: 1, Unread: 1, Compacted: 2}},
		{"compacted, and removed", func(l *Ledger) {
			l.Fired([]load.Outcome{ackAt(0, 0, 4, 100)})
			l.Removed(0, 100, 103)
			l.Arrived(arrivedKeys(keyed{103, 0, 3, 2}))
		}, true, lg{Complete: true, Acked: 4, Read: 1, Unread: 1, Removed: 1, Compacted: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Config{Logs: 1, Start: []int64{100}, LogOf: sameLog, RunID: thisRun, Stamped: true, Keys: evenOdd})
			tt.do(l)
			assert.Same(t, totals(l.Verdict(whole(l, tt.complete), nil)), tt.want)
		})
	}
}

// evenOdd gives events two alternating keys.
func evenOdd(dst []uint64, batch *load.Batch) []uint64 {
	for i := range uint64(batch.Events) {
		dst = append(dst, 1+(batch.First+i)%2)
	}
	return dst
}

// If there are more keys than memory has room for, missing events of the others count
// neither as lost nor as compacted.
func TestTooManyKeys(t *testing.T) {
	const n = 2000
	own := func(dst []uint64, batch *load.Batch) []uint64 {
		for i := range uint64(batch.Events) {
			dst = append(dst, 1+batch.First+i)
		}
		return dst
	}
	for _, tt := range []struct {
		name         string
		memory       int64
		lost, unread uint64
	}{
		{"enough", 64 << 20, 2, 0},
		{"too little", 4 * keyBytes * 1000, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Config{Logs: 1, LogOf: sameLog, RunID: thisRun, Stamped: true, Memory: tt.memory, Keys: own})
			l.Fired([]load.Outcome{ackAt(0, 0, n, 0)})
			for i := range uint64(n) {
				if i != 10 && i != n-10 {
					l.Arrived(arrivedKeys(keyed{int64(i), 0, i, 1 + i}))
				}
			}
			v := l.Verdict(whole(l, true), nil)
			left := l.KeysLeft()
			assert.True(t, left > 0 == (tt.unread > 0), "KeysLeft returns %d", left)
			assert.True(t, v.Lost == tt.lost && v.Unread == tt.unread && v.Compacted == 0,
				"lost %d, unread %d, compacted %d; want %d, %d and none", v.Lost, v.Unread, v.Compacted, tt.lost, tt.unread)
		})
	}
}
