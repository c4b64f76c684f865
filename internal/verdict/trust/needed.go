package trust

import (
	"math"
	"time"
)

const (
	// bothErrors is the sum of the normal quantiles of 5 % (of a climb where there is none) and
	// of 80 % (of a climb that is there and found).
	bothErrors = 1.645 + 0.842
	// efficiency is that of the slope of Theil and Sen, relative to least squares, for normal
	// residuals.
	efficiency = 3 / math.Pi
	// leastSpread is the number of values from which their spread is estimated, and leastLag
	// that from which their dependence on their neighbours is.
	leastSpread, leastLag = 3, 8
	mostLag               = 0.95
)

// needed estimates how long a measurement must be so that four of five measurements show a
// climb by MostRise; 0 if the values do not allow an estimate. The variance of a climb
// that is fitted to n independent values is 12 times theirs over n. If they depend on their
// neighbours, like an autoregressive process of the first order, it is higher by (1+r)/(1-r),
// with r the correlation of neighbours (H. von Storch and F. W. Zwiers, Statistical Analysis in
// Climate Research, 1999, 6.6).
func (s *series) needed() time.Duration {
	n := len(s.at)
	if n < leastSpread {
		return 0
	}
	var mean, length float64
	for i := range n {
		mean += s.value[i] / float64(n)
		length += s.weight[i] / float64(n)
	}
	if mean <= 0 {
		return 0
	}
	spread, lag := s.residuals()
	share := spread / mean
	values := 12 * share * share * (1 + lag) / (1 - lag) * bothErrors * bothErrors / (efficiency * MostRise * MostRise)
	values = max(math.Ceil(values), LeastSeries)
	const longest = 100 * 365 * 24 * 3600
	return time.Duration(min(values*length, longest) * float64(time.Second))
}

// residuals returns the standard deviation of the values around their line, and the correlation
// of neighbours, corrected for its bias in short series (M. G. Kendall, Note on bias in the
// estimation of autocorrelation, 1954).
func (s *series) residuals() (spread, lag float64) {
	n := float64(len(s.at))
	var mt, mv float64
	for i := range s.at {
		mt, mv = mt+s.at[i]/n, mv+s.value[i]/n
	}
	var tt, tv float64
	for i := range s.at {
		tt, tv = tt+(s.at[i]-mt)*(s.at[i]-mt), tv+(s.at[i]-mt)*(s.value[i]-mv)
	}
	slope := 0.0
	if tt > 0 {
		slope = tv / tt
	}
	var sum, next, before float64
	for i := range s.at {
		e := s.value[i] - mv - slope*(s.at[i]-mt)
		sum += e * e
		if i > 0 {
			next += e * before
		}
		before = e
	}
	if sum == 0 {
		return 0, 0
	}
	spread = math.Sqrt(sum / (n - 2))
	if n >= leastLag {
		lag = next / sum
		lag = min(max(lag+(1+4*lag)/n, 0), mostLag)
	}
	return spread, lag
}
