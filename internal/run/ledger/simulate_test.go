package ledger

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// The same worlds are drawn each time, so that a failure is caused by a change;
// CARRONADE_TEST_WORLDS=n draws n other worlds for each test, as make soak does.
func TestMain(m *testing.M) {
	flag.Parse()
	if n := os.Getenv("CARRONADE_TEST_WORLDS"); n != "" {
		flag.Set("rapid.checks", n)
	} else if flag.Lookup("rapid.seed").Value.String() == "0" {
		flag.Set("rapid.seed", "20")
	}
	os.Exit(m.Run())
}

const thisRun = 0xca220

// A world simulates a producer, logs with faults, and the true result.
type world struct {
	rnd           *rand.Rand
	logs, streams int
	stamped       bool
	most          int // maximum events of a batch

	next     []uint64 // index, by stream
	ends     []int64  // by log
	start    []int64
	outcomes []load.Outcome
	pieces   [][]storedPiece // by log, in order
	deferred []func()
	sums     uint32

	truth        measure.Ledger
	contradicted uint64
}

// storedPiece is a piece in a log.
type storedPiece struct {
	arrival load.Arrival
	batch   int // index into outcomes; -1: foreign
	copied  bool
}

func newWorld(seed uint64, logs, streams, most int, stamped bool) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 1)), logs: logs, streams: streams, stamped: stamped, most: most,
		next: make([]uint64, streams), ends: make([]int64, logs), pieces: make([][]storedPiece, logs),
	}
	for i := range w.ends {
		w.ends[i] = w.rnd.Int64N(100_000)
	}
	w.start = slices.Clone(w.ends)
	return w
}

func (w *world) logOf(stream int32) int32 { return stream % int32(w.logs) }

// batch returns the next batch of a random stream.
func (w *world) batch() load.Outcome {
	s := int32(w.rnd.IntN(w.streams))
	n := int32(1 + w.rnd.IntN(w.most))
	o := load.Outcome{Batch: load.Batch{Stream: s, First: w.next[s], Events: n}, Place: -1}
	w.next[s] += uint64(n)
	w.sums++
	o.Sum = w.sums * 2654435761 // always different, never 0
	return o
}

// store appends a piece to a log, and returns its base.
func (w *world) store(log int32, batch int, o load.Outcome, change func(a *load.Arrival)) int64 {
	a := load.Arrival{Log: log, Base: w.ends[log], Events: o.Events, Sum: o.Sum, ProducerID: -1}
	if w.stamped {
		a.Stamps = make([]load.Stamp, o.Events)
		for i := range a.Stamps {
			a.Stamps[i] = load.Stamp{Run: thisRun, Stream: o.Stream, Index: o.First + uint64(i), Offset: a.Base + int64(i)}
		}
	}
	w.ends[log] += int64(o.Events)
	if change != nil {
		change(&a)
	}
	w.pieces[log] = append(w.pieces[log], storedPiece{arrival: a, batch: batch})
	w.truth.Read += uint64(o.Events)
	return a.Base
}

func (w *world) acked(o load.Outcome) load.Outcome {
	o.Acked = o.Events
	w.truth.Acked += uint64(o.Events)
	return o
}

// step sends one batch, or does something else, with one of the faults.
func (w *world) step(fault int) {
	o := w.batch()
	log, id, n := w.logOf(o.Stream), len(w.outcomes), uint64(o.Events)
	unknown := func() { o.Unknown, o.Class = o.Events, load.Timeout }
	refused := func() { o.Failed, o.Class = o.Events, load.Rejected }
	switch fault {
	default: // nothing wrong
		o = w.acked(o)
		o.Place = w.store(log, id, o, nil)
	case 1: // lost
		o = w.acked(o)
		o.Place = w.ends[log]
		w.ends[log] += int64(n)
		w.truth.Lost += n
	case 2: // without an answer, and not stored
		unknown()
	case 3: // without an answer, and stored
		unknown()
		w.store(log, id, o, nil)
		w.truth.Recovered += n
	case 4: // refused
		refused()
	case 5: // refused, and stored
		refused()
		w.store(log, id, o, nil)
		w.truth.Recovered += n
		w.contradicted += n
	case 6: // twice, the copy after the original
		o = w.acked(o)
		o.Place = w.store(log, id, o, nil)
		w.copy(log, id, o)
	case 7: // twice, the copy before the original
		o = w.acked(o)
		w.copy(log, id, o)
		o.Place = w.store(log, id, o, nil)
	case 8: // without an answer, and stored twice
		unknown()
		w.store(log, id, o, nil)
		w.copy(log, id, o)
		w.truth.Recovered += n
	case 9: // another checksum
		o = w.acked(o)
		o.Place = w.store(log, id, o, func(a *load.Arrival) { a.Sum ^= 1 << w.rnd.IntN(32) })
		w.truth.Corrupted += n
	case 10: // a flipped bit under the same checksum
		o = w.acked(o)
		damaged := n
		o.Place = w.store(log, id, o, func(a *load.Arrival) {
			a.Corrupt = true
			if w.stamped {
				damaged = 1
				a.Stamps[w.rnd.IntN(len(a.Stamps))] = load.Stamp{Bad: true, Offset: -1}
			}
		})
		w.truth.Corrupted += damaged
	case 11: // foreign
		w.next[o.Stream] -= n
		w.store(log, -1, o, func(a *load.Arrival) {
			for i := range a.Stamps {
				a.Stamps[i].Run++
			}
		})
		w.truth.Foreign += n
		return
	case 12: // a hole, as left by markers and compaction
		w.next[o.Stream] -= n
		w.ends[log] += int64(n)
		return
	case 13: // not where the answer says
		o = w.acked(o)
		o.Place = w.ends[log]
		w.ends[log] += int64(n)
		w.store(log, id, o, nil)
	case 14: // late
		o = w.acked(o)
		w.outcomes = append(w.outcomes, o)
		w.deferred = append(w.deferred, func() { w.outcomes[id].Place = w.store(log, id, o, nil) })
		return
	case 15: // late, without an answer
		unknown()
		w.outcomes = append(w.outcomes, o)
		w.truth.Recovered += n
		w.deferred = append(w.deferred, func() { w.store(log, id, o, nil) })
		return
	}
	w.outcomes = append(w.outcomes, o)
}

