package ledger

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// one returns a ledger of one log with offsets from 100 on.
func one(stamped bool, memory int64) *Ledger {
	return New(Config{Logs: 1, Names: []string{"t-0"}, Start: []int64{100}, LogOf: sameLog, RunID: thisRun, Stamped: stamped, Memory: memory})
}

// whole returns for all logs whether they were read to their ends.
func whole(l *Ledger, yes bool) []bool { return slices.Repeat([]bool{yes}, len(l.logs)) }

func ack(first uint64, n int32, place int64, sum uint32) load.Outcome {
	return load.Outcome{Batch: load.Batch{First: first, Events: n}, Acked: n, Place: place, Sum: sum}
}

func piece1(base int64, n int32, sum uint32) load.Arrival {
	return load.Arrival{Base: base, Events: n, Sum: sum}
}

func TestVerdict(t *testing.T) {
	type lg = measure.Ledger
	for _, tt := range []struct {
		name     string
		do       func(l *Ledger)
		complete bool
		ends     []int64
		want     lg
	}{
		{"nothing", func(*Ledger) {}, true, nil, lg{Complete: true}},
		{"all is well", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 2)})
		}, true, nil, lg{Complete: true, Acked: 10, Read: 10}},
		{"from before the run", func(l *Ledger) {
			l.Arrived([]load.Arrival{piece1(0, 50, 9), piece1(95, 5, 1), piece1(100, 5, 1)})
			l.Fired([]load.Outcome{ack(0, 5, 100, 1)})
		}, true, nil, lg{Complete: true, Acked: 5, Read: 5}},
		{"not read yet", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2), ack(10, 5, 110, 3)})
			l.Arrived([]load.Arrival{piece1(105, 5, 2)})
		}, false, []int64{115}, lg{Acked: 15, Read: 5, Lost: 5, Unread: 5}},
		{"read, and lost beyond the end of a log that became shorter", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 5000, 2)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1)})
		}, true, []int64{105}, lg{Complete: true, Acked: 10, Read: 5, Lost: 5}},
		{"a recreated log", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2), ack(10, 5, 0, 3), ack(15, 5, 5, 4), ack(20, 5, 100, 5)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(0, 5, 3), piece1(5, 5, 4), piece1(100, 5, 5)})
		}, true, nil, lg{Complete: true, Acked: 25, Read: 20, Lost: 5}},
		{"a place taken by another piece of this run", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 100, 2)})
			l.Arrived([]load.Arrival{piece1(100, 5, 2)})
		}, true, nil, lg{Complete: true, Acked: 10, Read: 5, Lost: 5}},
		{"deleted by retention", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2), ack(10, 5, 110, 3)})
			l.Removed(0, 100, 105)
			l.Arrived([]load.Arrival{piece1(110, 5, 3)})
		}, true, nil, lg{Complete: true, Acked: 15, Read: 5, Lost: 5, Unread: 5, Removed: 5}},
		{"read, and removed after", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 2)})
			l.Removed(0, 100, 110)
		}, true, nil, lg{Complete: true, Acked: 10, Read: 10}},
		{"the head of a piece removed", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2), ack(10, 5, 110, 3)})
			l.Removed(0, 100, 107)
			l.Arrived([]load.Arrival{piece1(107, 3, 0), piece1(110, 5, 3)})
		}, true, nil, lg{Complete: true, Acked: 15, Read: 8, Unread: 7, Removed: 7}},
		{"the head of a piece removed, and the rest lost", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2)})
			l.Removed(0, 100, 102)
			l.Arrived([]load.Arrival{piece1(105, 5, 2)})
		}, true, nil, lg{Complete: true, Acked: 10, Read: 5, Unread: 2, Removed: 2, Lost: 3}},
		{"removed and not reached", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2), ack(10, 5, 110, 3)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1)})
			l.Removed(0, 105, 110)
		}, false, []int64{105}, lg{Acked: 15, Read: 5, Unread: 10, Removed: 5}},
		{"places not known, and some removed", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, -1, 1), ack(5, 5, -1, 2)})
			l.Removed(0, 100, 103)
		}, true, nil, lg{Complete: true, Acked: 10, Unread: 3, Removed: 3, Lost: 7}},
		{"other counts", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1)})
			l.Arrived([]load.Arrival{piece1(100, 4, 1)})
		}, true, nil, lg{Complete: true, Acked: 5, Read: 4, Corrupted: 5}},
		{"acked, places not known", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, -1, 1), ack(5, 5, -1, 2)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1)})
		}, true, nil, lg{Complete: true, Acked: 10, Read: 5, Lost: 5}},
		{"acked, places not known, and not all read", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, -1, 1), ack(5, 5, -1, 2)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1)})
		}, false, nil, lg{Acked: 10, Read: 5, Unread: 5}},
		{"acked in part", func(l *Ledger) {
			o := ack(0, 5, 100, 1)
			o.Acked, o.Failed = 3, 2
			l.Fired([]load.Outcome{o})
			l.Arrived([]load.Arrival{piece1(100, 3, 7)})
		}, true, nil, lg{Complete: true, Acked: 3, Read: 3, Inexact: 6}},
		{"never written", func(l *Ledger) {
			l.Fired([]load.Outcome{{Batch: load.Batch{Events: 5}, Failed: 5, Sent: -1, Place: -1, Sum: 1}})
			l.Arrived([]load.Arrival{piece1(100, 5, 1)})
		}, true, nil, lg{Complete: true, Read: 5, Foreign: 5}},
		{"a copy of a copy", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 105, 1)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 1), piece1(110, 5, 1)})
		}, true, nil, lg{Complete: true, Acked: 5, Read: 15, Duplicated: 10}},
		{"the same bytes sent twice", func(l *Ledger) {
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 1)})
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 1)})
		}, true, nil, lg{Complete: true, Acked: 10, Read: 10}},
		{"damaged, and without an answer", func(l *Ledger) {
			l.Fired([]load.Outcome{{Batch: load.Batch{Events: 5}, Unknown: 5, Place: -1, Sum: 1}})
			l.Arrived([]load.Arrival{{Base: 100, Events: 5, Sum: 1, Corrupt: true}})
		}, true, nil, lg{Complete: true, Read: 5, Corrupted: 5}},
		{"late by two", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(10, 5, 100, 1), ack(0, 5, 105, 2), ack(5, 5, 110, 3), ack(15, 5, 115, 4)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 2), piece1(110, 5, 3), piece1(115, 5, 4)})
		}, true, nil, lg{Complete: true, Acked: 20, Read: 20, Reordered: 10}},
		{"invalid numbers", func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 0, 100, 1), ack(0, -3, 100, 1)})
			l.Arrived([]load.Arrival{{Log: 7, Events: 1}, {Log: -1, Events: 1}, {Base: 100}})
		}, true, nil, lg{Complete: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := one(false, 0)
			tt.do(l)
			assert.Same(t, totals(l.Verdict(whole(l, tt.complete), tt.ends)), tt.want)
		})
	}
}

