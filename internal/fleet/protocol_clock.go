package fleet

import (
	"math"
	"slices"
	"time"
)

// What is assumed of clocks: a monotonic clock is wrong by at most 100 ppm, and so the
// rates of two by twice that. Between two exchanges the difference of the rates varies
// by less than wander.
const (
	maxSlope = 200e-6
	wander   = 50e-6

	clockSamples = 64 // kept: those of the last 80 s at 4 every 5 s
)

// unknownBound is the bound of an offset of which nothing is known.
const unknownBound = time.Duration(math.MaxInt64)

// A remoteClock estimates how far another machine's monotonic clock is ahead of this one's,
// from exchanges of four times. Each exchange proves an interval in which the offset
// lies, however asymmetric its two ways were. The zero remoteClock has no exchanges. It is
// not safe for concurrent use.
type remoteClock struct {
	samples []exchange // oldest first
	steps   int

	slope, rate float64 // fitted, and by how much the slope may differ from that
	fitted      bool
}

// An exchange proves that the offset at a time lies within err of offset.
type exchange struct{ at, offset, err, rtt time.Duration }

// Add adds an exchange: sent and arrived are of this clock, received and answered of the
// other. It returns false for impossible times, which are ignored.
//
// The question was under way when the other clock showed received, so that the offset
// was then at most received-sent; and at least answered-arrived when the answer was
// sent. Both moments are within half a round trip of the middle.
func (c *remoteClock) Add(sent, received, answered, arrived time.Duration) bool {
	rtt, inside := arrived-sent, answered-received
	if rtt < 0 || inside < 0 || rtt > time.Hour || inside > time.Hour {
		return false
	}
	drift := time.Duration(maxSlope*float64(rtt)/2) + 1
	low, high := answered-arrived-drift, received-sent+drift
	if low > high {
		return false
	}
	x := exchange{at: sent + rtt/2, offset: low + (high-low)/2, err: (high-low)/2 + 1, rtt: rtt}
	// An exchange that contradicts the others: one of the clocks stood still or was set.
	// From here on only the new one counts.
	if low, high := c.bounds(x.at, 0, maxSlope); len(c.samples) > 0 && (x.offset-x.err > high || x.offset+x.err < low) {
		c.steps++
		c.samples = c.samples[:0]
	}
	if len(c.samples) == clockSamples {
		c.samples = slices.Delete(c.samples, 0, 1)
	}
	c.samples = append(c.samples, x)
	c.fitted = false
	return true
}

// Len returns the number of exchanges that are kept.
func (c *remoteClock) Len() int { return len(c.samples) }

// RTT returns the shortest and the longest round trip of those exchanges.
func (c *remoteClock) RTT() (shortest, longest time.Duration) {
	for i, x := range c.samples {
		longest = max(longest, x.rtt)
		if i == 0 || x.rtt < shortest {
			shortest = x.rtt
		}
	}
	return shortest, longest
}

// bounds returns what the exchanges together say of the offset at a time, if its slope
// is within rate of slope. If low > high, it cannot be.
func (c *remoteClock) bounds(at time.Duration, slope, rate float64) (low, high time.Duration) {
	low, high = math.MinInt64, math.MaxInt64
	for _, x := range c.samples {
		age := float64(at - x.at)
		middle := x.offset + time.Duration(slope*age)
		reach := x.err + time.Duration(rate*math.Abs(age)) + 1
		low, high = max(low, middle-reach), min(high, middle+reach)
	}
	return low, high
}

// At returns the offset at a time of this clock, and its largest possible error;
// unknownBound without exchanges.
func (c *remoteClock) At(at time.Duration) (offset, bound time.Duration) {
	if len(c.samples) == 0 {
		return 0, unknownBound
	}
	c.fit()
	low, high := c.bounds(at, c.slope, c.rate)
	if low > high { // the slope changed more than it should
		low, high = c.bounds(at, 0, maxSlope)
	}
	if low > high {
		x := c.samples[len(c.samples)-1]
		return x.offset, unknownBound
	}
	return low + (high-low)/2, (high-low)/2 + 1
}

// fit finds the slope: a line through the quarter of the exchanges with the shortest
// round trips, within the slopes that all exchanges permit.
func (c *remoteClock) fit() {
	if c.fitted {
		return
	}
	c.fitted = true
	least, most := -maxSlope, maxSlope
	for i, a := range c.samples {
		for _, b := range c.samples[i+1:] {
			span := float64(b.at - a.at)
			if span < float64(100*time.Millisecond) {
				continue
			}
			d, e := float64(b.offset-a.offset), float64(a.err+b.err)
			least, most = max(least, (d-e)/span), min(most, (d+e)/span)
		}
	}
	if least > most { // it was not constant
		least, most = -maxSlope, maxSlope
	}
	c.slope = min(max(c.line(), least), most)
	c.rate = min(max(c.slope-least, most-c.slope)+wander, maxSlope+math.Abs(c.slope))
}

// line returns the slope of the line with the least squares.
func (c *remoteClock) line() float64 {
	best := slices.Clone(c.samples)
	slices.SortStableFunc(best, func(a, b exchange) int { return int(min(max(a.rtt-b.rtt, -1), 1)) })
	best = best[:min(len(best), max(4, len(best)/4))]
	t0, o0 := best[0].at, best[0].offset
	var st, so, stt, sto float64
	for _, x := range best {
		t, o := float64(x.at-t0), float64(x.offset-o0)
		st, so, stt, sto = st+t, so+o, stt+t*t, sto+t*o
	}
	n := float64(len(best))
	if det := n*stt - st*st; det > 0 {
		return (n*sto - st*so) / det
	}
	return 0
}
