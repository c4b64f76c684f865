package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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
	// MetadataPause is the time between two looks at what is being created.
	MetadataPause = 100 * time.Millisecond
	// creationWait is how long a broker may take to create a topic automatically, or to
	// learn of a new one. After that the topic is assumed to be missing.
	creationWait = 3 * time.Second
	// leaderWait is how long partitions of a topic may be without a leader
	// before the run begins without them.
	leaderWait = 4 * time.Second
)

// ByBroker is the value of createdBy for a topic that the broker created because it was
// asked for (auto.create.topics.enable).
const ByBroker = "the broker"

// A Broker is one node of the cluster.
type Broker struct {
	ID      int32
	Addr    string // as the cluster advertises it
	rack    string
	Version string // guessed from its API versions: "v3.7"; "" unknown
	Err     error  // why it could not be reached
}

// A Cluster is what Open found, and a client for the rare requests. Its leaders and
// brokers are as of Open; the engines follow later changes themselves.
type Cluster struct {
	Config  *Config
	Control *kgo.Client // for metadata, offsets and other rare requests
	Admin   *kadm.Client

	ID               string
	controller       int32
	Brokers          []Broker // by id
	TopicID          [16]byte // zero before Kafka 2.8
	Leaders          []int32  // by partition; -1 none
	leadersAfter     []int32  // the same after the run; nil: not asked for, or no answer
	Replicas         []int    // by partition
	Settings         map[string]string
	brokerSettings   map[string]string // of the brokers: those that are not defaults
	brokersDescribed int               // number of brokers that returned their configuration
	CreatedBy        string            // who created the topic: "" (it existed), "carronade", byBroker
	otherTopics      []otherTopic      // further topics that are consumed, by name
	Absent           bool              // the topic did not appear within the time of wait-topic
	Warnings         []string
}

// An otherTopic is a topic that is consumed in addition to the first. Its partitions
// are the logs of the source from base on.
type otherTopic struct {
	name       string
	base       int
	partitions int
}

// New returns a cluster that a client has reached, of which nothing is known.
func New(c *Config, control *kgo.Client) *Cluster {
	return &Cluster{Config: c, Control: control, Admin: kadm.NewClient(control)}
}

// Client returns a cluster with a client for rare requests, which has no connection yet.
func (c *Config) Client() (*Cluster, error) {
	control, err := kgo.NewClient(c.ClientOptions()...)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return New(c, control), nil
}

// Partitions is the number of partitions that the topic had at Open.
func (cl *Cluster) Partitions() int { return len(cl.Leaders) }

// Close closes the client.
func (cl *Cluster) Close() { cl.Control.Close() }

// ClientOptions returns the settings of every franz-go client here.
func (c *Config) ClientOptions() []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(c.seeds()...),
		kgo.ClientID(c.ClientID),
		kgo.DisableClientMetrics(), // their traffic would be measured, too
		// The longest that the library allows. By default it closes connections that are
		// used once, such as for a group's coordinator, after half a minute, and they
		// would count as lost.
		kgo.ConnIdleTimeout(15 * time.Minute),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.RetryTimeout(c.RequestTimeout),
		// The time for an answer beyond the timeout that a request gives the broker.
		kgo.RequestTimeoutOverhead(min(max(c.RequestTimeout, 100*time.Millisecond), 10*time.Second)),
	}, c.Security.kgoOpts()...)
}

// Connect finds the cluster and the topic, and creates the topic if asked to. It takes
// ten seconds at most, plus the time of wait-topic.
func (c *Config) Connect(ctx context.Context) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout+c.WaitTopic)
	defer cancel()
	if err := c.probe(ctx); err != nil {
		return nil, err
	}
	cl, err := c.Client()
	if err != nil {
		return nil, err
	}
	if err := cl.discover(ctx); err != nil {
		cl.Close()
		return nil, err
	}
	return cl, nil
}

