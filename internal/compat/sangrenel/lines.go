package sangrenel

import (
	"fmt"
	"math"
	"strings"
	"time"

	"carronade/internal/compat"
	"carronade/load"
	"carronade/measure"
)

// stamp is how Go's log package begins a line.
const stamp = "2006/01/02 15:04:05 "

// output is a rate of bytes as sangrenel writes it: mebibits, called Mb, from
// 131,072 bytes a second on, and kibibytes below.
func output(bytesPerS float64) string {
	if bytesPerS >= 1<<17 {
		return fmt.Sprintf("%.0fMb/sec", bytesPerS/(1<<17))
	}
	return fmt.Sprintf("%.0fKB/sec", bytesPerS/1024)
}

// taken is what an interval brought: what was acked, or where nothing is
// acknowledged or sent, what was made.
func taken(s *load.Snapshot, noop, unanswered bool) float64 {
	n := s.Interval.Acked
	if noop || unanswered {
		n = s.Interval.Sent - s.Interval.Failed
	}
	if length := s.Interval.Length().Seconds(); length > 0 {
		return float64(n) / length
	}
	return 0
}

// slowest is the mean of the slowest tenth of what was measured: of the samples
// from int(0.9 n) on, as sangrenel of 2014 computed what it called the average.
func slowest(h *measure.Histogram) time.Duration {
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

// lines2014 are the lines of the first generation.
type lines2014 struct {
	o *options
	p *compat.Program
}

func (l *lines2014) start() {
	fmt.Fprintf(l.p.Out, "\n::: Sangrenel :::\nStarting %d workers\nMessage size %d bytes\n\n", l.o.workers, l.o.size)
}

func (l *lines2014) opened() {
	if l.o.noop {
		return
	}
	for i := range l.o.workers {
		fmt.Fprintf(l.p.Out, "client_%d connected\n", i+1)
	}
}

func (l *lines2014) interval(s load.Snapshot) {
	if s.Phase != measure.Hold {
		return
	}
	rate := taken(&s, l.o.noop, false)
	ms := 0.0
	if h := s.Interval.Service; h.Count() > 0 && !l.o.noop {
		d := h.Mean()
		if l.p.Strict {
			d = slowest(h)
		}
		ms = d.Seconds() * 1e3
	}
	shown := math.Round(rate)
	if l.p.Strict { // whole seconds of a whole interval
		shown = math.Floor(float64(s.Interval.Acked) / float64(l.o.interval))
		if l.o.noop {
			shown = math.Floor(float64(s.Interval.Sent) / float64(l.o.interval))
		}
	}
	fmt.Fprintf(l.p.Out, "%s Producing %s raw data @ %.0f messages/sec | topic: %s | %.2fms avg latency\n",
		time.Now().Format(time.RFC3339), output(shown*float64(l.o.size)), shown, l.o.topic, ms)
}

func (l *lines2014) end() {
	fmt.Fprintln(l.p.Out)
	for i := range l.o.workers {
		if !l.o.noop {
			fmt.Fprintf(l.p.Out, "client_%d shutting down\n", i+1)
		}
	}
}

// lines2022 are the lines of the last one.
type lines2022 struct {
	o *options
	p *compat.Program
}

func (l *lines2022) start() {
	fmt.Fprintf(l.p.Out, "\nStarting %d client workers, %d writers per worker\n", l.o.workers, l.o.writers)
	fmt.Fprintf(l.p.Out, "Message size %d bytes, %d message limit per batch\n", l.o.messageSize, l.o.batch)
	fmt.Fprintf(l.p.Out, "API Version: %s, Compression: %s, RequiredAcks: %s\n", l.o.version, l.o.compression, l.o.acks)
}

func (l *lines2022) opened() {
	for i := range l.o.workers {
		fmt.Fprintf(l.p.Out, "%sworker_%d connected\n", time.Now().Format(stamp), i+1)
	}
}

func (l *lines2022) interval(s load.Snapshot) {
	if s.Phase != measure.Hold {
		return
	}
	rate := taken(&s, l.o.noop, l.o.acks == "none")
	failed := 0.0
	if n := s.Interval.Sent; n > 0 {
		failed = 100 * float64(s.Interval.Failed+unknown(&s, l.o)) / float64(n)
	}
	if l.p.Strict && s.Interval.Sent == 0 {
		failed = math.NaN()
	}
	if l.p.Strict { // what failed was sent, too
		rate = float64(s.Interval.Sent) / s.Interval.Length().Seconds()
	}
	fmt.Fprintf(l.p.Out, "\n%s[ topic: %s ]\n", time.Now().Format(stamp), l.o.topic)
	fmt.Fprintf(l.p.Out, "> Messages: %s @ %.0f msgs/sec. | error rate %.2f%%\n", output(rate*float64(l.o.messageSize)), rate, failed)
	h := s.Interval.Service
	if l.o.noop || h.Count() == 0 {
		return
	}
	fmt.Fprintf(l.p.Out, "> Batches: %.2f batches/sec. | %s p99 | %s HMean | %s Min | %s Max\n",
		float64(h.Count())/s.Interval.Length().Seconds(), micros(h.Percentile(99)), micros(harmonic(h)), micros(h.Min()), micros(h.Max()))
	l.bins(h)
}

// unknown counts what has no certain answer as failed, where there are answers.
func unknown(s *load.Snapshot, o *options) uint64 {
	if o.acks == "none" || o.noop {
		return 0
	}
	return s.Interval.Unknown
}

func (l *lines2022) end() {}

// micros is a duration in Go's form, without what is below a microsecond.
func micros(d time.Duration) time.Duration { return d.Truncate(time.Microsecond) }

// harmonic is the harmonic mean.
func harmonic(h *measure.Histogram) time.Duration {
	sum := 0.0
	h.EachBucket(func(top time.Duration, n uint64) { sum += float64(n) / float64(max(min(top, h.Max()), 1)) })
	if sum == 0 {
		return 0
	}
	return time.Duration(float64(h.Count()) / sum)
}

// bins draws ten of equal width between the shortest and the longest, the
// fullest fifty dashes long.
func (l *lines2022) bins(h *measure.Histogram) {
	const n, dashes = 10, 50
	low, width := h.Min(), (h.Max()-h.Min())/n
	if width <= 0 {
		return
	}
	var counts [n]uint64
	var most uint64
	h.EachBucket(func(top time.Duration, c uint64) {
		i := min(int((min(top, h.Max())-low)/width), n-1)
		counts[max(i, 0)] += c
		most = max(most, counts[max(i, 0)])
	})
	for i, c := range counts {
		from := low + time.Duration(i)*width
		label := fmt.Sprintf("%s - %s", micros(from), micros(from+width))
		fmt.Fprintf(l.p.Out, "%22s %s\n", label, strings.Repeat("-", int(math.Round(float64(c)/float64(most)*dashes))))
	}
}
