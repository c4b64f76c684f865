package franz

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
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
)

// A Source consumes through franz-go, as an application would: as members of
// a group, whose partitions change, or from partitions that are assigned to the
// clients permanently. The client decodes the records; an arrival is what one poll
// returned from one partition.
type Source struct {
	*cluster.Progress // for a group with committed offsets, it is known once Receive was called
	cl                *cluster.Cluster
	stamped           bool
	members           []membership // what each client joins
	apart             bool         // its group is one of several: it begins at the starts, whatever was committed before
	clients           []*reader
	traffic           traffic
	pool              recordPool

	ends      []int64        // nil unless reading ends there
	ended     []atomic.Bool  // by partition: it was read to its end
	polled    []atomic.Int64 // by partition: when its newest events were polled; stored before they count as delivered
	remaining atomic.Int64   // partitions that were not read to their ends

	lastErr atomic.Pointer[string] // of a partition or the group

	mu       sync.Mutex
	paused   bool // the clients fetch nothing
	assigned int  // how often partitions were assigned
	revoked  int
}

var _ kgo.HookGroupManageError = (*Source)(nil)

// A membership is what a client joins: a group, whose members divide the topics; "" if its partitions are assigned.
type membership struct {
	group  string
	topics []string
}

// A reader is one client. Its callbacks and polls come from different
// goroutines.
type reader struct {
	membership
	s      *Source
	id     int
	client *kgo.Client
	// leaving: the run is over, and the last commit was tried.
	leaving atomic.Bool

	events, bytes atomic.Uint64 // delivered

	mu              sync.Mutex
	unassignedSince time.Time     // when it lost its assignment; zero while it has one
	unassigned      time.Duration // how long it had none before
	assignments     uint64
	revocations     uint64
	most            int // partitions, at a time
	owned           map[int32]bool

	lateness    *ownLateness
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

// errAllRead: everything up to the ends was read.
var errAllRead = errors.New("read to the end")

// NewSource finds where reading starts. Its clients are made by Receive. stamped: the events
// of the run carry stamps, which are parsed.
func NewSource(ctx context.Context, cl *cluster.Cluster, stamped bool) (*Source, error) {
	starts, err := cl.Starts(ctx)
	if err != nil {
		return nil, err
	}
	s := newSource(cl, stamped, starts)
	for range cl.Config.Clients {
		s.members = append(s.members, membership{cl.Config.Group, cl.Config.Names})
	}
	if cl.Config.Op != cluster.OpConsume && cl.Config.ShareGroup == "" { // it starts at the ends, and a poll without events says nothing
		for log, end := range starts {
			s.Reported(int32(log), end, end) //nolint:gosec // few logs
		}
	}
	return s, nil
}

func newSource(cl *cluster.Cluster, stamped bool, starts []int64) *Source {
	s := &Source{Progress: cluster.NewProgress(cl, starts), cl: cl, stamped: stamped, ended: make([]atomic.Bool, len(starts)), polled: make([]atomic.Int64, len(starts))}
	s.traffic.init(cl.Config)
	return s
}

// opts returns the settings of a client.
func (s *Source) opts(r *reader) []kgo.Opt {
	c := s.cl.Config
	opts := append(c.ClientOptions(),
		kgo.FetchMinBytes(c.Fetch.MinBytes),
		kgo.FetchMaxBytes(c.Fetch.MaxBytes),
		kgo.FetchMaxPartitionBytes(c.Fetch.MaxPartition),
		kgo.BrokerMaxReadBytes(max(100<<20, 2*c.Fetch.MaxBytes)),
		kgo.FetchMaxWait(maxWait(c)),
		kgo.KeepControlRecords(), // not counted, but a log may end with one
		kgo.WithHooks(&s.traffic, r.lateness, s),
		kgo.WithPools(&s.pool),
		r.lateness.dialer(c.Security),
	)
	if c.Rack != "" {
		opts = append(opts, kgo.Rack(c.Rack))
	}
	if c.Fetch.Committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if c.ShareGroup != "" {
		return append(opts, kgo.ShareGroup(c.ShareGroup), kgo.ConsumeTopics(c.Names...))
	}
	if r.group == "" {
		offsets := map[string]map[int32]kgo.Offset{}
		s.cl.EachLog(func(log int, topic string, partition int32) {
			if log%c.Clients != r.id {
				return
			}
			if offsets[topic] == nil {
				offsets[topic] = map[int32]kgo.Offset{}
			}
			offsets[topic][partition] = kgo.NewOffset().At(s.Next(log))
		})
		return append(opts, kgo.ConsumePartitions(offsets))
	}
	if c.Assigned {
		// Java's consumer leaves the choice to the brokers, whose default is uniform; franz-go asks for that
		// by its sticky balancer.
		opts = append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	return append(opts,
		kgo.ConsumerGroup(r.group),
		kgo.ConsumeTopics(r.topics...),
		kgo.ConsumeResetOffset(s.resetOffset()),
		kgo.AdjustFetchOffsetsFn(s.fromStarts),
		kgo.OnPartitionsAssigned(r.onAssigned),
		kgo.OnPartitionsRevoked(r.onRevoked),
		kgo.OnPartitionsLost(r.onRevoked),
		kgo.BlockRebalanceOnPoll(), // polled records are delivered before their partition goes to another member
		kgo.AutoCommitMarks(),
	)
}

// maxWait is for how long a broker may wait for events of a client: the client takes no less.
func maxWait(c *cluster.Config) time.Duration { return max(c.Fetch.MaxWait, 10*time.Millisecond) }

// Lanes implements load.Source.
func (s *Source) Lanes() int { return len(s.members) }

// Wire implements load.Source.
func (s *Source) Wire() (written, read uint64) {
	return s.traffic.written.Load(), s.traffic.read.Load()
}

// Metrics returns what each broker sent to all clients together.
func (s *Source) Metrics() []cluster.BrokerMetrics { return s.traffic.metrics() }

// Receive implements load.Source.
func (s *Source) Receive(ctx context.Context, now func() time.Duration, sink func(lane int, a []load.Arrival)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.traffic.closing.Store(false)
	if err := s.resumeCommitted(ctx); err != nil {
		return err
	}
	if s.cl.Config.UntilEnd {
		ends, err := s.cl.Ends(ctx)
		if err != nil {
			return err
		}
		s.ends = ends
		left := 0
		for p := range ends {
			if s.Next(p) < ends[p] {
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
	var clients []*reader
	for i, m := range s.members {
		if !s.apart && !s.cl.Config.Portion.Has(i) {
			continue
		}
		r := &reader{membership: m, s: s, id: i, owned: map[int32]bool{}, lateness: newOwnLateness(now, s.cl.LogOf)}
		if r.group != "" {
			r.unassignedSince = time.Now()
		} else if i >= len(s.ended) && s.cl.Config.ShareGroup == "" {
			continue // more clients than partitions
		} else if s.cl.Config.ShareGroup == "" {
			for log := i; log < len(s.ended); log += s.cl.Config.Clients {
				r.most++
			}
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
	if s.paused {
		for _, r := range clients {
			r.pause(true)
		}
	}
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
	if err := context.Cause(ctx); err != nil && !errors.Is(err, errAllRead) {
		return err
	}
	return nil
}

// Pause implements load.SourceCapabilities.Pause.
func (s *Source) Pause(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = paused
	for _, r := range s.clients {
		r.pause(paused)
	}
}

func (r *reader) pause(paused bool) {
	if topics := r.s.cl.Config.Names; paused {
		r.client.PauseFetchTopics(topics...)
	} else {
		r.lateness.resume()
		r.client.ResumeFetchTopics(topics...)
	}
}

// endOf is the end of what may be read of a partition, as an answer says.
func (s *Source) endOf(t *kgo.FetchTopicPartition) int64 {
	if s.cl.Config.Fetch.Committed && t.LastStableOffset >= 0 {
		return t.LastStableOffset
	}
	return t.HighWatermark
}

// poll polls until the context ends.
func (r *reader) poll(ctx context.Context, now func() time.Duration, sink func(lane int, a []load.Arrival)) error {
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
			log := s.cl.LogOf(t.Topic, t.Partition)
			if log < 0 {
				return
			}
			if s.cl.Config.ShareGroup == "" { // a share group does not learn where the log ends
				s.Reported(log, t.HighWatermark, s.endOf(&t))
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
			s.polled[n.log].Store(int64(at)) // before Deliver: see Emptied
			s.Deliver(n.log, n.offset)
		}
		if r.group != "" {
			r.client.MarkCommitRecords(r.lastRecords...)
			r.client.AllowRebalance()
		}
		fetches.EachRecord((*kgo.Record).Recycle)
		if over > 0 && s.remaining.Add(-over) == 0 {
			return errAllRead
		}
	}
}

// addArrival makes an arrival of one partition's records, and reports whether the
// partition has now been read to its end.
func (r *reader) addArrival(t *kgo.FetchTopicPartition, log int32, at time.Duration) (over bool) {
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
			st, ok := wire.ParseStamp(rec.Value)
			m := load.Stamp{Run: st.Run, Stream: st.Stream, Index: st.Index, Offset: rec.Offset, Bad: !ok}
			if s.cl.Config.Compacted {
				m.Key = cluster.HashKey(rec.Key)
			}
			r.stamps = append(r.stamps, m)
		}
	}
	if next < 0 {
		return false
	}
	if s.cl.Config.ShareGroup == "" { // the client reports nothing about the answers to a share group
		a.Earliest = r.lateness.earliest(log, at, next < s.endOf(t))
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

// OnGroupManageError implements kgo.HookGroupManageError.
func (s *Source) OnGroupManageError(err error) { s.noteError(err) }

func (s *Source) noteError(err error) {
	text := err.Error()
	s.lastErr.Store(&text)
}

// Capabilities implements load.Source.
func (s *Source) Capabilities() load.SourceCapabilities {
	c := load.SourceCapabilities{Connected: s.Connected, Seeker: s, Answering: s, Blocked: s.Blocked, WhyNothing: s.WhyNothing, Pause: s.Pause}
	if s.apart {
		c.Ready = s.ready
	} else {
		c.Members = s.divided()
	}
	return c
}

// WhyNothing is why nothing was read.
func (s *Source) WhyNothing(ctx context.Context) string {
	last := ""
	if text := s.lastErr.Load(); text != nil {
		last = *text
	}
	if g := s.cl.Config.ShareGroup; g != "" {
		if last != "" {
			return "the share group " + g + ": " + last
		}
		return "a new share group begins where the logs end, unless its setting share.auto.offset.reset is earliest, and one that exists at its position"
	}
	if g := s.cl.Config.Group; g != "" && !s.everAssigned() {
		text := "no partition was assigned to a member of the group " + g
		if last != "" {
			text += ": " + last
		}
		return text
	}
	return s.Progress.WhyNothing(ctx, last)
}

// everAssigned reports whether the members of a group had partitions at any time.
func (s *Source) everAssigned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.assigned > 0
}

// fatal returns an error that further polling would not resolve, nil if there is
// none.
func (s *Source) fatal(fetches kgo.Fetches) error {
	var fatal error
	fetches.EachError(func(topic string, part int32, err error) {
		s.noteError(err)
		if fatal == nil && !cluster.Recoverable(err) {
			fatal = s.cl.Config.Explain(fmt.Sprintf("consume from %s, partition %d", topic, part), err)
		}
	})
	return fatal
}

// Facts returns facts for the report, in addition to those of the cluster.
func (s *Source) Facts() map[string]any {
	f := map[string]any{"read_from": s.cl.Config.StartText(), "client": "franz-go"}
	if n := s.traffic.lost.Load(); n > 0 {
		f["lost_connections"] = n
	}
	if s.cl.Config.Topics != nil {
		f["topics"] = s.cl.Config.Names
	}
	if g := s.cl.Config.ShareGroup; g != "" {
		f["read_from"] = "the share group's position"
		events, bytes := make([]uint64, s.cl.Config.Clients), make([]uint64, s.cl.Config.Clients)
		s.mu.Lock()
		for _, r := range s.clients {
			events[r.id], bytes[r.id] = r.events.Load(), r.bytes.Load()
		}
		s.mu.Unlock()
		// What was delivered to each member, including all of the last delivery.
		f["share_group"] = map[string]any{"name": g, "members": s.cl.Config.Clients, "member_events": events, "member_bytes": bytes}
	}
	if g := s.cl.Config.Group; g != "" && !s.apart {
		f["group"] = s.membersFacts(g)
	}
	return f
}

// Warnings returns what the report warns of.
func (s *Source) Warnings() []string { return nil }

// Close does nothing: Receive has closed its clients.
func (s *Source) Close() error { return nil }
