package kafkatools

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"carronade/internal/compat"
)

// A consumerOption is an option of the consumer's tool, and the generations that have it.
type consumerOption struct {
	option
	in []generation
}

var (
	since2018 = []generation{of2018, of41, of43}
	only2018  = []generation{of2018}
	until41   = []generation{of2018, of41}
	since41   = []generation{of41, of43}
	since43   = []generation{of43}
)

// consumerOptions are the options of all generations.
var consumerOptions = []consumerOption{
	{option{name: "bootstrap-server", word: "server to connect to", help: "REQUIRED: The brokers to connect to."}, since2018},
	{option{name: "broker-list", word: "host", help: "REQUIRED: The brokers to connect to; old name of --bootstrap-server."}, until41},
	{option{name: "zookeeper", word: "urls", help: "Used as the brokers' addresses: Kafka has no ZooKeeper any more."}, only2018},
	{option{name: "topic", word: "topic", help: "The topic to consume from."}, since2018},
	{option{name: "include", word: "Java regex (String)", help: "A regular expression (RE2) for the names of the topics to consume from."}, since43},
	{option{name: "messages", kind: long, word: "count", help: "How many messages to consume; --num-records since 4.2."}, since2018},
	{option{name: "num-records", kind: long, word: "count", help: "REQUIRED: How many records to consume."}, since43},
	{option{name: "group", word: "gid", help: "The group to consume in (default: perf-consumer- and a number)."}, since2018},
	{option{name: "fetch-size", kind: integer, word: "size", otherwise: "1048576", help: "The maximum bytes of one partition in a fetch."}, since2018},
	{option{name: "from-latest", kind: noValue, help: "If the group has no committed offset, begin at the end, not at the beginning."}, since2018},
	{option{name: "socket-buffer-size", kind: integer, word: "size", otherwise: "2097152", help: "The connections' receive buffer."}, since2018},
	{option{name: "consumer.config", word: "config file", help: "The client's properties file; --command-config since 4.2."}, since2018},
	{option{name: "command-config", word: "config file", help: "The client's properties file."}, since43},
	{option{name: "command-property", word: "prop1=val1", help: "One of the client's properties; overrides the file. May be given several times."}, since43},
	{option{name: "print-metrics", kind: noValue, help: "Print out the metrics."}, since2018},
	{option{name: "show-detailed-stats", kind: noValue, help: "Print a row for each reporting interval, not one for all."}, since2018},
	{option{name: "timeout", kind: optionalLong, word: "milliseconds", otherwise: "10000", help: "End when no record has arrived for this long."}, since2018},
	{option{name: "reporting-interval", kind: long, word: "interval_ms", otherwise: "5000", help: "Milliseconds between rows (until 0.10: messages)."}, since2018},
	{option{name: "date-format", word: "date format", otherwise: "yyyy-MM-dd HH:mm:ss:SSS", help: "The format of times, a pattern of java.text.SimpleDateFormat."}, since2018},
	{option{name: "hide-header", kind: noValue, help: "Print no header."}, since2018},
	{option{name: "threads", kind: integer, word: "count", otherwise: "10", help: "Number of clients in the group (with --zookeeper; otherwise 1)."}, until41},
	{option{name: "num-fetch-threads", kind: integer, word: "count", otherwise: "1", help: "Ignored: a client fetches from each broker independently."}, until41},
	{option{name: "new-consumer", kind: noValue, help: "Ignored: there is only one consumer."}, only2018},
	{option{name: "message-size", kind: integer, word: "size", otherwise: "100", help: "Ignored when consuming, as in the tool."}, only2018},
	{option{name: "batch-size", kind: integer, word: "size", otherwise: "200", help: "Ignored when consuming, as in the tool."}, only2018},
	{option{name: "compression-codec", kind: integer, word: "codec", otherwise: "0", help: "Ignored when consuming, as in the tool."}, only2018},
	{option{name: "help", kind: noValue, help: "Print this."}, since2018},
	{option{name: "version", kind: noValue, help: "Display the version."}, since41},
}

// ignored are the options without effect.
var ignored = []string{"num-fetch-threads", "new-consumer", "message-size", "batch-size", "compression-codec"}

// consumerOptionsIn returns the options of a generation, or of all if it is guessed.
func consumerOptionsIn(g generation) []option {
	var out []option
	for _, o := range consumerOptions {
		if g == guessed || slices.Contains(o.in, g) {
			out = append(out, o.option)
		}
	}
	return out
}

