package profile

import (
	"math"
	"time"
)

// maxBins limits the bins of times. It is a power of two.
const maxBins = 1 << 13

// Arrivals counts events over time, in bins that become wider as the time that they cover
// does. The zero value is empty.
type Arrivals struct {
	n           uint64
	width       int64    // nanoseconds; 0: empty
	first, last int64    // numbers of the first and the last bin
	min, max    int64    // nanoseconds since 1970
	bins        []uint64 // by number modulo maxBins
}

// Add counts an event at a time in nanoseconds since 1970.
func (a *Arrivals) Add(t int64) {
	if a.width == 0 {
		a.width, a.bins = int64(time.Millisecond), make([]uint64, maxBins)
		a.first = floorDiv(t, a.width)
		a.last, a.min, a.max = a.first, t, t
	}
	a.n++
	a.min, a.max = min(a.min, t), max(a.max, t)
	bin := floorDiv(t, a.width)
	for max(a.last, bin)-min(a.first, bin) >= maxBins {
		a.widen()
		bin = floorDiv(t, a.width)
	}
	a.first, a.last = min(a.first, bin), max(a.last, bin)
	a.bins[bin&(maxBins-1)]++
}

func (a *Arrivals) widen() {
	next := make([]uint64, maxBins)
	for bin := a.first; bin <= a.last; bin++ {
		next[bin>>1&(maxBins-1)] += a.bins[bin&(maxBins-1)]
	}
	a.width, a.first, a.last, a.bins = 2*a.width, a.first>>1, a.last>>1, next
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Count is the number of events with a time.
func (a *Arrivals) Count() uint64 { return a.n }

// Span is the time from the first event to the last.
func (a *Arrivals) Span() time.Duration { return time.Duration(a.max - a.min) }

// First returns the time of the first event.
func (a *Arrivals) First() time.Time { return time.Unix(0, a.min).UTC() }

// Rate is the mean number of events a second; 0 if all have the same time.
func (a *Arrivals) Rate() float64 {
	if a.Span() <= 0 {
		return 0
	}
	return float64(a.n) / a.Span().Seconds()
}

// counts returns the events in windows of k bins. The first and the last bin are left out if
// there are others, since the sample covers only a part of them.
func (a *Arrivals) counts(k int64) []float64 {
	first, last := a.first, a.last
	if last-first >= 4 {
		first, last = first+1, last-1
	}
	var out []float64
	for bin := first; bin+k-1 <= last; bin += k {
		sum := 0.0
		for i := range k {
			sum += float64(a.bins[(bin+i)&(maxBins-1)])
		}
		out = append(out, sum)
	}
	return out
}

// Dispersion is the index of dispersion of the events in windows: the variance of their number
// over its mean. It is 0 for a constant rate, 1 for a Poisson process, and more for bursts.
// Local leaves out what a changing rate adds: it compares each window with the next.
type Dispersion struct {
	Window  time.Duration `json:"window_ns"`
	Windows int           `json:"windows"`
	Index   float64       `json:"index"`
	Local   float64       `json:"local"`
}

// Dispersion returns the index in windows that have at least that many events in the mean; false
// if there are fewer than 8 such windows.
func (a *Arrivals) Dispersion(least float64) (Dispersion, bool) {
	bins := a.last - a.first + 1
	if a.n == 0 {
		return Dispersion{}, false
	}
	perBin := float64(a.n) / float64(bins)
	k := max(1, int64(math.Ceil(least/perBin)))
	c := a.counts(k)
	if len(c) < 8 {
		return Dispersion{}, false
	}
	mean, variance := moments(c)
	local := 0.0
	for i := range len(c) - 1 {
		local += (c[i+1] - c[i]) * (c[i+1] - c[i]) / 2
	}
	local /= float64(len(c) - 1)
	if mean == 0 {
		return Dispersion{}, false
	}
	return Dispersion{Window: time.Duration(k * a.width), Windows: len(c), Index: variance / mean, Local: local / mean}, true
}

// moments returns the mean and the variance of a sample.
func moments(c []float64) (mean, variance float64) {
	for _, v := range c {
		mean += v
	}
	mean /= float64(len(c))
	for _, v := range c {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(max(len(c)-1, 1))
}

// RateWithin is the mean number of events a second in the first part of the time.
func (a *Arrivals) RateWithin(d time.Duration) float64 {
	if d >= a.Span() {
		return a.Rate()
	}
	end, sum := floorDiv(a.min+int64(d), a.width), 0.0
	for bin := a.first; bin < end; bin++ {
		sum += float64(a.bins[bin&(maxBins-1)])
	}
	length := float64(end*a.width-a.min) / 1e9
	if length <= 0 {
		return a.Rate()
	}
	return sum / length
}
