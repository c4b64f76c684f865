package sangrenel

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"

	"carronade/internal/dropin"
	"carronade/internal/dropin/kafkatools"
	"carronade/internal/workload"
)

// sangrenelOptions are the flags of all generations.
type sangrenelOptions struct {
	brokers, topic string
	noop           bool
	workers        int

	size int // 2014 and 2015

	clients, producers, maxBatch int // 2015

	messageSize, batch int // 2022
	rate               uint64
	compression, acks  string
	writers            int
	interval           int
	version            string
	tls                bool
	ca, cert, key      string
	insecure           bool
	graphiteIP, prefix string
	graphitePort       string

	lines string          // the generation
	given map[string]bool // the given flags, by name
	rest  []string        // arguments after the flags
}

// sangrenelUnlimited is the rate that means no limit.
const sangrenelUnlimited = 100_000_000

// writersPerClient is how many messages a client had in flight: each of
// five goroutines sends one and waits for its answer.
const writersPerClient = 5

// sangrenelPayload describes the messages: characters drawn from a set of 79, anew for each
// message. A codec can save about a fifth of each byte, which they do not need. The set of 2014
// also had the percent sign.
const (
	sangrenelPayload     = `chars(a-zA-Z0-9!@#$^&*(){}][:<>.)`
	sangrenelPayload2014 = `chars(a-zA-Z0-9!@#$%^&*(){}][:<>.)`
)

// flagSet binds the options to flags.
func (o *sangrenelOptions) flagSet(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.StringVar(&o.brokers, "brokers", "localhost:9092", "Kafka brokers, separated by commas")
	fs.BoolVar(&o.noop, "noop", false, "make messages without sending them")
	fs.IntVar(&o.size, "size", 300, "bytes of a message (2014, 2015)")
	fs.StringVar(&o.topic, "topic", "sangrenel", "topic to publish to")
	fs.IntVar(&o.workers, "workers", 1, "Kafka clients")

	fs.Uint64Var(&o.rate, "rate", sangrenelUnlimited, "messages/s of all clients together (2015)")
	fs.IntVar(&o.maxBatch, "batch", 0, "most messages in a batch, 0: unlimited (2015)")
	fs.IntVar(&o.clients, "clients", 1, "Kafka clients (2015)")
	fs.IntVar(&o.producers, "producers", writersPerClient, "messages in flight per client (2015)")

	fs.IntVar(&o.messageSize, "message-size", 300, "bytes of a message")
	fs.IntVar(&o.batch, "message-batch-size", 500, "messages in a batch")
	fs.Uint64Var(&o.rate, "produce-rate", sangrenelUnlimited, "messages/s of all workers together")
	fs.StringVar(&o.compression, "compression", "none", "none, gzip or snappy; lz4 and zstd, too, here")
	fs.StringVar(&o.acks, "required-acks", "local", "none, local or all")
	fs.IntVar(&o.writers, "writers-per-worker", writersPerClient, "batches in flight per worker")
	fs.IntVar(&o.writers, "producers-per-worker", writersPerClient, "the name of -writers-per-worker in June 2017")
	fs.IntVar(&o.interval, "interval", 5, "seconds between lines")
	fs.StringVar(&o.version, "api-version", "", "version of Kafka's protocol; ignored: brokers are asked for their versions")
	fs.BoolVar(&o.tls, "tls", false, "speak TLS")
	fs.StringVar(&o.ca, "tls-ca-cert", "", "CA certificate file")
	fs.StringVar(&o.cert, "tls-cert-file", "", "file of the client's certificate")
	fs.StringVar(&o.key, "tls-key-file", "", "file of its key")
	fs.BoolVar(&o.insecure, "tls-insecure-skip-verify", false, "do not verify the server's certificate")
	fs.StringVar(&o.graphiteIP, "graphite-ip", "", "Graphite's address")
	fs.StringVar(&o.graphitePort, "graphite-port", "", "Graphite's port (2003)")
	fs.StringVar(&o.prefix, "graphite-metrics-prefix", "", "prefix of the series' names (default: this host's name)")
	return fs
}

// The generations, by the year of their lines.
const (
	sangrenel2014 = "2014"
	sangrenel2015 = "2015" // until 2016
	sangrenel2022 = "2022" // since June 2017
)

var sangrenelGenerations = []string{sangrenel2014, sangrenel2015, sangrenel2022}

// hasFlag reports whether a generation has a flag.
func hasFlag(generation, name string) bool {
	switch name {
	case "brokers", "noop", "topic":
		return true
	case "size":
		return generation != sangrenel2022
	case "workers": // in 2015 only until March
		return true
	case "rate", "batch", "clients", "producers":
		return generation == sangrenel2015
	case "compression", "graphite-ip", "graphite-port", "graphite-metrics-prefix":
		return generation != sangrenel2014
	}
	return generation == sangrenel2022
}

