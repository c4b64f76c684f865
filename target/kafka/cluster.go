package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"carronade/internal/conn"
	"carronade/units"
)

const (
	// metadataPause is the time between two looks at a topic that is being created.
	metadataPause = 100 * time.Millisecond
	// creationWait is how long a broker may take to create a topic automatically, or to
	// learn of a new one. After that the topic is assumed to be missing.
	creationWait = 3 * time.Second
	// leaderWait is how long partitions of a topic may be without a leader
	// before the run begins without them.
	leaderWait = 4 * time.Second
)

// byBroker is the value of createdBy for a topic that the broker created because it was
// asked for (auto.create.topics.enable).
const byBroker = "the broker"

// A broker is one node of the cluster.
type broker struct {
	id      int32
	addr    string // as the cluster advertises it
	rack    string
	version string // guessed from its API versions: "v3.7"; "" unknown
	// Highest versions of produce and fetch requests that it supports; -1 unknown.
	produceMax, fetchMax int16
	err                  error // why it could not be reached
}

// A cluster is what Open found, and a client for the rare requests. Its leaders and
// brokers are as of Open; the engines follow later changes themselves.
type cluster struct {
	cfg     *config
	control *kgo.Client // for metadata, offsets and other rare requests
	admin   *kadm.Client

	id               string
	controller       int32
	brokers          []broker // by id
	topicID          [16]byte // zero before Kafka 2.8
	leaders          []int32  // by partition; -1 none
	leadersAfter     []int32  // the same after the run; nil: not asked for, or no answer
	replicas         []int    // by partition
	settings         map[string]string
	brokerSettings   map[string]string // of the brokers: those that are not defaults
	brokersDescribed int               // number of brokers that returned their configuration
	createdBy        string            // who created the topic: "" (it existed), "carronade", byBroker
	otherTopics      []otherTopic      // further topics that are consumed, by name
	absent           bool              // the topic did not appear within the time of wait-topic
	warnings         []string
}

// An otherTopic is a topic that is consumed in addition to the first. Its partitions
// are the logs of the source from base on.
type otherTopic struct {
	name       string
	base       int
	partitions int
}

// newCluster returns a cluster that a client has reached, of which nothing is known.
func newCluster(c *config, control *kgo.Client) *cluster {
	return &cluster{cfg: c, control: control, admin: kadm.NewClient(control)}
}

// client returns a cluster with a client for rare requests, which has no connection yet.
func (c *config) client() (*cluster, error) {
	control, err := kgo.NewClient(c.baseOpts()...)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return newCluster(c, control), nil
}

// partitions is the number of partitions that the topic had at Open.
func (cl *cluster) partitions() int { return len(cl.leaders) }

// close closes the client.
func (cl *cluster) close() { cl.control.Close() }

// baseOpts returns the settings of every franz-go client here.
func (c *config) baseOpts() []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(c.seeds...),
		kgo.ClientID(c.clientID),
		kgo.DisableClientMetrics(), // their traffic would be measured, too
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.RetryTimeout(c.requestTimeout),
		// The time for an answer beyond the timeout that a request gives the broker.
		kgo.RequestTimeoutOverhead(min(max(c.requestTimeout, 100*time.Millisecond), 10*time.Second)),
	}, c.security.kgoOpts()...)
}

// connect finds the cluster and the topic, and creates the topic if asked to. It takes
// ten seconds at most, plus the time of wait-topic.
func (c *config) connect(ctx context.Context) (*cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout+c.waitTopic)
	defer cancel()
	if err := c.probe(ctx); err != nil {
		return nil, err
	}
	cl, err := c.client()
	if err != nil {
		return nil, err
	}
	if err := cl.discover(ctx); err != nil {
		cl.close()
		return nil, err
	}
	return cl, nil
}

func (cl *cluster) discover(ctx context.Context) error {
	if cl.cfg.topics != nil {
		if err := cl.findTopics(ctx); err != nil {
			return err
		}
	}
	if !cl.absent {
		if err := cl.findTopic(ctx); err != nil {
			return err
		}
	}
	if cl.absent {
		return nil // no leader can be asked
	}
	if err := cl.queryBrokers(ctx); err != nil {
		return err
	}
	base := cl.partitions()
	for i := range cl.otherTopics {
		cl.otherTopics[i].base = base
		base += cl.otherTopics[i].partitions
	}
	cl.readSettings(ctx)
	cl.readBrokerSettings(ctx)
	return nil
}

