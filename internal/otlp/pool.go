package otlp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/conn/web"
	"carronade/internal/otlp/wire"
	"carronade/protocol"
	"carronade/units"
)

var compressions = []string{"none", "gzip", "zstd"}

// Bounds of a pool.
const (
	mostTemplates = 1024
	mostPartials  = 64 // requests with fewer events that are kept
	mostEvents    = 100000
	mostMade      = 1 << 30 // bytes of a generated request
)

// A pool has the requests that are encoded ahead of the run, and what is fresh in them.
type pool struct {
	content     *wire.Content
	weights     [wire.Signals]int
	corpus      bool
	events      int // of a generated request
	most        int // events of the largest request
	compression string
	grpc        bool
	size        int64

	bodies    []*wire.Body
	plain     int64 // bytes of the bodies
	unstamped int   // requests of a corpus without a time
	cut       bool  // the corpus has more than is kept
	ends      []uint64

	key           uint64
	series        uint64
	perSecond     float64
	start         time.Time // when the first request was prepared
	once          sync.Once
	batch, points atomic.Uint64 // prepared so far
	compressed    atomic.Uint64 // bytes of requests before compression, and after it
	uncompressed  atomic.Uint64
}

// newPool reads the options for requests. It makes none yet, but reads a corpus, and keeps it if keep is set.
func newPool(v protocol.Values, s protocol.Spec, keep bool) (*pool, error) {
	p := &pool{
		compression: v.String("compression"), size: v.Size("pool"), events: v.Int("events"),
		series: uint64(v.Int("series")), perSecond: v.Rate("series-per-second"), key: wire.NewKey(s.Seed + uint64(s.Portion.From)<<32),
	}
	c := &wire.Content{
		Services: v.Int("services"), ResourceAttributes: v.Int("resource-attributes"), ScopeAttributes: v.Int("scope-attributes"), Attributes: v.Int("attributes"),
		AttributeSize: int(v.Size("attribute-size")), BodySize: int(v.Size("body-size")), TraceSpans: v.Int("trace-spans"), SpanEvents: v.Int("span-events"),
		SpanLinks: v.Int("span-links"), Seed: s.Seed,
	}
	var names []string
	for s := range wire.Signals {
		names = append(names, s.String())
	}
	for _, w := range []struct {
		option string
		words  []string
		to     []int
	}{
		{"signal", names, p.weights[:]},
		{"statuses", wire.StatusNames, c.Statuses[:]},
		{"severities", wire.SeverityNames, c.Severities[:]},
		{"metric", wire.MetricNames, c.Metrics[:]},
	} {
		err := units.ParseWeights(v.String(w.option), w.words, w.to)
		if err == nil && slices.Max(w.to) == 0 {
			err = errors.New("all weights are 0")
		}
		if err != nil {
			return nil, &protocol.Error{Doing: "read --" + w.option, Err: err, Hint: "such as --" + w.option + " " + w.words[0] + "=3," + w.words[1] + "=1"}
		}
	}
	p.content, p.most = c, p.events
	for _, b := range []struct {
		option     string
		value, max int
		least      int
	}{
		{"events", p.events, mostEvents, 1},
		{"services", c.Services, 1e6, 1},
		{"resource-attributes", c.ResourceAttributes, 1000, 0},
		{"scope-attributes", c.ScopeAttributes, 1000, 0},
		{"attributes", c.Attributes, 1000, 0},
		{"attribute-size", c.AttributeSize, 1 << 20, 0},
		{"body-size", c.BodySize, 16 << 20, 0},
		{"trace-spans", c.TraceSpans, mostEvents, 1},
		{"span-events", c.SpanEvents, 1000, 0},
		{"span-links", c.SpanLinks, 1000, 0},
		{"series", int(min(p.series, 1e10)), 1e9, 1},
	} {
		if b.value < b.least || b.value > b.max {
			return nil, refuse("read --"+b.option, fmt.Sprintf("want a number from %d to %d", b.least, b.max), "see carronade run --help-all, otlp")
		}
	}
	if file := v.String("corpus"); file != "" {
		p.corpus = true
		return p, p.openCorpus(file, keep)
	}
	if p.least() > mostMade {
		return nil, refuse("make requests", fmt.Sprintf("one has more than %s", units.FormatSize(mostMade)), "lower --events, or the numbers and sizes of what an event has")
	}
	return p, nil
}

