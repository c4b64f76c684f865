package load

import (
	"sync"
	"sync/atomic"
)

// shares keeps the parts of a run without a schedule at their shares: only the part
// whose next batch is due by its share may fire. The middle of a batch counts, so that
// a part with large batches is as often ahead of its share as behind. Safe for
// concurrent use.
type shares struct {
	mu      sync.Mutex
	weights []float64
	taken   []uint64 // events
	asked   []int    // events of the newest batch
	next    atomic.Int32
	changes atomic.Uint64 // how often next may have changed
	starved atomic.Int32  // threads that wait until another part is next
	wake    func()        // wakes all threads
}

func newShares(parts []Part, wake func()) *shares {
	s := &shares{taken: make([]uint64, len(parts)), asked: make([]int, len(parts)), wake: wake}
	for i, p := range parts {
		s.weights = append(s.weights, p.Weight)
		s.asked[i] = 1
	}
	s.choose()
	return s
}

// choose finds the part that comes next.
func (s *shares) choose() {
	best, at := -1, 0.0
	for i, w := range s.weights {
		if w == 0 {
			continue
		}
		if middle := (float64(s.taken[i]) + float64(s.asked[i])/2) / w; best < 0 || middle < at {
			best, at = i, middle
		}
	}
	s.changes.Add(1)
	if s.next.Swap(int32(best)) != int32(best) && s.starved.Load() > 0 {
		s.wake()
	}
}

// isNext reports whether a part comes next.
func (s *shares) isNext(part int) bool { return int(s.next.Load()) == part }

// take claims a batch of n events for a part. It returns false if the part is not next.
func (s *shares) take(part, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[part] != n {
		s.asked[part] = n
		s.choose()
	}
	if !s.isNext(part) {
		return false
	}
	s.taken[part] += uint64(n)
	s.choose()
	return true
}

// giveBack returns events that were claimed and not fired.
func (s *shares) giveBack(part, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[part] -= uint64(n)
	s.choose()
}
