package stats

import "math"

// rounds are what the values of each round have in common, estimated together with the cells by
// least squares: the logarithm of a value is that of its cell, plus the shift of its round, plus
// noise. So drift does not count as noise, and a cell that lacks the value of a slow round does not look
// fast.
type rounds struct {
	shift []float64
	rank  int // how many shifts are independent

	counts  []int       // values of each cell
	has     [][]bool    // of each cell, the rounds with a value
	inverse [][]float64 // of the normal equations of the shifts
}

// shifts estimates the shifts of rounds. logs may have NaN; means and counts are those of the
// cells. Without enough values to tell rounds from cells and noise, all shifts are 0.
func shifts(logs [][]float64, means []float64, counts []int) *rounds {
	n, total := 0, 0
	for i, cell := range logs {
		n, total = max(n, len(cell)), total+counts[i]
	}
	r := &rounds{shift: make([]float64, n), counts: counts, has: make([][]bool, len(logs)), inverse: make([][]float64, n)}
	for i := range r.inverse {
		r.inverse[i] = make([]float64, n)
	}
	sums, of := make([]float64, n), make([]float64, n)
	for i, cell := range logs {
		r.has[i] = make([]bool, n)
		for k, v := range cell {
			if r.has[i][k] = !math.IsNaN(v); r.has[i][k] {
				sums[k] += v - means[i]
				of[k]++
			}
		}
	}
	present := 0
	for k := range n {
		if of[k] > 0 {
			present++
		}
		r.inverse[k][k] = of[k]
		for l := range n {
			for i := range logs {
				if r.has[i][k] && r.has[i][l] {
					r.inverse[k][l] -= 1 / float64(counts[i])
				}
			}
		}
	}
	r.rank = invert(r.inverse)
	if r.rank < present-1 || total-len(logs)-r.rank < 1 {
		return &rounds{shift: r.shift, counts: counts}
	}
	middle := 0.0
	for k := range n {
		for l := range n {
			r.shift[k] += r.inverse[k][l] * sums[l]
		}
		middle += r.shift[k] * of[k] / float64(total)
	}
	for k := range n {
		r.shift[k] -= middle
	}
	return r
}

// mean is the mean shift of the values of a cell.
func (r *rounds) mean(cell int) (mean float64) {
	if r.rank == 0 {
		return 0
	}
	for k, has := range r.has[cell] {
		if has {
			mean += r.shift[k] / float64(r.counts[cell])
		}
	}
	return mean
}

// variance is that of a weighted sum of the cells' means, in variances of a value: of the
// values, and of the shifts that were subtracted.
func (r *rounds) variance(weights []float64) (v float64) {
	u := make([]float64, len(r.inverse))
	for i, w := range weights {
		v += w * w / float64(r.counts[i])
		for k := range u {
			if r.has[i][k] {
				u[k] += w / float64(r.counts[i])
			}
		}
	}
	for k := range u {
		for l := range u {
			v += u[k] * r.inverse[k][l] * u[l]
		}
	}
	return v
}

// invert replaces a symmetric matrix that has no negative eigenvalues by an inverse, and returns
// its rank. Rows that depend on earlier ones become 0.
func invert(a [][]float64) (rank int) {
	for k := range a {
		d := a[k][k]
		if d < 1e-9 {
			for i := range a {
				a[i][k], a[k][i] = 0, 0
			}
			continue
		}
		rank++
		for i := range a {
			for j := range a {
				if i != k && j != k {
					a[i][j] -= a[i][k] * a[k][j] / d
				}
			}
		}
		for i := range a {
			if i != k {
				a[i][k], a[k][i] = -a[i][k]/d, a[k][i]/d
			}
		}
		a[k][k] = 1 / d
	}
	return rank
}
