package wire

import "strconv"

// intakeV2 writes lines of intake v2 (and RUM v2): metadata, and then one line per
// event.
func (b *builder) intakeV2() {
	b.metadata()
	for i, o := range b.shape {
		switch o.kind {
		case Transaction:
			b.transaction(i, o)
		case Span:
			// Its transaction would be in another request, so it gets numbers
			// that no event of this one has.
			t := b.timing()
			lost := maxIDs - 1 - uint64(i)
			b.span(o.id, lost, lost, link{trace: traceBit | uint64(i)}, t.start, t.duration)
		case Error:
			b.errorLine(i, o)
		case Metricset:
			b.metricset()
		case Log:
			b.logLine(i)
		}
	}
}

func (b *builder) metadata() {
	b.raw(`{"metadata":{`)
	b.serviceObject()
	if b.agent.rum {
		b.raw(`,"labels":{"release":"2026.4.1"},"network":{"connection":{"type":"4g"}}}}` + "\n")
		return
	}
	b.raw(`,"process":{"pid":`)
	b.int(int64(1000 + b.rng.IntN(30000)))
	b.raw(`,"ppid":1,"title":`)
	b.text("/opt/shop/bin/" + b.service)
	b.raw(`,"argv":["--config","/etc/shop.yml"]},"system":{"hostname":`)
	b.text(b.hostname())
	b.raw(`,"architecture":"x64","platform":"linux","container":{"id":"5f2c61d0a4e7c9338b1e"},"kubernetes":{"namespace":"shop","pod":{"name":`)
	b.text(b.service + "-" + strconv.Itoa(b.host))
	b.raw(`}}},"cloud":{"provider":"example","region":"eu-central","availability_zone":"eu-central-b"},"labels":{"team":"shop","canary":false}}}` + "\n")
}

// idsAndTime writes the ids and the time of an event at l. They are adjacent, so
// that a gzip body has one region for all of them.
func (b *builder) idsAndTime(id uint64, l link, parent func(), time int64) {
	b.raw(`"id":`)
	b.id(formID, 0, id)
	b.raw(`,"trace_id":`)
	b.id(formTrace, l.back, l.trace)
	parent()
	b.raw(`,"timestamp":`)
	b.reserve(formMicro, 0, uint64(time))
}

func (b *builder) transaction(i int, o outline) {
	l, t := b.link(i), b.timing()
	outcome, status := b.drawOutcome()
	r := one(b.rng, routes)
	start := len(b.out)
	b.raw(`{"transaction":{`)
	b.idsAndTime(o.id, l, func() {
		if l.back > 0 {
			b.raw(`,"parent_id":`)
			b.id(formID, 1, l.parent)
		}
	}, t.start)
	b.field("name", r.method+" "+r.route)
	if b.agent.rum {
		b.raw(`,"type":"http-request"`)
	} else {
		b.raw(`,"type":"request"`)
	}
	b.key("duration")
	b.millis(t.duration)
	b.field("result", "HTTP "+strconv.Itoa(status/100)+"xx")
	b.field("outcome", outcome)
	b.raw(`,"sampled":true,"sample_rate":1,"span_count":{"started":`)
	b.int(int64(o.spans))
	b.raw(`,"dropped":0}`)
	b.context(r.method, r.path, r.query, status, start, len("}}\n"))
	b.raw("}}\n")
	b.counts[Transaction]++
	for s := range o.spans {
		off, d := t.child(b.rng, s, o.spans)
		b.span(o.id+1+uint64(s), o.id, o.id, l, t.start+off, d)
	}
}

// context writes the context of a transaction or error, with the names that v1 and
// v2 share. status is 0 for an error. It is padded so that the event, which began at start, has
// EventBytes when rest bytes follow.
func (b *builder) context(method, path, query string, status, start, rest int) {
	host := b.service + ".example.com"
	full := "https://" + host + path
	if query != "" {
		query = "?" + query
		full += query
	}
	b.raw(`,"context":{"request":{"method":`)
	b.text(method)
	b.raw(`,"url":{"full":`)
	b.text(full)
	b.raw(`,"protocol":"https:","hostname":`)
	b.text(host)
	b.field("port", "443")
	b.field("pathname", path)
	b.field("search", query)
	b.raw(`},"headers":{"user-agent":`)
	b.text(*one(b.rng, userAgents))
	b.raw(`,"accept":"application/json","content-type":"application/json"},"http_version":"1.1","socket":{"remote_address":"10.`)
	b.int(int64(b.rng.IntN(256)))
	b.raw(`.4.17","encrypted":true}}`)
	if status != 0 {
		b.raw(`,"response":{"status_code":`)
		b.int(int64(status))
		b.raw(`,"headers":{"content-type":"application/json; charset=utf-8"},"headers_sent":true,"finished":true}`)
	}
	b.raw(`,"user":{"id":"`)
	b.int(int64(b.rng.IntN(100000)))
	b.raw(`","username":"ada"},"tags":{"tier":"gold","experiment":"b"`)
	b.labels()
	b.raw(`}`)
	b.pad(`,"custom":{"self":"`, `"}`, b.m.EventBytes-(len(b.out)-start)-len(`}`)-rest)
	b.raw(`}`)
}

func (b *builder) span(id, transaction, parent uint64, l link, start, duration int64) {
	b.raw(`{"span":{`)
	b.idsAndTime(id, l, func() {
		b.raw(`,"transaction_id":`)
		b.id(formID, 0, transaction)
		b.raw(`,"parent_id":`)
		b.id(formID, 0, parent)
	}, start)
	b.key("duration")
	b.millis(duration)
	b.operation(true)
	b.raw(`,"sync":true`)
	b.stacktrace()
	b.raw("}}\n")
	b.counts[Span]++
}

