package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/protocol"
)

// noLeader is the leader of a partition that has none.
const noLeader = -1

// A view is a snapshot of the topics' metadata. It is immutable.
type view struct {
	brokers map[int32]string // host:port by node id
	leaders []int32          // by log; noLeader
	epochs  []int32          // of the leaders; -1: not known
	topics  []wire.Topic     // in the order of the target; of unchanged ids, those of the view before
}

// hasIDs reports whether the cluster has ids of topics: since Kafka 2.8.
func (v *view) hasIDs() bool {
	return !slices.ContainsFunc(v.topics, func(t wire.Topic) bool { return t.ID == [16]byte{} })
}

// sameTopics reports whether two lists are of the same topics, not of some that were created again.
func sameTopics(a, b []wire.Topic) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// A metadataCache keeps the view of the topics up to date: it refreshes the view regularly,
// and soon after ask is called. Safe for concurrent use.
type metadataCache struct {
	cfg     *cluster.Config
	view    atomic.Pointer[view]
	wake    chan struct{}
	mu      sync.Mutex // orders changes of the view
	changed func(*view)

	// topics have the logs that were there at the start: what is added later is not used. They do not change
	// once the run begins.
	topics []cluster.TopicLogs

	// Used by the refreshing goroutine only; before it runs, by the one that opens.
	conn     net.Conn
	term     cluster.LoginTerm
	addr     string
	versions versionRanges
	turn     int
}

const (
	metaInterval = 30 * time.Second       // without a call of ask
	metaSpacing  = 100 * time.Millisecond // however often ask is called; retry.backoff.ms of the Java client
	metaTimeout  = 10 * time.Second
)

func newMetadataCache(cfg *cluster.Config) *metadataCache {
	return &metadataCache{cfg: cfg, wake: make(chan struct{}, 1)}
}

// ask requests a new view soon.
func (b *metadataCache) ask() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run refreshes the view until the context ends.
func (b *metadataCache) run(ctx context.Context) {
	defer b.disconnect()
	timer := time.NewTimer(metaInterval)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		case <-timer.C:
		}
		wait := metaInterval
		v, err := b.fetch(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			if !failing { // log it once, not ten times a second
				b.cfg.Logf("%v", err)
			}
			failing = true
			wait = time.Second
		case slices.Contains(v.leaders, noLeader):
			wait = metaSpacing
			fallthrough
		default:
			failing = false
			b.update(v)
		}
		timer.Reset(wait)
		// Many lanes ask at once when a broker disappears.
		if cluster.Pause(ctx, metaSpacing) != nil {
			return
		}
	}
}

// update stores a fetched view, except for leaders that are known to be newer.
func (b *metadataCache) update(v *view) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.view.Load(); old != nil && sameTopics(old.topics, v.topics) {
		v.topics = old.topics
		for p := range min(len(v.leaders), len(old.leaders)) {
			if v.epochs[p] >= 0 && v.epochs[p] < old.epochs[p] {
				v.leaders[p], v.epochs[p] = old.leaders[p], old.epochs[p]
			}
		}
	}
	b.view.Store(v)
	if b.changed != nil {
		b.changed(v)
	}
}

// updateLeader stores what a broker reported about a partition's new leader (KIP-951).
func (b *metadataCache) updateLeader(log, leader, epoch int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.view.Load()
	if int(log) >= len(old.leaders) || epoch <= old.epochs[log] || old.brokers[leader] == "" {
		return
	}
	v := *old
	v.leaders, v.epochs = slices.Clone(old.leaders), slices.Clone(old.epochs)
	v.leaders[log], v.epochs[log] = leader, epoch
	b.view.Store(&v)
	b.changed(&v)
}

func (b *metadataCache) disconnect() {
	if b.conn != nil {
		b.conn.Close()
		b.conn = nil
	}
}

