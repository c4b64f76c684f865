package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"carronade/internal/splitmix"
)

// A Content says what the events of requests have. Weights are relative.
type Content struct {
	Services           int // that events come from
	ResourceAttributes int
	ScopeAttributes    int
	Attributes         int // of each event
	AttributeSize      int // bytes of a value
	BodySize           int // bytes of a log's body
	Severities         [6]int
	TraceSpans         int // spans of a trace
	SpanEvents         int
	SpanLinks          int
	Statuses           [3]int
	Metrics            [MetricKinds]int
	Seed               uint64
}

// SeverityNames are the severities, in the order of Content.Severities.
var SeverityNames = []string{"trace", "debug", "info", "warn", "error", "fatal"}

// StatusNames are the statuses of spans, in the order of Content.Statuses and of their codes.
var StatusNames = []string{"unset", "ok", "error"}

// MetricNames are the kinds of metrics, in the order of Content.Metrics.
var MetricNames = []string{"gauge", "sum", "sum-delta", "histogram", "histogram-delta", "exponential", "exponential-delta"}

// MetricKinds is the number of kinds of metrics.
const MetricKinds = 7

const (
	kindGauge = iota
	kindSum
	kindSumDelta
	kindHistogram
	kindHistogramDelta
	kindExponential
	kindExponentialDelta
)

// A Body is a request, encoded ahead.
type Body struct {
	Signal Signal
	Bytes  []byte
	Places Places
	Events int
}

// a maker makes one body.
type maker struct {
	builder
	*Content
	rng *rand.Rand
}

// Make makes body n of a signal, with this number of events. It is a function of the content and its arguments.
func (c *Content) Make(s Signal, n uint64, events int) *Body {
	k := &maker{Content: c, rng: rand.New(rand.NewPCG(c.Seed, splitmix.Mix(n<<2|uint64(s))))} //nolint:gosec // repeatable, not secret
	service := n % uint64(max(1, c.Services))
	k.message(1, func() {
		k.message(1, func() {
			if c.ResourceAttributes > 0 {
				k.attribute(1, "service.name", fmt.Sprintf("service-%d", service))
			}
			k.attributes(1, "resource", c.ResourceAttributes-1)
		})
		k.message(2, func() {
			k.message(1, func() {
				k.text(1, "carronade")
				k.text(2, "1.0.0")
				k.attributes(3, "scope", c.ScopeAttributes)
			})
			switch s {
			case Traces:
				k.traces(events)
			case Metrics:
				k.metrics(events)
			default:
				for i := range events {
					k.message(2, func() { k.log(uint64(i)) })
				}
			}
		})
	})
	return &Body{Signal: s, Bytes: k.b, Places: k.places, Events: events}
}

// Least is a lower bound of the bytes of a body, without making it.
func (c *Content) Least(s Signal, events int) int64 {
	attribute := 13 + c.AttributeSize
	each := 30 + c.Attributes*attribute
	switch s {
	case Traces:
		each += 20 + c.SpanEvents*(14+attribute) + c.SpanLinks*28
	case Logs:
		each += 35 + c.BodySize
	}
	return int64((max(0, c.ResourceAttributes-1)+c.ScopeAttributes)*attribute + events*each)
}

// attributes adds attributes with texts of random words.
func (k *maker) attributes(num int, name string, n int) {
	for i := range n {
		k.attribute(num, fmt.Sprintf("%s.%d", name, i), k.words(k.AttributeSize))
	}
}

var vocabulary = strings.Fields("order cart user payment session request response cache index queue worker invalid expired accepted timeout retry shard replica checkout inventory")

// words returns a text of a size in bytes.
func (k *maker) words(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(vocabulary[k.rng.IntN(len(vocabulary))])
		fmt.Fprintf(&b, " %d ", k.rng.IntN(1000))
	}
	return b.String()[:size]
}

// pick draws an index by weights; 0 if there are none.
func (k *maker) pick(weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	if sum == 0 {
		return 0
	}
	at := k.rng.IntN(sum)
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return 0
}

// firstSpan is the number of the first span's id; those below are of traces.
const firstSpan = MostIDs / 2

// traces adds spans: trees of TraceSpans spans. The spans of a trace end at the time of the request.
func (k *maker) traces(events int) {
	type interval struct{ from, to int64 }
	spans := make([]interval, max(1, k.TraceSpans))
	for first := 0; first < events; first += len(spans) {
		trace := uint64(first / len(spans))
		for i := range min(len(spans), events-first) {
			parent := (i - 1) / 2
			if i == 0 {
				spans[0] = interval{-int64(time.Millisecond) - k.rng.Int64N(int64(200*time.Millisecond)), 0}
			} else {
				p := spans[parent]
				cut := (p.to - p.from) / 4
				spans[i] = interval{p.from + k.rng.Int64N(cut+1), p.to - k.rng.Int64N(cut+1)}
			}
			k.message(2, func() {
				k.id(1, FormTraceID, trace)
				k.id(2, FormSpanID, uint64(firstSpan+first+i))
				if i > 0 {
					k.id(4, FormSpanID, uint64(firstSpan+first+parent))
				}
				k.span(i, spans[i].from, spans[i].to, trace)
			})
		}
	}
}

