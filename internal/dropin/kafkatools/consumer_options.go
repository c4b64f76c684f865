package kafkatools

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"carronade/internal/dropin"
)

// A consumerOption is an option of the consumer's tool, and the generations that have it.
type consumerOption struct {
	joptOption
	in []kafkaGeneration
}

var (
	since2018 = []kafkaGeneration{of2018, of41, of43}
	only2018  = []kafkaGeneration{of2018}
	until41   = []kafkaGeneration{of2018, of41}
	since41   = []kafkaGeneration{of41, of43}
	since43   = []kafkaGeneration{of43}
)

// consumerOptions are the options of all generations.
var consumerOptions = []consumerOption{
	{joptOption{name: "bootstrap-server", word: "server to connect to", help: "REQUIRED: The brokers to connect to."}, since2018},
	{joptOption{name: "broker-list", word: "host", help: "REQUIRED: The brokers to connect to; old name of --bootstrap-server."}, until41},
	{joptOption{name: "zookeeper", word: "urls", help: "Used as the brokers' addresses: Kafka has no ZooKeeper any more."}, only2018},
	{joptOption{name: "topic", word: "topic", help: "The topic to consume from."}, since2018},
	{joptOption{name: "include", word: "Java regex (String)", help: "A regular expression for the names of the topics to consume from."}, since43},
	{joptOption{name: "messages", kind: longValue, word: "count", help: "How many messages to consume; --num-records since 4.2."}, since2018},
	{joptOption{name: "num-records", kind: longValue, word: "count", help: "REQUIRED: How many records to consume."}, since43},
	{joptOption{name: "group", word: "gid", help: "The group to consume in (default: perf-consumer- and a number)."}, since2018},
	{joptOption{name: "fetch-size", kind: integerValue, word: "size", otherwise: "1048576", help: "The maximum bytes of one partition in a fetch."}, since2018},
	{joptOption{name: "from-latest", kind: noValue, help: "If the group has no committed offset, begin at the end, not at the beginning."}, since2018},
	{joptOption{name: "socket-buffer-size", kind: integerValue, word: "size", otherwise: "2097152", help: "The connections' receive buffer."}, since2018},
	{joptOption{name: "consumer.config", word: "config file", help: "The client's properties file; --command-config since 4.2."}, since2018},
	{joptOption{name: "command-config", word: "config file", help: "The client's properties file."}, since43},
	{joptOption{name: "command-property", word: "prop1=val1", help: "One of the client's properties; overrides the file. May be given several times."}, since43},
	{joptOption{name: "print-metrics", kind: noValue, help: "Print out the metrics."}, since2018},
	{joptOption{name: "show-detailed-stats", kind: noValue, help: "Print a row for each reporting interval, not one for all."}, since2018},
	{joptOption{name: "timeout", kind: optionalLong, word: "milliseconds", otherwise: "10000", help: "End when no record has arrived for this long."}, since2018},
	{joptOption{name: "reporting-interval", kind: longValue, word: "interval_ms", otherwise: "5000", help: "Milliseconds between rows (until 0.10: messages)."}, since2018},
	{joptOption{name: "date-format", word: "date format", otherwise: "yyyy-MM-dd HH:mm:ss:SSS", help: "The format of times, a pattern of java.text.SimpleDateFormat."}, since2018},
	{joptOption{name: "hide-header", kind: noValue, help: "Print no header."}, since2018},
	{joptOption{name: "threads", kind: integerValue, word: "count", otherwise: "10", help: "Number of clients in the group (with --zookeeper; otherwise 1)."}, until41},
	{joptOption{name: "num-fetch-threads", kind: integerValue, word: "count", otherwise: "1", help: "Ignored: a client fetches from each broker independently."}, until41},
	{joptOption{name: "new-consumer", kind: noValue, help: "Ignored: there is only one consumer."}, only2018},
	{joptOption{name: "message-size", kind: integerValue, word: "size", otherwise: "100", help: "Ignored when consuming, as in the tool."}, only2018},
	{joptOption{name: "batch-size", kind: integerValue, word: "size", otherwise: "200", help: "Ignored when consuming, as in the tool."}, only2018},
	{joptOption{name: "compression-codec", kind: integerValue, word: "codec", otherwise: "0", help: "Ignored when consuming, as in the tool."}, only2018},
	{joptOption{name: "help", kind: noValue, help: "Print this."}, since2018},
	{joptOption{name: "version", kind: noValue, help: "Display the version."}, since41},
}