func (cl *Cluster) discover(ctx context.Context) error {
	if cl.Config.Topics != nil {
		if err := cl.findTopics(ctx); err != nil {
			return err
		}
	}
	if !cl.Absent {
		if err := cl.findTopic(ctx); err != nil {
			return err
		}
	}
	if cl.Absent {
		return nil // no leader can be asked
	}
	if err := cl.queryBrokers(ctx); err != nil {
		return err
	}
	base := cl.Partitions()
	for i := range cl.otherTopics {
		cl.otherTopics[i].base = base
		base += cl.otherTopics[i].partitions
	}
	cl.ReadSettings(ctx)
	cl.readBrokerSettings(ctx)
	return nil
}

// findTopic waits until the topic exists and its partitions have leaders. A broker may
// create it when something is to be produced. A topic that is only read stays missing:
// an empty one would hide a mistyped name.
func (cl *Cluster) findTopic(ctx context.Context) error {
	c := cl.Config
	doing := "find the topic " + c.Topic
	began := time.Now()
	var missed, seen time.Time // when the topic was first missing; when it was first there
	for {
		meta, err := cl.Metadata(ctx, c.Topic, !missed.IsZero() && !c.OnlyReads())
		if err != nil {
			return c.Explain(doing, err)
		}
		t := &meta.Topics[0]
		err = kerr.ErrorForCode(t.ErrorCode)
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition) && missed.IsZero() && c.Create != nil:
			if err := cl.createTopic(ctx, *c.Create); err != nil {
				return err
			}
			missed, cl.CreatedBy = time.Now(), "carronade"
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && missed.IsZero():
			missed = time.Now()
			if !c.OnlyReads() {
				cl.CreatedBy = ByBroker
			}
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && c.WaitTopic > 0:
			if !c.pauseForTopic(ctx, began) && ctx.Err() == nil {
				cl.Absent, cl.CreatedBy = true, ""
				return nil
			}
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && time.Since(missed) > creationWait:
			return c.MissingTopic(err)
		case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.LeaderNotAvailable):
		case errors.Is(err, kerr.TopicAuthorizationFailed):
			return c.forbidden(doing, c.Topic, err, c.SeeRights()...)
		case err != nil && kerr.IsRetriable(err):
		case err != nil:
			return c.Explain(doing, err)
		default:
			if seen.IsZero() {
				seen = time.Now()
			}
			leaderless := cl.ApplyMetadata(meta)
			if err := cl.checkRights(t.AuthorizedOperations); err != nil {
				return err
			}
			if len(leaderless) == 0 || time.Since(seen) > leaderWait {
				if n := len(leaderless); n == cl.Partitions() {
					return c.Explain(doing, fmt.Errorf("none of its %d partitions has a leader", n))
				} else if n > 0 {
					cl.Warnings = append(cl.Warnings, fmt.Sprintf("%d of %d partitions of %s have no leader, such as partition %d",
						n, cl.Partitions(), c.Topic, leaderless[0]))
				}
				if cl.CreatedBy == ByBroker {
					cl.Warnings = append(cl.Warnings, fmt.Sprintf("the broker created the topic %s with %s: check the name, or use --create-topic to choose them",
						c.Topic, units.Plural(cl.Partitions(), "partition")))
				}
				return nil
			}
		}
		if ended := Pause(ctx, MetadataPause); ended != nil {
			return c.Explain(doing, fmt.Errorf("not found after %s: %w", time.Since(began).Round(time.Millisecond), cmp.Or(err, ended)))
		}
	}
}

// Metadata asks for the brokers and one topic.
func (cl *Cluster) Metadata(ctx context.Context, topic string, create bool) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = new(topic)
	req.Topics = append(req.Topics, t)
	req.AllowAutoTopicCreation = create
	req.IncludeTopicAuthorizedOperations = true
	meta, err := req.RequestWith(ctx, cl.Control)
	if err != nil {
		return nil, fmt.Errorf("ask for metadata: %w", err)
	}
	if len(meta.Topics) != 1 {
		return nil, fmt.Errorf("ask for metadata: the answer has %d topics, not the one asked for", len(meta.Topics))
	}
	return meta, nil
}

