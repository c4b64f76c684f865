package stats

import (
	"math"
	"testing"

	"carronade/test/testkit/assert"
)

// Fisher's tea tasting: in four of eight cups the milk was poured first.
func TestMoreOften(t *testing.T) {
	for _, tt := range []struct {
		name                               string
		base, baseTrials, candidate, among int
		want                               float64
	}{
		{"all recognized", 0, 4, 4, 4, 1.0 / 70},
		{"three recognized", 1, 4, 3, 4, 17.0 / 70},
		{"none", 0, 4, 0, 4, 1},
		{"all of both sides", 4, 4, 3, 3, 1},
		{"one of one", 0, 12, 1, 1, 1.0 / 13},
		{"no base", 0, 0, 3, 3, 1},
		{"no candidate", 0, 3, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := MoreOften(tt.base, tt.baseTrials, tt.candidate, tt.among)
			assert.True(t, math.Abs(got-tt.want) <= 1e-12, "got %v, want %v", got, tt.want)
		})
	}
}