// ignoredOptions are the options without effect.
var ignoredOptions = []string{"num-fetch-threads", "new-consumer", "message-size", "batch-size", "compression-codec"}

// consumerOptionsIn returns the options of a generation, or of all if it is guessed.
func consumerOptionsIn(g kafkaGeneration) []joptOption {
	var out []joptOption
	for _, o := range consumerOptions {
		if g == guessedGeneration || slices.Contains(o.in, g) {
			out = append(out, o.joptOption)
		}
	}
	return out
}

// consumerGeneration derives the generation from the given options; by default it is the
// newest. Options that 4.3 still accepts under an old name select 4.1, as do those
// of the tools between 2018 and 4.1.
func consumerGeneration(v *joptValues) (kafkaGeneration, error) {
	of := make(map[kafkaGeneration]string) // per generation, a given option that only it has
	for _, o := range consumerOptions {
		if v.has(o.name) && len(o.in) == 1 {
			of[o.in[0]] = o.name
		}
	}
	since, until := of[of43], of[of2018]
	if since == "" && (v.has("broker-list") || v.has("threads") || v.has("num-fetch-threads") || v.has("messages") || v.has("consumer.config")) {
		of[of41] = "--messages"
	}
	switch {
	case since != "" && until != "":
		return 0, fmt.Errorf("%s belongs to 2018 and %s to 4.3: use options of one generation", until, since)
	case until != "":
		return of2018, nil
	case since == "" && of[of41] != "":
		return of41, nil
	}
	return of43, nil
}

// consumerSettings are the values of a command line.
type consumerSettings struct {
	generation kafkaGeneration
	brokers    string
	from       string // the option that gave them
	chroot     bool   // they had a path in ZooKeeper
	topic      string
	byName     bool   // --topic was given, possibly empty
	include    string // an expression for topics
	count      int64
	group      string
	threads    int64
	fetchSize  int64
	bufferSize int64
	timeout    int64 // ms
	interval   int64 // ms
	latest     bool
	detailed   bool
	header     bool
	metrics    bool
	dates      dateFormat
	props      *properties
	fileFlag   string
	share      bool // for a share group
}

// checkConsumer checks the options, with the tool's messages.
func checkConsumer(g kafkaGeneration, v *joptValues) error {
	for _, o := range consumerOptions {
		if v.has(o.name) && !slices.Contains(o.in, g) {
			return fmt.Errorf("%s is not a recognized option", o.name)
		}
	}
	switch {
	case g == of43:
		return firstError(v.missing("bootstrap-server"), v.oneOf("topic", "include"), v.oneOf("messages", "num-records"), v.exclusive("consumer.config", "command-config"))
	case v.has("bootstrap-server"), v.has("broker-list"), v.has("zookeeper"):
		return v.missing("topic", "messages")
	case g == of2018:
		return v.missing("broker-list")
	}
	return v.missing("bootstrap-server")
}

