package kafka

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/payload"
	"carronade/target"
)

// The two engines.
const (
	engineWire   = "wire"   // our own connections and pre-encoded batches
	engineClient = "client" // franz-go's record path
)

// The operations.
const (
	opProduce   = "produce"
	opConsume   = "consume"
	opRoundTrip = "roundtrip"
	opRead      = "read"
	opPipeline  = "pipeline"
)

const (
	defaultPort  = "9092"
	defaultTopic = "carronade"
	// acksAll is the value of acks in a produce request that waits for all
	// in-sync replicas.
	acksAll = -1
)

// A config is a parsed and checked URL with its options. It does not change after
// parseConfig, so all clients of a run share one.
type config struct {
	seeds []string // host:port, as given
	topic string
	op    string
	// clientConfig is the properties file of a Java client; "" if none was given.
	clientConfig string
	engine       string
	clients      int // independent clients, at least 1
	portion      load.Portion

	// Producing.
	acks            int16  // 0, 1, or -1 for all
	compression     string // none, gzip, snappy, lz4, zstd
	batchSize       int    // bytes of a record batch, uncompressed
	maxRequest      int    // bytes of a produce request; never below batchSize
	limitRequest    bool   // maxRequest was set explicitly, so the client engine keeps to it, too
	linger          time.Duration
	maxInFlight     int // batches in flight per lane
	concurrency     int // closed loop; then it bounds what is in flight
	batchEvents     int // 0: as many as fit
	idempotent      bool
	partitioner     partitioner
	requestTimeout  time.Duration
	deliveryTimeout time.Duration
	txn             transactions

	// How events are generated, in the forms of package payload.
	size, payload, key string
	headers            []string
	pool               int64 // bytes of encoded batches a lane keeps
	fresh              bool  // generate new bytes for every event
	verify, roundTrip  bool  // stamp events where they have room
	compacted          bool  // a verified run in a topic that keeps the last event of each key
	seed, runID        uint64
	scheduled          bool
	count              uint64 // events wanted; 0: no limit

	// Consuming.
	group       string
	topics      *regexp.Regexp // of topic names, instead of topic; nil: none
	waitTopic   time.Duration  // how long to wait for a missing topic; 0: it is an error
	shareGroup  string         // joined instead of a group: brokers distribute its records
	from        position
	decode      bool
	untilEnd    bool
	recycle     bool   // read the items again and again
	itemsIn     string // file with the list of records to read; "": the whole topic
	checkValues string // what values must be; "": anything
	itemsOut    string // file for the list of those acked or read; "": none
	stage       load.StagePlan
	readFrom    *location // where a pipeline reads; nil: where it produces
	fetch       fetchConfig

	bufferMemory int64 // bytes waiting; 0: unbounded
	create       *TopicSpec
	security     *security
	clientID     string
	rack         string

	warnings []string
	logf     func(format string, args ...any)
	happened func(name string, began time.Time, length time.Duration) // see target.Spec
}

// fetchConfig bounds fetch requests.
type fetchConfig struct {
	minBytes     int32
	maxBytes     int32         // of a response
	maxPartition int32         // of one partition in a response
	maxWait      time.Duration // how long the broker waits for minBytes
	committed    bool          // isolation level: only committed transactions
}

// transactions describes how a transactional producer groups its records.
type transactions struct {
	on       bool
	id       string        // prefix of the transactional ids; each client adds its number
	interval time.Duration // between commits
	abort    float64       // share of transactions that are aborted
}

