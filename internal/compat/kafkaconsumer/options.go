package kafkaconsumer

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"carronade/internal/compat"
	"carronade/internal/compat/jopt"
)

// The generations, by Kafka version.
const (
	of2018 = "2018"
	of41   = "4.1"
	of43   = "4.3"
)

// An option is an option of the consumer's tool, and the generations that have it.
type option struct {
	jopt.Option
	in []string
}

var (
	all      = []string{of2018, of41, of43}
	only2018 = []string{of2018}
	until41  = []string{of2018, of41}
	new41    = []string{of41, of43}
	new43    = []string{of43}
)

// known are the options of all generations.
var known = []option{
	{jopt.Option{Name: "bootstrap-server", Word: "server to connect to", Help: "REQUIRED: The brokers to connect to."}, all},
	{jopt.Option{Name: "broker-list", Word: "host", Help: "REQUIRED: The brokers to connect to; old name of --bootstrap-server."}, until41},
	{jopt.Option{Name: "zookeeper", Word: "urls", Help: "Used as the brokers' addresses: Kafka has no ZooKeeper any more."}, only2018},
	{jopt.Option{Name: "topic", Word: "topic", Help: "The topic to consume from."}, all},
	{jopt.Option{Name: "include", Word: "Java regex (String)", Help: "A regular expression (RE2) for the names of the topics to consume from."}, new43},
	{jopt.Option{Name: "messages", Kind: jopt.Long, Word: "count", Help: "How many messages to consume; --num-records since 4.2."}, all},
	{jopt.Option{Name: "num-records", Kind: jopt.Long, Word: "count", Help: "REQUIRED: How many records to consume."}, new43},
	{jopt.Option{Name: "group", Word: "gid", Help: "The group to consume in (default: perf-consumer- and a number)."}, all},
	{jopt.Option{Name: "fetch-size", Kind: jopt.Int, Word: "size", Default: "1048576", Help: "The maximum bytes of one partition in a fetch."}, all},
	{jopt.Option{Name: "from-latest", Kind: jopt.Flag, Help: "If the group has no committed offset, begin at the end, not at the beginning."}, all},
	{jopt.Option{Name: "socket-buffer-size", Kind: jopt.Int, Word: "size", Default: "2097152", Help: "The connections' receive buffer."}, all},
	{jopt.Option{Name: "consumer.config", Word: "config file", Help: "The client's properties file; --command-config since 4.2."}, all},
	{jopt.Option{Name: "command-config", Word: "config file", Help: "The client's properties file."}, new43},
	{jopt.Option{Name: "command-property", Word: "prop1=val1", Help: "One of the client's properties; overrides the file. May be given several times."}, new43},
	{jopt.Option{Name: "print-metrics", Kind: jopt.Flag, Help: "Print out the metrics."}, all},
	{jopt.Option{Name: "show-detailed-stats", Kind: jopt.Flag, Help: "Print a row for each reporting interval, not one for all."}, all},
	{jopt.Option{Name: "timeout", Kind: jopt.OptionalLong, Word: "milliseconds", Default: "10000", Help: "End when no record has arrived for this long."}, all},
	{jopt.Option{Name: "reporting-interval", Kind: jopt.Long, Word: "interval_ms", Default: "5000", Help: "Milliseconds between rows (until 0.10: messages)."}, all},
	{jopt.Option{Name: "date-format", Word: "date format", Default: "yyyy-MM-dd HH:mm:ss:SSS", Help: "The format of times, a pattern of java.text.SimpleDateFormat."}, all},
	{jopt.Option{Name: "hide-header", Kind: jopt.Flag, Help: "Print no header."}, all},
	{jopt.Option{Name: "threads", Kind: jopt.Int, Word: "count", Default: "10", Help: "Number of clients in the group (with --zookeeper; otherwise 1)."}, until41},
	{jopt.Option{Name: "num-fetch-threads", Kind: jopt.Int, Word: "count", Default: "1", Help: "Ignored: a client fetches from each broker independently."}, until41},
	{jopt.Option{Name: "new-consumer", Kind: jopt.Flag, Help: "Ignored: there is only one consumer."}, only2018},
	{jopt.Option{Name: "message-size", Kind: jopt.Int, Word: "size", Default: "100", Help: "Ignored when consuming, as in the tool."}, only2018},
	{jopt.Option{Name: "batch-size", Kind: jopt.Int, Word: "size", Default: "200", Help: "Ignored when consuming, as in the tool."}, only2018},
	{jopt.Option{Name: "compression-codec", Kind: jopt.Int, Word: "codec", Default: "0", Help: "Ignored when consuming, as in the tool."}, only2018},
	{jopt.Option{Name: "help", Kind: jopt.Flag, Help: "Print this."}, all},
	{jopt.Option{Name: "version", Kind: jopt.Flag, Help: "Display the version."}, new41},
}

