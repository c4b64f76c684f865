package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// keyed is an event of a compacted log, by stream and index, with its offset and key. A stream below 0 is from another run.
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

// If there are more keys than memory has room for, missing events of the others count neither as lost nor as compacted.
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
	}{{"enough", 64 << 20, 2, 0}, {"too little", 4 * keyBytes * 1000, 1, 1}} {
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

// regroup changes a world to one whose client packs its own batches: no checksums, and
// pieces that are read do not begin and end like batches.
func (w *world) regroup() {
	for i := range w.outcomes {
		w.outcomes[i].Sum = 0
	}
	for log, pieces := range w.pieces {
		var events []load.Arrival
		for _, p := range pieces {
			for i := range p.arrival.Events {
				a := p.arrival
				a.Base, a.Events, a.Sum = p.arrival.Base+int64(i), 1, 0
				if a.Stamps != nil {
					a.Stamps = a.Stamps[i : i+1 : i+1]
				}
				events = append(events, a)
			}
		}
		var out []storedPiece
		for len(events) > 0 {
			a := events[0]
			k := 1
			for want := 1 + w.rnd.IntN(2*w.most+3); k < min(want, len(events)) && events[k].Base == a.Base+int64(k); k++ {
				if a.Stamps != nil {
					a.Stamps = append(a.Stamps, events[k].Stamps...)
				}
			}
			a.Events = int32(k)
			out = append(out, storedPiece{arrival: a})
			events = events[k:]
		}
		w.pieces[log] = out
	}
}

func drawBareWorld(t *rapid.T, stamped bool, faults []int) *world {
	w := newWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "logs"), rapid.IntRange(1, 6).Draw(t, "streams"),
		rapid.SampledFrom([]int{1, 5, 300}).Draw(t, "most"), stamped)
	share := rapid.SampledFrom([]int{0, 1, 10, 100}).Draw(t, "faults in a hundred")
	for range rapid.IntRange(0, 400).Draw(t, "batches") {
		fault := 0
		if w.rnd.IntN(100) < share {
			fault = faults[w.rnd.IntN(len(faults))]
		}
		w.step(fault)
		w.catchUp(false)
	}
	w.finish()
	if stamped {
		w.orderByStamps()
	}
	w.regroup()
	return w
}

// orderByStamps computes the true order if only stamps show it: without the events whose stamps are damaged.
func (w *world) orderByStamps() {
	w.truth.Reordered = 0
	for _, log := range w.pieces {
		top := map[int32]uint64{}
		for _, p := range log {
			if p.batch < 0 || p.copied {
				continue
			}
			for _, s := range p.arrival.Stamps {
				if s.Bad {
					continue
				}
				if s.Index < top[s.Stream] {
					w.truth.Reordered++
				}
				top[s.Stream] = max(top[s.Stream], s.Index+1)
			}
		}
	}
}

func TestWithoutChecksums(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stamped bool
		faults  []int
		method  string
	}{
		{"stamps", true, []int{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15}, "stamps"},
		{"offsets", false, []int{1, 2, 4, 12, 14}, "offsets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawBareWorld(t, tt.stamped, tt.faults)
				l := w.ledger(0)
				patience := rapid.SampledFrom([]int{1, 10, 4096}).Draw(t, "patience")
				for i := range l.logs {
					l.logs[i].compressMin, l.logs[i].compressAt = patience, patience
				}
				// The first of two copies to be read is taken for the event.
				w.feedBoth(l, rapid.SampledFrom([]int{0, 3, 50, -1}).Draw(t, "disorder"), 0)
				got := l.Verdict(whole(l, true), w.ends)
				if diff := cmp.Diff(w.truth, totals(got)); diff != "" {
					t.Fatalf("truth, verdict:\n%s", diff)
				}
				if got := got.Contradicted; got != w.contradicted {
					t.Fatalf("%d events were refused and found, want %d", got, w.contradicted)
				}
				if checked := len(got.Unchecked) == 0; checked != (got.Method != "offsets") {
					t.Fatalf("by %s, %q were not checked", got.Method, got.Unchecked)
				}
				assert.Must(t, got.Acked <= 0 || got.Method == tt.method, "method %q, want %q", got.Method, tt.method)
			})
		})
	}
}

func TestNothingUncheckedIsClaimedWithoutChecksums(t *testing.T) {
	// Offsets alone do not identify the events there.
	sound := []int{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15}
	for name, stamped := range map[string]bool{"stamps": true, "offsets": false} {
		all := sound
		// They do not show either that acked events lie after other ones.
		beyond := []string{"reordered"}
		if stamped {
			beyond = nil
			all = append([]int{10}, sound...)
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawBareWorld(t, stamped, all)
				l := w.ledger(rapid.SampledFrom([]int64{0, 2000, 20_000}).Draw(t, "memory"))
				w.feedBoth(l, rapid.SampledFrom([]int{0, 3, -1}).Draw(t, "disorder"), 0)
				checkClaims(t, w, l.Verdict(whole(l, true), w.ends), beyond...)
			})
		})
	}
}

// A piece whose events all identify themselves, and which is damaged elsewhere, is found and corrupt, as with checksums.
func TestDamagedBesideTheStamps(t *testing.T) {
	l := New(Config{Logs: 1, LogOf: func(int32) int32 { return 0 }, RunID: 7, Stamped: true})
	l.Fired([]load.Outcome{{Batch: load.Batch{Events: 5}, Acked: 5, Place: 0}})
	for i := range int64(5) {
		if i == 3 {
			continue // lost
		}
		l.Arrived([]load.Arrival{{Base: i, Events: 1, ProducerID: -1, Corrupt: i == 1, Stamps: []load.Stamp{{Run: 7, Index: uint64(i), Offset: i}}}})
	}
	v := l.Verdict(whole(l, true), nil)
	assert.True(t, v.Acked == 5 && v.Read == 4 && v.Corrupted == 1 && v.Lost == 1 && v.Inexact == 0 && v.Foreign == 0 &&
		v.Recovered == 0, "verdict %+v; want 4 of 5 read, 1 corrupted, 1 lost", v)
}
