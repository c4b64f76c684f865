package wire

import "strconv"

// v1 writes a document of apm-server 6: one service with its transactions, which
// contain their spans, or with its errors. The ids of spans are their numbers in
// the transaction, and are not stamped.
func (b *builder) v1() {
	b.raw(`{`)
	b.serviceObject()
	b.raw(`,"process":{"pid":`)
	b.int(int64(1000 + b.rng.IntN(30000)))
	b.raw(`,"ppid":1,"argv":["--config","/etc/shop.yml"]},"system":{"hostname":`)
	b.text(b.hostname())
	b.raw(`,"architecture":"x64","platform":"linux"}`)
	errs := b.m.Errors()
	if errs {
		b.raw(`,"errors":[`)
	} else {
		b.raw(`,"transactions":[`)
	}
	for i, o := range b.shape {
		if i > 0 {
			b.raw(`,`)
		}
		if errs {
			b.v1Error(i, o)
		} else {
			b.v1Transaction(o)
		}
	}
	b.raw("]}")
}

func (b *builder) v1Transaction(o outline) {
	t := b.timing()
	_, status := b.drawOutcome()
	r := one(b.rng, routes)
	start := len(b.out)
	b.raw(`{"id":`)
	b.id(formUUID, 0, o.id)
	b.raw(`,"timestamp":`)
	b.id(formTime, 0, uint64(t.start))
	b.field("name", r.method+" "+r.route)
	b.raw(`,"type":"request","duration":`)
	b.millis(t.duration)
	b.field("result", strconv.Itoa(status))
	b.raw(`,"sampled":true`)
	b.context(r.method, r.path, r.query, status, start, len(`,"spans":[]},`))
	b.raw(`,"spans":[`)
	for s := range o.spans {
		if s > 0 {
			b.raw(`,`)
		}
		off, d := t.child(b.rng, s, o.spans)
		b.raw(`{"id":`)
		b.int(int64(s))
		b.raw(`,"parent":null,"start":`)
		b.millis(off)
		b.raw(`,"duration":`)
		b.millis(d)
		b.operation(false)
		b.stacktrace()
		b.raw(`}`)
	}
	b.raw(`]}`)
	b.counts[Transaction]++
	b.counts[Span] += o.spans
}

func (b *builder) v1Error(i int, o outline) {
	r, f := one(b.rng, routes), one(b.rng, failures)
	start := len(b.out)
	b.raw(`{"id":`)
	b.id(formUUID, 0, o.id)
	b.raw(`,"timestamp":`)
	b.id(formTime, 0, uint64(-b.rng.Int64N(1000000)))
	b.raw(`,"transaction":{"id":`)
	b.id(formUUID, 0, maxIDs-1-uint64(i))
	b.raw(`}`)
	b.field("culprit", b.agent.frames[0].function)
	b.context(r.method, r.path, r.query, 0, start, exceptionBytes+len(f.message+f.kind+f.module))
	b.exception(f.message, f.kind, f.module)
	b.raw(`}`)
	b.counts[Error]++
}