// ignored are the options without effect.
var ignored = []string{"num-fetch-threads", "new-consumer", "message-size", "batch-size", "compression-codec"}

// knownIn returns the options of a generation, or of all if it is "".
func knownIn(generation string) []jopt.Option {
	var out []jopt.Option
	for _, o := range known {
		if generation == "" || slices.Contains(o.in, generation) {
			out = append(out, o.Option)
		}
	}
	return out
}

// generationOf derives the generation from the given options; by default it is the
// newest. Options that 4.3 still accepts under an old name select 4.1, as do those
// of the tools between 2018 and 4.1.
func generationOf(v *jopt.Values) (string, error) {
	of := make(map[string]string) // per generation, a given option that only it has
	for _, o := range known {
		if v.Has(o.Name) && len(o.in) == 1 {
			of[o.in[0]] = o.Name
		}
	}
	since, until := of[of43], of[of2018]
	if since == "" && (v.Has("broker-list") || v.Has("threads") || v.Has("num-fetch-threads") || v.Has("messages") || v.Has("consumer.config")) {
		of[of41] = "--messages"
	}
	switch {
	case since != "" && until != "":
		return "", fmt.Errorf("%s belongs to 2018 and %s to 4.3: use options of one generation", until, since)
	case until != "":
		return of2018, nil
	case since == "" && of[of41] != "":
		return of41, nil
	}
	return of43, nil
}

// settings are the values of a command line.
type settings struct {
	generation string
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
	props      *compat.KafkaProps
	fileFlag   string
	share      bool // for a share group
}

