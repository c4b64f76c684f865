package mongoose

import (
	"math"
	"sync"
	"time"

	"carronade/internal/dropin"
	"carronade/load"
	"carronade/measure"
)

// A timing summarizes times of operations in microseconds.
type timing struct {
	sum       float64 // seconds
	mean      float64
	min, max  int64
	quantiles []int64 // in the order of step.quantiles
}

// timingOf summarizes a histogram.
func (s *step) timingOf(h *measure.Histogram) timing {
	us := func(d time.Duration) int64 { return int64(d / time.Microsecond) }
	t := timing{min: us(h.Min()), max: us(h.Max()), sum: h.Sum() / 1e9}
	if n := h.Count(); n > 0 {
		t.mean = h.Sum() / float64(n) / 1e3
	}
	for _, q := range s.quantiles {
		t.quantiles = append(t.quantiles, us(s.quantile(h, q)))
	}
	return t
}

// quantile is the nearest rank; with --strict it is mongoose's sorted[int(q*n)].
func (s *step) quantile(h *measure.Histogram, q float64) time.Duration {
	if !s.strict || q >= 1 {
		return h.Percentile(100 * q)
	}
	return dropin.NthTime(h, uint64(q*float64(h.Count())))
}

// metrics are the values of the lines at a time.
type metrics struct {
	at                   time.Time
	current              uint64
	mean                 float64 // of operations in flight
	succ, fail, bytes    uint64
	elapsed              time.Duration
	lastRate, lastBytes  float64
	lastFails            float64 // a second
	meanRate, meanBytes  float64
	duration, latency    timing
	durations, latencies *measure.Histogram
}

// A metricMark contains the counts at a time.
type metricMark struct {
	at          time.Duration
	succ, bytes uint64
	fail        uint64
}

// A meter collects metrics. It is not safe for concurrent use.
type meter struct {
	s *step

	succ, fail, bytes uint64
	at                time.Duration
	duration, latency *measure.Histogram
	inFlightSeconds   float64 // operations in flight, integrated over time
	current           uint64

	row  metricMark // at the last row
	from metricMark // the start of the last rate: the previous row or the one before it

	batches *batches // times of batches of many records; nil if a batch has one
	polls   *polls   // times of reading; nil unless records are read

	tickRate, tickBytes float64 // smoothed rates of the last second
	ticked              bool
}

func newMeter(s *step) *meter {
	return &meter{s: s, duration: measure.NewHistogram(), latency: measure.NewHistogram()}
}

// interval adds an interval of a run.
func (m *meter) interval(s load.Snapshot) {
	iv := &s.Interval
	succ, bytes := iv.Acked, iv.AckedBytes
	switch {
	case m.s.work == readRecords && !m.s.single():
		succ, bytes = iv.Consumed, iv.Bytes
	case m.s.work == noop:
		succ, bytes = iv.Sent-iv.Failed, iv.Bytes
	}
	service := iv.Service // a time per batch
	if m.batches != nil {
		service = m.batches.take()
	}
	if m.polls != nil {
		service = m.polls.take()
	}
	m.times(service, iv.Response)
	m.count(succ, iv.Failed+m.unknown(iv.Unknown), m.values(bytes, succ), iv.Length(), iv.InFlight)
	m.at = max(m.at, s.At)
}

// times adds times of records.
func (m *meter) times(service, response *measure.Histogram) {
	m.latency.Merge(service)
	if response != nil { // a separate time for each record
		service = response
	}
	m.duration.Merge(service)
}

// batches collects the times of records that share a batch: intervals have one time
// per batch, mongoose one per record. It is safe for concurrent use.
type batches struct {
	mu      sync.Mutex
	service *measure.Histogram
}

// completed adds outcomes of batches.
func (b *batches) completed(out []load.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range out {
		o := &out[i]
		if sent := o.SentFirst(); o.Acked > 0 && sent >= 0 {
			b.service.RecordN(o.Done-sent, uint64(o.Acked))
		}
	}
}

// take returns the times since the last call.
func (b *batches) take() *measure.Histogram {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.service
	b.service = measure.NewHistogram()
	return h
}

// polls collects the times of records that were read: each has the time of the poll
// that it came with, from the previous arrival to its own. The first includes
// finding the place to read from. It is safe for concurrent use.
type polls struct {
	mu       sync.Mutex
	limit    uint64                // records that count; 0: all
	seen     uint64                // of those
	last     map[int]time.Duration // the newest arrival of each lane
	duration *measure.Histogram
}

