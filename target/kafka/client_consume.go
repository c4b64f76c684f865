package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/impair"
	"carronade/internal/wire/kafka"
	"carronade/load"
)

// A clientSource consumes through franz-go, as an application would: as members of
// a group, whose partitions change, or from partitions that are assigned to the
// clients permanently. The client decodes the records; an arrival is what one poll
// returned from one partition.
type clientSource struct {
	cl      *cluster
	stamped bool
	starts  []int64
	clients []*clientReader
	traffic traffic
	pool    recordPool

	delivered []atomic.Int64 // by partition, next to be delivered
	high      []atomic.Int64 // by partition; -1
	ends      []int64        // nil unless reading ends there
	ended     []atomic.Bool  // by partition: it was read to its end
	remaining atomic.Int64   // partitions that were not read to their ends

	mu         sync.Mutex
	unassigned time.Duration // time without an assignment, of clients that have one again
	assigned   int           // how often partitions were assigned
	revoked    int
}

// A clientReader is one client. Its callbacks and polls come from different
// goroutines.
type clientReader struct {
	s      *clientSource
	id     int
	client *kgo.Client
	// leaving: the run is over, and the last commit was tried.
	leaving atomic.Bool

	events, bytes atomic.Uint64 // delivered

	mu              sync.Mutex
	unassignedSince time.Time // when it lost its assignment; zero while it has one
	owned           map[int32]bool

	lateness    *clientLateness
	arrivals    []load.Arrival
	stamps      []load.Stamp
	positions   []logOffset
	lastRecords []*kgo.Record // the last record of each partition in a poll, to be committed
}

// A logOffset is an offset in a partition.
type logOffset struct {
	log    int32
	offset int64
}

func newClientSource(ctx context.Context, cl *cluster, stamped bool) (*clientSource, error) {
	n := cl.logCount()
	s := &clientSource{cl: cl, stamped: stamped, delivered: make([]atomic.Int64, n), high: make([]atomic.Int64, n), ended: make([]atomic.Bool, n)}
	s.traffic.init(s.cl.cfg)
	var err error
	if s.starts, err = cl.starts(ctx); err != nil {
		return nil, err
	}
	for i := range n {
		s.delivered[i].Store(s.starts[i])
		s.high[i].Store(-1)
	}
	return s, nil
}

// opts returns the settings of a client.
func (s *clientSource) opts(r *clientReader) []kgo.Opt {
	c := s.cl.cfg
	opts := append(c.baseOpts(),
		kgo.FetchMinBytes(c.fetch.minBytes),
		kgo.FetchMaxBytes(c.fetch.maxBytes),
		kgo.FetchMaxPartitionBytes(c.fetch.maxPartition),
		kgo.BrokerMaxReadBytes(max(100<<20, 2*c.fetch.maxBytes)),
		kgo.FetchMaxWait(c.clientMaxWait()),
		kgo.KeepControlRecords(), // not counted, but a log may end with one
		kgo.WithHooks(&s.traffic, r.lateness),
		kgo.WithPools(&s.pool),
		r.lateness.dialer(c.security),
	)
	if c.rack != "" {
		opts = append(opts, kgo.Rack(c.rack))
	}
	if c.fetch.committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if c.shareGroup != "" {
		return append(opts, kgo.ShareGroup(c.shareGroup), kgo.ConsumeTopics(s.cl.topicNames()...))
	}
	if c.group == "" {
		offsets := map[int32]kgo.Offset{}
		for p := r.id; p < len(s.starts); p += c.clients {
			offsets[int32(p)] = kgo.NewOffset().At(s.starts[p])
		}
		return append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: offsets}))
	}
	return append(opts,
		kgo.ConsumerGroup(c.group),
		kgo.ConsumeTopics(s.cl.topicNames()...),
		kgo.ConsumeResetOffset(s.resetOffset()),
		kgo.OnPartitionsAssigned(r.onAssigned),
		kgo.OnPartitionsRevoked(r.onRevoked),
		kgo.OnPartitionsLost(r.onRevoked),
		kgo.BlockRebalanceOnPoll(), // polled records are delivered before their partition goes to another member
		kgo.AutoCommitMarks(),
	)
}

// clientMaxWait is for how long a broker may wait for events of a client: the client takes no less.
func (c *config) clientMaxWait() time.Duration { return max(c.fetch.maxWait, 10*time.Millisecond) }

// Logs implements load.Source.
func (s *clientSource) Logs() []string { return s.cl.logs() }