// check checks the options, with the tool's messages.
func check(generation string, v *jopt.Values) error {
	for _, o := range known {
		if v.Has(o.Name) && !slices.Contains(o.in, generation) {
			return fmt.Errorf("%s is not a recognized option", o.Name)
		}
	}
	switch {
	case generation == of43:
		return first(v.Missing("bootstrap-server"), v.OneOf("topic", "include"), v.OneOf("messages", "num-records"), v.Exclusive("consumer.config", "command-config"))
	case v.Has("bootstrap-server"), v.Has("broker-list"), v.Has("zookeeper"):
		return v.Missing("topic", "messages")
	case generation == of2018:
		return v.Missing("broker-list")
	}
	return v.Missing("bootstrap-server")
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads the options' values.
func read(generation string, v *jopt.Values) (*settings, error) {
	s := &settings{
		generation: generation, latest: v.Has("from-latest"), detailed: v.Has("show-detailed-stats"),
		header: !v.Has("hide-header"), metrics: v.Has("print-metrics"), threads: 1, fileFlag: "--command-config",
	}
	var err error
	text := func(names ...string) string {
		for _, name := range names {
			t, e := v.Text(name)
			err = first(err, e)
			if v.Has(name) {
				return t
			}
		}
		return ""
	}
	number := func(name string) int64 {
		n, e := v.Number(name)
		err = first(err, e)
		return n
	}
	for _, name := range []string{"bootstrap-server", "broker-list", "zookeeper"} {
		if v.Has(name) {
			list := text(name)
			if name == "zookeeper" {
				list, s.chroot = withoutChroot(list)
			}
			var e error
			s.from = "--" + name
			s.brokers, e = compat.KafkaServers(list)
			err = first(err, e)
			break
		}
	}
	s.topic, s.byName = text("topic"), v.Has("topic")
	s.include = text("include")
	s.count = number("messages")
	if v.Has("num-records") {
		s.count = number("num-records")
	}
	if s.group = text("group"); !v.Has("group") {
		s.group = fmt.Sprintf("perf-consumer-%d", rand.IntN(100_000)) //nolint:gosec // a name, not a secret
	}
	if v.Has("zookeeper") || v.Has("threads") {
		s.threads = number("threads")
	}
	s.fetchSize, s.bufferSize, s.timeout, s.interval = number("fetch-size"), number("socket-buffer-size"), number("timeout"), number("reporting-interval")
	pattern, e := v.Text("date-format")
	err = first(err, e)
	var e2 error
	s.dates, e2 = parseDate(pattern)
	for _, name := range ignored {
		if o := known[slices.IndexFunc(known, func(o option) bool { return o.Name == name })]; o.Kind == jopt.Int {
			number(name)
		}
	}
	file := text("command-config", "consumer.config")
	if v.Has("consumer.config") {
		s.fileFlag = "--consumer.config"
	}
	if err = first(err, e2, s.check()); err != nil {
		return nil, err
	}
	s.props, err = compat.ReadKafkaProps(file, pairs(v.All("command-property")))
	return s, err
}

// check checks the values.
func (s *settings) check() error {
	switch {
	case s.byName && strings.TrimSpace(s.topic) == "":
		return errors.New("Topic collection to subscribe to cannot contain null or empty topic")
	case !s.byName && s.include == "":
		return errors.New("Topic pattern to subscribe to cannot be empty")
	case s.byName && compat.CheckKafkaTopic(s.topic) != nil:
		return compat.CheckKafkaTopic(s.topic)
	case compat.CheckExpression("--include", s.include) != nil:
		return compat.CheckExpression("--include", s.include)
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
	parts := strings.Split(compat.KafkaHosts(list), ",")
	for i, p := range parts {
		host, _, cut := strings.Cut(p, "/")
		parts[i], was = host, was || cut
	}
	return strings.Join(parts, ","), was
}

// pairs gives properties without a value an empty value, as the tool does.
func pairs(all []string) []string {
	out := slices.Clone(all)
	for i := range out {
		if !strings.Contains(out[i], "=") {
			out[i] += "="
		}
	}
	return out
}

// warn names the arguments that have little or no effect.
func (s *settings) warn(w io.Writer, v *jopt.Values) {
	for _, arg := range v.Rest {
		fmt.Fprint(w, compat.UnknownOption(arg))
	}
	for _, name := range ignored {
		if v.Has(name) {
			fmt.Fprintf(w, "warning: --%s has no meaning and is ignored\n", name)
		}
	}
	if v.Has("zookeeper") {
		if s.from == "--zookeeper" {
			fmt.Fprintln(w, "hint: Kafka has no ZooKeeper any more and brokers are needed: the addresses of --zookeeper are used as theirs; give --broker-list or --bootstrap-server")
			if s.chroot {
				fmt.Fprintln(w, "hint: the part after the / of --zookeeper is a path in ZooKeeper and is ignored")
			}
		} else {
			fmt.Fprintf(w, "warning: --zookeeper is ignored: Kafka has no ZooKeeper any more, and %s names the brokers\n", s.from)
		}
	}
	if s.generation == of2018 && s.detailed && v.Has("reporting-interval") {
		fmt.Fprintf(w, "warning: --reporting-interval %d is in milliseconds, as since 0.11; until 0.10 it was in messages\n", s.interval)
	}
	if s.interval < 10 {
		fmt.Fprintf(w, "warning: --reporting-interval %d: the shortest is 10 here\n", s.interval)
	}
	s.props.Warn(w, "consume")
	options := []string{"bootstrap.servers", "group.id", "receive.buffer.bytes", "max.partition.fetch.bytes", "auto.offset.reset"}
	if s.share {
		options = append(options, "fetch.max.bytes")
	}
	for _, name := range options {
		if _, ok := s.props.Get(name); ok {
			fmt.Fprintf(w, "warning: the tool's option overrides the client property %s\n", name)
		}
	}
}

// workload translates the settings to a workload.
func (s *settings) workload(strict bool) *compat.Draft {
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
	if _, ok := s.props.Get("fetch.max.bytes"); !ok {
		d.Set("fetch-max", "kafka-consumer-perf-test", "50MiB") // Java's default
	}
	if _, ok := s.props.Get("client.id"); !ok {
		d.Set("client-id", "kafka-consumer-perf-test", clientID)
	}
	if s.metrics {
		d.Set("client-metrics", "--print-metrics", "true")
	}
	s.props.Set(&d, s.fileFlag, "--command-property")
	return &d
}
