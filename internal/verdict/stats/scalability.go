package stats

import "math"

// A Scalability is Gunther's Universal Scalability Law: the throughput of n requests in flight is
// Lambda*n / (1 + Sigma*(n-1) + Kappa*n*(n-1)).
type Scalability struct {
	Lambda float64 `json:"lambda"` // throughput of one request in flight
	Sigma  float64 `json:"sigma"`  // contention: the part of the work that waits for a shared resource
	Kappa  float64 `json:"kappa"`  // crosstalk: what each pair of requests costs the others
	// Residual is the largest difference between a point and the curve, as a share of the curve.
	Residual float64 `json:"residual"`
}

// At is the throughput of n requests in flight.
func (u *Scalability) At(n float64) float64 {
	return u.Lambda * n / (1 + u.Sigma*(n-1) + u.Kappa*n*(n-1))
}

// Peak is the number of requests in flight with the highest throughput, infinite without
// crosstalk.
func (u *Scalability) Peak() float64 {
	if u.Kappa <= 0 {
		return math.Inf(1)
	}
	return math.Sqrt(max(0, 1-u.Sigma) / u.Kappa)
}

// LeastScalability is the smallest number of points of a fit: with three, every curve fits.
const LeastScalability = 4

// FitScalability fits the law to throughputs of numbers of requests in flight, by non-linear least
// squares of the logarithms (Levenberg and Marquardt). Neither Sigma nor Kappa is below 0. It
// returns false if there are too few different points or one is not above 0.
func FitScalability(n, throughput []float64) (Scalability, bool) {
	different := map[float64]bool{}
	first := 0.0
	for i := range n {
		if !(n[i] > 0) || !(throughput[i] > 0) {
			return Scalability{}, false
		}
		different[n[i]] = true
		first = max(first, throughput[i]/n[i])
	}
	if len(different) < LeastScalability {
		return Scalability{}, false
	}
	best, least := Scalability{}, math.Inf(1)
	// The minimum is inside the bounds or on one of them: there the parameter is 0.
	for _, free := range [][3]bool{{true, true, true}, {true, true, false}, {true, false, true}, {true, false, false}} {
		begin := [3]float64{math.Log(first), 0, 0}
		if free[1] {
			begin[1] = 0.05
		}
		if free[2] {
			begin[2] = 1e-4
		}
		if u, squares := descend(begin, free, n, throughput); u.Sigma >= 0 && u.Kappa >= 0 && squares < least {
			best, least = u, squares
		}
	}
	for i := range n {
		best.Residual = max(best.Residual, math.Abs(throughput[i]/best.At(n[i])-1))
	}
	return best, true
}

// descend minimizes the squares from a beginning, over the parameters that are free: the logarithm
// of Lambda, Sigma and Kappa.
func descend(p [3]float64, free [3]bool, n, throughput []float64) (Scalability, float64) {
	const steps, enough = 200, 1e-14
	law := func(p [3]float64) Scalability {
		return Scalability{Lambda: math.Exp(p[0]), Sigma: p[1], Kappa: p[2]}
	}
	squares := func(p [3]float64) (sum float64) {
		u := law(p)
		for i := range n {
			d := math.Log(throughput[i] / u.At(n[i])) // not a number where the curve is below 0
			sum += d * d
		}
		return sum
	}
	now, damp := squares(p), 1e-3
	for range steps {
		var normal [3][4]float64 // the normal equations
		u := law(p)
		for i := range n {
			below := 1 + u.Sigma*(n[i]-1) + u.Kappa*n[i]*(n[i]-1)
			slope := [3]float64{1, -(n[i] - 1) / below, -n[i] * (n[i] - 1) / below}
			d := math.Log(throughput[i] / u.At(n[i]))
			for a := range 3 {
				for b := range 3 {
					if free[a] && free[b] {
						normal[a][b] += slope[a] * slope[b]
					}
				}
				if free[a] {
					normal[a][3] += slope[a] * d
				}
			}
		}
		for a := range 3 {
			normal[a][a] *= 1 + damp
			if !free[a] {
				normal[a][a] = 1
			}
		}
		by := solve3(normal)
		next := [3]float64{p[0] + by[0], p[1] + by[1], p[2] + by[2]}
		switch then := squares(next); {
		case then < now:
			small := now-then < enough*now
			p, now, damp = next, then, damp/10
			if small {
				return law(p), now
			}
		case damp > 1e15:
			return law(p), now
		default: // also if it is not a number
			damp *= 10
		}
	}
	return law(p), now
}

// solve3 solves three linear equations, by elimination with the largest pivot.
func solve3(m [3][4]float64) (x [3]float64) {
	for c := range 3 {
		pivot := c
		for r := c + 1; r < 3; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[pivot][c]) {
				pivot = r
			}
		}
		m[c], m[pivot] = m[pivot], m[c]
		for r := c + 1; r < 3; r++ {
			f := m[r][c] / m[c][c]
			for k := c; k < 4; k++ {
				m[r][k] -= f * m[c][k]
			}
		}
	}
	for r := 2; r >= 0; r-- {
		x[r] = m[r][3]
		for k := r + 1; k < 3; k++ {
			x[r] -= m[r][k] * x[k]
		}
		x[r] /= m[r][r]
	}
	return x
}
