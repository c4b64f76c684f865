package units

import (
	"math"
	"testing"

	"carronade/test/testkit/assert"
)

func TestSpark(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		base   float64
		ascii  bool
		want   string
	}{
		{"none", nil, 0, false, ""},
		{"a climb", []float64{0, 1, 2, 3, 4, 5, 6, 7}, 0, false, "▁▂▃▄▅▆▇█"},
		{"far above its base", []float64{100, 101, 100}, 0, false, "███"},
		{"nothing but the base", []float64{0, 0}, 0, false, "▁▁"},
		{"below its base", []float64{-7, 0}, 0, false, "▁█"},
		{"holes", []float64{1, math.NaN(), math.Inf(1), 1}, 0, false, "█  █"},
		{"no blocks", []float64{0, 7}, 0, true, "_#"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, Spark(tt.values, tt.base, tt.ascii), tt.want)
		})
	}
}
