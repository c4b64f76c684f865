package kafkatools

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

const producerSamples = 500_000 // kept by the tool

// producerLines prints a run's lines. Its methods are not called concurrently.
type producerLines struct {
	o *producerOptions
	p *dropin.Program

	times map[string]*measure.Histogram // by phase
	due   *measure.Histogram            // since records were due, where that is not what is printed
	room  sendBuffer
	// The current window. It is printed when its interval ends. If nothing was
	// answered in it, it continues.
	window  *measure.Histogram
	counts  measure.Counts
	lasts   time.Duration
	steady  bool // the measurement has begun, after a warm-up
	printed bool // "In steady state." was printed
}

func newProducerLines(o *producerOptions, p *dropin.Program) *producerLines {
	return &producerLines{
		o: o, p: p, window: measure.NewHistogram(), due: measure.NewHistogram(),
		times: map[string]*measure.Histogram{measure.WarmUp: measure.NewHistogram(), measure.Measurement: measure.NewHistogram()},
	}
}

// pick returns the times that the tool calls latency: with a schedule since its send call, which is late
// while its buffer is full, otherwise, and with --strict, since its batch was sent.
func (l *producerLines) pick(s *measure.Set) *measure.Histogram {
	if !l.o.scheduled() || l.o.strict {
		return s.Service
	}
	l.due.Merge(s.Response)
	return atMost(s.Response, l.room.waited())
}

// interval adds a row of each phase.
func (l *producerLines) interval(s load.Snapshot) {
	rows := s.Rows
	if len(rows) == 0 {
		rows = []measure.Interval{s.Interval}
	}
	lasts := s.Interval.Length()
	for i := range rows {
		l.room.add(&rows[i].Counts)
	}
	l.room.close(lasts, l.o)
	for i := range rows {
		if rows[i].Phase == measure.WarmUp && len(rows) > 1 {
			lasts -= rows[i].Within // the rest of the interval is the measurement's
		}
	}
	for i := range rows {
		r := &rows[i]
		h := l.pick(&r.Set)
		if all, ok := l.times[r.Phase]; ok && h.Count() > 0 {
			all.Merge(h)
		}
		if r.Phase == measure.Measurement && l.o.warmup > 0 && !l.steady {
			l.steady = true
			l.open()
		}
		if (r.Phase == measure.Measurement) == (l.steady || l.o.warmup == 0) {
			if h.Count() > 0 {
				l.window.Merge(h)
			}
			l.counts.Add(r.Counts)
			l.lasts += lasts
		}
	}
	if s.Interval.Length() < time.Duration(l.o.interval)*time.Millisecond || l.sent(l.counts) == 0 {
		return // a window cut short by the end is only in the summary
	}
	if l.steady && !l.printed {
		l.printed = true
		fmt.Fprintln(l.p.Out, "In steady state.")
	}
	ms := " ms"
	if l.o.generation == of2018 {
		ms = ""
	}
	n, bytes, seconds := l.sent(l.counts), l.bytes(l.counts), l.lasts.Seconds()
	fmt.Fprintf(l.p.Out, "%d records sent, %.1f records/sec (%.2f MB/sec), %.1f ms avg latency, %.1f%s max latency.\n",
		n, float64(n)/seconds, bytes/seconds/mib, millis(l.window.Mean()), millis(l.window.Max()), ms)
	l.open()
}

// open starts a window.
func (l *producerLines) open() {
	l.window.Reset()
	l.counts, l.lasts = measure.Counts{}, 0
}

// sent is how many records the tool calls sent: those acknowledged or, if nothing
// is answered, those sent. The tool of 2018 also counted failed records.
func (l *producerLines) sent(c measure.Counts) uint64 {
	switch {
	case l.o.clientGeneration == of2018 && l.o.strict:
		return c.Acked + c.Failed + c.Unknown
	case l.acks0():
		return c.Sent - c.Failed
	}
	return c.Acked
}

func (l *producerLines) bytes(c measure.Counts) float64 {
	if l.acks0() || l.o.clientGeneration == of2018 && l.o.strict {
		return float64(c.Bytes)
	}
	return float64(c.AckedBytes)
}

// acks0 reports whether the broker sends no answers.
func (l *producerLines) acks0() bool {
	acks, _ := l.o.client.get("acks")
	return acks == "0"
}

