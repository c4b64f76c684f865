package trust

import (
	"fmt"
	"time"

	"carronade/units"
)

// The bounds of KeepsUp.
const (
	mostBacklog = 0.01 // growth over the measurement, as a share of the events moved in it
	fifth       = 5    // the first and the last part of the measurement that are compared
)

// A Backlog is the number of events that were written and not read yet, interval by interval.
type Backlog struct {
	// Read says that the events moved were read; otherwise they were written.
	Read bool

	behind series
	moved  float64
}

// Add appends an interval: the backlog at its end, and the events moved in it.
func (b *Backlog) Add(end, length time.Duration, behind, moved float64) {
	b.behind.add(end, length, behind)
	b.moved += moved
}

// KeepsUp decides whether reading kept up with writing. It did not in two cases: the backlog
// climbed, under the same rank test as in Steady, by more than a hundredth of the events moved
// or the events of a second; or the backlog grew from start to end by more than the events of a
// second, which also detects a reader that stopped late. With too few intervals the result is
// unknown.
func (b *Backlog) KeepsUp() (known, ok bool, text string) {
	n := len(b.behind.at)
	if n < LeastSeries {
		return false, false, fmt.Sprintf("cannot tell: the measurement was too short (%s with a known backlog, at least %d are needed)", units.Plural(n, "interval"), LeastSeries)
	}
	length := 0.0
	for _, w := range b.behind.weight {
		length += w
	}
	second := b.moved / length
	span := time.Duration((b.behind.at[n-1] - b.behind.at[0]) * float64(time.Second))
	t := b.behind.trend(span)
	part := max(n/fifth, 1)
	first, last := Median(b.behind.value[:part]), Median(b.behind.value[n-part:])
	climbed := t.slope*span.Seconds() > min(mostBacklog*b.moved, second) && t.chance < mostChance
	if climbed || last-first > second && b.behind.value[n-1]-first > second {
		return true, false, b.falling(span.Seconds(), second)
	}
	return true, true, fmt.Sprintf("the backlog was %s events at the start and %s at the end", units.FormatCount(uint64(b.behind.value[0])), units.FormatCount(uint64(b.behind.value[n-1])))
}

// falling says how far reading falls behind: moved is the events moved a second.
func (b *Backlog) falling(span, moved float64) string {
	first, last := b.behind.value[0], b.behind.value[len(b.behind.value)-1]
	growth := (last - first) / span
	written, read := moved, moved-growth
	if b.Read {
		written, read = moved+growth, moved
	}
	by := fmt.Sprintf("the backlog grew from %s to %s events, by %s", units.FormatCount(uint64(first)), units.FormatCount(uint64(last)), units.FormatRate(growth))
	switch {
	case growth <= 0: // it grew in the middle
		return fmt.Sprintf("the backlog grew: %s events at the start, %s at the end", units.FormatCount(uint64(first)), units.FormatCount(uint64(last)))
	case read <= written/1000:
		return "nothing is read: " + by
	}
	return fmt.Sprintf("the reader is %s x slower than the writer: %s", ratio(written/read), by)
}

// ratio prints a factor above 1 in three digits.
func ratio(x float64) string {
	if x >= 100 {
		return units.FormatCount(uint64(x + 0.5))
	}
	return fmt.Sprintf("%.3g", x)
}