// Missing events of a log that was read to its end are lost, even if reading of another log ended early.
func TestVerdictOfEachLog(t *testing.T) {
	for _, tt := range []struct {
		name           string
		stamped, looks bool
		read, looked   []bool
		lost, unread   [2]uint64
		complete       bool
	}{
		{"both to the end", false, false, []bool{true, true}, nil, [2]uint64{20, 10}, [2]uint64{}, true},
		{"the second to the end", false, false, []bool{false, true}, nil, [2]uint64{0, 10}, [2]uint64{20, 0}, false},
		{"the first to the end", false, false, []bool{true, false}, nil, [2]uint64{20, 0}, [2]uint64{0, 10}, false},
		{"none", false, false, nil, nil, [2]uint64{}, [2]uint64{20, 10}, false},
		{"committed ones of both", true, true, []bool{true, true}, []bool{true, true}, [2]uint64{25, 15}, [2]uint64{}, true},
		{"committed ones of the second", true, true, []bool{true, true}, []bool{false, true}, [2]uint64{20, 15}, [2]uint64{5, 0}, false},
		{"committed ones of the first", true, true, []bool{true, true}, []bool{true, false}, [2]uint64{25, 10}, [2]uint64{0, 5}, false},
		{"committed ones of none", true, true, []bool{true, true}, nil, [2]uint64{20, 10}, [2]uint64{5, 5}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Config{Logs: 2, LogOf: func(s int32) int32 { return s }, RunID: thisRun, Stamped: tt.stamped})
			for log, read := range []int32{20, 30} {
				o, a := ack(0, 10, 0, 1), stamped(0, 0, read)
				a.Log, a.Sum, o.Stream = int32(log), 1, int32(log)
				for i := range a.Stamps {
					a.Stamps[i].Stream = int32(log)
				}
				for i := range int32(4) {
					o.First, o.Place = uint64(10*i), int64(10*i)
					l.Fired([]load.Outcome{o})
					if 10*i < read {
						b := a
						b.Base, b.Events, b.Stamps = int64(10*i), 10, a.Stamps[10*i:10*i+10]
						l.Arrived([]load.Arrival{b})
					}
				}
				if tt.looks {
					a.Stamps = a.Stamps[:read-5]
					l.Visible([]load.Arrival{a})
				}
			}
			if tt.looks {
				l.FinishVisible(tt.looked)
			}
			v := l.Verdict(tt.read, []int64{40, 30})
			lost, unread := [2]uint64{v.Logs[0].Lost, v.Logs[1].Lost}, [2]uint64{v.Logs[0].Unread, v.Logs[1].Unread}
			assert.True(t, lost == tt.lost && unread == tt.unread && v.Complete == tt.complete,
				"got lost %v, unread %v, complete %v, want %v, %v, %v", lost, unread, v.Complete, tt.lost, tt.unread, tt.complete)
		})
	}
}