// least is a lower bound of the bytes of the largest generated request, without making it.
func (p *pool) least() (most int64) {
	for _, s := range p.signals() {
		most = max(most, p.content.Least(s, p.events))
	}
	return most
}

// make makes the bodies.
func (p *pool) make() {
	if !p.corpus {
		var done [wire.Signals]int
		for n := 0; n < mostTemplates && (p.plain < p.size || !p.covers(done)); n++ {
			s := p.next(done)
			b := p.content.Make(s, uint64(n), p.events)
			done[s]++
			p.plain += int64(len(b.Bytes))
			p.bodies = append(p.bodies, b)
		}
	}
	end := uint64(0)
	for _, b := range p.bodies {
		end += uint64(b.Events)
		p.ends = append(p.ends, end)
	}
}

// covers reports whether each signal with a weight has a body.
func (p *pool) covers(done [wire.Signals]int) bool {
	for s, w := range p.weights {
		if w > 0 && done[s] == 0 {
			return false
		}
	}
	return true
}

// next is the signal of the next body: the one that is the furthest behind its weight.
func (p *pool) next(done [wire.Signals]int) (best wire.Signal) {
	most := -1.0
	for s, w := range p.weights {
		if behind := float64(w) / float64(done[s]+1); w > 0 && behind > most {
			best, most = wire.Signal(s), behind
		}
	}
	return best
}

// signals are those that the pool has.
func (p *pool) signals() (list []wire.Signal) {
	for s, w := range p.weights {
		if w > 0 {
			list = append(list, wire.Signal(s))
		}
	}
	return list
}

// stamp writes what is fresh into a request.
func (p *pool) stamp(b []byte, body *wire.Body, batch uint64, at time.Time) {
	p.once.Do(func() { p.start = at })
	s := wire.Stamp{Key: p.key, Batch: batch, Time: at.UnixNano(), Start: p.start.UnixNano(), Series: p.series}
	if body.Signal == wire.Metrics {
		s.Points = p.points.Add(uint64(body.Events)) - uint64(body.Events)
		s.First = uint64(max(0, at.Sub(p.start).Seconds()) * p.perSecond)
	}
	s.Put(b, &body.Places)
}

// A template is a body with the head for one server. Those that send it borrow copies: as many exist as
// were in flight at the same time.
type template struct {
	p    *pool
	body *wire.Body
	head []byte

	mu   sync.Mutex
	free []*request
}

// A request is ready to be sent. It implements web.Request.
type request struct {
	of    *template
	bytes []byte // head and body
	start int    // where the body begins
}

// Bytes implements web.Request.
func (r *request) Bytes() []byte { return r.bytes }

// Plain implements web.Request.
func (r *request) Plain() int64 { return int64(len(r.of.body.Bytes)) }

// Release implements web.Request.
func (r *request) Release() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.free = append(r.of.free, r)
}

// take returns a request that nothing uses.
func (t *template) take() *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		r := t.free[n-1]
		t.free = t.free[:n-1]
		return r
	}
	r := &request{of: t}
	if t.p.compression == "none" {
		r.setBody(t.body.Bytes)
	}
	return r
}

// setBody sets head and body.
func (r *request) setBody(body []byte) {
	r.bytes = append(r.bytes[:0], r.of.head...)
	if r.of.p.grpc {
		compressed := byte(0)
		if r.of.p.compression != "none" {
			compressed = 1
		}
		r.bytes = binary.BigEndian.AppendUint32(append(r.bytes, compressed), uint32(len(body)))
		r.start = len(r.bytes)
		r.bytes = append(r.bytes, body...)
		return
	}
	r.bytes = append(strconv.AppendInt(r.bytes, int64(len(body)), 10), "\r\n\r\n"...)
	r.start = len(r.bytes)
	r.bytes = append(r.bytes, body...)
}

