package wire

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"carronade/internal/splitmix"
)

// A Body is the body of a request, encoded ahead. Stamp overwrites ids and times
// in place; everything else stays the same. One goroutine at a time may use it;
// Clone makes a copy for another lane.
type Body struct {
	Bytes  []byte // what is sent
	Plain  int    // bytes before compression
	Counts Counts // of events

	places  []place
	regions []region // of a gzip body: the parts with places, for its checksum
	sum     uint32   // the CRC-32 of the plain body with zeros in the regions
}

// Events is the number of events in the body.
func (b *Body) Events() int { return b.Counts.Events() }

// Ratio is the size on the wire divided by the size before compression; 1 without
// compression.
func (b *Body) Ratio() float64 { return float64(len(b.Bytes)) / float64(b.Plain) }

// Clone returns the same body with a copy of its bytes.
func (b *Body) Clone() *Body {
	c := *b
	c.Bytes = slices.Clone(b.Bytes)
	return &c
}

// Stamp writes the ids of batch number batch (0 to MaxBatch), and its times, into
// b.Bytes. micros, in microseconds since 1970, is the latest time. Batches with
// different numbers have different ids. It allocates nothing.
func (b *Body) Stamp(run Run, batch uint64, micros int64) {
	for i := range b.places {
		b.places[i].put(b.Bytes, run, batch, micros)
	}
	if len(b.regions) > 0 {
		b.updateSum()
	}
}

// A Maker makes bodies. It is safe for concurrent use.
type Maker struct {
	m      Makeup
	seed   uint64
	agents []*agent
}

// NewMaker makes a Maker for a make-up. Its bodies are a function of seed and n.
func NewMaker(m Makeup, seed uint64) (*Maker, error) {
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("make-up of requests: %w", err)
	}
	m = m.withDefaults()
	mk := &Maker{m: m, seed: seed}
	for _, name := range m.Agents {
		mk.agents = append(mk.agents, agentNamed(name))
	}
	return mk, nil
}

// Path is the URL path for the bodies.
func (mk *Maker) Path() string { return mk.m.Protocol.Path(mk.m.Errors()) }

// ContentType is the content type of the bodies.
func (mk *Maker) ContentType() string { return mk.m.Protocol.ContentType() }

// Hops is how many consecutive batches share traces. If it is more than 1, batch
// s must be sent with a body n that is equal to s modulo Hops, and batch s-1 with
// body n-1.
func (mk *Maker) Hops() int { return mk.m.Hops }

// Counts counts the events of body n, without making it.
func (mk *Maker) Counts(n uint64) Counts {
	var c Counts
	for _, e := range mk.shape(n) {
		c[e.kind]++
		c[Span] += e.spans
	}
	return c
}

// An outline describes one event of a request, before it is written.
type outline struct {
	kind  Kind
	spans int
	id    uint64 // its number; the numbers of its spans follow
}

// lastSpan is the number of the event that calls the next service: the last span,
// or the transaction if it has no spans.
func (o outline) lastSpan() uint64 { return o.id + uint64(o.spans) }

// shape draws the outlines of body n. It uses a separate random source, so that
// the outlines can be drawn again for later bodies without writing body n.
func (mk *Maker) shape(n uint64) []outline {
	rng := rand.New(rand.NewPCG(mk.seed, splitmix.Mix(2*n))) //nolint:gosec // repeatable, not secret
	out := make([]outline, mk.m.Events.draw(rng))
	id := uint64(0)
	for i := range out {
		o := outline{kind: Kind(pick(rng, mk.m.Mix[:])), id: id}
		if o.kind == Transaction {
			o.spans = mk.m.Spans.draw(rng)
		}
		out[i] = o
		id += 1 + uint64(o.spans)
	}
	return out
}

// labelBits are the bits of the numbers that label the events of one body: Check allows
// fewer events.
const labelBits = 20

// Make writes body n, with the ids of run 0 and times in September 2001. Stamp
// overwrites them.
func (mk *Maker) Make(n uint64) *Body {
	b := &builder{
		m:     &mk.m,
		rng:   rand.New(rand.NewPCG(mk.seed, splitmix.Mix(2*n+1))), //nolint:gosec // repeatable, not secret
		shape: mk.shape(n),

		labelled: n << labelBits,
	}
	b.hop = int(n % uint64(mk.m.Hops))
	for back := 1; back <= b.hop; back++ {
		b.before = append(b.before, mk.shape(n-uint64(back)))
	}
	// Consecutive requests of a trace come from different services.
	service := int(n % uint64(mk.m.Services))
	b.agent = mk.agents[service%len(mk.agents)]
	b.service = serviceName(service)
	b.host = b.rng.IntN(mk.m.Hosts)
	switch mk.m.Protocol {
	case RUMV3:
		b.rumV3()
	case V1:
		b.v1()
	default:
		b.intakeV2()
	}
	body := &Body{Bytes: b.out, Plain: len(b.out), Counts: b.counts, places: b.places}
	body.Stamp(0, uint64(mk.m.Hops), timeMin+int64(2*maxDuration/1000))
	return body
}