// span adds the rest of span i of a trace.
func (k *maker) span(i int, from, to int64, trace uint64) {
	kind := []uint64{1, 3}[i%2] // internal, client
	if i == 0 {
		kind = 2 // server
	}
	k.text(5, fmt.Sprintf("GET /api/%s", vocabulary[k.rng.IntN(len(vocabulary))]))
	k.uint(6, kind)
	k.time(7, from)
	k.time(8, to)
	k.attributes(9, "span", k.Attributes)
	for e := range k.SpanEvents {
		k.message(11, func() {
			k.time(1, from+(to-from)*int64(e+1)/int64(k.SpanEvents+1))
			k.text(2, "event")
			k.attribute(3, "message", k.words(k.AttributeSize))
		})
	}
	for range k.SpanLinks {
		k.message(13, func() {
			k.id(1, FormTraceID, trace)
			k.id(2, FormSpanID, firstSpan)
		})
	}
	if code := k.pick(k.Statuses[:]); code > 0 {
		k.message(15, func() {
			if code == 2 {
				k.text(2, "it failed")
			}
			k.uint(3, uint64(code))
		})
	}
	k.b = append(appendTag(k.b, 16, typeFixed32), 1, 0, 0, 0) // sampled
}

// log adds log record i.
func (k *maker) log(i uint64) {
	severity := k.pick(k.Severities[:])
	k.time(1, -int64(i)*int64(time.Microsecond))
	k.uint(2, uint64(1+4*severity))
	k.text(3, strings.ToUpper(SeverityNames[severity]))
	k.message(5, func() { k.b = AppendMessage(k.b, 1, []byte(k.words(k.BodySize))) })
	k.attributes(6, "log", k.Attributes)
	k.b = append(appendTag(k.b, 8, typeFixed32), 1, 0, 0, 0)
	k.id(9, FormTraceID, i)
	k.id(10, FormSpanID, firstSpan+i)
	k.time(11, 0)
}

// deltaWindow is the time that a point with delta temporality covers.
const deltaWindow = int64(10 * time.Second)

// metrics adds data points, as metrics by kind.
func (k *maker) metrics(events int) {
	var points [MetricKinds][]uint64
	for i := range events {
		kind := k.pick(k.Metrics[:])
		points[kind] = append(points[kind], uint64(i))
	}
	for kind, list := range points {
		if len(list) == 0 {
			continue
		}
		k.message(2, func() {
			k.text(1, "carronade."+MetricNames[kind])
			k.text(2, "made by a load generator")
			k.text(3, "ms")
			k.message([]int{5, 7, 7, 9, 9, 10, 10}[kind], func() {
				for _, i := range list {
					k.message(1, func() { k.point(kind, i) })
				}
				if kind != kindGauge {
					delta := kind == kindSumDelta || kind == kindHistogramDelta || kind == kindExponentialDelta
					k.uint(2, map[bool]uint64{true: 1, false: 2}[delta])
				}
				if kind == kindSum || kind == kindSumDelta {
					k.uint(3, 1) // monotonic
				}
			})
		})
	}
}

// explicitBounds are those that SDKs use by default.
var explicitBounds = []float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}

// point adds data point i of a kind.
func (k *maker) point(kind int, i uint64) {
	attributes := []int{7, 7, 7, 9, 9, 1, 1}[kind]
	k.message(attributes, func() {
		k.text(1, "series")
		k.message(2, func() {
			k.b = AppendMessage(k.b, 1, make([]byte, SeriesDigits))
			k.place(SeriesDigits, FormSeries, i)
		})
	})
	k.attributes(attributes, "point", k.Attributes)
	switch kind {
	case kindGauge:
	case kindSum, kindHistogram, kindExponential:
		k.fresh64(2, FormStart, 0)
	default:
		k.time(2, -deltaWindow)
	}
	k.time(3, 0)
	switch kind {
	case kindGauge:
		k.double(4, k.rng.Float64()*1000)
	case kindSum:
		k.fresh64(6, FormCount, 1+k.rng.Uint64N(100))
	case kindSumDelta:
		k.fixed64(6, k.rng.Uint64N(1000))
	case kindHistogram, kindHistogramDelta:
		k.histogram(kind == kindHistogram)
	default:
		k.exponential(kind == kindExponential)
	}
}

// count adds a number that rises with the time if it is cumulative.
func (k *maker) count(num int, cumulative bool, rate, base uint64) {
	if cumulative {
		k.fresh64(num, FormCount, rate|base<<32)
	} else {
		k.fixed64(num, rate+base)
	}
}

// histogram adds the numbers of a histogram: its count is the sum of its buckets.
func (k *maker) histogram(cumulative bool) {
	counts := make([]uint64, len(explicitBounds)+1)
	total := uint64(0)
	for i := range counts {
		counts[i] = k.rng.Uint64N(20)
		total += counts[i]
	}
	k.count(4, cumulative, total, 0)
	if cumulative {
		k.fresh64(5, FormSum, total*50)
	} else {
		k.double(5, float64(total*50))
	}
	k.b = AppendVarint(appendTag(k.b, 6, typeBytes), uint64(8*len(counts)))
	for _, n := range counts {
		k.b = append(k.b, 0, 0, 0, 0, 0, 0, 0, 0)
		if cumulative {
			k.place(8, FormCount, n)
		} else {
			k.b[len(k.b)-8] = byte(n)
		}
	}
	k.b = AppendVarint(appendTag(k.b, 7, typeBytes), uint64(8*len(explicitBounds)))
	for _, v := range explicitBounds {
		k.b = append(k.b, AppendDouble(nil, 1, v)[1:]...)
	}
}

// exponential adds the numbers of an exponential histogram. Of a cumulative one the values at zero rise:
// the other buckets have a variable number of bytes.
func (k *maker) exponential(cumulative bool) {
	var counts []byte
	total := uint64(0)
	for range 20 {
		n := k.rng.Uint64N(100)
		counts = AppendVarint(counts, n)
		total += n
	}
	k.count(4, cumulative, 1, total)
	k.double(5, float64(total)*50)
	k.uint(6, 6) // scale 3, zigzag
	k.count(7, cumulative, 1, 0)
	k.message(8, func() {
		k.uint(1, 80) // offset 40, zigzag
		k.b = AppendMessage(k.b, 2, counts)
	})
}
