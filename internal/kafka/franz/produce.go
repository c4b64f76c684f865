package franz

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/measure"
	"carronade/payload"
)

const (
	// mostBuffered bounds the records that a client holds at once, waiting or in
	// flight; franz-go's own default is 50,000. At this bound, Produce would block
	// in an application.
	mostBuffered = 1 << 16
	// batchesPerLane bounds the batches in flight on a lane. mostBuffered takes
	// effect long before.
	batchesPerLane = 1 << 12
	// requestRoom is the size of a produce request of one batch without that batch:
	// the names of client, transaction and topic, and a few numbers.
	requestRoom = 2 << 10
)

// A Producer produces by franz-go's record path, as an application would. A
// batch here is the events handed to the client at one time; it is completed when the
// promises of all its records were called. It is not a record batch, since the client
// does its own batching: the service time, from the first Produce to the last promise,
// includes the client's linger.
//
// A lane is one partition of one client. It implements load.Target.
type Producer struct {
	cl       *cluster.Cluster
	cfg      *cluster.Config
	gen      *payload.Generator
	streams  cluster.Streams
	content  content
	perBatch int // most events of a batch
	senders  []*sender
	lanes    []*lane // by stream; nil: another generator's
	sink     load.Sink
	// acked notes records that were acked, by partition and offset; nil: nothing does. It is
	// set before the run.
	Acked    func(partition int32, offset, n int64)
	traffic  traffic
	attempts attempts
}

// A sender is one franz-go client with its lanes. The engine's thread calls its
// lanes, a goroutine of franz-go calls the promises, and another goroutine ends
// transactions.
type sender struct {
	p      *Producer
	client *kgo.Client
	lanes  []*lane

	buffered     atomic.Int64 // records
	waitsForRoom atomic.Bool  // a lane was full, and waits for Ready

	txn *transactor // nil without transactions
}

// NewProducer makes the clients and their transactions. The context bounds only the opening.
func NewProducer(ctx context.Context, cl *cluster.Cluster) (_ *Producer, err error) {
	c := cl.Config
	p := &Producer{cl: cl, cfg: c}
	p.gen, err = payload.New(c.Events)
	if err != nil {
		return nil, err
	}
	if err := c.CheckPartitioner(cl.Topics); err != nil {
		return nil, err
	}
	if p.gen.MaxSize() > math.MaxInt32/2 {
		return nil, fmt.Errorf("values of %d bytes are more than Kafka's protocol can carry", p.gen.MaxSize())
	}
	perBatch := c.EventsPerBatch(p.gen)
	p.perBatch = min(perBatch, mostBuffered/8)
	if c.BatchEvents > 0 {
		p.perBatch = min(c.BatchEvents, mostBuffered)
	}
	p.streams = cluster.NewStreams(c, cl.Topics, p.gen, perBatch)
	p.content.prepare(p.gen, c, p.streams.Cycle != nil)
	p.traffic.init(cl.Config)
	p.attempts.logOf = cl.LogOfAnswer
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	places := cluster.Places(cl.Topics)
	p.lanes = make([]*lane, p.streams.Partitioner.Streams())
	for i := range p.streams.Clients() {
		if !c.Portion.Has(i) {
			continue
		}
		s := &sender{p: p}
		if s.client, err = kgo.NewClient(p.opts(i)...); err != nil {
			return nil, fmt.Errorf("make a client: %w", err)
		}
		from, to := p.streams.Of(i)
		for stream := from; stream < to; stream++ {
			log := p.streams.Log(stream)
			l := &lane{s: s, id: int(stream), log: log, live: map[*liveBatch]bool{}}
			l.topic, l.partition = cl.Topics[places[log].Topic].Name, places[log].Partition
			s.lanes, p.lanes[stream] = append(s.lanes, l), l
		}
		p.senders = append(p.senders, s)
		if err = s.open(ctx, i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// opts returns the settings of client i.
func (p *Producer) opts(i int) []kgo.Opt {
	c := p.cfg
	batch := max(c.BatchSize, p.gen.MaxSize()+p.gen.MaxKeySize()+1024)
	request := max(100<<20, 2*c.MaxRequest, 2*c.BatchSize) // franz-go's own bound
	if c.LimitRequest {
		request = max(c.MaxRequest, batch+requestRoom)
	}
	opts := append(c.ClientOptions(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), // load.Partitioner has chosen already
		kgo.DefaultProduceTopic(c.Topic),
		kgo.ProducerBatchMaxBytes(int32(batch)),
		kgo.BrokerMaxWriteBytes(int32(min(1<<30, request))), // franz-go accepts no more
		kgo.ProducerLinger(c.Linger),
		compressionOf(c.Compression),
		kgo.MaxBufferedRecords(math.MaxInt32), // Fire bounds them, without blocking
		kgo.ProduceRequestTimeout(max(c.RequestTimeout, 100*time.Millisecond)),
		kgo.RecordDeliveryTimeout(max(c.DeliveryTimeout, time.Second)),
		kgo.WithHooks(&p.traffic),
		p.attempts.dialer(c.Security),
	)
	switch c.Acks {
	case 0:
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()))
	case 1:
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	default:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	}
	if !c.Idempotent {
		p.attempts.inFlight = max(1, c.MaxInFlight)
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(p.attempts.inFlight))
	}
	if c.Txn.On {
		opts = append(opts, kgo.TransactionalID(fmt.Sprintf("%s-%d", c.Txn.ID, i)))
	}
	return opts
}