// findTopic waits until the topic exists and its partitions have leaders. A broker may
// create it when something is to be produced. A topic that is only read stays missing:
// an empty one would hide a mistyped name.
func (cl *cluster) findTopic(ctx context.Context) error {
	c := cl.cfg
	doing := "find the topic " + c.topic
	began := time.Now()
	var missed, seen time.Time // when the topic was first missing; when it was first there
	for {
		meta, err := cl.metadata(ctx, c.topic, !missed.IsZero() && !c.onlyReads())
		if err != nil {
			return c.explain(doing, err)
		}
		t := &meta.Topics[0]
		err = kerr.ErrorForCode(t.ErrorCode)
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition) && missed.IsZero() && c.create != nil:
			if err := cl.createTopic(ctx, *c.create); err != nil {
				return err
			}
			missed, cl.createdBy = time.Now(), "carronade"
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && missed.IsZero():
			missed = time.Now()
			if !c.onlyReads() {
				cl.createdBy = byBroker
			}
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && c.waitTopic > 0:
			if !c.pauseForTopic(ctx, began) && ctx.Err() == nil {
				cl.absent, cl.createdBy = true, ""
				return nil
			}
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && time.Since(missed) > creationWait:
			return c.missingTopic(err)
		case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.LeaderNotAvailable):
		case errors.Is(err, kerr.TopicAuthorizationFailed):
			return c.forbidden(doing, c.topic, err, c.seeRights()...)
		case err != nil && kerr.IsRetriable(err):
		case err != nil:
			return c.explain(doing, err)
		default:
			if seen.IsZero() {
				seen = time.Now()
			}
			leaderless := cl.applyMetadata(meta)
			if err := cl.checkRights(t.AuthorizedOperations); err != nil {
				return err
			}
			if len(leaderless) == 0 || time.Since(seen) > leaderWait {
				if n := len(leaderless); n == cl.partitions() {
					return c.explain(doing, fmt.Errorf("none of its %d partitions has a leader", n))
				} else if n > 0 {
					cl.warnings = append(cl.warnings, fmt.Sprintf("%d of %d partitions of %s have no leader, such as partition %d",
						n, cl.partitions(), c.topic, leaderless[0]))
				}
				if cl.createdBy == byBroker {
					cl.warnings = append(cl.warnings, fmt.Sprintf("the broker created the topic %s with %s: check the name, or use --create-topic to choose them",
						c.topic, units.Plural(cl.partitions(), "partition")))
				}
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return c.explain(doing, fmt.Errorf("not found after %s: %w", time.Since(began).Round(time.Millisecond), cmp.Or(err, ctx.Err())))
		case <-time.After(metadataPause):
		}
	}
}

// metadata asks for the brokers and one topic.
func (cl *cluster) metadata(ctx context.Context, topic string, create bool) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, t)
	req.AllowAutoTopicCreation = create
	req.IncludeTopicAuthorizedOperations = true
	meta, err := req.RequestWith(ctx, cl.control)
	if err != nil {
		return nil, fmt.Errorf("ask for metadata: %w", err)
	}
	if len(meta.Topics) != 1 {
		return nil, fmt.Errorf("ask for metadata: the answer has %d topics, not the one asked for", len(meta.Topics))
	}
	return meta, nil
}

// applyMetadata takes over the brokers, leaders and replicas from metadata, and returns
// the partitions without a leader.
func (cl *cluster) applyMetadata(meta *kmsg.MetadataResponse) (leaderless []int32) {
	if meta.ClusterID != nil {
		cl.id = *meta.ClusterID
	}
	cl.controller = meta.ControllerID
	cl.brokers = cl.brokers[:0]
	for _, b := range meta.Brokers {
		n := broker{id: b.NodeID, addr: joinAddr(b.Host, b.Port), produceMax: -1, fetchMax: -1}
		if b.Rack != nil {
			n.rack = *b.Rack
		}
		cl.brokers = append(cl.brokers, n)
	}
	slices.SortFunc(cl.brokers, func(a, b broker) int { return cmp.Compare(a.id, b.id) })
	t := &meta.Topics[0]
	cl.topicID = t.TopicID
	cl.leaders = make([]int32, len(t.Partitions))
	cl.replicas = make([]int, len(t.Partitions))
	for _, p := range t.Partitions {
		// Partitions are numbered from 0 without a gap; another number makes no sense.
		if p.Partition < 0 || int(p.Partition) >= len(cl.leaders) {
			continue
		}
		cl.leaders[p.Partition] = p.Leader
		cl.replicas[p.Partition] = len(p.Replicas)
		if p.Leader < 0 {
			leaderless = append(leaderless, p.Partition)
		}
	}
	slices.Sort(leaderless)
	return leaderless
}

// checkRights reports a missing permission early, where the broker lists the
// permissions (from Metadata v8 on; KIP-430).
func (cl *cluster) checkRights(ops int32) error {
	c := cl.cfg
	switch right := c.missingRight(ops); right {
	case aclWrite:
		return c.forbidden("produce to the topic "+c.topic, c.topic, kerr.TopicAuthorizationFailed, right)
	case aclRead:
		return c.forbidden("consume from the topic "+c.topic, c.topic, kerr.TopicAuthorizationFailed, right)
	}
	return nil
}

// createTopic creates a topic. It returns nil if the topic exists already.
func (cl *cluster) createTopic(ctx context.Context, spec TopicSpec) error {
	err := CreateTopics(ctx, cl.control, []TopicSpec{spec}, cl.cfg.requestTimeout)[0]
	switch {
	case err == nil || errors.Is(err, kerr.TopicAlreadyExists):
		return nil
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return cl.cfg.forbidden("create the topic "+spec.Name, spec.Name, err, aclCreate)
	}
	return cl.cfg.explain("create the topic "+spec.Name, err)
}

