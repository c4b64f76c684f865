package cluster

import (
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
	// timePerTopic is how long brokers may take for each further topic.
	timePerTopic = 20 * time.Millisecond
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
	Brokers          []Broker              // by id
	Topics           []TopicLogs           // that are produced to or read
	Leaders          []int32               // by log; -1 none
	leadersAfter     []int32               // the same after the run; nil: not asked for, or no answer
	Replicas         []int                 // by log
	Settings         map[string]string     // of the first topic
	brokerSettings   map[string]string     // of the brokers: those that are not defaults
	brokersDescribed int                   // number of brokers that returned their configuration
	CreatedBy        string                // who created topics: "" (they existed), "carronade", byBroker
	missing          []string              // the topics that were created, or were to be
	byName           map[string]*TopicLogs // Topics
	byID             map[[16]byte]*TopicLogs
	Absent           bool // a topic did not appear within the time of wait-topic
	Warnings         []string
}

// A TopicLogs is a topic whose partitions are the logs from Base on: logs are numbered through all topics.
type TopicLogs struct {
	Name       string
	ID         [16]byte // zero before Kafka 2.8
	Base       int
	Partitions int
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

// Partitions is the number of partitions that all topics together had at Open.
func (cl *Cluster) Partitions() int { return len(cl.Leaders) }

// Close closes the client.
func (cl *Cluster) Close() { cl.Control.Close() }

// DeleteCreated deletes the topics that were created, if the run is to.
func (cl *Cluster) DeleteCreated() error {
	if !cl.Config.Delete || len(cl.missing) == 0 || cl.CreatedBy == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cl.Config.openTimeout())
	defer cancel()
	var first error
	for names := range slices.Chunk(cl.missing, createAtOnce) {
		answers, err := cl.Admin.DeleteTopics(ctx, names...)
		for _, a := range answers.Sorted() {
			if a.Err != nil && !errors.Is(a.Err, kerr.UnknownTopicOrPartition) && err == nil {
				err = fmt.Errorf("%s: %w", a.Topic, a.Err)
			}
		}
		if err != nil && first == nil {
			first = cl.Config.Explain("delete the topics that were created", err)
		}
	}
	return first
}

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

// Connect finds the cluster and the topics, and creates topics if asked to. It takes
// ten seconds at most, plus the time of wait-topic, and for several topics timePerTopic for each.
func (c *Config) Connect(ctx context.Context) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, c.openTimeout()+c.WaitTopic)
	defer cancel()
	if err := c.probe(ctx); err != nil {
		return nil, err
	}
	cl, err := c.Client()
	if err != nil {
		return nil, err
	}
	if err := cl.discover(ctx); err != nil {
		if left := cl.DeleteCreated(); left != nil {
			err = errors.Join(err, left)
		}
		cl.Close()
		return nil, err
	}
	return cl, nil
}

// openTimeout is how long it may take to create all topics, or to delete them.
func (c *Config) openTimeout() time.Duration {
	return OpenTimeout + time.Duration(len(c.Names)-1)*timePerTopic
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
	cl.ReadSettings(ctx)
	cl.readBrokerSettings(ctx)
	return nil
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