// fetch asks one broker after the other until one answers for the topic.
func (b *metadataCache) fetch(ctx context.Context) (*view, error) {
	addrs := slices.Clone(b.cfg.Seeds)
	if v := b.view.Load(); v != nil {
		for _, a := range v.brokers {
			if !slices.Contains(addrs, a) {
				addrs = append(addrs, a)
			}
		}
	}
	var first error
	for range len(addrs) + 1 {
		if b.conn == nil {
			b.turn++
			b.addr = addrs[b.turn%len(addrs)]
		}
		v, err := b.fetchOne(ctx)
		if err == nil {
			return v, nil
		}
		if _, ok := errors.AsType[*kerr.Error](err); ok {
			return nil, err // an error from a broker: others would answer the same
		}
		b.disconnect()
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, first
}

func (b *metadataCache) fetchOne(ctx context.Context) (*view, error) {
	if b.conn != nil && b.term.Due() {
		b.disconnect() // for rare requests, a new connection is simpler than a second login
	}
	if b.conn == nil {
		conn, term, versions, err := dialVersions(ctx, b.cfg, b.addr)
		if err != nil {
			return nil, err
		}
		b.conn, b.term, b.versions = conn, term, versions
	}
	req := kmsg.NewPtrMetadataRequest()
	version, ok := b.versions.pick(int16(kmsg.Metadata), 1, 12)
	if !ok {
		return nil, fmt.Errorf("ask %s for metadata: no version in common", b.addr)
	}
	req.SetVersion(version)
	for i := range b.cfg.Names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &b.cfg.Names[i]
		req.Topics = append(req.Topics, t)
	}
	answer, err := boundedRoundTrip(ctx, b.conn, b.cfg.ClientID, req)
	if err != nil {
		return nil, fmt.Errorf("ask %s for metadata: %w", b.addr, err)
	}
	v, logs, err := readView(answer.(*kmsg.MetadataResponse), b.cfg.Names, b.topics, b.view.Load())
	if b.topics == nil {
		b.topics = logs
	}
	return v, err
}

// readView makes a view of the topics from an answer. known are the logs that the topics have; nil: those in the
// answer, which it returns. A topic with an error, such as one that was deleted, keeps what old has of it: the leaders
// of the others may have changed. It is an error if all topics have one.
func readView(m *kmsg.MetadataResponse, names []string, known []cluster.TopicLogs, old *view) (*view, []cluster.TopicLogs, error) {
	v := &view{brokers: make(map[int32]string, len(m.Brokers)), topics: make([]wire.Topic, len(names))}
	for _, b := range m.Brokers {
		v.brokers[b.NodeID] = cluster.JoinAddr(b.Host, b.Port)
	}
	logs, wrong := known, 0
	for i, t := range cluster.InOrder(m, names) {
		name := names[i]
		if err := viewError(name, t); err != nil {
			if wrong++; old == nil || known == nil || wrong == len(names) {
				return nil, nil, err
			}
			v.keep(i, &known[i], old)
			continue
		}
		n := len(t.Partitions)
		v.topics[i] = wire.Topic{Name: name, ID: t.TopicID}
		if known == nil {
			logs = append(logs, cluster.TopicLogs{Name: name, ID: t.TopicID, Base: len(v.leaders), Partitions: n})
		}
		base := len(v.leaders)
		for range logs[i].Partitions {
			v.leaders, v.epochs = append(v.leaders, noLeader), append(v.epochs, -1)
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if p.Partition < 0 || int(p.Partition) >= n {
				return nil, nil, fmt.Errorf("topic %s: partition %d of %d", name, p.Partition, n)
			}
			if int(p.Partition) >= logs[i].Partitions {
				continue // it was added since
			}
			log := base + int(p.Partition)
			if v.brokers[p.Leader] != "" {
				v.leaders[log] = p.Leader
			}
			if m.GetVersion() >= 7 {
				v.epochs[log] = p.LeaderEpoch
			}
		}
	}
	return v, logs, nil
}

// viewError is why a view cannot be made from the answer about a topic; nil: the answer lacks the topic.
func viewError(name string, t *kmsg.MetadataResponseTopic) error {
	if t == nil {
		return fmt.Errorf("topic %s: %w", name, kerr.UnknownTopicOrPartition)
	}
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !(errors.Is(err, kerr.LeaderNotAvailable) && len(t.Partitions) > 0) {
		return fmt.Errorf("topic %s: %w", name, err)
	}
	if len(t.Partitions) == 0 {
		return fmt.Errorf("topic %s has no partitions", name)
	}
	return nil
}

// keep takes over a topic from another view.
func (v *view) keep(i int, logs *cluster.TopicLogs, old *view) {
	v.topics[i] = old.topics[i]
	for log := logs.Base; log < logs.Base+logs.Partitions; log++ {
		leader := old.leaders[log]
		if v.brokers[leader] == "" {
			leader = noLeader
		}
		v.leaders, v.epochs = append(v.leaders, leader), append(v.epochs, old.epochs[log])
	}
}

// versionRanges are the versions of requests that a broker supports: lowest and highest,
// by API key.
type versionRanges map[int16][2]int16

// pick returns the highest version of a request that both sides support.
func (v versionRanges) pick(key, low, high int16) (int16, bool) {
	r, ok := v[key]
	if !ok || r[1] < low || r[0] > high {
		return 0, false
	}
	return min(r[1], high), true
}

