package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/payload"
	"carronade/units"
)

// An itemReader reads records by their partitions and offsets. To the engine it is a target
// that sends: each event is the read of one item, and is acked when the record was
// read. It implements load.Target.
//
// A batch is one fetch request, for records with consecutive offsets. A broker sends
// whole record batches, so single records of large batches cost more than their size.
// An answer without all of the records leads to another request. Reading has no side
// effects, so whatever fails for a reason that may pass is tried again, for the time of
// delivery-timeout.
type itemReader struct {
	cfg         *cluster.Config
	items       *items
	partitioner load.Partitioner // in a pipeline, of the producer
	lags        bool             // the records may come later than the reads
	metadata    *metadataCache
	clients     []*readClient
	list        *listing       // of what was read; nil: none is written
	check       *payload.Check // of values; nil: none

	sink  load.Sink
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup
	hurry chan struct{} // capacity 1: something waits for a leader

	written, read atomic.Uint64
	recordBytes   atomic.Int64 // mean size on the wire of recent records; 0: not known
	retried       atomic.Uint64
	lost          atomic.Uint64 // connections
}

// blockItems is how many consecutive items one client reads.
const blockItems = 256

// mostItems limits the items of a batch.
const mostItems = 1000

// newItemReader prepares to read the items of a topic whose leaders are known to the
// cluster. It connects when it starts to read.
func newItemReader(ctx context.Context, cl *cluster.Cluster, list *items) (*itemReader, error) {
	cfg := cl.Config
	r := &itemReader{cfg: cfg, items: list, metadata: newMetadataCache(cfg), partitioner: load.Blocks(cfg.Clients, blockItems), hurry: make(chan struct{}, 1)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	var err error
	if r.check, err = openCheck(cfg, list); err != nil {
		r.stop()
		return nil, err
	}
	v, err := r.metadata.fetch(ctx)
	if err != nil {
		r.stop()
		return nil, cfg.Explain("find the leaders of "+cfg.Topic, err)
	}
	r.metadata.view.Store(v)
	for i := range cfg.Clients {
		r.clients = append(r.clients, &readClient{r: r, id: i, links: map[int32]*readLink{}})
	}
	return r, nil
}

// openItems returns the records that a run reads.
func openItems(ctx context.Context, cl *cluster.Cluster) (*items, error) {
	c := cl.Config
	if c.ItemsIn != "" {
		return listed(ctx, cl)
	}
	starts, err := cl.Heads(ctx)
	if err != nil {
		return nil, err
	}
	ends, err := cl.Ends(ctx)
	if err != nil {
		return nil, err
	}
	list := wholeTopic(starts, ends, c.Recycle)
	if list.n == 0 {
		return nil, nothingToRead(c.Topic)
	}
	return list, nil
}

// Partitioner implements load.Target.
func (r *itemReader) Partitioner() load.Partitioner { return r.partitioner }

// Client implements load.Target: each client is one stream.
func (r *itemReader) Client(stream int32) int { return int(stream) }

// Clients implements load.Target.
func (r *itemReader) Clients() int { return len(r.clients) }

// Start implements load.Target.
func (r *itemReader) Start(sink load.Sink) {
	r.sink = sink
	r.metadata.changed = func(*view) {
		for _, c := range r.clients {
			c.routeWaiting()
		}
	}
	r.tasks.Go(func() { r.metadata.run(r.ctx) })
	r.tasks.Go(r.watch)
}

// Route implements load.Target.
func (r *itemReader) Route(stream int32) load.Lane { return r.clients[stream] }

// Wire implements load.Target.
func (r *itemReader) Wire() (written, read uint64) { return r.written.Load(), r.read.Load() }

// Capabilities implements load.Target.
func (r *itemReader) Capabilities() load.TargetCapabilities {
	c := load.TargetCapabilities{Connected: r.Connected, Pending: r.Pending, Events: r.items.n}
	if r.items.recycle {
		c.Events = 0
	}
	return c
}

// Pending says what each connection waits for.
func (r *itemReader) Pending() []string {
	var all []string
	for _, c := range r.clients {
		c.mu.Lock()
		if n := len(c.waiting); n > 0 {
			all = append(all, units.Plural(n, "read")+" waiting for a leader")
		}
		for _, k := range c.links {
			if n := len(k.queue) + len(k.inFlight); n > 0 {
				all = append(all, k.addr+": "+units.Plural(n, "read")+" without an answer")
			}
		}
		c.mu.Unlock()
	}
	return all
}

// Close ends all connections.
func (r *itemReader) Close() error {
	r.stop()
	r.tasks.Wait()
	r.metadata.disconnect()
	return nil
}

func (r *itemReader) facts() map[string]any {
	f := map[string]any{"items": r.items.n, "recycled": r.items.recycle}
	if n := r.retried.Load(); n > 0 {
		f["reads_retried"] = n
	}
	if n := r.lost.Load(); n > 0 {
		f["lost_connections"] = n
	}
	return f
}

// watch gives up reads that wait too long for a leader, as long as some wait.
func (r *itemReader) watch() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.hurry:
		}
		for waits := true; waits; {
			select {
			case <-r.ctx.Done():
				return
			case <-time.After(watchEvery):
			}
			waits = false
			for _, c := range r.clients {
				waits = c.expire() || waits
			}
			if waits {
				r.metadata.ask()
			}
		}
	}
}

