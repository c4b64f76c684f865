package report

import (
	"math"
	"testing"

	"carronade/test/testkit/assert"
)

// TestFairness: Jain's index of the shares that parts got acked.
func TestFairness(t *testing.T) {
	part := func(weight float64, offered, acked uint64) Part {
		p := Part{Weight: weight}
		p.Totals.Offered, p.Totals.Acked = offered, acked
		return p
	}
	for _, tt := range []struct {
		name  string
		parts []Part
		want  float64 // 0: none
	}{
		{"none", nil, 0},
		{"all", []Part{part(1, 100, 100), part(9, 900, 900)}, 1},
		{"the same share", []Part{part(1, 100, 50), part(9, 900, 450)}, 1},
		{"one of four", []Part{part(1, 100, 100), part(1, 100, 0), part(1, 100, 0), part(1, 100, 0)}, 0.25},
		{"half as much", []Part{part(1, 100, 100), part(1, 200, 100)}, 0.9},
		{"a part without events", []Part{part(1, 100, 100), part(0, 0, 0), part(1, 200, 100)}, 0.9},
		{"nothing acked", []Part{part(1, 100, 0), part(1, 100, 0)}, 0},
	} {
		got := fairness(tt.parts)
		assert.True(t, (got != nil) == (tt.want > 0) && (got == nil || math.Abs(*got-tt.want) <= 1e-9),
			"%s: %v, want %v", tt.name, got, tt.want)
	}
}