// end prints the summaries and returns the exit code.
func (l *producerLines) end(d *report.Document) int {
	code := d.ExitCode()
	if code == host.ExitInterrupted {
		l.complain(d)
		return code // the tool has no summary then
	}
	var all, steady producerSum
	for _, ph := range d.Phases {
		if ph.Name == measure.WarmUp || ph.Name == measure.Measurement {
			all.add(ph, l)
		}
		if ph.Name == measure.Measurement {
			steady.add(ph, l)
		}
		all.end, steady.end = max(all.end, ph.EndS), max(steady.end, ph.EndS)
	}
	l.total(all, "")
	if l.o.warmup > 0 {
		l.total(steady, " steady state")
	}
	if l.o.metrics {
		producerMetrics(d, l.o).print(l.p.Out)
	}
	lost := l.complain(d)
	if l.o.strict {
		return 0
	}
	return dropin.WithLost(code, lost)
}

// A producerSum collects the numbers of a summary.
type producerSum struct {
	counts     measure.Counts
	start, end float64 // s
	any        bool
	times      *measure.Histogram
}

func (s *producerSum) add(ph report.Phase, l *producerLines) {
	if !s.any {
		s.any, s.start, s.times = true, ph.StartS, measure.NewHistogram()
	}
	s.counts.Add(ph.Totals.Counts)
	if h := l.times[ph.Name]; h.Count() > 0 {
		s.times.Merge(h)
	}
}

// total prints a summary.
func (l *producerLines) total(s producerSum, of string) {
	rate := "%f"
	if l.o.generation == of41 {
		rate = "%.1f"
	}
	n, seconds := l.sent(s.counts), s.end-s.start
	mean := millis(s.times.Mean())
	if s.times.Count() == 0 && (n == 0 || l.acks0()) {
		mean = 0
		if n == 0 && l.o.strict {
			mean = math.NaN()
		}
	}
	fmt.Fprintf(l.p.Out, "%d%s records sent, "+rate+" records/sec (%.2f MB/sec), %s ms avg latency, %.2f ms max latency, %d ms 50th, %d ms 95th, %d ms 99th, %d ms 99.9th.\n",
		n, of, dropin.PerSecond(float64(n), seconds), dropin.PerSecond(l.bytes(s.counts), seconds)/mib, fixed(mean), millis(s.times.Max()),
		l.percentile(s.times, n, 0.5), l.percentile(s.times, n, 0.95), l.percentile(s.times, n, 0.99), l.percentile(s.times, n, 0.999))
}

// fixed formats a number with two decimals; Java and Go spell NaN alike.
func fixed(x float64) string { return fmt.Sprintf("%.2f", x) }

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

// percentile is a percentile in whole milliseconds, rounded to the nearest. With
// --strict it is computed as in the tool: the truncated value at int(p*n) of every
// k-th sample.
func (l *producerLines) percentile(h *measure.Histogram, records uint64, p float64) int64 {
	if h.Count() == 0 {
		return 0
	}
	if !l.o.strict {
		return int64(math.Round(millis(h.Percentile(100 * p))))
	}
	every := max(uint64(l.o.records)/min(uint64(l.o.records), producerSamples), 1)
	kept := max(min(records/every, h.Count()), 1)
	return int64(millis(dropin.NthTime(h, uint64(p*float64(kept))*(h.Count()/kept))))
}

// complain writes to stderr what failed and how to read the numbers, and returns
// how many records were not certainly accepted.
func (l *producerLines) complain(d *report.Document) (lost uint64) {
	dropin.WriteProblems(l.p.Err, d)
	for _, ph := range d.Phases {
		lost += ph.Totals.Failed + ph.Totals.Unsent + ph.Totals.Dropped
		if !l.acks0() {
			lost += ph.Totals.Unknown
		}
	}
	if l.acks0() {
		fmt.Fprintln(l.p.Err, "note: with acks=0 nothing is answered: times are 0, and records are the ones sent")
	}
	if d.Stopped != load.Interrupted && l.o.scheduled() && !l.o.strict && d.Totals.EventsPerS < 0.95*l.o.throughput && d.Totals.ElapsedS > 1 {
		h := l.due
		fmt.Fprintf(l.p.Err, "note: the target of %s records/sec was not reached: latencies are from the tool's send call; from when records were due, as in the report, they were %s ms avg, %.2f ms max, %.0f ms 50th, %.0f ms 99th; --throughput -1 sends without a limit\n",
			strconv.FormatFloat(l.o.throughput, 'f', -1, 64), fixed(millis(h.Mean())), millis(h.Max()), millis(h.Percentile(50)), millis(h.Percentile(99)))
	}
	return lost
}
