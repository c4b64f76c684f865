package omb

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The classes that the tool's lines name.
const (
	ofBenchmark = "Benchmark"
	ofGenerator = "WorkloadGenerator"
	ofWorker    = "LocalWorker"
)

// A logger prints lines in the layout of the tool's log.
type logger struct {
	w   io.Writer
	now func() time.Time
	mu  sync.Mutex // a backlog has lines while intervals have
}

func (l *logger) info(class, format string, args ...any) { l.line("INFO", class, format, args...) }

func (l *logger) line(level, class, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "%s [main] %-4s %s - %s\n", l.now().Format("15:04:05.000"), level, class, fmt.Sprintf(format, args...))
}

// padded is a number with one decimal, at least as wide as width.
func padded(x float64, width int) string {
	s := strconv.FormatFloat(x, 'f', 1, 64)
	return strings.Repeat(" ", max(0, width-len(s))) + s
}

// Widths of the numbers in lines.
const (
	rateWidth   = 7
	numberWidth = 4
)

// periodLine is the line of a period.
func periodLine(p *period) string {
	rate := func(x float64) string { return padded(x, rateWidth) }
	num := func(x float64) string { return padded(x, numberWidth) }
	const mib = 1 << 20
	var b strings.Builder
	fmt.Fprintf(&b, "Pub rate %s msg/s / %s MB/s | Pub err %s err/s | Cons rate %s msg/s / %s MB/s | Backlog: %s K",
		rate(p.published), num(p.publishedBytes/mib), rate(p.failed), rate(p.consumed), num(p.consumedBytes/mib), num(p.backlog/1e3))
	fmt.Fprintf(&b, " | Pub Latency (ms) avg: %s - 50%%: %s - 99%%: %s - 99.9%%: %s - Max: %s",
		num(p.latency.mean/1e3), num(p.latency.ms(50)), num(p.latency.ms(99)), num(p.latency.ms(99.9)), num(p.latency.ms(100)))
	fmt.Fprintf(&b, " | Pub Delay Latency (us) avg: %s - 50%%: %s - 99%%: %s - 99.9%%: %s - Max: %s",
		num(p.delay.mean), num(p.delay.us(50)), num(p.delay.us(99)), num(p.delay.us(99.9)), num(p.delay.us(100)))
	return b.String()
}

// totalLine is the line at the end.
func totalLine(latency, delay *times) string {
	num := func(x float64) string { return padded(x, numberWidth) }
	return fmt.Sprintf("----- Aggregated Pub Latency (ms) avg: %s - 50%%: %s - 95%%: %s - 99%%: %s - 99.9%%: %s - 99.99%%: %s - Max: %s",
		num(latency.mean/1e3), num(latency.ms(50)), num(latency.ms(95)), num(latency.ms(99)), num(latency.ms(99.9)), num(latency.ms(99.99)), num(latency.ms(100))) +
		fmt.Sprintf(" | Pub Delay (us)  avg: %s - 50%%: %s - 95%%: %s - 99%%: %s - 99.9%%: %s - 99.99%%: %s - Max: %s",
			num(delay.mean), num(delay.us(50)), num(delay.us(95)), num(delay.us(99)), num(delay.us(99.9)), num(delay.us(99.99)), num(delay.us(100)))
}