// readConsumer reads the options' values.
func readConsumer(g kafkaGeneration, v *joptValues) (*consumerSettings, error) {
	s, r := &consumerSettings{generation: g, latest: v.has("from-latest"), byName: v.has("topic"), threads: 1}, &joptReader{joptValues: v}
	for _, name := range []string{"bootstrap-server", "broker-list", "zookeeper"} {
		if v.has(name) {
			list := r.text(name)
			if name == "zookeeper" {
				list, s.chroot = withoutChroot(list)
			}
			s.from, s.brokers = "--"+name, r.servers(list)
			break
		}
	}
	s.topic, s.include, s.group = r.text("topic"), r.text("include"), r.text("group")
	if !v.has("group") {
		s.group = fmt.Sprintf("perf-consumer-%d", rand.IntN(100_000)) //nolint:gosec // a name, not a secret
	}
	if v.has("zookeeper") || v.has("threads") {
		s.threads = r.number("threads")
	}
	for _, name := range ignoredOptions {
		if o := v.find(name); o != nil && o.kind == integerValue {
			r.number(name)
		}
	}
	return s, s.readCommon(r)
}

// readCommon reads the options that the consumer's tool and the share consumer's have both,
// and checks all values.
func (s *consumerSettings) readCommon(r *joptReader) error {
	s.detailed, s.header, s.metrics = r.has("show-detailed-stats"), !r.has("hide-header"), r.has("print-metrics")
	s.count = r.number("messages")
	if r.has("num-records") {
		s.count = r.number("num-records")
	}
	s.fetchSize, s.bufferSize, s.timeout, s.interval = r.number("fetch-size"), r.number("socket-buffer-size"), r.number("timeout"), r.number("reporting-interval")
	pattern, file := r.text("date-format"), r.text("command-config", "consumer.config")
	s.fileFlag = "--command-config"
	if r.has("consumer.config") {
		s.fileFlag = "--consumer.config"
	}
	var err error
	s.dates, err = parseDate(pattern)
	if err = firstError(r.err, err, s.check()); err != nil {
		return err
	}
	s.props, err = readProperties(file, withValues(r.all("command-property")))
	return err
}

// check checks the values.
func (s *consumerSettings) check() error {
	switch {
	case s.byName && strings.TrimSpace(s.topic) == "":
		return errors.New("Topic collection to subscribe to cannot contain null or empty topic")
	case !s.byName && s.include == "":
		return errors.New("Topic pattern to subscribe to cannot be empty")
	case s.byName && CheckTopic(s.topic) != nil:
		return CheckTopic(s.topic)
	case s.interval <= 0:
		return errors.New("Reporting interval must be greater than 0.") //nolint:revive // the tool's message
	case s.threads < 1:
		return fmt.Errorf("--threads %d: there must be at least one", s.threads)
	case s.fetchSize < 1:
		return fmt.Errorf("--fetch-size %d: must hold a record", s.fetchSize)
	case s.timeout < 0:
		return fmt.Errorf("--timeout %d: must not be negative", s.timeout)
	}
	include, err := dropin.JavaRegexp(s.include, true)
	if err != nil {
		return fmt.Errorf("--include: %w", err)
	}
	s.include = include
	return nil
}

// withoutChroot removes the path from ZooKeeper's addresses, and reports whether
// there was one.
func withoutChroot(list string) (hosts string, was bool) {
	parts := strings.Split(HostList(list), ",")
	for i, p := range parts {
		host, _, cut := strings.Cut(p, "/")
		parts[i], was = host, was || cut
	}
	return strings.Join(parts, ","), was
}

// warnDeprecated prints the warnings of the tools since 4.2 about old names of options.
func warnDeprecated(w io.Writer, g kafkaGeneration, v *joptValues) {
	for _, old := range [][2]string{{"messages", "num-records"}, {"consumer.config", "command-config"}} {
		if g == of43 && v.has(old[0]) {
			fmt.Fprintf(w, "Warning: --%s is deprecated. Use --%s instead.\n", old[0], old[1])
		}
	}
}

// withValues gives properties without a value an empty value, as the tool does.
func withValues(all []string) []string {
	out := slices.Clone(all)
	for i := range out {
		if !strings.Contains(out[i], "=") {
			out[i] += "="
		}
	}
	return out
}

