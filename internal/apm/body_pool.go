package apm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/conn/web"
	"carronade/protocol"
)

// A source makes bodies, from a make-up or from recorded requests.
type source interface {
	Make(n uint64) *wire.Body
	Counts(n uint64) wire.Counts
	Hops() int
	Path() string
	ContentType() string
	// makePartial makes a body of exactly the given number of events, fewer than
	// Make's have.
	makePartial(events int) (*wire.Body, error)
}

// A bodyPool describes the bodies that are encoded, and compressed, ahead of the
// run.
type bodyPool struct {
	source source
	level  int // of gzip; 0: none
	repeat bool
	pool   int64
	most   int // events of the largest body
	fixed  bool
	run    wire.Run

	secrets []string // in labels

	mean  float64 // mean events of a body
	ratio float64 // bytes on the wire per byte before compression
	kinds wire.Counts
	count int // distinct bodies
	bytes int // of them, before compression
}

// makeupSource is the source of bodies from a make-up.
type makeupSource struct {
	*wire.Maker
	makeup wire.Makeup
	seed   uint64
}

func (m makeupSource) makePartial(events int) (*wire.Body, error) {
	mk, err := wire.NewMaker(partialMakeup(m.makeup, events), m.seed)
	if err != nil {
		return nil, err
	}
	return mk.Make(0), nil
}

// newBodyPool reads the options for bodies. It makes no body yet. Without keep it cannot make those of a corpus.
func newBodyPool(v protocol.Values, seed uint64, keep bool) (*bodyPool, error) {
	m := &bodyPool{repeat: v.Bool("repeat-body"), pool: v.Size("pool"), run: wire.NewRun(seed)}
	if g := v.String("gzip"); g != "none" && g != "" {
		m.level = int(g[0] - '0')
	}
	if file := v.String("corpus"); file != "" {
		if v.Has(optEventLabel) {
			return nil, &protocol.Error{Doing: "read the options", Err: errors.New("recorded requests have the labels that they were recorded with"), Hint: "leave out --" + optEventLabel + " or --corpus"}
		}
		c, err := openCorpus(file, v, keep)
		if err != nil {
			return nil, err
		}
		m.source, m.most, m.fixed = c, c.most, c.least == c.most
		return m, nil
	}
	mk, err := parseMakeup(v)
	if err != nil {
		return nil, err
	}
	if mk.Labels, m.secrets, err = parseLabels(v.List(optEventLabel), seed); err != nil {
		return nil, err
	}
	maker, err := wire.NewMaker(mk, seed)
	if err != nil {
		return nil, &protocol.Error{Doing: "make the events", Err: err, Hint: "see carronade run --help-all, apm: events"}
	}
	m.source = makeupSource{maker, mk, seed}
	each := 1
	switch {
	case mk.Mix == [wire.Kinds]int{} || mk.Mix[wire.Transaction] > 0 && mk.Mix == onlyTransactions(mk):
		m.fixed = mk.Events.Min == mk.Events.Max && mk.Spans.Min == mk.Spans.Max
		each += mk.Spans.Max
	case mk.Mix[wire.Transaction] == 0 || mk.Spans.Max == 0:
		m.fixed = mk.Events.Min == mk.Events.Max
	default:
		each += mk.Spans.Max
	}
	m.most = mk.Events.Max * each
	if m.repeat {
		m.most, m.fixed = maker.Counts(0).Events(), true
	}
	return m, nil
}

func onlyTransactions(m wire.Makeup) (w [wire.Kinds]int) {
	w[wire.Transaction] = m.Mix[wire.Transaction]
	return w
}

// An encodedRequest is one request ready to be sent. A batch in flight borrows one:
// prepare stamps it, and release gives it back.
type encodedRequest struct {
	body  *wire.Body
	bytes []byte // head and body; body.Bytes is its end
	of    *template
	// busy is set in a partial request while it is borrowed. It is atomic because
	// a lane's answers may be read by another thread than sends.
	busy atomic.Bool
}

// setHead puts the head before the body, so that both are one piece to write.
func (r *encodedRequest) setHead(head []byte) {
	r.bytes = append(slices.Grow(head, len(r.body.Bytes)), r.body.Bytes...)
	r.body.Bytes = r.bytes[len(head):]
}

// Bytes implements web.Request.
func (r *encodedRequest) Bytes() []byte { return r.bytes }

// Plain implements web.Request.
func (r *encodedRequest) Plain() int64 { return int64(r.body.Plain) }