func TestVerdictOfStamps(t *testing.T) {
	events := func(base int64, first uint64, n int) load.Arrival {
		a := piece1(base, int32(n), 1)
		for i := range n {
			a.Stamps = append(a.Stamps, load.Stamp{Run: thisRun, Index: first + uint64(i), Offset: base + int64(i)})
		}
		return a
	}
	change := func(a load.Arrival, f func(a *load.Arrival)) []load.Arrival { f(&a); return []load.Arrival{a} }
	type lg = measure.Ledger
	for _, tt := range []struct {
		name string
		out  []load.Outcome
		in   []load.Arrival
		want lg
	}{
		{"all is well", []load.Outcome{ack(7, 5, 100, 1)}, []load.Arrival{events(100, 7, 5)}, lg{Acked: 5, Read: 5}},
		{"one damaged", []load.Outcome{ack(7, 5, 100, 1)}, change(events(100, 7, 5), func(a *load.Arrival) {
			a.Corrupt, a.Stamps[0] = true, load.Stamp{Bad: true, Offset: 100}
		}), lg{Acked: 5, Read: 5, Corrupted: 1}},
		{"all damaged", []load.Outcome{ack(7, 2, 100, 1)}, change(events(100, 7, 2), func(a *load.Arrival) {
			a.Corrupt, a.Stamps[0].Bad, a.Stamps[1].Bad = true, true, true
		}), lg{Acked: 2, Read: 2, Corrupted: 2}},
		{"another checksum, and every stamp is intact", []load.Outcome{ack(7, 5, 100, 1)}, change(events(100, 7, 5), func(a *load.Arrival) {
			a.Sum = 2
		}), lg{Acked: 5, Read: 5, Corrupted: 5}},
		{"two swapped within a piece", []load.Outcome{ack(7, 4, 100, 1)}, change(events(100, 7, 4), func(a *load.Arrival) {
			a.Sum = 2
			a.Stamps[1].Index, a.Stamps[2].Index = a.Stamps[2].Index, a.Stamps[1].Index
		}), lg{Acked: 4, Read: 4, Reordered: 1}},
		{"ours and another run's in one piece", []load.Outcome{ack(7, 2, 100, 1)}, change(events(100, 7, 4), func(a *load.Arrival) {
			a.Sum = 2
			a.Stamps[2].Run, a.Stamps[3].Run = 1, 1
		}), lg{Acked: 2, Read: 4, Foreign: 2}},
		{"fired, and no outcome yet", nil, []load.Arrival{events(100, 7, 5)}, lg{Read: 5, Recovered: 5}},
		{"without a checksum, one damaged between others", []load.Outcome{ack(7, 5, 100, 0)}, change(events(100, 7, 5), func(a *load.Arrival) {
			a.Stamps[2].Bad = true
		}), lg{Acked: 5, Read: 5, Corrupted: 1}},
		{"without a checksum, the first damaged", []load.Outcome{ack(7, 5, 100, 0)}, change(events(100, 7, 5), func(a *load.Arrival) {
			a.Stamps[0].Bad = true
		}), lg{Acked: 5, Read: 5, Inexact: 2}},
		{"without a checksum, acked in part", []load.Outcome{{Batch: load.Batch{First: 7, Events: 5}, Acked: 4, Failed: 1}}, []load.Arrival{events(100, 7, 4)}, lg{Acked: 4, Read: 4, Inexact: 8}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, order := range []string{"answers first", "arrivals first"} {
				l := one(true, 0)
				if order == "answers first" {
					l.Fired(tt.out)
				}
				l.Arrived(tt.in)
				if order != "answers first" {
					if len(tt.out) > 0 && tt.out[0].Sum == 0 {
						continue // without the answer first, the pieces are expected to have checksums
					}
					l.Fired(tt.out)
				}
				want := tt.want
				want.Complete = true
				assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want, "%s", order)
			}
		})
	}
}

