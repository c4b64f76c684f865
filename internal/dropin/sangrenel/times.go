package sangrenel

import (
	"fmt"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/load"
	"carronade/measure"
)

// formatByteRate writes a rate of bytes as sangrenel does: as mebibits, called Mb,
// from 131,072 bytes/s, and as kibibytes below that.
func formatByteRate(bytesPerS float64) string {
	if bytesPerS >= 1<<17 {
		return fmt.Sprintf("%.0fMb/sec", bytesPerS/(1<<17))
	}
	return fmt.Sprintf("%.0fKB/sec", bytesPerS/1024)
}

// sangrenelThroughput is an interval's messages per second: those acknowledged or, if
// nothing is acknowledged, those made without a failure.
func sangrenelThroughput(s *load.Snapshot, noop, unanswered bool) float64 {
	n := s.Interval.Acked
	if noop || unanswered {
		n = s.Interval.Sent - s.Interval.Failed
	}
	return dropin.Per(float64(n), s.Interval.Length())
}

// meanOfSlowest is the mean of the slowest tenth of the samples, from int(0.9 n)
// on. The sangrenel of 2014 computes its "avg latency" this way, and its
// documentation defines it so.
func meanOfSlowest(h *measure.Histogram) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	skip, seen, sum := uint64(0.9*float64(n)), uint64(0), 0.0
	h.EachBucket(func(top time.Duration, c uint64) {
		from := max(seen, skip)
		if seen += c; seen > from {
			sum += float64(min(top, h.Max())) * float64(seen-from)
		}
	})
	return time.Duration(sum / float64(n-skip))
}

// micros truncates a duration to microseconds.
func micros(d time.Duration) time.Duration { return d.Truncate(time.Microsecond) }

// harmonic is the harmonic mean of the times.
func harmonic(h *measure.Histogram) time.Duration {
	sum := 0.0
	h.EachBucket(func(top time.Duration, n uint64) { sum += float64(n) / float64(max(min(top, h.Max()), 1)) })
	if sum == 0 {
		return 0
	}
	return time.Duration(float64(h.Count()) / sum)
}

// bins draws ten bins of equal width between the shortest and the longest time, a
// line each, as tachymeter does. The emptiest bin has one dash, the fullest fifty;
// the number of dashes in between is rounded down. If all times are equal there is
// one bin, and without times none.
func bins(h *measure.Histogram) string {
	const n, dashes = 10, 50
	if h.Count() == 0 {
		return ""
	}
	var b strings.Builder
	line := func(from, to time.Duration, dashes int) {
		fmt.Fprintf(&b, "%22s %s\n", fmt.Sprintf("%s - %s", micros(from), micros(to)), strings.Repeat("-", dashes))
	}
	low, high := h.Min(), h.Max()
	width := (high - low) / n
	if width == 0 {
		line(low, high, dashes)
		return b.String()
	}
	var counts [n]uint64
	h.EachBucket(func(top time.Duration, c uint64) {
		i := min(int((min(top, high)-low)/width), n-1)
		counts[max(i, 0)] += c
	})
	least, most := counts[0], counts[0]
	for _, c := range counts {
		least, most = min(least, c), max(most, c)
	}
	for i, c := range counts {
		from := low + time.Duration(i)*width
		to := from + width
		if i == n-1 {
			to = high
		}
		length := 1
		if c > least {
			length += int(float64(c-least) / float64(most-least) * (dashes - 1))
		}
		line(from, to, length)
	}
	return b.String()
}
