// Package null is the target that sends nothing: null://. It does with an event only
// what every generator must do: encode the record (ahead, or anew for each batch with
// --fresh), stamp its batch, and read every byte for the checksum. The result is how
// much this machine can generate.
//
// Its invariant: every batch is acked as soon as it is flushed, and read as soon as the
// read begins.
package null

import (
	"context"
	"net/url"
	"slices"
	"time"

	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/measure"
	"carronade/payload"
	"carronade/protocol"
)

// Kind is the null target. It has no state.
type Kind struct{}

// Name implements protocol.Kind.
func (Kind) Name() string { return "null" }

// Schemes implements protocol.Kind.
func (Kind) Schemes() []string { return []string{"null"} }

// Ops implements protocol.Kind.
func (Kind) Ops() []string { return []string{opProduce, opPipeline} }

// The operations. A pipeline reads nothing: reads end when they begin.
const (
	opProduce  = "produce"
	opPipeline = "pipeline"
)

// Options implements protocol.Kind. Options shared with other kinds have the same names
// and meaning.
func (Kind) Options() []protocol.Option {
	return slices.Concat([]protocol.Option{
		{Name: "clients", Type: protocol.Int, Default: "1", Group: "connection", Independent: true, Help: "independent clients"},
		{Name: "batch-size", Type: protocol.Size, Default: "256KiB", Group: "producing", Independent: true, Help: "maximum size of a batch"},
		{Name: "size", Word: "SIZE", Default: "100", Group: "events", Independent: true, Help: "size of a value"},
		{Name: "payload", Word: "KIND", Default: "random", Group: "events", Independent: true, Help: "content of values"},
		{Name: "key", Word: "KEYS", Default: "none", Group: "events", Independent: true, Help: "none, seq, uniform(1000), zipf(1000,1.1), or text with expressions"},
		{Name: "header", Word: "K=V", Type: protocol.List, Group: "events", Independent: true, Help: "header of every record, k=v; both may have expressions; repeatable"},
		{Name: "pool", Type: protocol.Size, Default: "1MiB", Group: "events", Independent: true, Help: "size of each client's pool of encoded events"},
		{Name: "fresh", Type: protocol.Bool, Default: "false", Group: "events", Independent: true, Help: "encode each event just before it is sent, with bytes never made before; on if a key or header has expressions that vary"},
	}, protocol.StageOptions(opPipeline, "reading"))
}

// eventsOf describes the events that options ask for.
func eventsOf(v protocol.Values) payload.Spec {
	return payload.Spec{Size: v.String("size"), Payload: v.String("payload"), Key: v.String("key"), Headers: v.List("header")}
}

// Presets are those of events that vary: a pool would repeat the values of expressions.
func (Kind) Presets(_ *url.URL, v protocol.Values, _ map[string]bool) (map[string]string, []string, error) {
	if eventsOf(v).Varies() {
		return map[string]string{"fresh": "true"}, nil, nil
	}
	return nil, nil, nil
}

// fresh reports whether events are encoded just before they are sent.
func fresh(spec *protocol.Spec) bool {
	if spec.Given["fresh"] {
		return spec.Options.Bool("fresh")
	}
	return spec.Options.Bool("fresh") || eventsOf(spec.Options).Varies()
}

// Check finds what is wrong with a spec by itself.
func (Kind) Check(spec protocol.Spec) error {
	_, err := generator(&spec)
	if spec.Op == opPipeline && err == nil {
		_, err = protocol.ParseStage(spec.Options)
	}
	return err
}

func generator(spec *protocol.Spec) (*payload.Generator, error) {
	o := spec.Options
	events := eventsOf(o)
	events.Seed, events.Pooled = spec.Seed, !fresh(spec)
	gen, err := payload.New(events)
	if err != nil {
		return nil, &protocol.Error{Doing: "read --" + payload.SettingOf(err), Err: err, Hint: "carronade help events lists the forms"}
	}
	return gen, nil
}

