package measure

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestShelf: what a shelf keeps is read back, whole and in parts, while other things come
// and go.
func TestShelf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s shelf
		kept := map[*shelved][]byte{}
		var gone []*shelved // so that the collector does not free their blocks as well
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			b := bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "byte"))}, rapid.IntRange(1, 5*shelfBlock).Draw(t, "size"))
			for i := range b {
				b[i] += byte(i)
			}
			k := s.put(b)
			if k == nil {
				t.Fatal("the shelf did not take it")
			}
			kept[k] = b
			for k, b := range kept {
				from := rapid.IntRange(0, len(b)-1).Draw(t, "from")
				n := rapid.IntRange(1, len(b)-from).Draw(t, "bytes")
				if got := k.read(from, n); !bytes.Equal(got, b[from:from+n]) {
					t.Fatalf("%d bytes from %d of %d are others", n, from, len(b))
				}
				if len(kept) > 3 {
					s.release(k.blocks)
					delete(kept, k)
					gone = append(gone, k)
				}
			}
		}
		used := map[uint32]bool{}
		for k := range kept {
			for _, n := range k.blocks {
				used[n] = true
			}
		}
		for _, n := range s.free {
			if used[n] {
				t.Fatalf("block %d is in use and free", n)
			}
			used[n] = true
		}
		if len(used) != int(s.end) {
			t.Fatalf("%d of %d blocks are in use or free", len(used), s.end)
		}
		runtime.KeepAlive(gone)
		runtime.KeepAlive(kept)
	})
}

// The blocks of what nothing refers to are used again.
func TestShelfReusesBlocks(t *testing.T) {
	var s shelf
	for range 100 {
		s.put(make([]byte, 3*shelfBlock))
	}
	free := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.free)
	}
	for deadline := time.Now().Add(10 * time.Second); free() < 250 && time.Now().Before(deadline); {
		runtime.GC() // cleanups run some time after it
		runtime.Gosched()
	}
	if n := free(); n < 250 {
		t.Fatalf("%d of 300 blocks are free", n)
	}
	s.put(make([]byte, 200*shelfBlock))
	if s.end != 300 {
		t.Errorf("the file has %d blocks, want 300", s.end)
	}
}

// A shelf whose file cannot be made or written takes nothing, and leaves no file.
func TestShelfWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	var none shelf
	if none.put([]byte{1}) != nil {
		t.Error("it took bytes without a folder for its file")
	}
	t.Setenv("TMPDIR", dir)
	var s shelf
	k := s.put([]byte{1, 2, 3})
	if k == nil {
		t.Fatal("it took nothing")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	file := s.file
	s.file, _ = os.Open(os.DevNull) // cannot be written
	if s.put([]byte{4}) != nil || s.put([]byte{5}) != nil {
		t.Error("it took bytes that it could not write")
	}
	s.file = file
	if got := k.read(0, 3); !bytes.Equal(got, []byte{1, 2, 3}) {
		t.Errorf("read %v", got)
	}
}

// spread returns an interval whose histograms have many cells.
func spread(dice *rand.Rand, i int) Interval {
	at := time.Duration(i) * time.Second
	iv := Interval{Phase: Measurement, Start: at, End: at + time.Second}
	iv.Acked = 500
	for _, h := range []**Histogram{&iv.Response, &iv.Service, &iv.EndToEnd} {
		*h = NewHistogram()
		for range iv.Acked {
			(*h).Record(time.Duration(dice.IntN(5_000_000)))
		}
	}
	iv.Queueing = NewHistogram() // it exists, and has nothing
	return iv
}

// Rows whose cells are on the shelf are the same as those in memory, also after they were
// joined.
func TestSeriesOnTheShelf(t *testing.T) {
	for _, tt := range []struct {
		name      string
		most      int
		mostCells int
		intervals int
	}{
		{"with room", 400, mostCells, 300},
		{"joined", 200, mostCells, 1000},
		{"heavy", 400, 200 << 10, 700},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shelved, inMemory := NewSeries(tt.most), NewSeries(tt.most)
			shelved.mostCells, inMemory.mostCells = tt.mostCells, tt.mostCells
			inMemory.shelf.full = true
			read, done := make(chan Interval, 1), make(chan struct{})
			go func() { // as the run does while the series goes on
				defer close(done)
				for iv := range read {
					iv.Response.Percentile(99)
				}
			}()
			dice := rand.New(rand.NewPCG(1, 2))
			for i := range tt.intervals {
				iv := spread(dice, i)
				shelved.Add(iv)
				inMemory.Add(iv)
				for _, iv := range shelved.Changed() {
					read <- iv
				}
			}
			close(read)
			<-done
			got, want := shelved.Intervals(), inMemory.Intervals()
			if len(got) != len(want) || shelved.cells != inMemory.cells {
				t.Fatalf("%d rows of %d bytes, want %d of %d", len(got), shelved.cells, len(want), inMemory.cells)
			}
			near := 0
			for i := range got {
				if got[i].Start != want[i].Start || got[i].End != want[i].End || got[i].Counts != want[i].Counts {
					t.Fatalf("row %d is %v to %v with %+v, want %v to %v with %+v", i, got[i].Start, got[i].End, got[i].Counts, want[i].Start, want[i].End, want[i].Counts)
				}
				if got[i].Response.away == nil {
					near++
				}
				for _, h := range [][2]*Histogram{{got[i].Response, want[i].Response}, {got[i].Service, want[i].Service}, {got[i].EndToEnd, want[i].EndToEnd}, {got[i].Queueing, want[i].Queueing}} {
					if !h[0].Equal(h[1]) || h[0].Percentile(99) != h[1].Percentile(99) {
						t.Fatalf("row %d differs", i)
					}
				}
			}
			if near > nearRows {
				t.Errorf("%d rows are in memory, want at most %d", near, nearRows)
			}
			sum, wantSum := NewHistogram(), NewHistogram()
			for i := range got {
				sum.Merge(got[i].Response)
				wantSum.Merge(want[i].Response)
			}
			if !sum.Equal(wantSum) {
				t.Error("the sums differ")
			}
			got[0].Response.Record(time.Millisecond) // it has all cells again
			if n := got[0].Response.Count(); n != want[0].Response.Count()+1 {
				t.Errorf("%d values after another one", n)
			}
		})
	}
}