// open makes the client ready, so that the first event does not wait for it.
func (s *sender) open(outer context.Context, i int) error {
	c := s.p.cfg
	ctx, cancel := context.WithTimeout(outer, cluster.OpenTimeout)
	defer cancel()
	if err := s.client.Ping(ctx); err != nil {
		return c.Explain("connect client "+fmt.Sprint(i), err)
	}
	if !c.Txn.On {
		return nil
	}
	s.txn = newTransactor(s, c)
	err := c.AwaitCoordinator(outer, fmt.Sprintf("begin transactions as %s-%d", c.Txn.ID, i), func() error {
		_, _, err := s.client.ProducerID(outer)
		return err
	})
	if err != nil {
		return err
	}
	return s.txn.begin()
}

// Partitioner implements load.Target.
func (p *Producer) Partitioner() load.Partitioner { return p.streams.Partitioner }

// Clients implements load.Target.
func (p *Producer) Clients() int { return p.streams.Clients() }

// Client implements load.Target.
func (p *Producer) Client(stream int32) int { return p.streams.Client(stream) }

// Capabilities implements load.Target.
func (p *Producer) Capabilities() load.TargetCapabilities {
	c := load.TargetCapabilities{
		Connected: p.Connected, OwnBatching: p.OwnBatching, LogOf: p.LogOf, Stamped: p.Stamped(), AppendKey: p.AppendKey,
	}
	if p.cfg.Compacted {
		c.AppendKeyHashes = p.AppendKeyHashes
	}
	return c
}

// LogOf is the log that a stream's events go to.
func (p *Producer) LogOf(stream int32) int32 { return p.streams.Log(stream) }

// Stamped reports whether every event carries a stamp (wire/kafka, Stamp).
func (p *Producer) Stamped() bool { return p.content.stamped }

// AppendKey appends the key of an event.
func (p *Producer) AppendKey(dst []byte, stream int32, index uint64) ([]byte, bool) {
	if p.gen.KeyUsesEnv() {
		return dst, false
	}
	return p.content.appendKey(dst, p.streams.Partitioner.Event(stream, index))
}

// Keyed reports whether events have keys.
func (p *Producer) Keyed() bool { return p.gen.HasKey() }

// AppendKeyHashes appends the hashes of the keys of a batch.
func (p *Producer) AppendKeyHashes(dst []uint64, batch *load.Batch) []uint64 {
	var key []byte
	for i := range uint64(batch.Events) {
		key, _ = p.content.appendKey(key[:0], p.streams.Partitioner.Event(batch.Stream, batch.First+i))
		dst = append(dst, cluster.HashKey(key))
	}
	return dst
}

