package stats

import (
	"math"
	"testing"
)

func TestFitLine(t *testing.T) {
	for _, tt := range []struct {
		name string
		x, y []float64
		want Line
		ok   bool
	}{
		{"exact", []float64{1, 2, 3, 4}, []float64{5, 7, 9, 11}, Line{2, 3, 0}, true},
		{"above 0", []float64{1, 2, 3, 4}, []float64{3, 5, 7, 9}, Line{2, 1, 0}, true},
		{"with a residual", []float64{0, 1, 2}, []float64{0, 3, 0}, Line{0, 1, math.Sqrt(3)}, true},
		{"two points", []float64{1, 3}, []float64{1, 2}, Line{0.5, 0.5, math.NaN()}, true},
		{"one x", []float64{2, 2, 2}, []float64{1, 2, 3}, Line{}, false},
		{"one point", []float64{2}, []float64{1}, Line{}, false},
		{"no point", nil, nil, Line{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := FitLine(len(tt.x), func(i int) (x, y float64) { return tt.x[i], tt.y[i] })
			same := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) }
			if ok != tt.ok || !same(got.Slope, tt.want.Slope) || !same(got.Intercept, tt.want.Intercept) || !same(got.Error, tt.want.Error) {
				t.Errorf("got %+v, %v, want %+v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}