// parseConfig reads a spec. It opens no connection; it does read files and the
// environment, where options refer to them.
func parseConfig(s target.Spec) (*config, error) {
	v, props, warnings, err := presetValues(s)
	if err != nil {
		return nil, err
	}
	c := newConfig(&s, v, warnings)
	c.limitRequest = s.Given["max-request"] || props["max.request.size"] != "" || v.Has("profile")
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
func newConfig(s *target.Spec, v target.Values, warnings []string) *config {
	c := &config{
		op:          s.Op,
		engine:      v.String("engine"),
		clients:     max(1, s.Clients, v.Int("clients")),
		portion:     s.Portion,
		compression: v.String("compression"),
		idempotent:  v.Bool("idempotent"),
		linger:      s.Linger,
		maxInFlight: s.MaxInFlight,
		concurrency: s.Concurrency,
		batchEvents: s.BatchEvents,

		size:      v.String("size"),
		payload:   v.String("payload"),
		key:       v.String("key"),
		headers:   v.List("header"),
		pool:      v.Size("pool"),
		fresh:     v.Bool("fresh"),
		verify:    s.Verify,
		roundTrip: s.RoundTrip || s.Op == opRoundTrip,
		seed:      s.Seed,
		runID:     s.RunID,
		scheduled: s.Scheduled,

		clientConfig: v.String("client-config"),
		count:        s.Count,

		group:        v.String("group"),
		shareGroup:   v.String("share-group"),
		waitTopic:    v.Duration("wait-topic"),
		decode:       v.Bool("decode"),
		untilEnd:     v.Bool("until-end"),
		recycle:      v.Bool("recycle"),
		itemsIn:      v.String("items-in"),
		itemsOut:     v.String("items-out"),
		checkValues:  v.String("check-values"),
		bufferMemory: v.Size("buffer-memory"),
		clientID:     cmp.Or(v.String("client-id"), "carronade"),
		rack:         v.String("rack"),

		requestTimeout:  v.Duration("request-timeout"),
		deliveryTimeout: v.Duration("delivery-timeout"),
		warnings:        warnings,
		logf:            s.Logf,
	}
	if c.logf == nil {
		c.logf = func(string, ...any) {}
	}
	if c.happened = s.Happened; c.happened == nil {
		c.happened = func(string, time.Time, time.Duration) {}
	}
	c.op = cmp.Or(c.op, opProduce)
	return c
}

// onlyReads reports whether nothing is produced.
func (c *config) onlyReads() bool { return c.op == opConsume || c.op == opRead }

// parse parses the other settings, and returns an error for the first wrong one.
func (c *config) parse(s *target.Spec, v target.Values, props map[string]string) (err error) {
	if err := c.parseServers(s.URL, props); err != nil {
		return err
	}
	if c.acks, err = parseAcks(v.String("acks")); err != nil {
		return err
	}
	if c.partitioner, err = parsePartitioner(v.String("partitioner")); err != nil {
		return err
	}
	if c.from, err = parsePosition(v.String("from")); err != nil {
		return err
	}
	if c.shareGroup != "" && s.Given["from"] {
		return &target.Error{
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
	if !c.onlyReads() {
		// Only to report errors in them before connecting to a broker.
		if _, err := payload.New(c.events()); err != nil {
			return err
		}
	}
	if err := c.parseTopics(v); err != nil {
		return err
	}
	if err := c.parseTransactions(v); err != nil {
		return err
	}
	if c.security, err = parseSecurity(v, props); err != nil {
		return err
	}
	c.security.clientID = c.clientID
	c.security.via = s.Dial
	return nil
}

// events describes the events that are produced.
func (c *config) events() payload.Spec {
	return payload.Spec{Seed: c.seed, Size: c.size, Payload: c.payload, Key: c.key, Headers: c.headers, Pooled: !c.fresh}
}

// parseServers reads the seed brokers and the topic.
func (c *config) parseServers(u *url.URL, props map[string]string) (err error) {
	if c.seeds, c.topic, err = parseTarget(u); err != nil {
		return err
	}
	if len(c.seeds) == 0 {
		if c.seeds, err = parseSeeds(props["bootstrap.servers"]); err != nil {
			return fmt.Errorf("read the property bootstrap.servers: %w", err)
		}
	}
	if len(c.seeds) == 0 {
		return &target.Error{
			Doing: "read the target", Err: fmt.Errorf("no broker address"),
			Hint: "type kafka://host:9092/topic, or set bootstrap.servers in --client-config",
		}
	}
	return nil
}

// parseTopics reads the expression for topic names, and how to create a topic.
func (c *config) parseTopics(v target.Values) (err error) {
	if text := v.String("topics"); text != "" {
		if c.topics, err = regexp.Compile("^(?:" + text + ")$"); err != nil {
			return &target.Error{Doing: "read the option topics", Err: err, Hint: `give a regular expression, such as orders-\d+`}
		}
	}
	if text := v.String("create-topic"); text != "" {
		spec, err := ParseTopicSpec(text)
		if err != nil {
			return err
		}
		spec.Name = c.topic
		c.create = &spec
	}
	return nil
}

// warnUnused warns of settings that were given but that the chosen engine ignores.
func (c *config) warnUnused(s target.Spec) {
	warn := func(format string, args ...any) { c.warnings = append(c.warnings, fmt.Sprintf(format, args...)) }
	if c.rack != "" && c.engine == engineWire && c.op != opProduce {
		warn("rack has no effect: the wire engine reads from leaders (the client engine reads from the nearest replica)")
	}
	if c.engine != engineClient || c.onlyReads() {
		return
	}
	if c.idempotent && s.Given["max-in-flight"] && c.maxInFlight != 5 {
		warn("max-in-flight has no effect: with idempotence, franz-go keeps 5 requests in flight")
	}
	if c.batchEvents > 0 && s.Given["batch-events"] {
		warn("batch-events is the number of events handed to the client at once: franz-go decides how they form batches and requests")
	}
}

// parseSizes reads the sizes in bytes. Each must fit the 32-bit fields of a request.
func (c *config) parseSizes(v target.Values) error {
	const most = 1 << 30
	sized := func(name string) (int, error) {
		n := v.Size(name)
		if n < 0 || n > most {
			return 0, fmt.Errorf("%s %s: want at most 1GiB", name, v.String(name))
		}
		return int(n), nil
	}
	var err error
	if c.batchSize, err = sized("batch-size"); err != nil {
		return err
	}
	if c.maxRequest, err = sized("max-request"); err != nil {
		return err
	}
	c.maxRequest = max(c.maxRequest, c.batchSize)
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
	c.fetch = fetchConfig{
		minBytes:     int32(max(1, fetchMin)),
		maxBytes:     int32(fetchMax),
		maxPartition: int32(partitionMax),
		maxWait:      v.Duration("fetch-wait"),
		committed:    v.String("isolation") == "committed",
	}
	return nil
}

func (c *config) parseTransactions(v target.Values) error {
	t := transactions{on: v.Bool("transactions"), id: v.String("transactional-id"), interval: v.Duration("transaction-interval")}
	t.on = t.on || t.id != ""
	t.id = cmp.Or(t.id, fmt.Sprintf("carronade-%08x", uint32(c.runID)))
	t.abort = v.Share("transaction-abort")
	c.txn = t
	return nil
}

// check returns an error for settings that contradict each other, with a hint.
func (c *config) check() error {
	contradiction := func(what, hint string) error {
		return &target.Error{Doing: "read the options", Err: fmt.Errorf("%s", what), Hint: hint}
	}
	if c.txn.on && c.engine != engineClient {
		return contradiction("transactions need the client engine", "add --engine client, or leave out --transactions")
	}
	if c.txn.on {
		// A transactional producer is idempotent by the protocol.
		c.idempotent, c.acks = true, acksAll
	}
	if c.txn.on && c.txn.interval <= 0 {
		return contradiction("transaction-interval must be above zero", "give --transaction-interval 100ms")
	}
	if c.idempotent && c.acks != acksAll && !c.onlyReads() {
		return contradiction("an idempotent producer needs acks=all", "add --acks all, or leave out --idempotent")
	}
	if c.idempotent && c.maxInFlight > 5 && c.concurrency == 0 && !c.onlyReads() {
		return contradiction(fmt.Sprintf("an idempotent producer may have 5 batches in flight, not %d", c.maxInFlight),
			"give --max-in-flight 5, or leave out --idempotent")
	}
	if c.partitioner.kind == "murmur2" && (c.key == "" || c.key == "none") {
		return contradiction("partitioner murmur2 needs keys", "add --key 'uniform(1000)', or choose --partitioner roundrobin")
	}
	if c.group != "" && c.engine != engineClient {
		return contradiction("consumer groups need the client engine", "add --engine client, or leave out --group")
	}
	if c.topics != nil && c.group == "" && c.shareGroup == "" {
		return contradiction("several topics can only be consumed in a group", "add --engine client --group NAME, or leave out --topics")
	}
	if c.shareGroup != "" {
		switch {
		case c.engine != engineClient:
			return contradiction("share groups need the client engine", "add --engine client, or leave out --share-group")
		case c.group != "":
			return contradiction("a client cannot be in a consumer group and in a share group", "leave out --group or --share-group")
		case c.untilEnd:
			return contradiction("a share group has no end: other members may read on", "give --count or --for instead of --until-end")
		}
	}
	if (c.op == opRead || c.op == opPipeline) && c.engine == engineClient {
		return contradiction("records are read by their offsets with the wire engine alone", "leave out --engine client")
	}
	if c.op == opPipeline && c.acks == 0 {
		return contradiction("a pipeline reads records at the offsets that brokers answer, and with acks=0 they do not answer", "leave out --acks 0")
	}
	if c.itemsOut != "" && c.acks == 0 && !c.onlyReads() {
		return contradiction("items-out needs acknowledgements: with acks=0 the broker does not say where records are", "give --acks 1, or leave out --items-out")
	}
	if c.requestTimeout <= 0 {
		return contradiction("request-timeout must be above zero", "give --request-timeout 30s")
	}
	if c.batchSize <= 0 {
		return contradiction("batch-size must be above zero", "give --batch-size 256KiB")
	}
	return nil
}

// encoding is what the settings say about it. distinct is the number of different events
// in the pool.
func (c *config) encoding(stamped bool, distinct int) *measure.Encoding {
	e := &measure.Encoding{Events: measure.Fresh}
	if !c.fresh {
		e.Events, e.Distinct = measure.Pooled, uint64(distinct)
		if stamped {
			e.Except = "stamps"
		}
	}
	if c.compression != "none" {
		e.Codec = c.compression
	}
	return e
}
