package profile

import (
	"fmt"
	"math"
	"strings"
)

// The families of sizes.
const (
	Constant  = "constant"
	Uniform   = "uniform"
	Lognormal = "lognormal"
	Weighted  = "weighted"  // a few sizes, each with its count
	Quantiles = "quantiles" // the sizes at equal steps of probability
)

// A SizeFit is a distribution of sizes that fits a sample.
type SizeFit struct {
	Family string  `json:"family"`
	Text   string  `json:"text"`                      // as --size takes it
	Error  float64 `json:"error"`                     // Kolmogorov-Smirnov distance between sample and fit
	Median float64 `json:"median,omitempty"`          // of lognormal, in bytes
	Sigma  float64 `json:"sigma,omitempty"`           // of lognormal
	Mean   float64 `json:"mean"`                      // of the sample, in bytes
	P50    int     `json:"p50"`                       // of the sample, in bytes
	P99    int     `json:"p99"`                       // likewise
	Min    int     `json:"min"`                       // likewise
	Max    int     `json:"max"`                       // likewise
	Exact  bool    `json:"exact"`                     // each size was counted by itself; otherwise it is known to 0.4 %
	Known  uint64  `json:"records,omitempty"`         // records whose size is known
	Others float64 `json:"lognormal_error,omitempty"` // distance of the best lognormal, if that is not the fit
}

const (
	// familyError is the largest distance at which a family with parameters is preferred to the
	// empirical distribution: it is shorter, and can be changed by hand.
	familyError = 0.02
	// fewSizes is how many distinct sizes are listed one by one.
	fewSizes = 64
	// sizeSteps is the number of steps between empirical quantiles: a common size in the middle
	// of a step is off by at most 1/sizeSteps of the probability.
	sizeSteps = 100
)

// Fit finds the distribution of sizes: a family with parameters if one is within 2 %, else a
// list of all sizes if they are few, else their quantiles.
func (s *Sizes) Fit() SizeFit {
	f := SizeFit{Mean: s.Mean(), P50: s.Quantile(0.5), P99: s.Quantile(0.99), Min: s.min, Max: s.max, Exact: !s.inexact, Known: s.n}
	steps := s.steps()
	switch {
	case s.n == 0 || s.min == s.max:
		f.Family, f.Text = Constant, fmt.Sprint(s.min)
		return f
	case !s.inexact && len(steps) <= 2:
		return s.weighted(f, steps)
	}
	uniform := distanceTo(steps, func(v int) float64 {
		return float64(min(max(v, s.min-1), s.max)-s.min+1) / float64(s.max-s.min+1)
	})
	if uniform <= familyError {
		f.Family, f.Text, f.Error = Uniform, fmt.Sprintf("%d-%d", s.min, s.max), uniform
		return f
	}
	median, sigma := lognormal(steps)
	distance := 1.0
	if sigma > 1e-4 && sigma <= 10 && median >= 1 && median*math.Exp(4.1*sigma) < 1<<30 {
		distance = distanceTo(steps, func(v int) float64 {
			if v < 0 {
				return 0
			}
			return 0.5 * math.Erfc(-math.Log((float64(v)+0.5)/median)/(sigma*math.Sqrt2)) // sizes are rounded
		})
		f.Others = distance
	}
	if distance <= familyError {
		f.Family, f.Error, f.Median, f.Sigma, f.Others = Lognormal, distance, median, sigma, 0
		f.Text = fmt.Sprintf("lognormal(%.0f,%.4g)", median, sigma)
		return f
	}
	if !s.inexact && len(steps) <= fewSizes {
		return s.weighted(f, steps)
	}
	return s.empirical(f, steps)
}

// lognormal returns the maximum likelihood estimates of median and sigma.
func lognormal(steps []step) (median, sigma float64) {
	n, sum, squares := 0.0, 0.0, 0.0
	for _, st := range steps {
		if st.high == 0 {
			continue
		}
		l, c := math.Log(float64(st.low+st.high)/2), float64(st.count)
		n, sum, squares = n+c, sum+l*c, squares+l*l*c
	}
	mean := sum / n
	return math.Exp(mean), math.Sqrt(max(0, squares/n-mean*mean))
}

func (s *Sizes) weighted(f SizeFit, steps []step) SizeFit {
	f.Family = Weighted
	var parts []string
	for _, st := range steps {
		parts = append(parts, fmt.Sprintf("%d:%d", st.low, st.count))
	}
	f.Text = "weighted(" + strings.Join(parts, ",") + ")"
	return f
}

func (s *Sizes) empirical(f SizeFit, steps []step) SizeFit {
	f.Family = Quantiles
	q := s.Quantiles(sizeSteps)
	var parts []string
	for _, v := range q {
		parts = append(parts, fmt.Sprint(v))
	}
	f.Text = "quantiles(" + strings.Join(parts, ",") + ")"
	f.Error = distanceTo(steps, func(v int) float64 {
		share := 0.0
		for i := range sizeSteps {
			low, high := q[i], q[i+1]
			share += float64(min(max(v-low+1, 0), high-low+1)) / float64(high-low+1) / sizeSteps
		}
		return share
	})
	return f
}

// distanceTo is the Kolmogorov-Smirnov distance to a distribution function of whole numbers.
func distanceTo(steps []step, cdf func(v int) float64) float64 {
	most, before := 0.0, 0.0
	for _, st := range steps {
		most = max(most, math.Abs(cdf(st.high)-st.share), math.Abs(cdf(st.low-1)-before))
		before = st.share
	}
	return most
}

// FitRange finds the range of whole numbers, each equally likely, that is nearest to the
// sample, and its Kolmogorov-Smirnov distance.
func (s *Sizes) FitRange() (low, high int, distance float64) {
	if s.n == 0 {
		return 0, 0, 0
	}
	steps := s.steps()
	spread := math.Sqrt(3 * s.variance())
	mean := s.Mean()
	tries := [][2]float64{
		{float64(s.min), float64(s.max)},
		{mean - spread, mean + spread}, // of the same mean and variance
		{float64(s.Quantile(0.02)), float64(s.Quantile(0.98))},
		{mean, mean},
		{float64(s.min), 2*mean - float64(s.min)}, // of the same mean and minimum
	}
	distance = 2
	for _, try := range tries {
		a, b := int(math.Round(max(try[0], 0))), int(math.Round(max(try[1], 0)))
		if b < a {
			continue
		}
		d := distanceTo(steps, func(v int) float64 { return float64(min(max(v, a-1), b)-a+1) / float64(b-a+1) })
		if d < distance {
			low, high, distance = a, b, d
		}
	}
	return low, high, distance
}

func (s *Sizes) variance() float64 {
	mean, sum := s.Mean(), 0.0
	for _, st := range s.steps() {
		v := float64(st.low+st.high)/2 - mean
		sum += v * v * float64(st.count)
	}
	return sum / float64(s.n)
}