const faults = 16

func (w *world) copy(log int32, id int, o load.Outcome) {
	w.store(log, id, o, nil)
	p := w.pieces[log]
	p[len(p)-1].copied = true
	w.truth.Duplicated += uint64(o.Events)
}

// catchUp stores some of the late pieces.
func (w *world) catchUp(all bool) {
	for len(w.deferred) > 0 && (all || w.rnd.IntN(2) == 0) {
		i := w.rnd.IntN(len(w.deferred))
		f := w.deferred[i]
		w.deferred = slices.Delete(w.deferred, i, i+1)
		f()
	}
}

// finish computes the true order by its definition.
func (w *world) finish() {
	w.catchUp(true)
	for _, log := range w.pieces {
		top := map[int32]uint64{}
		for _, p := range log {
			if p.batch < 0 || p.copied {
				continue
			}
			o := w.outcomes[p.batch]
			if o.First < top[o.Stream] {
				w.truth.Reordered += uint64(o.Events)
			}
			top[o.Stream] = max(top[o.Stream], o.First+uint64(o.Events))
		}
	}
	// Damaged stamps have no valid offset: set the offsets of all stamps from the base.
	for _, log := range w.pieces {
		for _, p := range log {
			for i := range p.arrival.Stamps {
				p.arrival.Stamps[i].Offset = p.arrival.Base + int64(i)
			}
		}
	}
	w.truth.Complete = true
}

// feed reports everything to a ledger: each side in order, nearly in order or in random order, the two sides interleaved.
func (w *world) feed(l *Ledger, disorder int) { w.feedBoth(l, disorder, disorder) }

func (w *world) feedBoth(l *Ledger, disorder, readDisorder int) {
	outcomes := slices.Clone(w.outcomes)
	var arrivals []load.Arrival
	for _, log := range w.pieces {
		for _, p := range log {
			arrivals = append(arrivals, p.arrival)
		}
	}
	// Logs are read in parallel.
	slices.SortStableFunc(arrivals, func(a, b load.Arrival) int {
		return int((a.Base - w.start[a.Log]) - (b.Base - w.start[b.Log]))
	})
	shuffle(w.rnd, outcomes, disorder)
	shuffle(w.rnd, arrivals, readDisorder)
	readAhead := w.rnd.IntN(3)
	for len(outcomes)+len(arrivals) > 0 {
		n := 1 + w.rnd.IntN(20)
		feedOutcome := w.rnd.IntN(2) == 0
		switch readAhead { // acks first, or reading first, or both at once
		case 1:
			feedOutcome = len(outcomes) > 0
		case 2:
			feedOutcome = len(arrivals) == 0
		}
		if feedOutcome {
			n = min(n, len(outcomes))
			l.Fired(outcomes[:n])
			outcomes = outcomes[n:]
		} else {
			n = min(n, len(arrivals))
			l.Arrived(arrivals[:n])
			arrivals = arrivals[n:]
		}
	}
}

// shuffle moves elements by about disorder places; -1: to any place.
func shuffle[T any](rnd *rand.Rand, s []T, disorder int) {
	if disorder < 0 {
		rnd.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
		return
	}
	for i := range s {
		j := min(i+rnd.IntN(disorder+1), len(s)-1)
		s[i], s[j] = s[j], s[i]
	}
}

func (w *world) ledger(memory int64) *Ledger {
	return New(Config{Logs: w.logs, Start: w.start, LogOf: w.logOf, RunID: thisRun, Stamped: w.stamped, Memory: memory})
}

