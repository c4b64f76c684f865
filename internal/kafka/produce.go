package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/payload"
)

// A producer is the producing side of the wire engine. It manages batches,
// connections, leaders and retries; each of its senders is one client with its
// own connections. It implements load.Target.
//
// A batch is one record batch. Batches of different partitions that are sent
// together and have the same leader share a request. With acks=0 brokers answer
// nothing: such batches are completed as unknown when their last byte was handed
// to the system, with Done = Sent.
type producer struct {
	cfg       *cluster.Config
	gen       *payload.Generator
	batchPool *batchPool
	streams   cluster.Streams
	places    []cluster.Place // by log
	metadata  *metadataCache
	senders   []*sender
	codec     wire.Codec
	// repacked says that the broker recompresses or compacts batches, so that
	// their checksums in the log differ from those they were sent with.
	repacked bool

	list      *listing // of what was acked; nil: none is written
	sink      load.Sink
	startTime time.Time // when the run began
	laneCount atomic.Int32

	written, read atomic.Uint64
	renewed       atomic.Uint64        // logins, on connections that stayed open
	absent        conn.ConnectFailures // of brokers, during the run

	pollers socket.Pollers

	hurry chan struct{} // capacity 1: something waits for the end of a pause
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup
}

// newProducer opens the wire engine for topics that exist: it fetches the
// leaders, encodes the batches and connects. The context bounds only the
// opening. topics have the numbers of the logs, which a reader has too; nil: those that the first answer has.
func newProducer(ctx context.Context, cfg *cluster.Config, topics []cluster.TopicLogs) (_ *producer, err error) {
	p := &producer{cfg: cfg, metadata: newMetadataCache(cfg), hurry: make(chan struct{}, 1)}
	p.metadata.topics = topics
	p.ctx, p.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.codec, err = wire.ParseCodec(cfg.Compression); err != nil {
		return nil, err
	}
	p.gen, err = payload.New(cfg.Events)
	if err != nil {
		return nil, err
	}
	v, err := p.metadata.fetch(ctx)
	if err != nil {
		return nil, err
	}
	p.metadata.view.Store(v)
	p.places = cluster.Places(p.metadata.topics)
	if err := cfg.CheckPartitioner(p.metadata.topics); err != nil {
		return nil, err
	}
	if err := cfg.Room.Check(p.streamNeeds(v)); err != nil {
		return nil, err
	}
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	for i := range p.streams.Clients() {
		if !cfg.Portion.Has(i) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from, to := p.streams.LogsOf(i)
		s := newSender(p, i, from, to)
		p.senders = append(p.senders, s)
		if cfg.Idempotent {
			if s.pid, s.epoch, err = newProducerID(ctx, cfg, v); err != nil {
				return nil, err
			}
			s.assignProducerID()
		}
		s.mu.Lock()
		s.learn(v)
		s.mu.Unlock()
	}
	return p, p.connect(ctx)
}

// prepare divides the events among the streams and encodes the batches.
func (p *producer) prepare(ctx context.Context) error {
	cfg := p.cfg
	c := batchPoolConfig{
		gen: p.gen, codec: p.codec, batchSize: cfg.BatchSize, batchEvents: cfg.BatchEvents, pool: cfg.Pool,
		stamps: cfg.Verify || cfg.RoundTrip, hashes: cfg.Compacted, cut: ctx.Err,
	}
	// The sticky partitioner changes the partition after each batch: it must
	// know in advance how many events a batch has.
	perBatch := cfg.EventsPerBatch(p.gen)
	if cfg.BatchEvents > 0 {
		perBatch = cfg.BatchEvents
	}
	p.streams = cluster.NewStreams(cfg, p.metadata.topics, p.gen, perBatch)
	c.cycle = p.streams.Cycle
	if cfg.Fresh {
		c.pool, c.codec, c.cycle = 0, wire.None, nil // one batch, to learn whether stamps fit
	}
	var err error
	p.batchPool, err = newBatchPool(c)
	return err
}

