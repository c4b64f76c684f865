package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/load"
)

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

// orderByStamps computes the true order if only stamps show it: without the events
// whose stamps are damaged.
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
				if got.Acked > 0 && got.Method != tt.method {
					t.Fatalf("method %q, want %q", got.Method, tt.method)
				}
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

// A piece whose events all identify themselves, and which is damaged elsewhere, is
// found and corrupt, as with checksums.
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
	if v.Acked != 5 || v.Read != 4 || v.Corrupted != 1 || v.Lost != 1 || v.Inexact != 0 || v.Foreign != 0 || v.Recovered != 0 {
		t.Errorf("verdict %+v; want 4 of 5 read, 1 corrupted, 1 lost", v)
	}
}