// Open implements protocol.Kind. It fails only on a payload that cannot be made, and when the context ends.
func (Kind) Open(ctx context.Context, spec protocol.Spec) (protocol.Session, error) {
	gen, err := generator(&spec)
	if err != nil {
		return nil, err
	}
	o := spec.Options
	s := &session{fresh: fresh(&spec), first: spec.Portion.From, partitioner: load.RoundRobin(max(1, o.Int("clients")))}
	if spec.Op == opPipeline {
		if s.stage, err = protocol.ParseStage(o); err != nil {
			return nil, err
		}
		s.follower = &follower{streams: s.partitioner.Streams()}
	}
	for i := range s.partitioner.Streams() {
		if !spec.Portion.Has(i) {
			continue
		}
		l := &lane{id: i, session: s, encoder: encoder{gen: gen, partitioner: s.partitioner, stream: int32(i), limit: max(1024, int(o.Size("batch-size"))), mostEvents: spec.BatchEvents}}
		if err := l.encoder.init(ctx, o.Size("pool")); err != nil {
			return nil, err
		}
		s.lanes = append(s.lanes, l)
	}
	return s, nil
}

// Capabilities implements protocol.Kind.
func (k Kind) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{Presets: k.Presets, Check: k.Check, Needs: k.Needs}
}

// A session is both the session and, in a target, the target of a run.
type session struct {
	fresh       bool
	partitioner load.Partitioner
	lanes       []*lane
	first       int // client of the first lane
	sink        load.Sink
	start       time.Time
	follower    *follower // of a pipeline; else nil
	stage       load.StagePlan
}

func (s *session) Target() load.Target { return target{s} }
func (s *session) Source() load.Source { return nil }
func (s *session) Facts() map[string]any {
	return map[string]any{"events": s.lanes[0].encoder.gen.Describe()}
}

// Capabilities implements protocol.Session.
func (s *session) Capabilities() protocol.SessionCapabilities {
	c := protocol.SessionCapabilities{Encoding: s.Encoding}
	if s.follower != nil {
		c.Pipeline = func() (load.Follower, load.StagePlan) { return s.follower, s.stage }
	}
	return c
}

// A target is the session as a load.Target.
type target struct{ *session }

// Capabilities implements load.Target.
func (target) Capabilities() load.TargetCapabilities { return load.TargetCapabilities{} }

// Encoding says when the bytes of events are made.
func (s *session) Encoding() *measure.Encoding {
	if s.fresh {
		return &measure.Encoding{Events: measure.Fresh}
	}
	e := &measure.Encoding{Events: measure.Pooled}
	for i := range s.lanes[0].encoder.templates { // those of all lanes are equal
		e.Distinct += uint64(s.lanes[0].encoder.templates[i].events())
	}
	return e
}

func (s *session) Warnings() []string            { return nil }
func (s *session) Close() error                  { return nil }
func (s *session) Partitioner() load.Partitioner { return s.partitioner }
func (s *session) Client(stream int32) int       { return int(stream) }
func (s *session) Clients() int                  { return s.partitioner.Streams() }
func (s *session) Start(sink load.Sink)          { s.sink, s.start = sink, time.Now().Add(-sink.Now()) }
func (s *session) Route(stream int32) load.Lane  { return s.lanes[int(stream)-s.first] }
func (s *session) Wire() (written, read uint64)  { return 0, 0 }

// A lane encodes and completes.
type lane struct {
	*session
	id      int
	encoder encoder
	out     []load.Outcome
}

func (l *lane) ID() int { return l.id }

func (l *lane) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{} }

func (l *lane) Room(int32, uint64) int {
	if l.fresh {
		return l.encoder.room()
	}
	if l.encoder.mostEvents > 0 {
		// Several batches are fired at once, each from the next template of the pool.
		return l.encoder.leastEvents
	}
	return l.encoder.next().events()
}

func (l *lane) Fire(batches []load.Batch) int {
	for i := range batches {
		s := &batches[i]
		sent := l.sink.Now()
		var sum uint32
		s.Bytes, sum = l.encoder.encode(int(s.Events), s.First, l.fresh, l.start.Add(sent).UnixMilli())
		l.out = append(l.out, load.Outcome{
			Batch: *s, Lane: int32(l.id), Sent: sent, Done: l.sink.Now(), Acked: s.Events, Place: int64(s.First), Sum: sum,
		})
	}
	return len(batches)
}

func (l *lane) Flush() {
	l.sink.Complete(l.out)
	l.out = l.out[:0]
}

func (l *lane) Close() error {
	l.Flush()
	return nil
}

// An encoder makes batches. It belongs to one lane.
type encoder struct {
	gen         *payload.Generator
	partitioner load.Partitioner
	stream      int32 // of its lane
	limit       int   // bytes of a batch
	mostEvents  int   // events of a batch; 0: as many as fit
	headers     wire.HeaderEncoder
	templates   []template
	leastEvents int // events of the smallest template
	at          int
	scratch     []byte
	key         []byte
	mean        float64
}