// prepare returns a request with fresh values.
func (t *template) prepare(batch uint64, at time.Time) (*request, error) {
	r := t.take()
	if t.p.compression == "none" {
		t.p.stamp(r.bytes[r.start:], t.body, batch, at)
		return r, nil
	}
	k := web.NewCompressor(t.p.compression)
	defer k.Release()
	k.Plain = append(k.Plain[:0], t.body.Bytes...)
	t.p.stamp(k.Plain, t.body, batch, at)
	out, err := k.Compress()
	if err != nil {
		r.Release()
		return nil, err
	}
	t.p.uncompressed.Add(uint64(len(k.Plain)))
	t.p.compressed.Add(uint64(len(out)))
	r.setBody(out)
	return r, nil
}

// A source has the requests of one lane: those of the pool, from another one on for each lane. It implements
// web.Source, and belongs to the sending thread.
type source struct {
	p         *pool
	templates []*template // of the lane's server, shared by its lanes
	head      func(t *template, n uint64) []byte
	shift     uint64 // events before the first request of the lane
	lane      uint64
	partials  map[int]*template
}

// at finds the request that contains an event of the stream, how many of its events are left, and how many
// times the pool was sent before.
func (s *source) at(first uint64) (i, left int, turns uint64) {
	ends := s.p.ends
	total := ends[len(ends)-1]
	first += s.shift
	turns = first / total
	i, _ = slices.BinarySearch(ends, first%total+1)
	return i, int(ends[i] - first%total), turns
}

// Room implements web.Source.
func (s *source) Room(first uint64) int {
	_, left, _ := s.at(first)
	return left
}

// Plain implements web.Source.
func (s *source) Plain(first uint64, events int) int64 {
	i, _, _ := s.at(first)
	b := s.p.bodies[i]
	return int64(len(b.Bytes)) * int64(events) / int64(max(1, b.Events))
}

// Prepare implements web.Source.
func (s *source) Prepare(first uint64, events int, at time.Time) (web.Request, error) {
	r, err := s.prepare(first, events, at)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *source) prepare(first uint64, events int, at time.Time) (*request, error) {
	i, left, turns := s.at(first)
	t := s.templates[i]
	batch := s.p.batch.Add(1)
	if s.p.corpus { // ids of one pass over a corpus have the same number, so that requests may refer to each other
		batch = turns<<16 | s.lane
	}
	if left != events || t.body.Events != events {
		if s.p.corpus {
			return nil, fmt.Errorf("%w: no recorded request can be cut to %d events", web.ErrRemainder, events)
		}
		t = s.partial(t.body.Signal, events)
	}
	return t.prepare(batch, at)
}

// partial returns a template with fewer events, for the end of a phase.
func (s *source) partial(signal wire.Signal, events int) *template {
	key := events<<2 | int(signal)
	if t := s.partials[key]; t != nil {
		return t
	}
	t := &template{p: s.p, body: s.p.content.Make(signal, uint64(key)<<16, events)}
	t.head = s.head(t, uint64(key))
	if s.partials == nil || len(s.partials) == mostPartials {
		s.partials = map[int]*template{}
	}
	s.partials[key] = t
	return t
}

// sources makes the sources of the lanes.
func (c *config) sources() []web.Source {
	p := c.pool
	byBase := make([][]*template, len(c.bases))
	for i, base := range c.bases {
		for n, b := range p.bodies {
			t := &template{p: p, body: b}
			t.head = c.head(base, t, uint64(n))
			byBase[i] = append(byBase[i], t)
		}
	}
	list := make([]web.Source, c.clients)
	for i := range list {
		s := &source{p: p, templates: byBase[i%len(c.bases)], lane: uint64(i)}
		s.head = func(t *template, n uint64) []byte { return c.head(c.bases[i%len(c.bases)], t, n) }
		if k := i * len(p.bodies) / c.clients; k > 0 {
			s.shift = p.ends[k-1]
		}
		list[i] = s
	}
	return list
}
