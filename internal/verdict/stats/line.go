package stats

import "math"

// A Line is y = Slope*x + Intercept.
type Line struct {
	Slope, Intercept float64
	// Error is the standard error of Slope. It is not finite for fewer than three points.
	Error float64
}

// FitLine fits a line to n points by least squares. It is false if all x are the same.
func FitLine(n int, at func(i int) (x, y float64)) (l Line, ok bool) {
	m := float64(n)
	var sx, sy, sxx, sxy float64
	for i := range n {
		x, y := at(i)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	d := m*sxx - sx*sx
	if d <= 0 {
		return l, false
	}
	l.Slope = (m*sxy - sx*sy) / d
	l.Intercept = (sy - l.Slope*sx) / m
	var squares float64
	for i := range n {
		x, y := at(i)
		r := y - (sy/m + l.Slope*(x-sx/m))
		squares += r * r
	}
	l.Error = math.Sqrt(squares / (m - 2) / (sxx - sx*sx/m))
	return l, true
}
