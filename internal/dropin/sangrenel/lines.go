package sangrenel

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"carronade/internal/dropin"
	"carronade/load"
	"carronade/measure"
)

// A sangrenelPrinter prints the lines of a generation.
type sangrenelPrinter interface {
	start()
	opened()
	interval(load.Snapshot)
	published(error) // an interval was sent to Graphite, or the error why not
	end()
}

// lines2014 are the lines of the first generation.
type lines2014 struct {
	o *sangrenelOptions
	p *dropin.Program
}

func (l *lines2014) start() {
	fmt.Fprintf(l.p.Out, "\n::: Sangrenel :::\nStarting %d workers\nMessage size %d bytes\n\n", l.o.workers, l.o.size)
}

func (l *lines2014) opened() { // with -noop, too: the tool made its connections then
	for i := range l.o.workers {
		fmt.Fprintf(l.p.Out, "client_%d connected\n", i+1)
	}
}

func (l *lines2014) interval(s load.Snapshot) {
	if rate, ms, ok := l.numbers(s); ok {
		fmt.Fprintf(l.p.Out, "%s Producing %s raw data @ %.0f messages/sec | topic: %s | %.2fms avg latency\n",
			time.Now().Format(time.RFC3339), formatByteRate(rate*float64(l.o.size)), rate, l.o.topic, ms)
	}
}

// numbers are the rate and the latency of an interval; not ok if it is not of the measurement.
func (l *lines2014) numbers(s load.Snapshot) (shown, ms float64, ok bool) {
	if s.Phase != measure.Measurement {
		return 0, 0, false
	}
	rate, h := sangrenelThroughput(&s, l.o.noop, false), s.Interval.Service
	switch {
	case l.o.noop:
	case h.Count() == 0 && l.p.Strict: // 0 divided by 0
		ms = math.NaN()
	case h.Count() > 0:
		ms = meanOfSlowest(h).Seconds() * 1e3
	}
	shown = math.Round(rate)
	if l.p.Strict { // as if the interval had its full length, rounded down
		shown = math.Floor(float64(s.Interval.Acked) / float64(l.o.interval))
		if l.o.noop {
			shown = math.Floor(float64(s.Interval.Sent) / float64(l.o.interval))
		}
	}
	return shown, ms, true
}

func (l *lines2014) published(error) {} // 2014 had no Graphite

func (l *lines2014) end() {
	fmt.Fprintln(l.p.Out)
	for i := range l.o.workers {
		fmt.Fprintf(l.p.Out, "client_%d shutting down\n", i+1)
	}
}

// lines2015 are the lines of March 2015 to 2016, with the same numbers.
type lines2015 struct{ lines2014 }

func (l *lines2015) start() {
	name := map[string]string{"gzip": "GZIP", "snappy": "Snappy"}[l.o.compression]
	fmt.Fprintf(l.p.Out, "\n::: Sangrenel :::\n\nStarting %d client workers, %d producers per worker\n", l.o.clientsOf2015(), l.o.producers)
	fmt.Fprintf(l.p.Out, "Message size %d bytes, %d message limit per batch\nCompression: %s\n", l.o.size, l.o.maxBatch, cmp.Or(name, l.o.compression))
}

func (l *lines2015) opened() {
	for i := range l.o.clientsOf2015() {
		if !l.o.noop {
			dropin.GoLogf(l.p.Err, "client_%d connected", i+1)
		}
	}
}

func (l *lines2015) interval(s load.Snapshot) {
	if rate, ms, ok := l.numbers(s); ok {
		dropin.GoLogf(l.p.Err, "Generating %s @ %.0f messages/sec | topic: %s | %.2fms 90%%ile latency", formatByteRate(rate*float64(l.o.size)), rate, l.o.topic, ms)
	}
}

func (l *lines2015) published(err error) { (&lines2022{o: l.o, p: l.p}).published(err) }

func (l *lines2015) end() { fmt.Fprintln(l.p.Out, "Killing Connections") }

// lines2022 are the lines of the last generation. Lines with a date are those of
// Go's log package, which writes to stderr.
type lines2022 struct {
	o *sangrenelOptions
	p *dropin.Program
}

func (l *lines2022) start() {
	fmt.Fprintf(l.p.Out, "\nStarting %d client workers, %d writers per worker\n", l.o.workers, l.o.writers)
	fmt.Fprintf(l.p.Out, "Message size %d bytes, %d message limit per batch\n", l.o.messageSize, l.o.batch)
	fmt.Fprintf(l.p.Out, "API Version: %s, Compression: %s, RequiredAcks: %s\n", l.o.version, l.o.compression, l.o.acks)
}

func (l *lines2022) opened() {
	if l.o.noop {
		return
	}
	for i := range l.o.workers {
		dropin.GoLogf(l.p.Err, "worker_%d connected", i+1)
	}
}

func (l *lines2022) interval(s load.Snapshot) {
	if s.Phase != measure.Measurement {
		return
	}
	iv := &s.Interval
	rate := sangrenelThroughput(&s, l.o.noop, l.o.unanswered())
	failed := l.errorRate(iv)
	if l.p.Strict {
		rate = dropin.Per(float64(iv.Sent), iv.Length()) // what failed was sent, too
	}
	fmt.Fprintln(l.p.Out)
	dropin.GoLogf(l.p.Err, "[ topic: %s ]", l.o.topic)
	fmt.Fprintf(l.p.Out, "> Messages: %s @ %.0f msgs/sec. | error rate %.2f%%\n", formatByteRate(rate*float64(l.o.messageSize)), rate, failed)
	if l.o.noop {
		return
	}
	h := l.batches(iv)
	count := h.Count()
	if l.o.unanswered() {
		count = iv.Batches
	}
	fmt.Fprintf(l.p.Out, "> Batches: %.2f batches/sec. | %s p99 | %s HMean | %s Min | %s Max\n",
		dropin.Per(float64(count), iv.Length()), micros(h.Percentile(99)), micros(harmonic(h)), micros(h.Min()), micros(h.Max()))
	fmt.Fprintln(l.p.Out, bins(h))
}

// errorRate is the share of messages that failed, in percent of those completed in
// the interval, which may have been sent before it. With --strict it is in percent
// of those sent in the interval.
func (l *lines2022) errorRate(iv *measure.Interval) float64 {
	lost, done := iv.Failed+iv.Unknown, iv.Acked+iv.Failed+iv.Unknown
	if l.o.noop || l.o.unanswered() {
		lost, done = iv.Failed, max(iv.Sent, iv.Failed)
	}
	if l.p.Strict {
		if done = iv.Sent; done == 0 {
			return math.NaN()
		}
	}
	if done == 0 {
		return 0
	}
	return 100 * float64(lost) / float64(done)
}

// batches are the service times of an interval's acknowledged batches. With
// --strict they include those of failed batches.
func (l *lines2022) batches(iv *measure.Interval) *measure.Histogram {
	h := measure.NewHistogram()
	h.Merge(iv.Service)
	if l.p.Strict {
		h.Merge(iv.FailedService)
	}
	return h
}

func (l *lines2022) published(err error) {
	if err != nil {
		dropin.GoLogf(l.p.Err, "Graphite unreachable: %s", err)
		return
	}
	dropin.GoLogf(l.p.Err, "Metrics flushed to Graphite")
}

func (l *lines2022) end() {}