func newPolls(limit uint64) *polls {
	return &polls{limit: limit, last: map[int]time.Duration{}, duration: measure.NewHistogram()}
}

// arrived adds what a poll of a lane returned.
func (p *polls) arrived(lane int, as []load.Arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var records uint64
	at := p.last[lane]
	for i := range as {
		records += uint64(max(as[i].Events, 0))
		at = max(at, as[i].At)
	}
	if p.limit > 0 {
		records = min(records, p.limit-p.seen)
	}
	if records > 0 {
		p.duration.RecordN(at-p.last[lane], records)
	}
	p.seen += records
	p.last[lane] = at
}

// take returns the times since the last call.
func (p *polls) take() *measure.Histogram {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.duration
	p.duration = measure.NewHistogram()
	return h
}

// unknown is how many records without a certain answer count as failed: all, or
// none if no answers are expected.
func (m *meter) unknown(n uint64) uint64 {
	if m.s.work == noop {
		return 0
	}
	return n
}

// values is the bytes of values alone, which mongoose counts.
func (m *meter) values(bytes, succ uint64) uint64 {
	if m.s.work != writeRecords {
		return bytes
	}
	return m.s.valueBytes(bytes, succ)
}

// valueBytes is the bytes of values alone, given those of whole records. Of headers with
// expressions the length is not known; then all values have the same size, or the headers count.
func (s *step) valueBytes(bytes, records uint64) uint64 {
	if (s.varies || s.keyed) && s.low == s.high {
		return min(bytes, records*uint64(s.low))
	}
	return bytes - min(bytes, records*uint64(s.overhead()))
}

// count adds the counts of a span of time.
func (m *meter) count(succ, fail, bytes uint64, span time.Duration, inFlight uint64) {
	m.succ += succ
	m.fail += fail
	m.bytes += bytes
	m.current = inFlight
	m.inFlightSeconds += float64(inFlight) * span.Seconds()
	if span <= 0 {
		return
	}
	// mongoose's last rate: smoothed with 1 - 1/e per second.
	rate, byteRate := float64(succ)/span.Seconds(), float64(bytes)/span.Seconds()
	alpha := 1 - math.Exp(-span.Seconds())
	if !m.ticked {
		alpha = 1
	}
	m.ticked = true
	m.tickRate += alpha * (rate - m.tickRate)
	m.tickBytes += alpha * (byteRate - m.tickBytes)
}

// due reports whether a row is due.
func (m *meter) due() bool {
	return m.s.period > 0 && m.at-m.row.at >= m.s.period-m.s.period/100
}

// rows writes a row to the table and to the file if one is due, and reports whether that is so.
func (m *meter) rows(t *table, f *files) bool {
	if !m.due() {
		return false
	}
	now := m.metrics(time.Now())
	t.row(now)
	f.row(now)
	return true
}

// metrics returns the current metrics, and starts the next row.
func (m *meter) metrics(now time.Time) *metrics {
	out := &metrics{
		at: now, current: m.current, succ: m.succ, fail: m.fail, bytes: m.bytes, elapsed: m.at,
		durations: m.duration, latencies: m.latency,
		duration: m.s.timingOf(m.duration), latency: m.s.timingOf(m.latency),
	}
	if n := m.duration.Count(); n > 0 { // each record of a batch has the batch's time
		out.duration.sum *= float64(m.succ) / float64(n)
	}
	if m.at > 0 {
		out.mean = m.inFlightSeconds / m.at.Seconds()
	}
	if m.at-m.row.at >= time.Second { // the last period may be very short
		m.from = m.row
	}
	if span := (m.at - m.from.at).Seconds(); span > 0 {
		out.lastRate, out.lastBytes = float64(m.succ-m.from.succ)/span, float64(m.bytes-m.from.bytes)/span
		out.lastFails = float64(m.fail-m.from.fail) / span
	}
	if m.s.strict {
		out.lastRate, out.lastBytes = m.tickRate, m.tickBytes
	}
	m.row = metricMark{m.at, m.succ, m.bytes, m.fail}
	m.s.rates(out)
	return out
}

// rates sets the mean rates over the elapsed time; with --strict over its full
// seconds, 0 below one second.
func (s *step) rates(m *metrics) {
	over := m.elapsed.Seconds()
	if s.strict {
		over = math.Floor(over)
	}
	m.meanRate, m.meanBytes = 0, 0
	if over > 0 {
		m.meanRate, m.meanBytes = float64(m.succ)/over, float64(m.bytes)/over
	}
}