// noteRecordBytes updates the mean size of records, by which requests bound their
// answers.
func (r *itemReader) noteRecordBytes(wire, n int64) {
	if n == 0 {
		return
	}
	mean, old := wire/n+1, r.recordBytes.Load()
	if old > 0 {
		mean = old + (mean-old)/8
	}
	r.recordBytes.Store(max(1, mean))
}

// answerBytes is the size of the answer to ask for, for a number of records.
func (r *itemReader) answerBytes(n int64) int32 {
	most := int64(r.cfg.Fetch.MaxPartition)
	mean := r.recordBytes.Load()
	if mean == 0 {
		return int32(most)
	}
	return int32(min(most, n*(mean+mean/4)+512))
}

// A readClient is one client: a lane, with a connection to each broker. It implements
// load.Lane.
type readClient struct {
	r  *itemReader
	id int

	fired []*itemRead // taken by Fire, not yet flushed; used by the sending thread only

	mu      sync.Mutex
	links   map[int32]*readLink // by broker
	waiting []*itemRead         // for a leader
	live    []*itemRead         // not completed
	free    []*itemRead
	closed  bool
	out     []load.Outcome
}

// An itemRead is a batch in progress. The client's lock guards it, except that a link
// reads its fields while it is in flight there.
type itemRead struct {
	batch    load.Batch
	live     int // index in the client's list; -1: completed
	part     int32
	next     int64 // the first offset not read yet
	to       int64 // the offset after the last one
	deadline time.Duration
	sent     time.Duration // -1: not yet
	found    int32
	bytes    int64
	wire     int64
	retries  int32
	corrupt  bool
	altered  bool
	err      error // why it was not read so far
	class    load.Class
	runs     []wire.ListRun // what was found, if a list is written
}

// ID implements load.Lane.
func (c *readClient) ID() int { return c.id }

// Room implements load.Lane.
func (c *readClient) Room(stream int32, first uint64) int {
	_, _, left := c.r.items.at(c.r.partitioner.Event(stream, first))
	if left == 0 {
		return -1
	}
	if len(c.r.clients) > 1 {
		left = min(left, blockItems-int(first%blockItems))
	}
	return min(left, mostItems)
}

// Fire implements load.Lane.
func (c *readClient) Fire(batches []load.Batch) int {
	now := c.r.sink.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0
	}
	for i := range batches {
		b := &batches[i]
		b.Bytes = 0 // known when they have been read
		part, offset, _ := c.r.items.at(c.r.partitioner.Event(b.Stream, b.First))
		c.fire(b, part, offset, now)
	}
	return len(batches)
}

// fire takes a batch for the next flush: the records from an offset on. The caller holds
// the lock.
func (c *readClient) fire(b *load.Batch, part int32, offset int64, now time.Duration) {
	p := c.newRead()
	*p = itemRead{batch: *b, live: len(c.live), part: part, next: offset, to: offset + int64(b.Events), deadline: now + c.r.cfg.DeliveryTimeout, sent: -1, runs: p.runs[:0]}
	c.live = append(c.live, p)
	c.fired = append(c.fired, p)
}

func (c *readClient) newRead() *itemRead {
	if n := len(c.free); n > 0 {
		p := c.free[n-1]
		c.free = c.free[:n-1]
		return p
	}
	return new(itemRead)
}

// Capabilities implements load.Lane.
func (*readClient) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{} }

// Flush implements load.Lane.
func (c *readClient) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.fired {
		c.route(p)
	}
	clear(c.fired)
	c.fired = c.fired[:0]
}