// Release implements web.Request.
func (r *encodedRequest) Release() {
	if r.of == nil {
		r.busy.Store(false)
		return
	}
	r.of.release(r)
}

// A template is a body with the head for one server. The lanes that send it borrow
// copies: as many exist as were in flight at the same time, since only their ids and
// times differ.
type template struct {
	events, plain int
	same          bool // it is sent unchanged, so that one copy is enough, which keeps the caches warm

	mu    sync.Mutex
	first *encodedRequest
	free  []*encodedRequest
}

func newTemplate(body *wire.Body, head []byte, same bool) *template {
	t := &template{events: body.Events(), plain: body.Plain, same: same}
	own := *body
	t.first = &encodedRequest{body: &own, of: t}
	t.first.setHead(head)
	t.free = []*encodedRequest{t.first}
	return t
}

// borrow returns a copy that nothing else uses, stamped with the number of a batch.
func (t *template) borrow(run wire.Run, batch uint64, micros int64) *encodedRequest {
	if t.same {
		return t.first
	}
	r := t.take()
	if r == t.first { // take copies it
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	r.body.Stamp(run, batch, micros)
	return r
}

// take returns a free copy, or a new one.
func (t *template) take() *encodedRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		r := t.free[n-1]
		t.free = t.free[:n-1]
		return r
	}
	body := *t.first.body
	r := &encodedRequest{body: &body, bytes: slices.Clone(t.first.bytes), of: t}
	body.Bytes = r.bytes[len(r.bytes)-len(body.Bytes):]
	return r
}

func (t *template) release(r *encodedRequest) {
	if t.same {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, r)
}

// A cycle is the requests of one stream, which are sent in order, again and again.
// It belongs to the sending thread.
type cycle struct {
	m         *bodyPool
	head      func(size int) []byte
	templates []*template
	ends      []uint64                // cumulative events up to the end of each
	partials  map[int]*encodedRequest // partial requests, by their events; nil: none

	// Batches are numbered from base on, so that the ids of all lanes differ:
	// ownIDs numbers for the cycle's bodies, then partialIDs numbers for partial
	// ones.
	base, ownIDs, partialIDs uint64
	partialsMade             uint64 // partial ones so far

	// In a corpus all ids of one pass over it get the same number, so that
	// references between requests stay valid. This lane makes the passes of copy
	// number copy, of copies.
	replay       bool
	copy, copies uint64
}

// Bounds of a cycle.
const (
	mostCycle    = 64 // requests beyond those in flight, if the pool has room
	mostPartials = 64 // partial requests that are kept
)