// TestNothingAcknowledged reads back a run without answers, with enough and with too
// little memory: sent and read events are paired without answers.
func TestNothingAcknowledged(t *testing.T) {
	for name, stamped := range map[string]bool{"batches": false, "stamps": true} {
		t.Run(name, func(t *testing.T) {
			const n = 20_000
			l := one(stamped, 1<<20)
			for i := range int64(n) {
				a := piece1(100+3*i, 3, uint32(i+1))
				for k := range 3 {
					a.Stamps = append(a.Stamps, load.Stamp{Run: thisRun, Index: uint64(3*i) + uint64(k), Offset: a.Base + int64(k)})
				}
				l.Arrived([]load.Arrival{a})
				o := load.Outcome{Batch: load.Batch{First: uint64(3 * i), Events: 3}, Unknown: 3, Place: -1, Sum: a.Sum}
				if i%100 == 0 {
					o.Unknown, o.Failed = 0, 3
				}
				l.Fired([]load.Outcome{o})
			}
			assert.True(t, l.logs[0].recovered != 0, "memory was not short: nothing is tested")
			assert.Equal(t, l.Verdict(whole(l, true), nil).Contradicted, 3*n/100, "events refused and found")
			want := measure.Ledger{Complete: true, Read: 3 * n, Recovered: 3 * n}
			assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want)
		})
	}
}

// TestForgottenOriginals reads copies whose originals were forgotten long ago.
func TestForgottenOriginals(t *testing.T) {
	l := one(false, 32<<10)
	history := l.logs[0].history.max
	base, total := int64(100), 4*history
	for i := range total {
		l.Fired([]load.Outcome{ack(uint64(i), 1, base, uint32(i+1))})
		l.Arrived([]load.Arrival{piece1(base, 1, uint32(i+1))})
		base++
		if i == 2*history {
			// One copy of a piece that is still remembered when it is read, and one of a piece that is not.
			l.Arrived([]load.Arrival{piece1(base, 1, uint32(i)), piece1(base+1, 1, 5)})
			base += 2
		}
	}
	want := measure.Ledger{Complete: true, Acked: uint64(total), Read: uint64(total) + 2, Duplicated: 1, Inexact: 1}
	assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want)
}

// TestSumsFindWhatIsMissing reads back with so little memory that windows keep only
// sums: they still prove that all is well, and a loss is still exact.
func TestSumsFindWhatIsMissing(t *testing.T) {
	const n = 40 * windowSize
	missing := func(i int64) bool { return i == 77_777 || i/windowSize == 20 }
	l := New(Config{Logs: 1, LogOf: sameLog, Memory: 1 << 20})
	var lost uint64
	for i := range int64(n) {
		l.Fired([]load.Outcome{ack(uint64(i), 1, i, uint32(i+1))})
	}
	assert.Must(t, l.logs[0].folded && l.logs[0].ceiling >= 1<<60,
		"folded %v, ceiling %d: nothing is tested", l.logs[0].folded, l.logs[0].ceiling)
	for i := range int64(n) {
		if missing(i) {
			lost++
			continue
		}
		l.Arrived([]load.Arrival{piece1(i, 1, uint32(i+1))})
	}
	// For the window that lacks one event the checksums prove nothing; the one that is missing completely is simply lost.
	want := measure.Ledger{Complete: true, Acked: n, Read: n - lost, Lost: lost, Inexact: windowSize - 1}
	assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want)
}