// warn names the arguments that have little or no effect.
func (s *consumerSettings) warn(w io.Writer, v *joptValues) {
	for _, arg := range v.rest {
		fmt.Fprint(w, unknownOption(arg))
	}
	for _, name := range ignoredOptions {
		if v.has(name) {
			fmt.Fprintf(w, "warning: --%s has no meaning and is ignored\n", name)
		}
	}
	if v.has("zookeeper") {
		if s.from == "--zookeeper" {
			fmt.Fprintln(w, "hint: Kafka has no ZooKeeper any more and brokers are needed: the addresses of --zookeeper are used as theirs; give --broker-list or --bootstrap-server")
			if s.chroot {
				fmt.Fprintln(w, "hint: the part after the / of --zookeeper is a path in ZooKeeper and is ignored")
			}
		} else {
			fmt.Fprintf(w, "warning: --zookeeper is ignored: Kafka has no ZooKeeper any more, and %s names the brokers\n", s.from)
		}
	}
	if s.generation == of2018 && s.detailed && v.has("reporting-interval") {
		fmt.Fprintf(w, "warning: --reporting-interval %d is in milliseconds, as since 0.11; until 0.10 it was in messages\n", s.interval)
	}
	if s.interval < 10 {
		fmt.Fprintf(w, "warning: --reporting-interval %d: the shortest is 10 here\n", s.interval)
	}
	s.props.warn(w, "consume")
	options := []string{"bootstrap.servers", "group.id", "receive.buffer.bytes", "max.partition.fetch.bytes", "auto.offset.reset"}
	if s.share {
		options = append(options, "fetch.max.bytes")
	}
	for _, name := range options {
		if _, ok := s.props.get(name); ok {
			fmt.Fprintf(w, "warning: the tool's option overrides the client property %s\n", name)
		}
	}
}

// workload translates the settings to a workload.
func (s *consumerSettings) workload(strict bool) *dropin.Draft {
	var d dropin.Draft
	if s.include != "" {
		d.Setf("target", s.from, "kafka://%s", s.brokers)
		include := s.include
		if strings.Trim(include, "0123456789") == "" { // else it would be a number of topics
			include = "(" + include + ")"
		}
		d.Set("topics", "--include", include)
	} else {
		d.Setf("target", s.from, "kafka://%s/%s", s.brokers, s.topic)
	}
	d.Set("op", "kafka-consumer-perf-test", "consume")
	d.Set("engine", "kafka-consumer-perf-test", "client")
	count := s.count
	if strict && s.generation == of2018 {
		count *= s.threads // each thread consumed this number
	}
	d.Setf("count", "--messages", "%d", count)
	d.Set("group", "--group", s.group)
	d.Setf("clients", "--threads", "%d", s.threads)
	d.Setf("fetch-partition-max", "--fetch-size", "%d", s.fetchSize)
	if s.bufferSize >= 0 {
		d.Setf("recv-buffer", "--socket-buffer-size", "%d", s.bufferSize)
	}
	for _, name := range []string{"idle-timeout", "wait-topic"} {
		d.Setf(name, "--timeout", "%dms", min(max(s.timeout, 1), (24*time.Hour).Milliseconds()))
	}
	d.Setf("interval", "--reporting-interval", "%dms", min(max(s.interval, 10), (24*time.Hour).Milliseconds()))
	if s.latest {
		d.Set("from", "--from-latest", "latest")
	} else {
		d.Set("from", "kafka-consumer-perf-test", "earliest")
	}
	if _, ok := s.props.get("fetch.max.bytes"); !ok {
		d.Set("fetch-max", "kafka-consumer-perf-test", "50MiB") // Java's default
	}
	if _, ok := s.props.get("client.id"); !ok {
		d.Set("client-id", "kafka-consumer-perf-test", consumerClientID)
	}
	if s.metrics {
		d.Set("client-metrics", "--print-metrics", "true")
	}
	s.props.set(&d, s.fileFlag, "--command-property")
	return &d
}
