package judge

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

// An outage is worse than anything, and a level that was always 0 has not
// changed.
func TestWorseBy(t *testing.T) {
	for _, tt := range []struct {
		name        string
		before, now float64
		better      stats.Direction
		want        float64
	}{
		{"half of a rate", 100, 50, stats.More, 1},
		{"twice a time", 5, 10, stats.Less, 1},
		{"a better time", 10, 5, stats.Less, -0.5},
		{"an outage", 50_000, 0, stats.More, math.Inf(1)},
		{"after an outage", 0, 50_000, stats.More, -1},
		{"nothing, as before", 0, 0, stats.More, 0},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, worseBy(tt.before, tt.now, tt.better), tt.want) })
	}
}

// A repetition in place of one that was not trusted belongs to the same
// repetitions, although its number is not the next.
func TestReplacedRepetitionsAreOneRevision(t *testing.T) {
	var rows []store.Row
	for i, n := range []float64{1, 2, 3, 2, 1, 2, 3} { // of two series
		f := fields{"repetition": n, "repetitions": 3.0}
		if i == 3 {
			f["replaces"] = "r1"
		}
		rows = append(rows, row(fmt.Sprint("r", i), start.Add(time.Duration(i)*time.Minute), f))
	}
	var got []int
	for _, r := range revisionsOf(rows) {
		got = append(got, len(r.rows))
	}
	want := []int{4, 3}
	assert.True(t, slices.Equal(got, want), "got series of %v runs, want %v", got, want)
}