// ApplyMetadata takes over the brokers, leaders and replicas from metadata, and returns
// the partitions without a leader.
func (cl *Cluster) ApplyMetadata(meta *kmsg.MetadataResponse) (leaderless []int32) {
	if meta.ClusterID != nil {
		cl.ID = *meta.ClusterID
	}
	cl.controller = meta.ControllerID
	cl.Brokers = cl.Brokers[:0]
	for _, b := range meta.Brokers {
		n := Broker{ID: b.NodeID, Addr: JoinAddr(b.Host, b.Port)}
		if b.Rack != nil {
			n.rack = *b.Rack
		}
		cl.Brokers = append(cl.Brokers, n)
	}
	slices.SortFunc(cl.Brokers, func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	t := &meta.Topics[0]
	cl.TopicID = t.TopicID
	cl.Leaders = make([]int32, len(t.Partitions))
	cl.Replicas = make([]int, len(t.Partitions))
	for _, p := range t.Partitions {
		// Partitions are numbered from 0 without a gap; another number makes no sense.
		if p.Partition < 0 || int(p.Partition) >= len(cl.Leaders) {
			continue
		}
		cl.Leaders[p.Partition] = p.Leader
		cl.Replicas[p.Partition] = len(p.Replicas)
		if p.Leader < 0 {
			leaderless = append(leaderless, p.Partition)
		}
	}
	slices.Sort(leaderless)
	return leaderless
}

// checkRights reports a missing permission early, where the broker lists the
// permissions (from Metadata v8 on; KIP-430).
func (cl *Cluster) checkRights(ops int32) error {
	c := cl.Config
	switch right := c.MissingRight(ops); right {
	case aclWrite:
		return c.forbidden("produce to the topic "+c.Topic, c.Topic, kerr.TopicAuthorizationFailed, right)
	case aclRead:
		return c.forbidden("consume from the topic "+c.Topic, c.Topic, kerr.TopicAuthorizationFailed, right)
	}
	return nil
}

// createTopic creates a topic. It returns nil if the topic exists already.
func (cl *Cluster) createTopic(ctx context.Context, spec TopicSpec) error {
	err := CreateTopics(ctx, cl.Control, []TopicSpec{spec}, cl.Config.RequestTimeout)[0]
	switch {
	case err == nil || errors.Is(err, kerr.TopicAlreadyExists):
		return nil
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return cl.Config.forbidden("create the topic "+spec.Name, spec.Name, err, aclCreate)
	}
	return cl.Config.Explain("create the topic "+spec.Name, err)
}

// queryBrokers asks each broker for its API versions, over connections like those of
// the engines. So a broker that advertises an address which cannot be reached from
// here is found now.
func (cl *Cluster) queryBrokers(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, OpenTimeout/2)
	defer cancel()
	cl.ContactBrokers(limited)
	var first *Broker
	unreachable, leaders := 0, map[int32]bool{}
	for _, l := range cl.Leaders {
		leaders[l] = true
	}
	for i := range cl.Brokers {
		b := &cl.Brokers[i]
		if b.Err == nil || !leaders[b.ID] {
			continue
		}
		if conn.IsNotAllowed(b.Err) {
			return cl.Config.Explain(fmt.Sprintf("connect to broker %d at %s, the address that it advertises", b.ID, b.Addr), b.Err)
		}
		if isTooOld(b.Err) {
			return cl.Config.Explain(fmt.Sprintf("agree on API versions with broker %d at %s", b.ID, b.Addr), b.Err)
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
	for i := range cl.Brokers {
		if leaders[cl.Brokers[i].ID] {
			led++
		}
	}
	where := fmt.Sprintf("broker %d at %s, the address that it advertises", first.ID, first.Addr)
	if unreachable == led {
		return cl.Config.Explain("connect to "+where, first.Err)
	}
	cl.Warnings = append(cl.Warnings, fmt.Sprintf("%s cannot be reached: %v", where, first.Err))
	return nil
}

// ContactBrokers asks each broker for its versions at the address that it advertises.
func (cl *Cluster) ContactBrokers(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range cl.Brokers {
		b := &cl.Brokers[i]
		wg.Go(func() { b.Err = cl.Config.queryBroker(ctx, b) })
	}
	wg.Wait()
}

// queryBroker asks one broker for its API versions.
func (c *Config) queryBroker(ctx context.Context, b *Broker) error {
	nc, err := c.Security.Dial(ctx, b.Addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	stop := conn.Interrupt(ctx, nc)
	defer stop()
	keys, err := askVersions(nc, c.ClientID, 3, 0)
	if err != nil {
		return err
	}
	b.Version = kversion.FromApiVersionsResponse(keys).VersionGuess()
	if c.Engine == EngineWire && tooOld(keys) {
		return ErrTooOld
	}
	if c.Compression == "zstd" && highest(keys, kmsg.Produce) < 7 {
		return errNoZstd
	}
	return nil
}

// askVersions asks a broker for its API versions, in the first of the given versions that it knows. A
// broker that does not know v3 answers in v0 with UNSUPPORTED_VERSION (KIP-511); every broker knows v0.
func askVersions(nc net.Conn, clientID string, versions ...int16) (*kmsg.ApiVersionsResponse, error) {
	var err error
	for _, version := range versions {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = version
		req.ClientSoftwareName = "carronade"
		req.ClientSoftwareVersion = "1"
		var answer kmsg.Response
		if answer, err = RoundTrip(nc, clientID, req); err != nil {
			break
		}
		keys := answer.(*kmsg.ApiVersionsResponse)
		if err = kerr.ErrorForCode(keys.ErrorCode); err == nil {
			return keys, nil
		}
		if !errors.Is(err, kerr.UnsupportedVersion) {
			break
		}
	}
	return nil, fmt.Errorf("ask for the API versions: %w", err)
}

// tooOld reports whether a broker does not know the first versions of Produce (v3) and Fetch (v4) that
// carry record batches v2.
func tooOld(keys *kmsg.ApiVersionsResponse) bool {
	return highest(keys, kmsg.Produce) < 3 || highest(keys, kmsg.Fetch) < 4
}

// highest is the highest version of a request that a broker knows; the largest number there is if the
// broker does not list the request.
func highest(keys *kmsg.ApiVersionsResponse, key kmsg.Key) int16 {
	for _, k := range keys.ApiKeys {
		if k.ApiKey == int16(key) {
			return k.MaxVersion
		}
	}
	return math.MaxInt16
}

// ReadSettings reads the topic's settings for the report. It ignores errors: the user
// may lack the permission.
func (cl *Cluster) ReadSettings(ctx context.Context) {
	rs, err := cl.Admin.DescribeTopicConfigs(ctx, cl.Config.Topic)
	if err != nil || len(rs) != 1 || rs[0].Err != nil {
		return
	}
	cl.Settings = TopicSettings(rs[0].Configs)
}

// Recompresses reports whether brokers compress the batches again, because the topic's
// codec (compression.type) differs from the producer's. Of an unknown codec, "", it
// returns false.
func (c *Config) Recompresses(codec string) bool {
	switch codec {
	case "", "producer":
		return false
	case "uncompressed":
		return c.Compression != "none"
	default:
		return codec != c.Compression
	}
}

// Reach returns a cluster of which a broker has answered, and of which nothing is known.
func (c *Config) Reach(ctx context.Context) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	if err := c.probe(ctx); err != nil {
		return nil, err
	}
	cl, err := c.Client()
	if err != nil {
		return nil, err
	}
	if err := cl.Control.Ping(ctx); err != nil {
		cl.Close()
		return nil, err
	}
	return cl, nil
}

// Pause waits for a time. It returns the context's error if that ends before.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// AwaitCoordinator asks a coordinator until it answers, or for the request timeout: a cluster that
// has just started may have none. doing names what is asked, for the error.
func (c *Config) AwaitCoordinator(ctx context.Context, doing string, ask func() error) error {
	for deadline := time.Now().Add(c.RequestTimeout); ; {
		err := ask()
		switch {
		case err == nil:
			return nil
		case !kerr.IsRetriable(err) || time.Now().After(deadline):
			return c.Explain(doing, err)
		}
		if err := Pause(ctx, MetadataPause); err != nil {
			return err
		}
	}
}
