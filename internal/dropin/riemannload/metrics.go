package riemannload

import (
	"math"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

// minStretch is the shortest stretch whose rate is shown. A shorter remainder at the
// end of a run is combined with the second before it.
const minStretch = 900 * time.Millisecond

// rateWindows are the windows of the rates shown.
var rateWindows = [3]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// A stretch is a count over a length of time.
type stretch struct {
	n      uint64
	length time.Duration
}

// A meter counts events and computes their rates.
type meter struct {
	name, unit  string // names of the metric and of what it counts
	strict      bool
	count       uint64
	elapsed     time.Duration
	past        []stretch // newest last; at least those of the longest window
	averages    [3]average
	overallRate float64 // per second over the whole run; 0 until its end
}

func (m *meter) add(n uint64, length time.Duration) {
	m.count += n
	m.elapsed += length
	for i := range m.averages {
		m.averages[i].add(n, length, rateWindows[i])
	}
	m.past = append(m.past, stretch{n, length})
	if most := int(rateWindows[2] / time.Second); len(m.past) > 2*most {
		m.past = append(m.past[:0], m.past[len(m.past)-most-1:]...)
	}
}

// within is the mean rate of the newest stretches with at least this total length,
// or of all.
func (m *meter) within(least time.Duration) float64 {
	var all stretch
	for i := len(m.past) - 1; i >= 0 && all.length < least; i-- {
		all.n += m.past[i].n
		all.length += m.past[i].length
	}
	return all.rate()
}

func (s stretch) rate() float64 { return dropin.Per(float64(s.n), s.length) }

// mean is the mean rate of the newest second, or of the whole run at its end. With
// --strict it is the rate since the start, as in the tool.
func (m *meter) mean() float64 {
	switch {
	case m.strict:
		return stretch{m.count, m.elapsed}.rate()
	case m.overallRate > 0:
		return m.overallRate
	}
	return m.within(minStretch)
}

// minutes is the rate over windows[i].
func (m *meter) minutes(i int) float64 {
	if m.strict {
		return m.averages[i].rate
	}
	return m.within(rateWindows[i])
}

// An average is exponentially weighted, as in Yammer's meters: it is updated every
// five seconds and starts with the rate of the first five.
type average struct {
	rate  float64
	begun bool
	n     uint64
	since time.Duration
}

const averageTick = 5 * time.Second

func (a *average) add(n uint64, length, window time.Duration) {
	a.n += n
	for a.since += length; a.since >= averageTick; a.since -= averageTick {
		now := float64(a.n) / averageTick.Seconds()
		if a.begun {
			a.rate += (1 - math.Exp(-averageTick.Seconds()/window.Seconds())) * (now - a.rate)
		} else {
			a.rate, a.begun = now, true
		}
		a.n = 0
	}
}

// A timer is a meter of calls that also records their durations.
type timer struct {
	meter
	all      *measure.Histogram // of the whole run
	newest   *measure.Histogram // of the newest second
	previous *measure.Histogram // of the second before the newest
	sample   *reservoir
}

func (t *timer) add(h *measure.Histogram, length time.Duration) {
	t.meter.add(h.Count(), length)
	if h.Count() > 0 {
		t.all.Merge(h)
	}
	if t.strict {
		t.sample.add(h, t.elapsed)
	}
	t.previous, t.newest = t.newest, measure.NewHistogram()
	if h.Count() > 0 {
		t.newest.Merge(h)
	}
	if length < minStretch && t.previous.Count() > 0 {
		t.newest.Merge(t.previous)
	}
}

// shown is the histogram of the times shown.
func (t *timer) shown() *measure.Histogram {
	if t.strict || t.overallRate > 0 {
		return t.all
	}
	return t.newest
}

// percentile is in seconds.
func (t *timer) percentile(p float64) float64 {
	if t.strict {
		return t.sample.quantile(p / 100).Seconds()
	}
	return t.shown().Percentile(p).Seconds()
}

// deviation is the standard deviation of a sample, in seconds.
func deviation(h *measure.Histogram) float64 {
	n := h.Count()
	if n < 2 {
		return 0
	}
	mean, sum := h.Mean().Seconds(), 0.0
	h.EachBucket(func(top time.Duration, c uint64) {
		d := min(top, h.Max()).Seconds() - mean
		sum += float64(c) * d * d
	})
	return math.Sqrt(sum / float64(n-1))
}

// riemannMetrics are all metrics of the tool.
type riemannMetrics struct {
	batch       uint64
	connections uint64
	strict      bool

	sends, acks, events, bytes meter
	rtt                        timer
	unacked                    uint64
	at                         time.Duration // since the start
}

func newRiemannMetrics(o *riemannOptions, strict bool) *riemannMetrics {
	m := &riemannMetrics{batch: uint64(o.batch), connections: uint64(min(o.connections, o.workers)), strict: strict}
	m.sends = meter{name: "sends", unit: "send", strict: strict}
	m.acks = meter{name: "acks", unit: "ack", strict: strict}
	m.events = meter{name: "event-acks", unit: "send", strict: strict} // it counts acked events; the unit is the tool's
	m.bytes = meter{name: "throughput", unit: "bytes", strict: strict}
	m.rtt = timer{meter: meter{name: "rtt", unit: "calls", strict: strict}, all: measure.NewHistogram(), newest: measure.NewHistogram()}
	if strict {
		m.rtt.sample = newReservoir()
	}
	return m
}

// add adds an interval. It reports whether there is something to show; with
// --strict, a part of a second is not shown, as the tool stopped at once.
func (m *riemannMetrics) add(s *load.Snapshot) bool {
	iv := &s.Interval
	length := iv.Length()
	if length <= 0 || m.strict && length < minStretch {
		return false
	}
	m.at = iv.End
	m.sends.add(iv.Batches, length)
	m.acks.add(riemannMessages(iv.Acked, m.batch), length)
	m.events.add(iv.Acked, length)
	m.bytes.add(iv.WireBytes, length)
	m.rtt.add(iv.Service, length)
	m.unacked = riemannMessages(iv.InFlight, m.batch)
	if m.strict { // its gauge was the first connection's
		m.unacked /= m.connections
	}
	return true
}

// riemannMessages is the number of messages for a number of events.
func riemannMessages(events, batch uint64) uint64 { return (events + batch - 1) / batch }

// end sets the values of the last block to those of the whole run.
func (m *riemannMetrics) end(d *report.Document) {
	t := &d.Totals
	if t.ElapsedS <= 0 {
		return
	}
	sent, _, wire := t.SendRates()
	m.sends.overallRate = sent / float64(m.batch)
	m.acks.overallRate = t.EventsPerS / float64(m.batch)
	m.events.overallRate = t.EventsPerS
	m.bytes.overallRate = wire
	m.rtt.overallRate = m.acks.overallRate
	m.unacked = 0
}