// Lanes implements load.Source.
func (s *clientSource) Lanes() int { return s.cl.cfg.clients }

// Behind implements load.Source.
func (s *clientSource) Lag() []int64 {
	b := make([]int64, len(s.delivered))
	for i := range b {
		b[i] = -1
		if high := s.high[i].Load(); high >= 0 {
			b[i] = max(0, high-s.delivered[i].Load())
		}
	}
	return b
}

// Wire implements load.Source.
func (s *clientSource) Wire() (written, read uint64) {
	return s.traffic.written.Load(), s.traffic.read.Load()
}

// Starts returns, per log, the offset where reading began. For a group with
// committed offsets, these are known once Receive was called.
func (s *clientSource) Starts() []int64 { return append([]int64(nil), s.starts...) }

// Positions returns, per log, the offset up to which everything was delivered.
func (s *clientSource) Positions() []int64 {
	o := make([]int64, len(s.delivered))
	for i := range o {
		o[i] = s.delivered[i].Load()
	}
	return o
}

// Ends asks the brokers for the current end of each log.
func (s *clientSource) Ends(ctx context.Context) ([]int64, error) { return s.cl.ends(ctx) }

// Heads asks the brokers for the current beginning of each log.
func (s *clientSource) Heads(ctx context.Context) ([]int64, error) { return s.cl.heads(ctx) }

// Metrics returns what each broker sent to all clients together.
func (s *clientSource) Metrics() []BrokerMetrics { return s.traffic.metrics() }

// Receive implements load.Source.
func (s *clientSource) Receive(ctx context.Context, now func() time.Duration, sink func(lane int, a []load.Arrival)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.traffic.closing.Store(false)
	if err := s.resumeCommitted(ctx); err != nil {
		return err
	}
	if s.cl.cfg.untilEnd {
		ends, err := s.cl.ends(ctx)
		if err != nil {
			return err
		}
		s.ends = ends
		left := 0
		for p := range ends {
			if s.delivered[p].Load() < ends[p] {
				left++
			} else {
				// No poll will return records that show it.
				s.ended[p].Store(true)
			}
		}
		if left == 0 {
			return nil
		}
		s.remaining.Store(int64(left))
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	var clients []*clientReader
	for i := range s.cl.cfg.clients {
		if !s.cl.cfg.portion.Has(i) {
			continue
		}
		r := &clientReader{s: s, id: i, owned: map[int32]bool{}, lateness: newClientLateness(now, s.cl.logOf)}
		if s.cl.cfg.group != "" {
			r.unassignedSince = time.Now()
		} else if i >= len(s.starts) && s.cl.cfg.shareGroup == "" {
			continue // more clients than partitions
		}
		var err error
		if r.client, err = kgo.NewClient(s.opts(r)...); err != nil {
			cancel(nil)
			return fmt.Errorf("make a client: %w", err)
		}
		clients = append(clients, r)
	}
	s.mu.Lock()
	s.clients = clients
	s.mu.Unlock()
	for _, r := range clients {
		wg.Go(func() {
			defer r.lateness.times.gaps.Close()
			// Group members leave explicitly, so that the others take over at once.
			defer r.leave()
			if err := r.poll(ctx, now, sink); err != nil {
				cancel(err)
			}
		})
	}
	<-ctx.Done()
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, errReadToEnd) {
		return err
	}
	return nil
}

// poll polls until the context ends.
func (r *clientReader) poll(ctx context.Context, now func() time.Duration, sink func(lane int, a []load.Arrival)) error {
	s := r.s
	for {
		impair.Point(impair.Receive, now())
		fetches := r.client.PollFetches(ctx)
		at := now()
		select {
		case <-ctx.Done():
			r.release()
			r.client.AllowRebalance()
			return nil
		default:
		}
		if err := s.fatal(fetches); err != nil {
			r.release()
			return err
		}
		r.arrivals, r.stamps, r.positions, r.lastRecords = r.arrivals[:0], r.stamps[:0], r.positions[:0], r.lastRecords[:0]
		over := int64(0)
		fetches.EachPartition(func(t kgo.FetchTopicPartition) {
			log := s.cl.logOf(t.Topic, t.Partition)
			if log < 0 {
				return
			}
			if s.cl.cfg.shareGroup == "" { // a share group does not learn where the log ends
				s.high[log].Store(t.HighWatermark)
			}
			if r.addArrival(&t, log, at) {
				over++
			}
		})
		r.lateness.endPoll(at)
		if len(r.arrivals) > 0 {
			sink(r.id, r.arrivals)
		}
		for _, n := range r.positions {
			s.delivered[n.log].Store(n.offset)
		}
		if s.cl.cfg.group != "" {
			r.client.MarkCommitRecords(r.lastRecords...)
			r.client.AllowRebalance()
		}
		fetches.EachRecord((*kgo.Record).Recycle)
		if over > 0 && s.remaining.Add(-over) == 0 {
			return errReadToEnd
		}
	}
}