// unanswered reports whether brokers send no answers.
func (o *sangrenelOptions) unanswered() bool { return o.acks == "none" }

// sangrenelVersionForm matches what sangrenel's client reads as a version: four numbers
// before 1.0.0, three numbers since.
var sangrenelVersionForm = regexp.MustCompile(`\A(0\.\d+\.\d+\.\d+|[1-9]\d*\.\d+\.\d+)\z`)

// sangrenelVersions are those that sangrenel lists after a wrong version.
var sangrenelVersions = strings.Fields(`0.8.2.0 0.8.2.1 0.8.2.2 0.9.0.0 0.9.0.1 0.10.0.0 0.10.0.1 0.10.1.0 0.10.2.0 0.11.0.0 ` +
	`1.0.0 1.1.0 2.0.0 2.0.1 2.1.0 2.2.0 2.3.0 2.4.0 2.5.0 2.6.0 2.7.0 2.8.0`)

// check returns sangrenel's message about an invalid option.
func (o *sangrenelOptions) check() string {
	is2022 := o.lines == sangrenel2022
	switch {
	case o.workers < 1:
		return fmt.Sprintf("Invalid workers option: %d", o.workers)
	case !is2022 && o.size < 1:
		return fmt.Sprintf("Invalid size option: %d", o.size)
	case o.clients < 1:
		return fmt.Sprintf("Invalid clients option: %d", o.clients)
	case o.producers < 1:
		return fmt.Sprintf("Invalid producers option: %d", o.producers)
	case o.maxBatch < 0:
		return fmt.Sprintf("Invalid batch option: %d", o.maxBatch)
	case o.lines == sangrenel2015 && o.rate < 1:
		return "Invalid rate option: 0"
	}
	if !o.noop { // both become parts of an address
		if err := kafkatools.CheckTopic(o.topic); err != nil {
			return fmt.Sprintf("Invalid topic option: %s\n%v", o.topic, err)
		}
		for broker := range strings.SplitSeq(o.brokers, ",") {
			if broker = strings.TrimSpace(broker); broker == "" || strings.ContainsAny(broker, "/?#@% \t") {
				return fmt.Sprintf("Invalid brokers option: %s", o.brokers)
			}
		}
	}
	switch o.compression {
	case "none", "gzip", "snappy", "lz4", "zstd":
	default:
		return "Invalid compression option: " + o.compression
	}
	if !is2022 {
		return ""
	}
	switch o.acks {
	case "none", "local", "all":
	default:
		return "Invalid required-acks option: " + o.acks
	}
	switch {
	case o.messageSize < 1:
		return fmt.Sprintf("Invalid message-size option: %d", o.messageSize)
	case o.batch < 1:
		return fmt.Sprintf("Invalid message-batch-size option: %d", o.batch)
	case o.writers < 1:
		return fmt.Sprintf("Invalid writers-per-worker option: %d", o.writers)
	case o.interval < 1:
		return fmt.Sprintf("Invalid interval option: %d", o.interval)
	case o.rate < 1:
		return "Invalid produce-rate option: 0"
	case o.version != "" && !sangrenelVersionForm.MatchString(o.version):
		return fmt.Sprintf("Invalid API version option: %s\nOptions: %+q", o.version, sangrenelVersions)
	}
	return ""
}

// tlsFlags are the flags that have a meaning only with -tls.
var tlsFlags = []string{"tls-ca-cert", "tls-cert-file", "tls-key-file", "tls-insecure-skip-verify"}

// warn names the given flags that do nothing.
func (o *sangrenelOptions) warn(p *dropin.Program) {
	unused := func(why string, names ...string) {
		for _, name := range names {
			if o.given[name] {
				fmt.Fprintf(p.Err, "warning: -%s does nothing: %s\n", name, why)
			}
		}
	}
	if o.version != "" {
		unused("brokers are asked for their versions", "api-version")
	}
	switch {
	case o.noop:
		unused("-noop does not connect", append([]string{"brokers", "compression", "required-acks", "tls"}, tlsFlags...)...)
		unused("-noop goes as fast as messages are made", "produce-rate", "rate")
	case !o.tls:
		unused("-tls is not given", tlsFlags...)
	case o.cert != "" && o.key == "":
		unused("a client's certificate needs its key, -tls-key-file", "tls-cert-file")
	case o.key != "" && o.cert == "":
		unused("a key needs its certificate, -tls-cert-file", "tls-key-file")
	}
	if o.graphiteIP == "" {
		unused("-graphite-ip is not given", "graphite-port", "graphite-metrics-prefix")
	}
	if o.maxBatch > 0 {
		unused("each producer sends a message and waits for its answer, so that a batch has one", "batch")
	}
	if len(o.rest) > 0 {
		fmt.Fprintf(p.Err, "warning: %q is not a flag: it and the arguments after it are ignored\n", o.rest[0])
	}
}

