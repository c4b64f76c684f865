package apm

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Body is the body of a request, encoded ahead. Stamp writes what has to be
// fresh in place; everything else stays. One goroutine at a time may use it;
// Clone makes another for another lane.
type Body struct {
	Bytes  []byte // what is sent
	Plain  int    // bytes before compression
	Counts Counts // of events

	places  []place
	regions []region // of a gzip body: where places are, for its checksum
	sum     uint32   // the CRC-32 of the plain body with zeros in the regions
}

// Events is how many events the body holds.
func (b *Body) Events() int { return b.Counts.Events() }

// Ratio is the size on the wire by the size before compression; 1 when there is
// none.
func (b *Body) Ratio() float64 { return float64(len(b.Bytes)) / float64(b.Plain) }

// Clone is a body of the same make-up with bytes of its own.
func (b *Body) Clone() *Body {
	c := *b
	c.Bytes = slices.Clone(b.Bytes)
	return &c
}

// Stamp writes the ids of the batch with that number (0 to MaxBatch) and its
// times, which end at micros since 1970, into b.Bytes. Batches of different
// numbers have different ids. It allocates nothing.
func (b *Body) Stamp(run Run, batch uint64, micros int64) {
	for i := range b.places {
		b.places[i].put(b.Bytes, run, batch, micros)
	}
	if len(b.regions) > 0 {
		b.seal()
	}
}

// A Maker makes bodies. It is safe for concurrent use.
type Maker struct {
	m      Makeup
	seed   uint64
	agents []*agent
}

// NewMaker makes one for a make-up; what it makes is a function of seed and n.
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

// Path is where the bodies are sent.
func (mk *Maker) Path() string { return mk.m.Protocol.Path(mk.m.Errors()) }

// ContentType is what they are sent as.
func (mk *Maker) ContentType() string { return mk.m.Protocol.ContentType() }

// Hops is how many consecutive batches share traces. Where it is more than 1,
// batch s has to be sent with a body n for which n and s are the same modulo
// Hops, and the body before with batch s-1.
func (mk *Maker) Hops() int { return mk.m.Hops }

// Counts is what body n holds, without making it.
func (mk *Maker) Counts(n uint64) Counts {
	var c Counts
	for _, e := range mk.shape(n) {
		c[e.kind]++
		c[Span] += e.spans
	}
	return c
}

// An outline is one of the events of a request, before it is written.
type outline struct {
	kind  Kind
	spans int
	id    uint64 // its number; its spans' follow
}

// lastSpan is the number of what calls the next service: the last span, or
// without any the transaction itself.
func (o outline) lastSpan() uint64 { return o.id + uint64(o.spans) }

// shape draws the outlines of body n. It has a source of its own, so that the
// bodies after it can know them without writing this one.
func (mk *Maker) shape(n uint64) []outline {
	rng := rand.New(rand.NewPCG(mk.seed, mix(2*n))) //nolint:gosec // repeatable, not secret
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

// Make writes body n, with the ids of batch 0 of run 0 and times that end in
// September 2001; Stamp makes them fresh.
func (mk *Maker) Make(n uint64) *Body {
	b := &builder{
		m:     &mk.m,
		rng:   rand.New(rand.NewPCG(mk.seed, mix(2*n+1))), //nolint:gosec // repeatable, not secret
		shape: mk.shape(n),
	}
	b.hop = int(n % uint64(mk.m.Hops))
	for back := 1; back <= b.hop; back++ {
		b.before = append(b.before, mk.shape(n-uint64(back)))
	}
	// Neighbours in a trace are of different services.
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