// dialVersions connects to a broker and asks for the versions that it supports.
func dialVersions(ctx context.Context, cfg *cluster.Config, addr string) (net.Conn, cluster.LoginTerm, versionRanges, error) {
	conn, until, err := cfg.Security.DialFor(ctx, addr)
	if err != nil {
		return nil, cluster.LoginTerm{}, nil, err
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 0 // which every broker supports
	answer, err := boundedRoundTrip(ctx, conn, cfg.ClientID, req)
	if err == nil {
		err = kerr.ErrorForCode(answer.(*kmsg.ApiVersionsResponse).ErrorCode)
	}
	if err != nil {
		conn.Close()
		return nil, cluster.LoginTerm{}, nil, fmt.Errorf("ask %s for its versions: %w", addr, err)
	}
	v := versionRanges{}
	for _, k := range answer.(*kmsg.ApiVersionsResponse).ApiKeys {
		v[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
	}
	return conn, until, v, nil
}

// dialFetch connects to a broker and chooses the version of fetch requests; ids: the cluster has ids of
// topics.
func dialFetch(ctx context.Context, cfg *cluster.Config, addr string, ids bool) (net.Conn, cluster.LoginTerm, int16, error) {
	nc, term, versions, err := dialVersions(ctx, cfg, addr)
	if err != nil {
		return nil, cluster.LoginTerm{}, 0, err
	}
	most := int16(wire.MaxFetchVersion)
	if !ids {
		most = 12 // up to 12, requests contain topic names; later ones contain ids
	}
	version, ok := versions.pick(int16(kmsg.Fetch), wire.MinFetchVersion, most)
	if !ok {
		nc.Close()
		return nil, cluster.LoginTerm{}, 0, &protocol.Error{Doing: "agree on API versions with " + addr, Err: cluster.ErrTooOld}
	}
	return nc, term, version, nil
}

// newFetchRequest returns the request of a run without topics, which is used for every fetch.
func newFetchRequest(cfg *cluster.Config) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID = -1
	req.SessionEpoch = -1 // no session: each request lists everything
	req.MaxWaitMillis = int32(cfg.Fetch.MaxWait.Milliseconds())
	req.MinBytes, req.MaxBytes = cfg.Fetch.MinBytes, cfg.Fetch.MaxBytes
	if cfg.Fetch.Committed {
		req.IsolationLevel = 1
	}
	return req
}

// boundedRoundTrip is cluster.RoundTrip, bounded by the context and by metaTimeout.
func boundedRoundTrip(ctx context.Context, conn net.Conn, clientID string, req kmsg.Request) (kmsg.Response, error) {
	if err := conn.SetDeadline(time.Now().Add(metaTimeout)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	resp, err := cluster.RoundTrip(conn, clientID, req)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return resp, conn.SetDeadline(time.Time{})
}

// newProducerID gets an id from any broker of the view. It takes at most the request
// timeout, and at most ten seconds.
func newProducerID(ctx context.Context, cfg *cluster.Config, v *view) (id int64, epoch int16, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(cfg.RequestTimeout, cluster.OpenTimeout))
	defer cancel()
	err = errors.New("no broker is known")
	for _, addr := range v.brokers {
		if id, epoch, err = producerIDFrom(ctx, cfg, addr); err == nil {
			return id, epoch, nil
		}
		if ctx.Err() != nil {
			break // no time is left to ask another, whose error would only say that
		}
	}
	return -1, -1, fmt.Errorf("get a producer id: %w", err)
}

func producerIDFrom(ctx context.Context, cfg *cluster.Config, addr string) (int64, int16, error) {
	conn, _, versions, err := dialVersions(ctx, cfg, addr)
	if err != nil {
		return -1, -1, err
	}
	defer conn.Close()
	req := kmsg.NewPtrInitProducerIDRequest()
	version, ok := versions.pick(int16(kmsg.InitProducerID), 0, 4)
	if !ok {
		return -1, -1, &protocol.Error{
			Doing: "get a producer id from " + addr, Err: errors.New("the broker does not assign producer ids"),
			Hint: "leave out --idempotent",
		}
	}
	req.SetVersion(version)
	req.TransactionTimeoutMillis = 60_000
	var refused error // the broker's last answer
	for {
		answer, err := boundedRoundTrip(ctx, conn, cfg.ClientID, req)
		switch {
		case err != nil && ctx.Err() != nil && refused != nil:
			return -1, -1, refused // the time ended within an attempt
		case err != nil:
			return -1, -1, err
		}
		r := answer.(*kmsg.InitProducerIDResponse)
		refused = kerr.ErrorForCode(r.ErrorCode)
		if refused == nil {
			return r.ProducerID, r.ProducerEpoch, nil
		}
		if !kerr.IsRetriable(refused) {
			return -1, -1, refused
		}
		if cluster.Pause(ctx, metaSpacing) != nil { // a cluster that has just started may have no coordinator yet
			return -1, -1, refused
		}
	}
}
