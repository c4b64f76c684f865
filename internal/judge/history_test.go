package judge

import (
	"math"
	"testing"

	"carronade/internal/stats"
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
		t.Run(tt.name, func(t *testing.T) {
			if got := worseBy(tt.before, tt.now, tt.better); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
