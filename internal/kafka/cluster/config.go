package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/payload"
	"carronade/protocol"
	"carronade/units"
)

// The two engines.
const (
	EngineWire   = "wire"   // our own connections and pre-encoded batches
	EngineClient = "client" // franz-go's record path
)

// The operations.
const (
	OpProduce   = "produce"
	OpConsume   = "consume"
	OpRoundTrip = "roundtrip"
	OpRead      = "read"
	OpPipeline  = "pipeline"
)

const (
	// DefaultPort is the port of an address without one.
	DefaultPort  = "9092"
	defaultTopic = "carronade"
	// AcksAll is the value of acks in a produce request that waits for all
	// in-sync replicas.
	AcksAll = -1
)

// A Config is a parsed and checked URL with its options. After ParseConfig only
// Connect and Reach change it: they note the seeds that answered. All clients of a run share one.
type Config struct {
	Seeds    []string // host:port, as given
	answered []string // those that had answered when the cluster was reached
	// Topic is the first of Names, the topics of the target. All that a run does without a topic's name
	// concerns all of them.
	Topic     string
	Names     []string
	topicText string // that names them in the target
	Op        string
	// ClientConfig is the properties file of a Java client; "" if none was given.
	ClientConfig string
	Engine       string
	Clients      int  // independent clients, at least 1
	PerTopic     bool // each topic has as many, which send to it alone
	Portion      load.Portion
	Room         protocol.Room // what the run may take of the machine

	// Producing.
	Acks            int16  // 0, 1, or -1 for all
	Compression     string // none, gzip, snappy, lz4, zstd
	BatchSize       int    // bytes of a record batch, uncompressed
	MaxRequest      int    // bytes of a produce request; never below BatchSize
	LimitRequest    bool   // MaxRequest was set explicitly, so the client engine keeps to it, too
	Linger          time.Duration
	MaxInFlight     int // batches in flight per lane
	concurrency     int // closed loop; then it bounds what is in flight
	BatchEvents     int // 0: as many as fit
	Idempotent      bool
	Partitioner     Partitioner
	TopicWeights    []float64 // of Names; nil: equal
	RequestTimeout  time.Duration
	DeliveryTimeout time.Duration
	Txn             Transactions

	Events            payload.Spec // how events are generated
	Pool              int64        // bytes of encoded batches a lane keeps
	Fresh             bool         // generate new bytes for every event
	Verify, RoundTrip bool         // stamp events where they have room
	Compacted         bool         // a verified run in a topic that keeps the last event of each key
	RunID             uint64

	// Consuming.
	Group       string
	Groups      int            // that read what a round trip sends, instead of one reader; 0: none
	Members     int            // of each of Groups, for each topic
	Topics      *regexp.Regexp // of topic names, instead of Topic; nil: none
	WaitTopic   time.Duration  // how long to wait for a missing topic; 0: it is an error
	ShareGroup  string         // joined instead of a group: brokers distribute its records
	Assigned    bool           // brokers assign the partitions of the group (KIP-848)
	From        Position
	Decode      bool
	UntilEnd    bool
	Recycle     bool   // read the items again and again
	ItemsIn     string // file with the list of records to read; "": the whole topic
	CheckValues string // what values must be; "": anything
	ItemsOut    string // file for the list of those acked or read; "": none
	Stage       load.StagePlan
	ReadFrom    *Location // where a pipeline reads; nil: where it produces
	Fetch       Fetching

	Create   *TopicSpec
	Delete   bool // delete the topics that the run created
	Security *Security
	ClientID string
	Rack     string

	Warnings []string
	Logf     func(format string, args ...any)
	Happened func(name string, began time.Time, length time.Duration) // see protocol.Spec
}

// Fetching bounds fetch requests.
type Fetching struct {
	MinBytes     int32
	MaxBytes     int32         // of a response
	MaxPartition int32         // of one partition in a response
	MaxWait      time.Duration // how long the broker waits for MinBytes
	Committed    bool          // isolation level: only committed transactions
}