// route hands a read to the connection to its leader, or lets it wait for one. The
// caller holds the lock.
func (c *readClient) route(p *itemRead) {
	v := c.r.metadata.view.Load()
	if int(p.part) < len(v.leaders) {
		if leader := v.leaders[p.part]; leader != noLeader {
			k := c.links[leader]
			if k == nil {
				k = newReadLink(c, leader)
				c.links[leader] = k
				c.r.tasks.Go(k.run)
			}
			k.addr = v.brokers[leader]
			k.queue = append(k.queue, p)
			k.signal()
			return
		}
	}
	c.wait(p)
}

// wait lets a read wait until the leaders have been looked up again. The caller holds
// the lock.
func (c *readClient) wait(p *itemRead) {
	c.waiting = append(c.waiting, p)
	c.r.metadata.ask()
	select {
	case c.r.hurry <- struct{}{}:
	default:
	}
}

// routeWaiting routes the reads that wait.
func (c *readClient) routeWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, now := c.waiting, c.r.sink.Now()
	c.waiting = nil
	for _, p := range waiting {
		if p.sent < 0 {
			p.batch.Free = max(p.batch.Free, now) // it waited for a leader, which is the system's delay
		}
		c.route(p)
	}
}

// expire gives up reads that have waited too long, and reports whether others wait.
func (c *readClient) expire() bool {
	now := c.r.sink.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := c.waiting[:0]
	for _, p := range c.waiting {
		if now < p.deadline {
			keep = append(keep, p)
			continue
		}
		c.fail(p, now)
	}
	clear(c.waiting[len(keep):])
	c.waiting = keep
	c.deliver()
	return len(keep) > 0
}

// again tries a read once more, after an error that may pass; past its deadline it has
// failed. The caller holds the lock.
func (c *readClient) again(p *itemRead, class load.Class, err error) {
	if p.live < 0 {
		return
	}
	p.class, p.err = class, err
	if now := c.r.sink.Now(); now >= p.deadline {
		c.fail(p, now)
		return
	}
	p.retries++
	c.r.retried.Add(1)
	c.wait(p)
}

// fail completes a read that has failed. The caller holds the lock, and delivers.
func (c *readClient) fail(p *itemRead, now time.Duration) {
	class, text := load.Timeout, load.TextNoAnswer
	if p.err != nil {
		class, text = p.class, p.err.Error()
	}
	c.complete(p, now, 0, class, text, false)
}

// complete completes a read: the records that were found are acked. The caller holds
// the lock, and delivers.
func (c *readClient) complete(p *itemRead, done, earliest time.Duration, class load.Class, text string, unknown bool) {
	o := load.Outcome{
		Batch: p.batch, Lane: int32(c.id), Sent: p.sent, Done: done, Earliest: earliest, Acked: p.found,
		Retries: p.retries, Wire: p.wire, Read: p.bytes, Place: p.to - int64(p.batch.Events),
	}
	rest := p.batch.Events - p.found
	if unknown {
		o.Unknown = rest
	} else {
		o.Failed = rest
	}
	if rest > 0 {
		o.Class, o.Text = class, text
	}
	for _, run := range p.runs {
		c.r.list.add(p.part, run.Offset, run.Count)
	}
	c.out = append(c.out, o)
	last := c.live[len(c.live)-1]
	c.live[p.live], last.live = last, p.live
	c.live[len(c.live)-1] = nil
	c.live = c.live[:len(c.live)-1]
	p.live = -1
	if !c.closed { // else a connection may still have it
		c.free = append(c.free, p)
	}
}

// deliver passes completed reads to the engine. The caller holds the lock, so calls do
// not overlap.
func (c *readClient) deliver() {
	if len(c.out) > 0 {
		c.r.sink.Complete(c.out)
		clear(c.out)
		c.out = c.out[:0]
	}
}

// Close implements load.Lane.
func (c *readClient) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	now := c.r.sink.Now()
	for len(c.live) > 0 {
		p := c.live[len(c.live)-1]
		if p.sent >= 0 {
			c.complete(p, now, 0, load.Canceled, load.TextUnanswered, true)
		} else {
			c.complete(p, now, 0, load.Canceled, load.TextUnwritten, false)
		}
	}
	c.waiting, c.fired = nil, nil
	c.deliver()
	for _, k := range c.links {
		k.end()
	}
	return nil
}
