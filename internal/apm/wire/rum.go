package wire

import "strconv"

// rumV3 writes lines of RUM v3: short names, spans inside their transactions, and
// absolute times only in errors.
func (b *builder) rumV3() {
	b.raw(`{"m":{"se":{"n":`)
	b.text(b.service)
	b.raw(`,"ve":"2026.4.1","en":"production","a":{"n":`)
	b.text(b.agent.name)
	b.field("ve", b.agent.version)
	b.raw(`},"la":{"n":`)
	b.text(b.agent.language)
	b.raw(`},"fw":{"n":`)
	b.text(b.agent.framework)
	b.field("ve", b.agent.frameworkVersion)
	b.raw(`}},"u":{"id":"`)
	b.int(int64(b.rng.IntN(100000)))
	b.raw(`"},"l":{"release":"2026.4.1"},"n":{"c":{"t":"4g"}}}}` + "\n")
	for i, o := range b.shape {
		if o.kind == Error {
			b.rumError(i, o)
		} else {
			b.rumTransaction(i, o)
		}
	}
}

func (b *builder) rumTransaction(i int, o outline) {
	l, t := b.link(i), b.timing()
	outcome, status := b.drawOutcome()
	r := one(b.rng, routes)
	b.raw(`{"x":{"id":`)
	b.id(formID, 0, o.id)
	b.raw(`,"tid":`)
	b.id(formTrace, l.back, l.trace)
	if l.back > 0 {
		b.raw(`,"pid":`)
		b.id(formID, 1, l.parent)
	}
	b.field("n", r.route)
	b.raw(`,"t":"page-load","d":`)
	b.millis(t.duration)
	b.field("rt", "HTTP "+strconv.Itoa(status/100)+"xx")
	b.field("o", outcome)
	b.raw(`,"sm":true,"sr":1,"yc":{"sd":`)
	b.int(int64(o.spans))
	b.raw(`},"k":{"a":{"fb":`)
	b.millis(t.duration / 5)
	b.raw(`,"di":`)
	b.millis(t.duration / 2)
	b.raw(`,"dc":`)
	b.millis(t.duration)
	b.raw(`}},"exp":{"cls":0.02,"fid":4,"tbt":12}`)
	b.rumContext(r.path, status)
	if o.spans > 0 {
		b.raw(`,"y":[`)
		for s := range o.spans {
			if s > 0 {
				b.raw(`,`)
			}
			off, d := t.child(b.rng, s, o.spans)
			b.rumSpan(o.id+1+uint64(s), off, d)
		}
		b.raw(`]`)
	}
	b.raw("}}\n")
	b.counts[Transaction]++
	b.counts[Span] += o.spans
}

func (b *builder) rumContext(path string, status int) {
	b.raw(`,"c":{"p":{"rf":"https://shop.example.com/","url":`)
	b.text("https://shop.example.com" + path)
	b.raw(`}`)
	if status != 0 {
		b.raw(`,"r":{"sc":`)
		b.int(int64(status))
		b.raw(`,"ts":`)
		b.int(int64(300 + b.rng.IntN(90000)))
		b.raw(`}`)
	}
	b.raw(`,"g":{"tier":"gold"`)
	b.labels()
	b.raw(`}}`)
}

func (b *builder) rumSpan(id uint64, start, duration int64) {
	c := one(b.rng, calls)
	b.raw(`{"id":`)
	b.id(formID, 0, id)
	b.raw(`,"s":`)
	b.millis(start)
	b.raw(`,"d":`)
	b.millis(duration)
	b.field("n", c.method+" https://shop.example.com"+c.path)
	b.raw(`,"t":"external","su":"http","o":"success","c":{"h":{"mt":`)
	b.text(c.method)
	b.field("url", "https://shop.example.com"+c.path)
	b.raw(`,"sc":200},"dt":{"ad":"shop.example.com","po":443,"se":{"n":"https://shop.example.com","rc":"shop.example.com:443","t":"external"}}}`)
	b.rumFrames()
	b.raw(`}`)
}

func (b *builder) rumFrames() {
	if b.m.Frames.Max == 0 {
		return
	}
	b.raw(`,"st":[`)
	b.frames(func(i int, f *frame, line int) {
		if i > 0 {
			b.raw(`,`)
		}
		b.raw(`{"f":`)
		b.text(f.file)
		b.field("ap", f.path)
		b.field("fn", f.function)
		b.key("li")
		b.int(int64(line))
		b.key("co")
		b.int(int64(1 + b.rng.IntN(40000)))
		b.raw(`}`)
	})
	b.raw(`]`)
}

func (b *builder) rumError(i int, o outline) {
	l, owner := b.cause(i)
	r, f := one(b.rng, routes), one(b.rng, failures)
	b.raw(`{"e":{"id":`)
	b.id(formTrace, 0, o.id)
	b.raw(`,"tid":`)
	b.id(formTrace, l.back, l.trace)
	b.raw(`,"xid":`)
	b.id(formID, 0, owner)
	b.raw(`,"pid":`)
	b.id(formID, 0, owner)
	b.raw(`,"timestamp":`)
	b.reserve(formMicro, 0, uint64(-b.rng.Int64N(1000000)))
	b.field("cl", b.agent.frames[0].file)
	b.raw(`,"x":{"sm":true,"t":"page-load"}`)
	b.rumContext(r.path, 0)
	b.raw(`,"ex":{"mg":`)
	b.text(f.message)
	b.field("t", f.kind)
	b.raw(`,"hd":false`)
	b.rumFrames()
	b.raw("}}}\n")
	b.counts[Error]++
}