// A template is a batch encoded ahead: header and records.
type template struct {
	batch []byte
	ends  []uint32 // where each record ends
	bytes []uint32 // event bytes up to the end of each record
}

func (d *template) events() int { return len(d.ends) }

func (p *encoder) init(ctx context.Context, pool int64) error {
	p.headers.Source = p.gen
	var n uint64
	for total := 0; len(p.templates) == 0 || total+p.limit <= int(pool); {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := p.template(&n)
		total += len(d.batch)
		if p.leastEvents == 0 || d.events() < p.leastEvents {
			p.leastEvents = d.events()
		}
		p.templates = append(p.templates, d)
		p.mean = float64(len(d.batch)) / float64(d.events())
	}
	return nil
}

func (p *encoder) template(n *uint64) template {
	if p.scratch == nil {
		p.scratch = make([]byte, wire.HeaderSize, p.limit+p.limit/8)
	}
	d := template{batch: p.scratch[:wire.HeaderSize]}
	total := 0
	for p.mostEvents == 0 || d.events() < p.mostEvents {
		headers := p.headers.Encode(*n)
		need := wire.RecordSize(int32(d.events()), p.keyLen(*n), p.gen.Size(*n), len(headers))
		if d.events() > 0 && len(d.batch)+need > p.limit {
			break
		}
		var size int
		d.batch, size = p.record(d.batch, int32(d.events()), *n)
		total += size
		d.ends = append(d.ends, uint32(len(d.batch)))
		d.bytes = append(d.bytes, uint32(total))
		*n++
	}
	// A copy of the exact size: a batch of one event may be a thousandth of the limit.
	p.scratch, d.batch = d.batch, slices.Clone(d.batch)
	return d
}

func (p *encoder) keyLen(n uint64) int {
	if !p.gen.HasKey() {
		return -1
	}
	p.key = p.gen.AppendKey(p.key[:0], n)
	return len(p.key)
}

// record appends the record of event n and returns the size of the event.
func (p *encoder) record(dst []byte, delta int32, n uint64) ([]byte, int) {
	var key []byte
	if p.gen.HasKey() {
		p.key = p.gen.AppendKey(p.key[:0], n)
		key = p.key
	}
	size := p.gen.Size(n)
	headers := p.headers.Encode(n)
	dst = wire.OpenRecord(dst, delta, key, size, len(headers))
	dst = p.gen.AppendValue(dst, n)
	return append(dst, headers...), len(key) + size + p.headers.EventBytes
}

func (p *encoder) next() *template { return &p.templates[p.at%len(p.templates)] }

// room returns roughly how many fresh events fit into a batch.
func (p *encoder) room() int {
	n := max(1, int(float64(p.limit)/p.mean))
	if p.mostEvents > 0 {
		n = min(n, p.mostEvents)
	}
	return n
}

// encode stamps a batch of n events of its stream, computes the checksum over all of its
// bytes, and returns the bytes of the events and the checksum.
func (p *encoder) encode(n int, first uint64, fresh bool, millis int64) (bytes int64, sum uint32) {
	var batch []byte
	if fresh {
		batch = p.scratch[:wire.HeaderSize]
		number := p.partitioner.Event(p.stream, first)
		// The numbers of a stream increase. If the last is as far away as the batch is long,
		// they are consecutive, and asking for each would cost 4 % of the time.
		consecutive := p.partitioner.Event(p.stream, first+uint64(n-1)) == number+uint64(n-1)
		for i := range n {
			var size int
			batch, size = p.record(batch, int32(i), number)
			bytes += int64(size)
			if number++; !consecutive {
				number = p.partitioner.Event(p.stream, first+uint64(i)+1)
			}
		}
		p.scratch = batch
	} else {
		d := p.next()
		p.at++
		n = min(n, d.events())
		batch, bytes = d.batch[:d.ends[n-1]], int64(d.bytes[n-1])
	}
	h := wire.Header{
		Length: int32(len(batch) - 12), LeaderEpoch: -1, LastOffsetDelta: int32(n - 1),
		BaseTimestamp: millis, MaxTimestamp: millis, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, NumRecords: int32(n),
	}
	h.Put(batch)
	return bytes, wire.Seal(batch, wire.SumOf(batch[wire.HeaderSize:]))
}
