package fault

import (
	"slices"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// Chunks returns how many chunks are kept.
func (r *Recorder) Chunks() (n int) {
	for _, s := range r.shards {
		n += len(s.chunks)
	}
	return n
}

func TestWindows(t *testing.T) {
	mark := func(kind string, at, observed float64) Score {
		return Score{Mark: Mark{Kind: kind, AtS: at}, ObservedS: observed}
	}
	from, to := Windows([]Score{mark(MarkFault, 3, 17), mark(MarkHeal, 8, 12), mark(MarkFault, 20, 2), mark(MarkFault, 22, 8)})
	s := time.Second
	want := []time.Duration{0, 0, 15 * s, 20 * s}
	assert.True(t, slices.Equal(from, want), "they begin at %v, want %v", from, want)
	want = []time.Duration{15 * s, 0, 20 * s, 30 * s}
	assert.True(t, slices.Equal(to, want), "they end at %v, want %v", to, want)
}