// Transactions describes how a transactional producer groups its records.
type Transactions struct {
	On       bool
	ID       string        // prefix of the transactional ids; each client adds its number
	Interval time.Duration // between commits
	Abort    float64       // share of transactions that are aborted
}

// ParseConfig reads a spec. It opens no connection; it does read files and the
// environment, where options refer to them.
func ParseConfig(s protocol.Spec) (*Config, error) {
	v, props, warnings, err := presetValues(s)
	if err != nil {
		return nil, err
	}
	c := newConfig(&s, v, warnings)
	c.LimitRequest = s.Given["max-request"] || props["max.request.size"] != "" || v.Has("profile")
	if err := c.parse(&s, v, props); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.warnUnused(s)
	return c, nil
}

// newConfig takes over the settings that need no parsing.
func newConfig(s *protocol.Spec, v protocol.Values, warnings []string) *Config {
	c := &Config{
		Op:          s.Op,
		Engine:      v.String("engine"),
		Clients:     max(1, s.Clients, v.Int("clients")),
		Portion:     s.Portion,
		Room:        s.Room,
		Compression: v.String("compression"),
		Idempotent:  v.Bool("idempotent"),
		Linger:      s.Linger,
		MaxInFlight: s.MaxInFlight,
		concurrency: s.Concurrency,
		BatchEvents: s.BatchEvents,

		Events: payload.Spec{
			Seed: s.Seed, Size: v.String("size"), Payload: v.String("payload"), Key: v.String("key"), Headers: v.List("header"),
			Pooled: !v.Bool("fresh"),
		},
		Pool:      v.Size("pool"),
		Fresh:     v.Bool("fresh"),
		Verify:    s.Verify,
		RoundTrip: s.RoundTrip || s.Op == OpRoundTrip,
		RunID:     s.RunID,

		ClientConfig: v.String("client-config"),

		Group:       v.String("group"),
		Groups:      s.Groups,
		Members:     max(1, s.Members),
		ShareGroup:  v.String("share-group"),
		Assigned:    v.String("group-protocol") == "consumer",
		WaitTopic:   v.Duration("wait-topic"),
		Decode:      v.Bool("decode"),
		UntilEnd:    v.Bool("until-end"),
		Recycle:     v.Bool("recycle"),
		ItemsIn:     v.String("items-in"),
		ItemsOut:    v.String("items-out"),
		CheckValues: v.String("check-values"),
		ClientID:    cmp.Or(v.String("client-id"), "carronade"),
		Delete:      v.Bool("delete-topics"),
		Rack:        v.String("rack"),

		RequestTimeout:  v.Duration("request-timeout"),
		DeliveryTimeout: v.Duration("delivery-timeout"),
		Warnings:        warnings,
		Logf:            s.Logf,
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	if c.Happened = s.Happened; c.Happened == nil {
		c.Happened = func(string, time.Time, time.Duration) {}
	}
	c.Op = cmp.Or(c.Op, OpProduce)
	return c
}

// OnlyReads reports whether nothing is produced.
func (c *Config) OnlyReads() bool { return c.Op == OpConsume || c.Op == OpRead }

// parse parses the other settings, and returns an error for the first wrong one.
func (c *Config) parse(s *protocol.Spec, v protocol.Values, props map[string]string) (err error) {
	if err := c.parseServers(s.URL, v, props); err != nil {
		return err
	}
	if err := c.parseClients(s, v); err != nil {
		return err
	}
	if c.Acks, err = ParseAcks(v.String("acks")); err != nil {
		return err
	}
	if c.Partitioner, err = parsePartitioner(v.String("partitioner")); err != nil {
		return err
	}
	if c.TopicWeights, err = parseTopicWeights(v.String("topic-weights"), len(c.Names)); err != nil {
		return err
	}
	if c.From, err = parsePosition(v.String("from")); err != nil {
		return err
	}
	if c.ShareGroup != "" && s.Given["from"] {
		return &protocol.Error{
			Doing: "read the options", Err: fmt.Errorf("a share group ignores --from: its setting share.auto.offset.reset decides where it starts"),
			Hint: "leave out --from, and set share.auto.offset.reset",
		}
	}
	if err := c.parseStage(v); err != nil {
		return err
	}
	if err := c.parseSizes(v); err != nil {
		return err
	}
	if !c.OnlyReads() {
		// Only to report errors in them before connecting to a broker.
		if _, err := payload.New(c.Events); err != nil {
			return &protocol.Error{Doing: "read --" + payload.SettingOf(err), Err: err, Hint: "carronade help events lists the forms"}
		}
	}
	if err := c.parseTopics(v); err != nil {
		return err
	}
	if err := c.parseTransactions(v); err != nil {
		return err
	}
	if c.Security, err = parseSecurity(v, props); err != nil {
		return err
	}
	c.Security.clientID = c.ClientID
	return nil
}

// parseServers reads the seed brokers and the topic.
func (c *Config) parseServers(u *url.URL, v protocol.Values, props map[string]string) (err error) {
	if c.Seeds, c.Names, c.topicText, err = parseTarget(u, v); err != nil {
		return err
	}
	c.Topic = c.Names[0]
	if len(c.Seeds) == 0 {
		if c.Seeds, err = parseSeeds(props["bootstrap.servers"]); err != nil {
			return fmt.Errorf("read the property bootstrap.servers: %w", err)
		}
	}
	if len(c.Seeds) == 0 {
		return &protocol.Error{
			Doing: "read the target", Err: fmt.Errorf("no broker address"),
			Hint: "type kafka://host:9092/topic, or set bootstrap.servers in --client-config",
		}
	}
	return nil
}

// parseClients reads how many clients each topic has.
func (c *Config) parseClients(s *protocol.Spec, v protocol.Values) error {
	if !v.Has("clients-per-topic") {
		return nil
	}
	each, topics := v.Int("clients-per-topic"), len(c.Names)
	wrong := func(err error, hint string) error {
		return &protocol.Error{Doing: "read the option clients-per-topic", Err: err, Hint: hint}
	}
	switch {
	case each < 1:
		return wrong(errors.New("0 clients send nothing"), "give at least 1, or leave it out")
	case each > mostClients/topics:
		return wrong(fmt.Errorf("%d for each of %s are more than %d clients", each, units.Plural(topics, "topic"), mostClients), "give fewer, or fewer topics")
	case s.Given["clients"] && v.Int("clients") != each*topics: // a report has both
		return wrong(fmt.Errorf("%d for each of %s are %d clients, and --clients says %d", each, units.Plural(topics, "topic"), each*topics, v.Int("clients")),
			"leave out --clients, or --clients-per-topic if each client is to send to all topics")
	}
	c.Clients, c.PerTopic = each, true
	return nil
}

// mostClients bounds the clients of a run.
const mostClients = 1 << 20

// parseTopics reads the expression for topic names, and how to create a topic.
func (c *Config) parseTopics(v protocol.Values) (err error) {
	if text := v.String("topics"); text != "" && !isCount(text) {
		if !c.OnlyReads() {
			return &protocol.Error{
				Doing: "read the option topics", Err: fmt.Errorf("%q is not a number, and only --op consume takes an expression", text),
				Hint: "give the number of the target's topics to use, such as 10",
			}
		}
		if c.Topics, err = regexp.Compile("^(?:" + text + ")$"); err != nil {
			return &protocol.Error{Doing: "read the option topics", Err: err, Hint: `give a regular expression, such as orders-\d+`}
		}
	}
	if text := v.String("create-topic"); text != "" {
		spec, err := ParseTopicSpec(text)
		if err != nil {
			return err
		}
		c.Create = &spec
	}
	if !v.Has("partitions") {
		return nil
	}
	n := v.Int("partitions")
	switch {
	case n < 1 || n > math.MaxInt32:
		return &protocol.Error{Doing: "read the option partitions", Err: fmt.Errorf("%d is not a number of partitions", n), Hint: "give at least 1"}
	case c.Create != nil && c.Create.Partitions > 0 && int(c.Create.Partitions) != n:
		return &protocol.Error{Doing: "read the option partitions", Err: fmt.Errorf("--partitions says %d, and --create-topic %d", n, c.Create.Partitions), Hint: "leave out one of them"}
	case c.Create == nil:
		c.Create = &TopicSpec{Replicas: -1}
	}
	c.Create.Partitions = int32(n)
	return nil
}

// warnUnused warns of settings that were given but that the chosen engine ignores.
func (c *Config) warnUnused(s protocol.Spec) {
	warn := func(format string, args ...any) { c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...)) }
	if c.Rack != "" && c.Engine == EngineWire && c.Op != OpProduce {
		warn("rack has no effect: the wire engine reads from leaders (the client engine reads from the nearest replica)")
	}
	if c.Engine != EngineClient || c.OnlyReads() {
		return
	}
	if c.Idempotent && s.Given["max-in-flight"] && c.MaxInFlight != 5 {
		warn("max-in-flight has no effect: with idempotence, franz-go keeps 5 requests in flight")
	}
	if c.BatchEvents > 0 && s.Given["batch-events"] {
		warn("batch-events is the number of events handed to the client at once: franz-go decides how they form batches and requests")
	}
}