// consumerGeneration derives the generation from the given options; by default it is the
// newest. Options that 4.3 still accepts under an old name select 4.1, as do those
// of the tools between 2018 and 4.1.
func consumerGeneration(v *optionValues) (generation, error) {
	of := make(map[generation]string) // per generation, a given option that only it has
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
	generation generation
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
func checkConsumer(g generation, v *optionValues) error {
	for _, o := range consumerOptions {
		if v.has(o.name) && !slices.Contains(o.in, g) {
			return fmt.Errorf("%s is not a recognized option", o.name)
		}
	}
	switch {
	case g == of43:
		return first(v.missing("bootstrap-server"), v.oneOf("topic", "include"), v.oneOf("messages", "num-records"), v.exclusive("consumer.config", "command-config"))
	case v.has("bootstrap-server"), v.has("broker-list"), v.has("zookeeper"):
		return v.missing("topic", "messages")
	case g == of2018:
		return v.missing("broker-list")
	}
	return v.missing("bootstrap-server")
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readConsumer reads the options' values.
func readConsumer(g generation, v *optionValues) (*consumerSettings, error) {
	s := &consumerSettings{
		generation: g, latest: v.has("from-latest"), detailed: v.has("show-detailed-stats"),
		header: !v.has("hide-header"), metrics: v.has("print-metrics"), threads: 1, fileFlag: "--command-config",
	}
	var err error
	text := func(names ...string) string {
		for _, name := range names {
			t, e := v.text(name)
			err = first(err, e)
			if v.has(name) {
				return t
			}
		}
		return ""
	}
	number := func(name string) int64 {
		n, e := v.number(name)
		err = first(err, e)
		return n
	}
	for _, name := range []string{"bootstrap-server", "broker-list", "zookeeper"} {
		if v.has(name) {
			list := text(name)
			if name == "zookeeper" {
				list, s.chroot = withoutChroot(list)
			}
			var e error
			s.from = "--" + name
			s.brokers, e = readServers(list)
			err = first(err, e)
			break
		}
	}
	s.topic, s.byName = text("topic"), v.has("topic")
	s.include = text("include")
	s.count = number("messages")
	if v.has("num-records") {
		s.count = number("num-records")
	}
	if s.group = text("group"); !v.has("group") {
		s.group = fmt.Sprintf("perf-consumer-%d", rand.IntN(100_000)) //nolint:gosec // a name, not a secret
	}
	if v.has("zookeeper") || v.has("threads") {
		s.threads = number("threads")
	}
	s.fetchSize, s.bufferSize, s.timeout, s.interval = number("fetch-size"), number("socket-buffer-size"), number("timeout"), number("reporting-interval")
	pattern, e := v.text("date-format")
	err = first(err, e)
	var e2 error
	s.dates, e2 = parseDate(pattern)
	for _, name := range ignored {
		if o := consumerOptions[slices.IndexFunc(consumerOptions, func(o consumerOption) bool { return o.name == name })]; o.kind == integer {
			number(name)
		}
	}
	file := text("command-config", "consumer.config")
	if v.has("consumer.config") {
		s.fileFlag = "--consumer.config"
	}
	if err = first(err, e2, s.check()); err != nil {
		return nil, err
	}
	s.props, err = readProperties(file, withValues(v.all("command-property")))
	return s, err
}

// check checks the values.
func (s *consumerSettings) check() error {
	switch {
	case s.byName && strings.TrimSpace(s.topic) == "":
		return errors.New("Topic collection to subscribe to cannot contain null or empty topic")
	case !s.byName && s.include == "":
		return errors.New("Topic pattern to subscribe to cannot be empty")
	case s.byName && compat.CheckKafkaTopic(s.topic) != nil:
		return compat.CheckKafkaTopic(s.topic)
	case checkExpression("--include", s.include) != nil:
		return checkExpression("--include", s.include)
	case s.interval <= 0:
		return errors.New("Reporting interval must be greater than 0.") //nolint:revive // the tool's message
	case s.threads < 1:
		return fmt.Errorf("--threads %d: there must be at least one", s.threads)
	case s.fetchSize < 1:
		return fmt.Errorf("--fetch-size %d: must hold a record", s.fetchSize)
	case s.timeout < 0:
		return fmt.Errorf("--timeout %d: must not be negative", s.timeout)
	}
	return nil
}

// withoutChroot removes the path from ZooKeeper's addresses, and reports whether
// there was one.
func withoutChroot(list string) (hosts string, was bool) {
	parts := strings.Split(hostList(list), ",")
	for i, p := range parts {
		host, _, cut := strings.Cut(p, "/")
		parts[i], was = host, was || cut
	}
	return strings.Join(parts, ","), was
}

// warnDeprecated prints the warnings of the tools since 4.2 about old names of options.
func warnDeprecated(w io.Writer, g generation, v *optionValues) {
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
func (s *consumerSettings) warn(w io.Writer, v *optionValues) {
	for _, arg := range v.rest {
		fmt.Fprint(w, unknownOption(arg))
	}
	for _, name := range ignored {
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
func (s *consumerSettings) workload(strict bool) *compat.Draft {
	var d compat.Draft
	if s.include != "" {
		d.Setf("target", s.from, "kafka://%s", s.brokers)
		d.Set("topics", "--include", s.include)
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