// connect opens the connections of all lanes. It succeeds if one broker can be
// reached and none is too old: the lanes of the others keep trying. The first broker
// that is too old ends it.
func (p *producer) connect(ctx context.Context) error {
	var (
		lanes []*lane
		mu    sync.Mutex
		first error
		up    int
		mute  = map[int32]bool{} // brokers that did not answer in time: one of their lanes waited for all
	)
	for _, s := range p.senders {
		lanes = append(lanes, s.lanes...)
	}
	err := conn.DialMany(ctx, len(lanes), func(ctx context.Context, i int) error {
		mu.Lock()
		skip := mute[lanes[i].broker]
		mu.Unlock()
		if skip {
			return nil
		}
		k, err := lanes[i].dial(ctx)
		mu.Lock()
		defer mu.Unlock()
		if conn.IsTimeout(err) {
			mute[lanes[i].broker] = true
		}
		lanes[i].link = k
		switch {
		case err == nil:
			up++
		case errors.Is(err, cluster.ErrTooOld):
			return err
		case first == nil:
			first = err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if up > 0 {
		return nil
	}
	return first
}

// Partitioner implements load.Target.
func (p *producer) Partitioner() load.Partitioner { return p.streams.Partitioner }

// Clients implements load.Target.
func (p *producer) Clients() int { return p.streams.Clients() }

// Capabilities implements load.Target.
func (p *producer) Capabilities() load.TargetCapabilities {
	c := load.TargetCapabilities{
		Connections: p.Connections, Connected: p.Connected, Pending: p.Pending, Poller: p,
		LogOf: p.LogOf, Stamped: p.Stamped(), AppendKey: p.AppendKey,
	}
	if p.cfg.Compacted {
		c.AppendKeyHashes = p.AppendKeyHashes
	}
	return c
}

// Connections counts those of a start.
func (p *producer) Connections() (n int) {
	for _, s := range p.senders {
		n += len(s.lanes)
	}
	return n
}

// Client implements load.Target.
func (p *producer) Client(stream int32) int { return p.streams.Client(stream) }

// LogOf returns the log that a stream's events go to.
func (p *producer) LogOf(stream int32) int32 { return p.streams.Log(stream) }

// Stamped reports whether every event carries a stamp (wire/kafka, Stamp).
func (p *producer) Stamped() bool { return p.batchPool.stamped && p.codec == wire.None }

// AppendKey appends the key of an event. Batches that are encoded ahead are used
// repeatedly, so an event's index does not say which key it has.
func (p *producer) AppendKey(dst []byte, stream int32, index uint64) ([]byte, bool) {
	if !p.cfg.Fresh || !p.gen.HasKey() || p.gen.KeyUsesEnv() {
		return dst, false
	}
	return p.gen.AppendKey(dst, p.streams.KeyNumber(stream, index)), true
}

// Keyed implements producerEngine.
func (p *producer) Keyed() bool { return p.gen.HasKey() }

// AppendKeyHashes appends the hashes of the keys of a batch.
func (p *producer) AppendKeyHashes(dst []uint64, batch *load.Batch) []uint64 {
	if !p.cfg.Fresh {
		d := p.batchPool.pick(batch.Stream, p.streams.Log(batch.Stream), batch.First)
		return append(dst, d.keyHashes[:batch.Events]...)
	}
	var key []byte
	for i := range uint64(batch.Events) {
		key = p.gen.AppendKey(key[:0], p.streams.KeyNumber(batch.Stream, batch.First+i))
		dst = append(dst, cluster.HashKey(key))
	}
	return dst
}

// Ratio returns the compressed size of the batches encoded ahead, or if they are fresh
// of those sent, as a share of their size before compression; 0 without a codec, and
// while none was sent.
func (p *producer) Ratio() float64 {
	if p.cfg.Fresh && p.codec != wire.None {
		return cluster.Ratio(p.Metrics())
	}
	if p.batchPool.rawBytes == 0 || p.batchPool.compressedBytes == 0 {
		return 0
	}
	return float64(p.batchPool.compressedBytes) / float64(p.batchPool.rawBytes)
}

// Distinct returns the number of different events, after which they repeat; 0
// when every event is different.
func (p *producer) Distinct() int {
	if p.cfg.Fresh {
		return 0
	}
	return p.batchPool.events
}

// Start implements load.Target.
func (p *producer) Start(sink load.Sink) {
	p.sink = sink
	p.startTime = time.Now().Add(-sink.Now())
	p.metadata.changed = func(v *view) {
		for _, s := range p.senders {
			s.update(v)
		}
	}
	for _, s := range p.senders {
		s.mu.Lock()
		s.started = true
		for _, l := range s.lanes {
			if k := l.link; k != nil && k.term.Due() {
				// Not left to watch, which runs after the first batches are sent.
				// They wait only where the old login may end before they arrive.
				k.paused = k.term.EndsSoon()
				k.renew()
			}
			p.tasks.Go(l.keepConnected)
		}
		s.mu.Unlock()
	}
	p.tasks.Go(func() { p.metadata.run(p.ctx) })
	p.tasks.Go(p.watch)
}

// Poll implements load.Poller: without TLS, the sending threads themselves wait
// for the answers.
func (p *producer) Poll(t, of int) load.PollWaiter {
	if p.cfg.Security.TLS != nil {
		return nil
	}
	if w := p.pollers.Make(t, of, func() time.Duration { return p.sink.Now() }, false); w != nil {
		if p.cfg.Idempotent { // batches of a partition may wait in their lane for answers
			w.ReadAtOnce()
		}
		return w
	}
	return nil
}

// Threads implements load.Poller: one thread for each processor.
func (p *producer) Threads(processors int) int { return processors }

// How often the watch checks what waits: while something waits for the end of a pause, and
// while nothing does, when it only keeps the senders' clocks fresh. Each check wakes a thread,
// which at a few events a second costs more than all the rest.
const (
	watchEvery = 20 * time.Millisecond
	calmEvery  = 250 * time.Millisecond
)

// watch ends what ends by time alone: throttling, backoffs and logins. Links end requests
// without an answer.
func (p *producer) watch() {
	calm := min(calmEvery, max(watchEvery, p.cfg.RequestTimeout/20))
	t := time.NewTimer(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.hurry:
		case <-t.C:
		}
		every := calm
		for _, s := range p.senders {
			if s.watch() {
				every = watchEvery
			}
		}
		t.Reset(every)
	}
}

// Route implements load.Target.
func (p *producer) Route(stream int32) load.Lane {
	if l := p.senders[p.streams.Client(stream)-p.cfg.Portion.From].route(p.streams.Log(stream)).Load(); l != nil {
		return l
	}
	return nil
}

// Wire implements load.Target.
func (p *producer) Wire() (written, read uint64) { return p.written.Load(), p.read.Load() }

// Close ends all connections and goroutines. The engine closes its lanes
// before; Close closes those that are still open.
func (p *producer) Close() error {
	p.stop()
	for _, s := range p.senders {
		s.mu.Lock()
		lanes := s.lanes
		if s.leaderlessLane != nil {
			lanes = append(slices.Clone(lanes), s.leaderlessLane)
		}
		s.mu.Unlock()
		for _, l := range lanes {
			l.Close()
		}
	}
	p.tasks.Wait()
	p.metadata.disconnect()
	if p.batchPool != nil {
		return p.batchPool.free()
	}
	return nil
}

// Metrics returns the metrics of every broker that has a lane. It is safe for
// concurrent use.
func (p *producer) Metrics() []cluster.BrokerMetrics {
	var all []cluster.BrokerMetrics
	at := map[int32]int{}
	for _, s := range p.senders {
		s.mu.Lock()
		for _, l := range s.lanes {
			i, ok := at[l.broker]
			if !ok {
				i = len(all)
				at[l.broker] = i
				all = append(all, cluster.BrokerMetrics{Broker: l.broker, Addr: l.addr})
			}
			m, n := &all[i], &l.metrics
			m.Requests += n.Requests
			m.Batches += n.Batches
			m.Records += n.Records
			m.Bytes += n.Bytes
			m.RawBytes += n.RawBytes
			m.SentBytes += n.SentBytes
			m.Throttle += n.Throttle
			m.Throttled += n.Throttled
			m.Reconnects += n.Reconnects
		}
		s.mu.Unlock()
	}
	return all
}