// parseSizes reads the sizes in bytes. Each must fit the 32-bit fields of a request.
func (c *Config) parseSizes(v protocol.Values) error {
	const most = 1 << 30
	sized := func(name string) (int, error) {
		n := v.Size(name)
		if n < 0 || n > most {
			return 0, fmt.Errorf("%s %s: want at most 1GiB", name, v.String(name))
		}
		return int(n), nil
	}
	var err error
	if c.BatchSize, err = sized("batch-size"); err != nil {
		return err
	}
	if c.MaxRequest, err = sized("max-request"); err != nil {
		return err
	}
	c.MaxRequest = max(c.MaxRequest, c.BatchSize)
	fetchMax, err := sized("fetch-max")
	if err != nil {
		return err
	}
	partitionMax, err := sized("fetch-partition-max")
	if err != nil {
		return err
	}
	fetchMin, err := sized("fetch-min")
	if err != nil {
		return err
	}
	c.Fetch = Fetching{
		MinBytes:     int32(max(1, fetchMin)),
		MaxBytes:     int32(fetchMax),
		MaxPartition: int32(partitionMax),
		MaxWait:      v.Duration("fetch-wait"),
		Committed:    v.String("isolation") == "committed",
	}
	return nil
}

func (c *Config) parseTransactions(v protocol.Values) error {
	t := Transactions{On: v.Bool("transactions"), ID: v.String("transactional-id"), Interval: v.Duration("transaction-interval")}
	t.On = t.On || t.ID != ""
	t.ID = cmp.Or(t.ID, fmt.Sprintf("carronade-%08x", uint32(c.RunID)))
	t.Abort = v.Share("transaction-abort")
	c.Txn = t
	return nil
}