// TestMemoryIsBounded reports far more than fits, of each kind, and checks the heap.
func TestMemoryIsBounded(t *testing.T) {
	const memory = 3 << 20
	stamp := func(i int64) []load.Stamp { return []load.Stamp{{Run: thisRun, Index: uint64(i), Offset: i}} }
	tests := []struct {
		name    string
		stamped bool
		feed    func(l *Ledger, i int64)
	}{
		{"answers, nothing read", false, func(l *Ledger, i int64) { l.Fired([]load.Outcome{ack(uint64(i), 1, i, uint32(i+1))}) }},
		{"answers with gaps, nothing read", false, func(l *Ledger, i int64) {
			l.Fired([]load.Outcome{ack(uint64(i), 1, i*999, uint32(i+1))})
		}},
		{"foreign pieces", false, func(l *Ledger, i int64) { l.Arrived([]load.Arrival{piece1(2*i, 1, uint32(i+1))}) }},
		{"no answers", false, func(l *Ledger, i int64) {
			l.Fired([]load.Outcome{{Batch: load.Batch{First: uint64(i), Events: 1}, Unknown: 1, Place: -1, Sum: uint32(i + 1)}})
		}},
		{"every other one lost", false, func(l *Ledger, i int64) {
			l.Fired([]load.Outcome{ack(uint64(i), 1, i, uint32(i+1))})
			if i%2 == 0 {
				l.Arrived([]load.Arrival{piece1(i, 1, uint32(i+1))})
			}
		}},
		{"stamps, every other one lost", true, func(l *Ledger, i int64) {
			l.Fired([]load.Outcome{ack(uint64(i), 1, i, uint32(i+1))})
			if i%2 == 0 {
				a := piece1(i, 1, uint32(i+1))
				a.Stamps = stamp(i)
				l.Arrived([]load.Arrival{a})
			}
		}},
		{"stamps without checksums, every other one lost", true, func(l *Ledger, i int64) {
			l.Fired([]load.Outcome{ack(uint64(i), 1, i, 0)})
			if i%2 == 0 {
				a := piece1(i, 1, 0)
				a.Stamps = stamp(i)
				l.Arrived([]load.Arrival{a})
			}
		}},
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := heap()
			l := New(Config{Logs: 1, LogOf: sameLog, RunID: thisRun, Stamped: tt.stamped, Memory: memory})
			for i := range int64(200_000) {
				tt.feed(l, i)
			}
			if got := heap() - before; got > memory {
				t.Errorf("%d KiB in use, %d according to Bytes, of at most %d", got>>10, l.Bytes()>>10, memory>>10)
			}
			v := l.Verdict(whole(l, true), nil)
			if claimed := v.Lost + v.Recovered + v.Duplicated + v.Foreign + v.Inexact; claimed == 0 && v.Acked+v.Read > 0 {
				t.Errorf("nothing is reported: %+v", totals(v))
			}
		})
	}
}

// TestConcurrently lets many goroutines report both sides.
func TestConcurrently(t *testing.T) {
	const logs, n = 3, 20_000
	l := New(Config{Logs: logs, LogOf: func(s int32) int32 { return s }, Memory: 1 << 20})
	var group sync.WaitGroup
	for g := range int32(logs) {
		group.Go(func() {
			for i := range int64(n) {
				o := ack(uint64(2*i), 2, 2*i, uint32(i+1))
				o.Stream = g
				l.Fired([]load.Outcome{o})
			}
		})
		group.Go(func() {
			for i := range int64(n) {
				a := piece1(2*i, 2, uint32(i+1))
				a.Log = g
				l.Arrived([]load.Arrival{a})
			}
		})
	}
	group.Go(func() {
		for range 20 {
			l.Verdict(nil, nil)
		}
	})
	group.Wait()
	want := measure.Ledger{Complete: true, Acked: 2 * logs * n, Read: 2 * logs * n}
	assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want)
}

func TestNames(t *testing.T) {
	l := New(Config{Logs: 2, Names: []string{"events-0"}, LogOf: sameLog})
	v := l.Verdict(whole(l, true), nil)
	assert.True(t, v.Logs[0].Log == "events-0" && v.Logs[1].Log == "1" && v.Method == "batches", "%+v", v)
}

// Events that were read and no longer exist at the end are lost, as far as that can be known.
func TestGone(t *testing.T) {
	for _, tt := range []struct {
		name                string
		copies              int // additional copies of the first piece
		gone, lost, inexact uint64
	}{
		{name: "nothing"},
		{name: "some", gone: 30, lost: 30},
		{name: "all", gone: 100, lost: 100},
		{name: "more than there was", gone: 1000, lost: 100},
		{name: "copies may be the missing ones", copies: 2, gone: 50, lost: 30, inexact: 20},
		{name: "all, with copies", copies: 1, gone: 110, lost: 100, inexact: 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Config{Logs: 1, LogOf: func(int32) int32 { return 0 }})
			at := int64(0)
			for i := range 10 {
				o := load.Outcome{Batch: load.Batch{First: uint64(10 * i), Events: 10}, Acked: 10, Place: at, Sum: uint32(i + 1)}
				l.Fired([]load.Outcome{o})
				l.Arrived([]load.Arrival{{Base: at, Events: 10, Sum: uint32(i + 1)}})
				at += 10
			}
			for range tt.copies {
				l.Arrived([]load.Arrival{{Base: at, Events: 10, Sum: 1}})
				at += 10
			}
			l.Gone(0, tt.gone)
			v := l.Verdict(whole(l, true), nil)
			assert.True(t, v.Lost == tt.lost && v.Inexact == tt.inexact && v.Read == uint64(at)-min(tt.gone, uint64(at)),
				"got %+v, want %d lost, %d inexact", v, tt.lost, tt.inexact)
		})
	}
}