// OwnBatching is the bound of a lane: franz-go itself lingers and bounds what is
// in flight.
func (p *Producer) OwnBatching() (inFlight int) { return batchesPerLane }

// Route implements load.Target. franz-go finds leaders itself, so there is
// always a lane.
func (p *Producer) Route(stream int32) load.Lane {
	return p.lanes[stream]
}

// Wire implements load.Target.
func (p *Producer) Wire() (written, read uint64) {
	return p.traffic.written.Load(), p.traffic.read.Load()
}

// Metrics returns what each broker received, from all clients together.
func (p *Producer) Metrics() []cluster.BrokerMetrics { return p.traffic.metrics() }

// EndTransactions ends the transactions that are open.
func (p *Producer) EndTransactions() {
	var wg sync.WaitGroup
	for _, s := range p.senders {
		if s.txn != nil {
			wg.Go(s.txn.end)
		}
	}
	wg.Wait()
}

// Uncommitted calls note for events whose transaction was not committed, or may not
// have been.
func (p *Producer) Uncommitted(note func(stream int32, first, events uint64, aborted bool)) {
	for _, s := range p.senders {
		if s.txn != nil {
			s.txn.uncommitted(note)
		}
	}
}

// Start implements load.Target.
func (p *Producer) Start(sink load.Sink) {
	p.sink = sink
	p.traffic.mu.Lock()
	p.traffic.sink = sink
	p.traffic.mu.Unlock()
	p.attempts.answers.start(sink.Now)
	for _, s := range p.senders {
		if s.txn != nil {
			s.txn.start()
		}
	}
}

// Close ends all clients. The lanes have completed the batches that the clients still
// hold.
func (p *Producer) Close() error {
	var wg sync.WaitGroup
	for _, s := range p.senders {
		wg.Go(func() {
			if s.txn != nil {
				s.txn.end()
			}
			s.client.CloseAllowingRebalance()
		})
	}
	wg.Wait()
	p.attempts.answers.gaps.Close()
	return nil
}

// Facts returns facts for the report, in addition to those of the cluster.
func (p *Producer) Facts() map[string]any {
	f := map[string]any{"events": p.gen.Describe(), "stamped": p.Stamped(), "client": "franz-go"}
	if !p.cfg.Fresh {
		f["distinct_events"] = len(p.content.values)
	}
	if r := cluster.Ratio(p.traffic.metrics()); r > 0 && p.cfg.Compression != "none" {
		f["compressed_to"] = r
	}
	p.attempts.facts(f)
	if p.cfg.Txn.On {
		var t transactionCounts
		for _, s := range p.senders {
			t.add(&s.txn.counts)
		}
		f["transactions"] = t.facts()
	}
	return f
}

// Encoding says when the bytes of events are made: the client compresses each batch as it sends it.
func (p *Producer) Encoding() *measure.Encoding {
	e := p.cfg.Encoding(p.Stamped(), len(p.content.values))
	if e.Codec != "" {
		e.Compressed(e.Codec, 1)
	}
	return e
}

// Warnings returns what the report warns of.
func (p *Producer) Warnings() []string {
	w := p.traffic.absent.Warnings()
	for _, s := range p.senders {
		if s.txn == nil {
			continue
		}
		if text := s.txn.fault(); text != "" {
			w = append(w, text)
		}
	}
	return w
}

// freed notes that n records are done. It wakes the engine if a lane was full and has
// room again.
func (s *sender) freed(n int64) {
	left := s.buffered.Add(-n)
	if left <= mostBuffered/2 && s.waitsForRoom.CompareAndSwap(true, false) {
		s.ready()
	}
}

// ready reports to the engine that it may try every lane again.
func (s *sender) ready() {
	now := s.p.sink.Now()
	for _, l := range s.lanes {
		s.p.sink.Ready(l.id, now)
	}
}