// cycles makes the bodies for the given number of lanes, with depth requests in
// flight each. head makes a request's head for a lane.
func (m *bodyPool) cycles(ctx context.Context, lanes, depth int, head func(lane, size int) []byte) ([]*cycle, error) {
	hops := m.source.Hops()
	if m.repeat {
		hops = 1
	}
	c, replay := m.source.(*corpus)
	each, distinct, copies := 1, 1, 1
	switch {
	case m.repeat:
	case replay: // some lane has every recorded request
		each = max(roundUp(len(c.bodies), lanes)/lanes, 1)
		distinct = len(c.bodies)
		copies = roundUp(each*lanes, distinct) / distinct
	default:
		fit := int(m.pool / int64(max(1, m.source.Make(0).Plain)))
		each = roundUp(min(max(depth, fit/lanes, 1), max(mostCycle, depth)), hops)
		distinct = roundUp(min(max(fit, each), lanes*each), each)
	}
	bodies := make([]*wire.Body, distinct)
	if err := m.makeBodies(ctx, bodies); err != nil {
		return nil, err
	}
	cycles := make([]*cycle, lanes)
	span := wire.MaxBatch / uint64(lanes)
	span -= span % uint64(hops)
	type place struct {
		head string
		body int
	}
	templates := map[place]*template{}
	for l := range cycles {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := &cycle{m: m, base: uint64(l) * span, ownIDs: span / 2, partialIDs: span/2 - 64}
		b.ownIDs -= b.ownIDs % uint64(each)
		b.head = func(size int) []byte { return head(l, size) }
		b.replay, b.copy, b.copies = replay, uint64(l*each/distinct), uint64(copies)
		b.templates, b.ends = make([]*template, 0, each), make([]uint64, 0, each)
		var end uint64
		for i := range each {
			n := (l*each + i) % distinct
			h := b.head(len(bodies[n].Bytes))
			t := templates[place{string(h), n}]
			if t == nil {
				t = newTemplate(bodies[n], h, m.repeat)
				templates[place{string(h), n}] = t
			}
			b.templates = append(b.templates, t)
			end += uint64(t.events)
			b.ends = append(b.ends, end)
		}
		cycles[l] = b
	}
	return cycles, nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// makeBodies fills bodies, on all processors.
func (m *bodyPool) makeBodies(ctx context.Context, bodies []*wire.Body) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
	)
	threads := min(runtime.GOMAXPROCS(0), len(bodies))
	for t := range threads {
		wg.Go(func() {
			for n := t; n < len(bodies) && ctx.Err() == nil; n += threads {
				b, err := m.compress(m.source.Make(uint64(n)))
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
				bodies[n] = b
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	if failed != nil {
		return &protocol.Error{Doing: "make the requests", Err: failed, Hint: "leave out --gzip, or look at the corpus"}
	}
	events, plain, sent := 0, 0, 0
	for _, b := range bodies {
		events += b.Events()
		plain += b.Plain
		sent += len(b.Bytes)
		for k := range m.kinds {
			m.kinds[k] += b.Counts[k]
		}
	}
	m.count, m.bytes = len(bodies), plain
	m.mean = float64(events) / float64(len(bodies))
	m.ratio = float64(sent) / float64(plain)
	return nil
}

// compress compresses a body, unless compression is off.
func (m *bodyPool) compress(b *wire.Body) (*wire.Body, error) {
	if m.repeat { // its times are then those of the run's start
		b.Stamp(m.run, uint64(m.source.Hops()), time.Now().UnixMicro())
	}
	if m.level == 0 {
		return b, nil
	}
	z, err := b.Gzip(m.level)
	if err != nil {
		return nil, fmt.Errorf("compress a request: %w", err)
	}
	return z, nil
}

// at finds the encoded request that contains an event of the lane's stream, how
// many of its events are left from there on, and how many times the cycle was
// completed before.
func (b *cycle) at(first uint64) (i int, left int, turns uint64) {
	total := b.ends[len(b.ends)-1]
	turns, in := first/total, first%total
	if b.m.fixed {
		each := total / uint64(len(b.templates))
		i = int(in / each)
	} else {
		i, _ = slices.BinarySearch(b.ends, in+1)
	}
	return i, int(b.ends[i] - in), turns
}

// Room implements web.Source.
func (b *cycle) Room(first uint64) int {
	_, left, _ := b.at(first)
	return left
}

// Prepare implements web.Source: it returns the encoded request for a batch, stamped: that of the cycle, or
// a partial one where a phase ends within it.
func (b *cycle) Prepare(first uint64, events int, at time.Time) (web.Request, error) {
	micros := at.UnixMicro()
	i, left, turns := b.at(first)
	t := b.templates[i]
	if left == events && t.events == events {
		batch := b.base + (turns*uint64(len(b.templates))+uint64(i))%b.ownIDs
		if b.replay {
			batch = b.pass(turns)
		}
		return t.borrow(b.m.run, batch, micros), nil
	}
	r, err := b.partial(events)
	if err != nil {
		return nil, err
	}
	if !b.m.repeat {
		r.body.Stamp(b.m.run, b.base+b.ownIDs+b.partialsMade%b.partialIDs, micros)
	}
	b.partialsMade++
	r.busy.Store(true)
	return r, nil
}

// pass is the number of a pass over a corpus.
func (b *cycle) pass(turns uint64) uint64 { return (turns*b.copies + b.copy) % wire.MaxBatch }

// Plain implements web.Source.
func (b *cycle) Plain(first uint64, events int) int64 {
	i, left, _ := b.at(first)
	t := b.templates[i]
	if left == events && t.events == events {
		return int64(t.plain)
	}
	return int64(float64(t.plain) * float64(events) / float64(max(1, t.events)))
}

// partial returns a partial request that nothing uses.
func (b *cycle) partial(events int) (*encodedRequest, error) {
	if r := b.partials[events]; r != nil && !r.busy.Load() {
		return r, nil
	}
	plain, err := b.m.source.makePartial(events)
	if err != nil {
		return nil, err
	}
	body, err := b.m.compress(plain)
	if err != nil {
		return nil, err
	}
	r := &encodedRequest{body: body}
	r.setHead(b.head(len(body.Bytes)))
	if b.partials == nil {
		b.partials = map[int]*encodedRequest{}
	}
	if len(b.partials) < mostPartials {
		b.partials[events] = r
	}
	return r, nil
}

// block is how many consecutive events the partitioner gives to a lane.
func (m *bodyPool) block() uint64 { return uint64(max(1, math.Round(m.mean))) }
