package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
)

const (
	// Between two attempts to find a lost partition's leader.
	minLostPause = 20 * time.Millisecond
	maxLostPause = time.Second
	// connsPerBroker is the number of connections over which a client reads the
	// partitions of one broker: while it handles one answer, the broker prepares
	// the other.
	connsPerBroker = 2
)

// A wireSource reads partitions by raw fetches and counts batches by their headers.
// Each partition belongs to one client, and at any time either to one fetcher (a
// connection and its goroutine) or to the manager, which looks for its leader. Its
// owner continues where the last delivery ended, so that every event is delivered
// exactly once.
type wireSource struct {
	*cluster.Progress
	cl    *cluster.Cluster
	parts []*partition
	lanes []sync.Mutex // fetchers may share a lane when leaders change

	// stamped: the run's own events carry stamps, which are parsed.
	stamped bool

	// inspect sees the plain records of each batch, from several goroutines; nil: nothing does.
	inspect func(p *partition, b *wire.Batch, records []byte)

	now  func() time.Duration
	sink func(lane int, a []load.Arrival)

	lost chan lostPart // partitions whose fetcher could not go on

	pause pause

	mu              sync.Mutex
	topics          []wire.Topic     // not changed, but replaced: fetchers share it
	recreations     int32            // how often a topic was created again
	goneWarnings    []string         // what Gone found, as warnings
	skipped         [][]load.Span    // by partition
	addrs           map[int32]string // brokers
	fetchers        map[fetcherKey]*fetcher
	fetchersCreated int // number of fetchers created
	metrics         map[int32]*cluster.BrokerMetrics
	wg              sync.WaitGroup

	lastErr atomic.Pointer[string] // of a connection or a partition

	written, read              atomic.Uint64
	throttled                  atomic.Int64 // ns
	resets, moves, failedConns atomic.Uint64
	lostConns                  atomic.Uint64
	connected                  atomic.Int64  // connections that are open
	renewed                    atomic.Uint64 // logins renewed on open connections
	abortedBatches             atomic.Uint64
	abortedEvents              atomic.Uint64
}

type fetcherKey struct {
	client, connIndex int
	broker            int32
}

// A partition is one log and how far it was read. Its plain fields belong to the
// fetcher that reads it, else to the manager.
type partition struct {
	id         int32 // of the log
	place      cluster.Place
	client     int
	connIndex  int
	leader     int32
	epoch      int32         // of the leader, -1 unknown
	start      int64         // where reading started
	offset     int64         // to be fetched next
	end        int64         // where reading ends; math.MaxInt64: it does not end
	fails      int           // in a row
	ownDelay   time.Duration // how much its reader's own delays delay its events; see cluster.Lateness
	owned      bool          // by a fetcher; guarded by wireSource.mu
	txn        openTransactions
	readRanges []readRange // what was delivered

	// emptied is when a broker last said that there are no events beyond what was delivered, in ns of the
	// run; 0: it has not said so since the newest; notRead: nothing more is read.
	emptied atomic.Int64
}

// done reports whether everything asked for was read.
func (p *partition) done() bool { return p.offset >= p.end }

// notRead is partition.emptied of a partition that is not read, or was read to its end.
const notRead = math.MaxInt64

// A lostPart is a partition handed back to the manager, with the reason.
type lostPart struct {
	p     *partition
	err   error
	reset bool // its offset is out of the log's range
}

// errReadToEnd: a partition was read to its end.
var errReadToEnd = errors.New("read to the end")

func newWireSource(ctx context.Context, cl *cluster.Cluster, stamped bool) (*wireSource, error) {
	starts, err := cl.Starts(ctx)
	if err != nil {
		return nil, err
	}
	return newWireSourceAt(cl, stamped, starts, cl.Config.Clients), nil
}

// newWireSourceAt returns a source of a number of clients, which divide the partitions evenly.
func newWireSourceAt(cl *cluster.Cluster, stamped bool, starts []int64, clients int) *wireSource {
	n := cl.Partitions()
	s := &wireSource{Progress: cluster.NewProgress(cl, starts), cl: cl, stamped: stamped, parts: make([]*partition, n), skipped: make([][]load.Span, n)}
	for i := range cl.Topics {
		s.topics = append(s.topics, wire.Topic{Name: cl.Topics[i].Name, ID: cl.Topics[i].ID})
	}
	places := cluster.Places(cl.Topics)
	if n < clients {
		cl.Warnings = append(cl.Warnings, fmt.Sprintf("%d of %d clients read nothing: the topic has %d partitions", clients-n, clients, n))
		clients = n
	}
	for i := range s.parts {
		s.parts[i] = &partition{id: int32(i), place: places[i], client: i % clients, connIndex: i / clients % connsPerBroker, leader: cl.Leaders[i], epoch: -1, start: starts[i], offset: starts[i], end: math.MaxInt64}
	}
	s.lanes = make([]sync.Mutex, min(n, clients*connsPerBroker*max(1, len(cl.Brokers))))
	return s
}

// Lanes implements load.Source.
func (s *wireSource) Lanes() int { return len(s.lanes) }