// addArrival makes an arrival of one partition's records, and reports whether the
// partition has now been read to its end.
func (r *clientReader) addArrival(t *kgo.FetchTopicPartition, log int32, at time.Duration) (over bool) {
	s := r.s
	first := len(r.stamps)
	end := int64(math.MaxInt64)
	if s.ends != nil {
		end = s.ends[log]
	}
	// The client does not report batches separately, so no checksum is known.
	a := load.Arrival{Log: log, At: at, ProducerID: -1, Sequence: -1}
	next := int64(-1)
	for _, rec := range t.Records {
		next = rec.Offset + 1
		if rec.Attrs.IsControl() || rec.Offset >= end {
			continue
		}
		if a.Events == 0 {
			a.Base = rec.Offset
		}
		a.Events++
		a.Bytes += int64(len(rec.Key) + len(rec.Value))
		for i := range rec.Headers {
			a.Bytes += int64(len(rec.Headers[i].Key) + len(rec.Headers[i].Value))
		}
		if s.stamped {
			st, ok := kafka.ParseStamp(rec.Value)
			m := load.Stamp{Run: st.Run, Stream: st.Stream, Index: st.Index, Offset: rec.Offset, Bad: !ok}
			if s.cl.cfg.compacted {
				m.Key = hashKey(rec.Key)
			}
			r.stamps = append(r.stamps, m)
		}
	}
	if next < 0 {
		return false
	}
	if s.cl.cfg.shareGroup == "" { // the client reports nothing about the answers to a share group
		a.Earliest = r.lateness.earliest(log, at, next < t.HighWatermark)
	}
	r.positions = append(r.positions, logOffset{log, min(next, end)})
	r.lastRecords = append(r.lastRecords, t.Records[len(t.Records)-1])
	if a.Events > 0 {
		r.events.Add(uint64(a.Events))
		r.bytes.Add(uint64(a.Bytes))
		a.Wire = a.Bytes
		if s.stamped {
			a.Stamps = r.stamps[first:len(r.stamps):len(r.stamps)]
		}
		r.arrivals = append(r.arrivals, a)
	}
	return next >= end && !s.ended[log].Swap(true)
}

// fatal returns an error that further polling would not resolve, nil if there is
// none.
func (s *clientSource) fatal(fetches kgo.Fetches) error {
	var fatal error
	fetches.EachError(func(topic string, part int32, err error) {
		if fatal == nil && !recoverable(err) {
			fatal = s.cl.cfg.explain(fmt.Sprintf("consume from %s, partition %d", topic, part), err)
		}
	})
	return fatal
}

func (s *clientSource) facts() map[string]any {
	f := map[string]any{"read_from": s.cl.cfg.startText(), "client": "franz-go"}
	if n := s.traffic.lost.Load(); n > 0 {
		f["lost_connections"] = n
	}
	if s.cl.cfg.topics != nil {
		f["topics"] = s.cl.topicNames()
	}
	if g := s.cl.cfg.shareGroup; g != "" {
		f["read_from"] = "the share group's position"
		events, bytes := make([]uint64, s.cl.cfg.clients), make([]uint64, s.cl.cfg.clients)
		s.mu.Lock()
		for _, r := range s.clients {
			events[r.id], bytes[r.id] = r.events.Load(), r.bytes.Load()
		}
		s.mu.Unlock()
		// What was delivered to each member, including all of the last delivery.
		f["share_group"] = map[string]any{"name": g, "members": s.cl.cfg.clients, "member_events": events, "member_bytes": bytes}
	}
	if g := s.cl.cfg.group; g != "" {
		s.mu.Lock()
		f["group"] = map[string]any{"name": g, "members": s.cl.cfg.clients, "assignments": s.assigned, "revocations": s.revoked}
		s.mu.Unlock()
	}
	return f
}

func (s *clientSource) warnings() []string { return nil }

func (s *clientSource) close() error { return nil }