// queryBrokers asks each broker for its API versions, over connections like those of
// the engines. So a broker that advertises an address which cannot be reached from
// here is found now.
func (cl *cluster) queryBrokers(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, openTimeout/2)
	defer cancel()
	cl.contactBrokers(limited)
	var first *broker
	unreachable, leaders := 0, map[int32]bool{}
	for _, l := range cl.leaders {
		leaders[l] = true
	}
	for i := range cl.brokers {
		b := &cl.brokers[i]
		if b.err == nil || !leaders[b.id] {
			continue
		}
		if errors.As(b.err, new(*conn.NotAllowedError)) {
			return cl.cfg.explain(fmt.Sprintf("connect to broker %d at %s, the address that it advertises", b.id, b.addr), b.err)
		}
		if errors.Is(b.err, errTooOld) {
			return cl.cfg.explain(fmt.Sprintf("agree on API versions with broker %d at %s", b.id, b.addr), b.err)
		}
		unreachable++
		if first == nil {
			first = b
		}
	}
	if first == nil {
		return nil
	}
	led := 0
	for i := range cl.brokers {
		if leaders[cl.brokers[i].id] {
			led++
		}
	}
	where := fmt.Sprintf("broker %d at %s, the address that it advertises", first.id, first.addr)
	if unreachable == led {
		return cl.cfg.explain("connect to "+where, first.err)
	}
	cl.warnings = append(cl.warnings, fmt.Sprintf("%s cannot be reached: %v", where, first.err))
	return nil
}

// contactBrokers asks each broker for its versions at the address that it advertises.
func (cl *cluster) contactBrokers(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range cl.brokers {
		b := &cl.brokers[i]
		wg.Go(func() { b.err = cl.cfg.queryBroker(ctx, b) })
	}
	wg.Wait()
}

// queryBroker asks one broker for its API versions.
func (c *config) queryBroker(ctx context.Context, b *broker) error {
	nc, err := c.security.Dial(ctx, b.addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	stop := conn.Interrupt(ctx, nc)
	defer stop()
	keys, err := askVersions(nc, c.clientID)
	if err != nil {
		return err
	}
	for _, k := range keys.ApiKeys {
		switch k.ApiKey {
		case int16(kmsg.Produce):
			b.produceMax = k.MaxVersion
		case int16(kmsg.Fetch):
			b.fetchMax = k.MaxVersion
		}
	}
	b.version = kversion.FromApiVersionsResponse(keys).VersionGuess()
	if c.engine == engineWire && (b.produceMax < 3 || b.fetchMax < 4) {
		return errTooOld
	}
	return nil
}

// askVersions asks a broker for its API versions. A broker that does not know v3
// answers in v0 with UNSUPPORTED_VERSION (KIP-511); then v0 is used.
func askVersions(nc net.Conn, clientID string) (*kmsg.ApiVersionsResponse, error) {
	for _, version := range []int16{3, 0} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = version
		req.ClientSoftwareName = "carronade"
		req.ClientSoftwareVersion = "1"
		answer, err := roundTrip(nc, clientID, req)
		if err != nil {
			return nil, fmt.Errorf("ask for the API versions: %w", err)
		}
		keys := answer.(*kmsg.ApiVersionsResponse)
		err = kerr.ErrorForCode(keys.ErrorCode)
		switch {
		case version == 3 && errors.Is(err, kerr.UnsupportedVersion):
			continue
		case err != nil:
			return nil, fmt.Errorf("ask for the API versions: %w", err)
		}
		return keys, nil
	}
	return nil, errors.New("ask for the API versions: the broker answers neither v3 nor v0")
}

// readSettings reads the topic's settings for the report. It ignores errors: the user
// may lack the permission.
func (cl *cluster) readSettings(ctx context.Context) {
	rs, err := cl.admin.DescribeTopicConfigs(ctx, cl.cfg.topic)
	if err != nil || len(rs) != 1 || rs[0].Err != nil {
		return
	}
	cl.settings = TopicSettings(rs[0].Configs)
}

// recompresses reports whether brokers compress the batches again, because the topic's
// codec (compression.type) differs from the producer's. Of an unknown codec, "", it
// returns false.
func (c *config) recompresses(codec string) bool {
	switch codec {
	case "", "producer":
		return false
	case "uncompressed":
		return c.compression != "none"
	default:
		return codec != c.compression
	}
}

// reach returns a cluster of which a broker has answered, and of which nothing is known.
func (c *config) reach(ctx context.Context) (*cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := c.probe(ctx); err != nil {
		return nil, err
	}
	cl, err := c.client()
	if err != nil {
		return nil, err
	}
	if err := cl.control.Ping(ctx); err != nil {
		cl.close()
		return nil, err
	}
	return cl, nil
}