// check returns an error for settings that contradict each other, with a hint.
func (c *Config) check() error {
	contradiction := func(what, hint string) error {
		return &protocol.Error{Doing: "read the options", Err: fmt.Errorf("%s", what), Hint: hint}
	}
	if c.Txn.On && c.Engine != EngineClient {
		return contradiction("transactions need the client engine", "add --engine client, or leave out --transactions")
	}
	if c.Txn.On {
		// A transactional producer is idempotent by the protocol.
		c.Idempotent, c.Acks = true, AcksAll
	}
	if c.Txn.On && c.Txn.Interval <= 0 {
		return contradiction("transaction-interval must be above zero", "give --transaction-interval 100ms")
	}
	if c.Idempotent && c.Acks != AcksAll && !c.OnlyReads() {
		return contradiction("an idempotent producer needs acks=all", "add --acks all, or leave out --idempotent")
	}
	if c.Idempotent && c.MaxInFlight > 5 && c.concurrency == 0 && !c.OnlyReads() {
		return contradiction(fmt.Sprintf("an idempotent producer may have 5 batches in flight, not %d", c.MaxInFlight),
			"give --max-in-flight 5, or leave out --idempotent")
	}
	if c.Partitioner.Kind == "murmur2" && (c.Events.Key == "" || c.Events.Key == "none") {
		return contradiction("partitioner murmur2 needs keys", "add --key 'uniform(1000)', or choose --partitioner roundrobin")
	}
	if c.Group != "" && c.Engine != EngineClient {
		return contradiction("consumer groups need the client engine", "add --engine client, or leave out --group")
	}
	if len(c.Names) > 1 {
		switch {
		case c.Op == OpRead || c.Op == OpPipeline:
			return contradiction("the operation "+c.Op+" has one topic, and the target names several", "give one topic, such as kafka://host:9092/"+c.Topic)
		case c.ItemsOut != "":
			return contradiction("a list of records has one topic, and the target names several", "leave out --items-out, or give one topic")
		case c.Topics != nil:
			return contradiction("the target names several topics, and --topics chooses others", "leave out --topics, or give one topic")
		}
	}
	if c.Topics != nil && c.Group == "" && c.ShareGroup == "" {
		return contradiction("several topics can only be consumed in a group", "add --engine client --group NAME, or leave out --topics")
	}
	if c.ShareGroup != "" {
		switch {
		case c.Engine != EngineClient:
			return contradiction("share groups need the client engine", "add --engine client, or leave out --share-group")
		case c.Group != "":
			return contradiction("a client cannot be in a consumer group and in a share group", "leave out --group or --share-group")
		case c.UntilEnd:
			return contradiction("a share group has no end: other members may read on", "give --count or --for instead of --until-end")
		}
	}
	if c.Groups > 0 {
		switch {
		case c.ShareGroup != "":
			return contradiction("the members of a share group divide the events, and each of --groups reads all of them", "leave out --share-group or --groups")
		case c.Txn.On && c.Verify:
			return contradiction("transactions are verified with one reader", "leave out --groups, --verify or --transactions")
		}
	}
	if (c.Op == OpRead || c.Op == OpPipeline) && c.Engine == EngineClient {
		return contradiction("records are read by their offsets with the wire engine alone", "leave out --engine client")
	}
	if c.Op == OpPipeline && c.Acks == 0 {
		return contradiction("a pipeline reads records at the offsets that brokers answer, and with acks=0 they do not answer", "leave out --acks 0")
	}
	if c.ItemsOut != "" && c.Acks == 0 && !c.OnlyReads() {
		return contradiction("items-out needs acknowledgements: with acks=0 the broker does not say where records are", "give --acks 1, or leave out --items-out")
	}
	if c.Delete && !c.Portion.Whole() {
		return contradiction("one of several machines would delete the topics while others use them", "leave out --delete-topics; carronade topics delete deletes them")
	}
	if c.RequestTimeout <= 0 {
		return contradiction("request-timeout must be above zero", "give --request-timeout 30s")
	}
	if c.BatchSize <= 0 {
		return contradiction("batch-size must be above zero", "give --batch-size 256KiB")
	}
	return nil
}

// Encoding is what the settings say about it. distinct is the number of different events
// in the pool.
func (c *Config) Encoding(stamped bool, distinct int) *measure.Encoding {
	e := &measure.Encoding{Events: measure.Fresh}
	if !c.Fresh {
		e.Events, e.Distinct = measure.Pooled, uint64(distinct)
		if stamped {
			e.Except = "stamps"
		}
	}
	if c.Compression != "none" {
		e.Codec = c.Compression
	}
	return e
}