// Rebalancing implements load.Source: no group assigns partitions here.
func (s *wireSource) Rebalancing() time.Duration { return 0 }

// Capabilities implements load.Source.
func (s *wireSource) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{
		Connected: s.Connected, Seeker: s, Answering: s, Gone: s.Gone, Skipped: s.Skipped, Blocked: s.Blocked,
		WhyNothing: s.WhyNothing, Undecoded: s.Undecoded, Pause: s.pause.set, Members: s.members(),
	}
}

// members are the clients, each of which reads its partitions all the time. One without a partition reads nothing.
func (s *wireSource) members() load.Members {
	return load.Members{
		Number: s.cl.Config.Clients,
		Of:     func(_ int, log int32) int { return s.parts[log].client },
		State: func(member int) (m load.MemberResult) {
			for _, p := range s.parts {
				if p.client == member {
					m.Partitions++
				}
			}
			return m
		},
	}
}

// WhyNothing is why nothing was read.
func (s *wireSource) WhyNothing(ctx context.Context) string {
	last := ""
	if text := s.lastErr.Load(); text != nil {
		last = *text
	}
	return s.Progress.WhyNothing(ctx, last)
}

// Undecoded says how records were counted.
func (s *wireSource) Undecoded() string {
	if s.cl.Config.Decode || s.stamped {
		return ""
	}
	return "records were counted by the headers of their batches, and not decoded (--decode)"
}

// Wire implements load.Source.
func (s *wireSource) Wire() (written, read uint64) { return s.written.Load(), s.read.Load() }

// Skipped are the offsets of records that were removed before they were read.
func (s *wireSource) Skipped() [][]load.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.skipped)
}

// Receive implements load.Source. It may be called again after it returned, and then
// continues where it ended.
func (s *wireSource) Receive(ctx context.Context, now func() time.Duration, sink func(lane int, a []load.Arrival)) error {
	ctx, cancel := context.WithCancel(ctx)
	s.now, s.sink = now, sink
	s.lost = make(chan lostPart, len(s.parts))
	s.fetchers = map[fetcherKey]*fetcher{}
	s.addrs = map[int32]string{}
	for i := range s.cl.Brokers {
		s.addrs[s.cl.Brokers[i].ID] = s.cl.Brokers[i].Addr
	}
	defer func() {
		cancel()
		s.wg.Wait()
	}()
	if s.cl.Config.UntilEnd {
		ends, err := s.cl.Ends(ctx)
		if err != nil {
			return err
		}
		for i, p := range s.parts {
			p.end = ends[i]
		}
	}
	return s.manage(ctx)
}

// manage hands partitions to fetchers and takes them back until the context ends, all
// are read to their ends, or an error is permanent.
func (s *wireSource) manage(ctx context.Context) error {
	left := 0
	var unassigned []*partition
	for _, p := range s.parts {
		p.fails = 0
		if !p.done() && s.reads(p) {
			left++
			unassigned = append(unassigned, p)
		} else {
			p.emptied.Store(notRead)
		}
	}
	stale := false // the leaders must be looked up again
	for left > 0 {
		var wait <-chan time.Time
		if stale && len(unassigned) > 0 {
			fails := 0
			for _, p := range unassigned {
				fails = max(fails, p.fails)
			}
			if fails > 1 {
				// The first failure is usually a changed leader, and needs no
				// pause.
				wait = time.After(min(maxLostPause, minLostPause<<min(fails, 10)))
			} else {
				wait = time.After(0)
			}
		} else if len(unassigned) > 0 {
			unassigned = s.assign(ctx, unassigned)
			if len(unassigned) > 0 {
				stale = true
				for _, p := range unassigned {
					p.fails++
				}
				continue
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l := <-s.lost:
			switch {
			case errors.Is(l.err, errReadToEnd):
				left--
				continue
			case l.err != nil && ctx.Err() == nil && (errors.Is(l.err, errBatch) || !cluster.Recoverable(l.err)):
				return s.cl.Config.Explain(fmt.Sprintf("fetch from %s, partition %d", s.topics[l.p.place.Topic].Name, l.p.place.Partition), l.err)
			}
			if l.reset {
				if err := s.reset(ctx, l.p); err != nil {
					s.cl.Config.Logf("%s: %v", s.nameOf(l.p), err)
				}
			}
			l.p.fails++
			unassigned = append(unassigned, l.p)
			stale = true
		case <-wait:
			if err := s.refresh(ctx); err != nil {
				s.cl.Config.Logf("ask for the leaders of %s: %v", s.cl.Config.TopicText(), err)
				for _, p := range unassigned {
					p.fails++
				}
				continue
			}
			stale = false
		}
	}
	return nil
}

// reads reports whether this process reads a partition. Of a consuming run with several
// generators, each reads its own; who reads back what was sent reads all.
func (s *wireSource) reads(p *partition) bool {
	return s.cl.Config.Op != cluster.OpConsume || s.cl.Config.Portion.Has(p.client)
}

// assign hands each partition to the fetcher of its leader and returns those without a
// known leader.
func (s *wireSource) assign(ctx context.Context, parts []*partition) (unassigned []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		addr, ok := s.addrs[p.leader]
		if p.leader < 0 || !ok {
			unassigned = append(unassigned, p)
			continue
		}
		key := fetcherKey{client: p.client, connIndex: p.connIndex, broker: p.leader}
		st := s.fetchers[key]
		if st == nil {
			st = newFetcher(s, key, addr)
			s.fetchers[key] = st
			s.wg.Go(func() { st.run(ctx) })
		}
		p.owned = true
		st.added = append(st.added, p)
	}
	return unassigned
}