const (
	usualBatch = 256 << 10 // Carronade's limit of a batch, in bytes, unless it is given
	mostBatch  = 1_000_000 // brokers take a little more, unless they are configured
	// The most bytes that a batch and a message in it have in addition.
	batchExtra, messageExtra = 61, 32
)

// batchBytes is the size of a batch of n messages, at most.
func batchBytes(size, n int) int {
	if n > math.MaxInt32/(size+messageExtra) {
		return math.MaxInt32
	}
	return batchExtra + n*(size+messageExtra)
}

// warnOfSmallBatches says so where batches have fewer messages than the flag says.
func (o *sangrenelOptions) warnOfSmallBatches(p *dropin.Program) {
	if fit := max((mostBatch-batchExtra)/(o.messageSize+messageExtra), 1); fit < o.batch && !o.noop {
		fmt.Fprintf(p.Err, "note: brokers take batches of up to 1 MB: those of messages of %d bytes have about %d, not %d\n", o.messageSize, fit, o.batch)
	}
}

// workload translates the options to a workload.
func (o *sangrenelOptions) workload() *workload.Document {
	var d dropin.Draft
	is2022, payload := o.lines == sangrenel2022, sangrenelPayload
	size, batch, clients, writers := o.size, 1, o.workers, writersPerClient
	switch o.lines {
	case sangrenel2014:
		payload = sangrenelPayload2014
	case sangrenel2015:
		clients, writers = o.clientsOf2015(), o.producers
	case sangrenel2022:
		size, batch, writers = o.messageSize, o.batch, o.writers
	}
	if o.noop {
		d.Set("target", "-noop", "null://noop")
	} else {
		d.Setf("target", "-brokers", "kafka://%s/%s", kafkatools.HostList(o.brokers), o.topic)
		d.Set("acks", "-required-acks", map[string]string{"none": "0", "local": "1", "all": "all"}[o.acks])
		d.Set("compression", "-compression", o.compression)
		// Brokers create a missing topic, with their own defaults. The documentation of
		// 2014 gives its brokers two partitions.
		topic := "auto"
		if o.lines == sangrenel2014 {
			topic = "partitions=2"
		}
		d.Set("create-topic", "-topic", topic)
		o.setTLS(&d)
	}
	d.Set("size", "-message-size", strconv.Itoa(size))
	d.Set("payload", "sangrenel", payload)
	d.Set("fresh", "sangrenel", "true")
	d.Set("batch-events", "-message-batch-size", strconv.Itoa(batch))
	if need := batchBytes(size, batch); need > usualBatch {
		if !o.noop {
			need = min(need, mostBatch)
		}
		d.Set("batch-size", "-message-batch-size", strconv.Itoa(need))
	}
	d.Set("clients", "-workers", strconv.Itoa(clients))
	d.Set("max-in-flight", "-writers-per-worker", strconv.Itoa(writers))
	d.Setf("interval", "-interval", "%ds", o.interval)
	switch {
	case o.rate < sangrenelUnlimited && !o.noop:
		d.Setf("rate", map[bool]string{true: "-produce-rate", false: "-rate"}[is2022], "%d/s", o.rate)
	case !o.noop:
		d.Set("concurrency", "-writers-per-worker", strconv.Itoa(clients*writers))
	}
	if o.graphiteIP != "" {
		d.Set("graphite", "-graphite-ip", net.JoinHostPort(o.graphiteIP, cmp.Or(o.graphitePort, "2003")))
		prefix := o.prefix
		if prefix == "" { // keep the dots, which make levels; carronade's own default has none
			prefix, _ = os.Hostname()
		}
		if prefix != "" {
			d.Set("graphite-prefix", "-graphite-metrics-prefix", prefix)
		}
	}
	return &d.Document
}

// clientsOf2015 are the clients: early that year the flag had the name of 2014.
func (o *sangrenelOptions) clientsOf2015() int {
	if o.given["workers"] {
		return o.workers
	}
	return o.clients
}

// setTLS sets the TLS settings. A client's certificate needs its key.
func (o *sangrenelOptions) setTLS(d *dropin.Draft) {
	if !o.tls {
		return
	}
	d.Set("tls", "-tls", "true")
	if o.ca != "" {
		d.Set("tls-ca", "-tls-ca-cert", o.ca)
	}
	if o.cert != "" && o.key != "" {
		d.Set("tls-cert", "-tls-cert-file", o.cert)
		d.Set("tls-key", "-tls-key-file", o.key)
	}
	if o.insecure {
		d.Set("tls-insecure-skip-verify", "-tls-insecure-skip-verify", "true")
	}
}