// operation writes the operation of a span: its name, type and context. v1 joins
// the parts of the type with dots, and has fewer fields in contexts.
func (b *builder) operation(v2 bool) {
	kind := func(typ, subtype, action string) {
		if !v2 {
			b.field("type", typ+"."+subtype+"."+action)
			return
		}
		b.field("type", typ)
		b.field("subtype", subtype)
		b.field("action", action)
		b.raw(`,"outcome":"success"`)
	}
	destination := func(host string, port int64, resource string) {
		if !v2 {
			return
		}
		b.raw(`,"destination":{"address":`)
		b.text(host)
		b.key("port")
		b.int(port)
		b.raw(`,"service":{"resource":`)
		b.text(resource)
		b.raw(`,"name":"","type":""}}`)
	}
	switch b.rng.IntN(7) {
	case 0, 1, 2:
		s := one(b.rng, statements)
		b.field("name", s.name)
		kind("db", "postgresql", "query")
		b.raw(`,"context":{"db":{"instance":"shop","type":"sql","user":"shop","statement":`)
		b.text(s.sql)
		if v2 {
			b.key("rows_affected")
			b.int(int64(b.rng.IntN(20)))
		}
		b.raw(`}`)
		destination("db.example.internal", 5432, "postgresql")
		b.raw(`}`)
	case 3, 4:
		c := one(b.rng, calls)
		b.field("name", c.method+" "+c.host)
		kind("external", "http", "call")
		b.raw(`,"context":{"http":{"url":`)
		b.text("http://" + c.host + ":8080" + c.path)
		if v2 {
			b.field("method", c.method)
			b.raw(`,"status_code":200`)
		}
		b.raw(`}`)
		destination(c.host, 8080, c.host+":8080")
		b.raw(`}`)
	case 5:
		b.field("name", *one(b.rng, redisKeys))
		kind("cache", "redis", "query")
		b.raw(`,"context":{"db":{"type":"redis"}`)
		destination("cache.example.internal", 6379, "redis")
		b.raw(`}`)
	default:
		b.field("name", *one(b.rng, templates))
		kind("template", b.agent.language, "render")
	}
}

// cause finds the transaction of an error: the one before it in the same request,
// or else one that would be in another request.
func (b *builder) cause(i int) (l link, owner uint64) {
	for j := i - 1; j >= 0; j-- {
		if b.shape[j].kind == Transaction {
			return b.link(j), b.shape[j].id
		}
	}
	return link{trace: traceBit | uint64(i)}, maxIDs - 1 - uint64(i)
}

// errorLine writes an error.
func (b *builder) errorLine(i int, o outline) {
	l, owner := b.cause(i)
	r, f := one(b.rng, routes), one(b.rng, failures)
	start := len(b.out)
	b.raw(`{"error":{"id":`)
	b.id(formTrace, 0, o.id)
	b.raw(`,"trace_id":`)
	b.id(formTrace, l.back, l.trace)
	b.raw(`,"transaction_id":`)
	b.id(formID, 0, owner)
	b.raw(`,"parent_id":`)
	b.id(formID, 0, owner)
	b.raw(`,"timestamp":`)
	b.reserve(formMicro, 0, uint64(-b.rng.Int64N(1000000)))
	b.field("culprit", b.agent.frames[0].function)
	b.raw(`,"transaction":{"sampled":true,"type":"request","name":`)
	b.text(r.method + " " + r.route)
	b.raw(`}`)
	b.context(r.method, r.path, r.query, 0, start, exceptionBytes+len(f.message+f.kind+f.module))
	b.exception(f.message, f.kind, f.module)
	b.raw("}}\n")
	b.counts[Error]++
}

// exceptionBytes is the size of an exception without its texts and frames.
const exceptionBytes = len(`,"exception":{"message":"","type":"","module":"","handled":false,"stacktrace":[]}},`)

func (b *builder) exception(message, kind, module string) {
	b.raw(`,"exception":{"message":`)
	b.text(message)
	b.field("type", kind)
	b.field("module", module)
	b.raw(`,"handled":false`)
	b.stacktrace()
	b.raw(`}`)
}

// metrics are those that agents report about their process and host.
var metrics = []struct {
	name  string
	whole bool
	most  float64
}{
	{"system.cpu.total.norm.pct", false, 1},
	{"system.process.cpu.total.norm.pct", false, 1},
	{"system.memory.total", true, 1 << 34},
	{"system.memory.actual.free", true, 1 << 33},
	{"system.process.memory.size", true, 1 << 32},
	{"system.process.memory.rss.bytes", true, 1 << 30},
	{"runtime.gc.count", true, 1 << 16},
	{"runtime.threads", true, 400},
}

func (b *builder) metricset() {
	b.raw(`{"metricset":{"timestamp":`)
	b.reserve(formMicro, 0, uint64(-b.rng.Int64N(1000000)))
	b.raw(`,"samples":{`)
	for i, m := range metrics {
		if i > 0 {
			b.raw(`,`)
		}
		b.text(m.name)
		b.raw(`:{"value":`)
		if v := b.rng.Float64() * m.most; m.whole {
			b.int(int64(v))
		} else {
			b.out = strconv.AppendFloat(b.out, v, 'f', 4, 64)
		}
		b.raw(`}`)
	}
	b.raw(`},"tags":{"pool":"default"`)
	b.labels()
	b.raw("}}}\n")
	b.counts[Metricset]++
}