// refresh asks for leaders and addresses and updates the partitions that belong to the
// manager.
func (s *wireSource) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cl.Config.RequestTimeout)
	defer cancel()
	meta, err := s.cl.Metadata(ctx, false, s.cl.Config.Names...)
	if err != nil {
		return err
	}
	wrong := 0
	for i := range meta.Topics {
		if err := refreshError(&meta.Topics[i]); err != nil {
			if wrong++; wrong == len(meta.Topics) {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range meta.Brokers {
		s.addrs[b.NodeID] = cluster.JoinAddr(b.Host, b.Port)
	}
	s.topics = slices.Clone(s.topics)
	for i := range meta.Topics {
		t := &meta.Topics[i]
		if refreshError(t) != nil {
			continue // such as one that was deleted: the leaders of the others may have changed
		}
		if s.topics[i].ID != t.TopicID {
			s.topics[i].ID = t.TopicID
			s.recreations++
		}
		for _, tp := range t.Partitions {
			log := s.cl.LogOf(s.topics[i].Name, tp.Partition)
			if log < 0 {
				continue // added since the run began: not read
			}
			p := s.parts[log]
			if p.owned {
				continue // its fetcher knows the leader, or will notice a change
			}
			if p.leader != tp.Leader {
				s.moves.Add(1)
				s.cl.Config.Happened("leader changed", time.Now(), 0)
			}
			p.leader, p.epoch = tp.Leader, -1
		}
	}
	return nil
}

// refreshError is why an answer does not say where the partitions of a topic are.
func refreshError(t *kmsg.MetadataResponseTopic) error {
	if err := kerr.ErrorForCode(t.ErrorCode); !errors.Is(err, kerr.LeaderNotAvailable) {
		return err
	}
	return nil
}

// nameOf names a partition in texts.
func (s *wireSource) nameOf(p *partition) string {
	text := fmt.Sprintf("partition %d", p.place.Partition)
	if len(s.topics) > 1 {
		text += " of " + s.topics[p.place.Topic].Name
	}
	return text
}

// reset moves a partition whose offset is out of the log's range: to the start if
// retention removed it, or if a producing run reads back a log that ends before the
// offset at which the run started, and so was created again; else to the end.
func (s *wireSource) reset(ctx context.Context, p *partition) error {
	ctx, cancel := context.WithTimeout(ctx, s.cl.Config.RequestTimeout)
	defer cancel()
	start, err := s.cl.Offsets(ctx, cluster.FromStart)
	if err != nil {
		return err
	}
	end, err := s.cl.Offsets(ctx, cluster.FromEnd)
	if err != nil {
		return err
	}
	to := end[p.id]
	recreated := s.cl.Config.Op == cluster.OpProduce && to < p.start
	if p.offset < start[p.id] || recreated {
		to = start[p.id]
	}
	s.resets.Add(1)
	if to > p.offset {
		s.mu.Lock()
		s.skipped[p.id] = append(s.skipped[p.id], load.Span{From: p.offset, To: to})
		s.mu.Unlock()
	}
	s.cl.Config.Logf("%s: offset %d is out of range, continuing at %d", s.nameOf(p), p.offset, to)
	p.offset, p.txn = to, openTransactions{}
	s.Deliver(p.id, to)
	return nil
}

func (s *wireSource) Facts() map[string]any {
	f := map[string]any{"isolation": "uncommitted", "read_from": s.cl.Config.StartText()}
	if s.cl.Config.Fetch.Committed {
		f["isolation"] = "committed"
	}
	for name, n := range map[string]uint64{
		"offset_resets": s.resets.Load(), "leader_moves": s.moves.Load(), "failed_connections": s.failedConns.Load(),
		"lost_connections":        s.lostConns.Load(),
		"fetch_logins_renewed":    s.renewed.Load(),
		"aborted_batches_skipped": s.abortedBatches.Load(), "aborted_events_skipped": s.abortedEvents.Load(),
	} {
		if n > 0 {
			f[name] = n
		}
	}
	if d := s.throttled.Load(); d > 0 {
		f["fetch_throttle_s"] = time.Duration(d).Seconds()
	}
	return f
}

func (s *wireSource) Warnings() []string {
	s.mu.Lock()
	w := slices.Clone(s.goneWarnings)
	s.mu.Unlock()
	if n := s.resets.Load(); n > 0 {
		w = append(w, fmt.Sprintf("%d times, an offset was out of its log's range (retention overtook the reader, or the log was truncated): the records between were not read", n))
	}
	return w
}

func (s *wireSource) Close() error { return nil }