func totals(v measure.Ledger) measure.Ledger {
	v.Logs, v.Method, v.Contradicted, v.Unchecked = nil, "", 0, nil // tested separately
	return v
}

func drawWorld(t *rapid.T, stamped bool) *world {
	w := newWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "logs"), rapid.IntRange(1, 6).Draw(t, "streams"),
		rapid.SampledFrom([]int{1, 5, 3000}).Draw(t, "most"), stamped)
	share := rapid.SampledFrom([]int{0, 1, 10, 100}).Draw(t, "faults in a hundred")
	only := rapid.IntRange(-1, faults-1).Draw(t, "only")
	for range rapid.IntRange(0, 600).Draw(t, "batches") {
		fault := 0
		if w.rnd.IntN(100) < share {
			if fault = only; only < 0 {
				fault = w.rnd.IntN(faults)
			}
		}
		w.step(fault)
		w.catchUp(false)
	}
	w.finish()
	return w
}

func TestEveryFaultIsReportedExactly(t *testing.T) {
	for name, stamped := range map[string]bool{"batches": false, "stamps": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorld(t, stamped)
				l := w.ledger(0)
				// A log of hundreds of pieces must do the same as a log of millions.
				patience := rapid.SampledFrom([]int{1, 10, 4096}).Draw(t, "patience")
				for i := range l.logs {
					l.logs[i].compressMin, l.logs[i].compressAt = patience, patience
				}
				disorder := rapid.SampledFrom([]int{0, 3, 50, -1}).Draw(t, "disorder")
				for i := range l.logs {
					// With so few pieces, the ledger would notice too late.
					l.logs[i].inOrder = disorder == 0
				}
				w.feed(l, disorder)
				got := l.Verdict(whole(l, true), w.ends)
				if diff := cmp.Diff(w.truth, totals(got)); diff != "" {
					t.Fatalf("truth, verdict:\n%s", diff)
				}
				if got := got.Contradicted; got != w.contradicted {
					t.Fatalf("%d events were refused and found, want %d", got, w.contradicted)
				}
				_, places := l.Places(whole(l, true), w.ends)
				checkPlaces(t, got, &places, stamped)
				if again := l.Verdict(whole(l, true), w.ends); !cmp.Equal(got, again) {
					t.Fatalf("a second verdict differs:\n%s", cmp.Diff(got, again))
				}
				var sum measure.LedgerLog
				for _, g := range got.Logs {
					sum.Lost += g.Lost
					sum.Read += g.Read
				}
				assert.Must(t, sum.Lost == got.Lost && sum.Read == got.Read, "the logs sum to %+v, the total is %+v", sum, got)
			})
		})
	}
}

// TestNothingIsClaimedUnchecked gives far too little memory: whatever is claimed must
// be true, and the rest must be covered by inexact.
func TestNothingIsClaimedUnchecked(t *testing.T) {
	for name, stamped := range map[string]bool{"batches": false, "stamps": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorld(t, stamped)
				l := w.ledger(rapid.Int64Range(1000, 40_000).Draw(t, "memory"))
				w.feed(l, rapid.SampledFrom([]int{0, 3, -1}).Draw(t, "disorder"))
				got, places := l.Places(whole(l, true), w.ends)
				checkClaims(t, w, got)
				checkPlaces(t, got, &places, false)
			})
		})
	}
}

// checkClaims checks that all faults are claimed or covered by inexact, and that nothing is claimed if
// nothing is wrong. It does not require what is beyond the method.
func checkClaims(t *rapid.T, w *world, got measure.Ledger, beyond ...string) {
	t.Helper()
	truth := w.truth
	if got.Acked != truth.Acked || got.Read != truth.Read {
		t.Fatalf("acked %d, read %d, want %d and %d", got.Acked, got.Read, truth.Acked, truth.Read)
	}
	for _, c := range []struct {
		name        string
		claim, fact uint64
	}{
		{"lost", got.Lost, truth.Lost},
		{"duplicated", got.Duplicated, truth.Duplicated},
		{"reordered", got.Reordered, truth.Reordered},
		{"corrupted", got.Corrupted, truth.Corrupted},
		{"recovered", got.Recovered, truth.Recovered},
		{"foreign", got.Foreign, truth.Foreign},
	} {
		if c.fact > c.claim+got.Inexact && !slices.Contains(beyond, c.name) {
			t.Fatalf("%s: %d are claimed and %d inexact, of %d", c.name, c.claim, got.Inexact, c.fact)
		}
	}
	if truth.Lost+truth.Duplicated+truth.Reordered+truth.Corrupted == 0 && got.Lost+got.Duplicated+got.Reordered+got.Corrupted > 0 {
		t.Fatalf("nothing is wrong, but the verdict is %+v", totals(got))
	}
}
