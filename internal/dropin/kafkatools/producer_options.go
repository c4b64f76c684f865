package kafkatools

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"carronade/internal/dropin"
	"carronade/internal/workload"
	"carronade/payload"
)

// producerOptions are the values of the flags.
type producerOptions struct {
	generation       kafkaGeneration // of lines and messages
	clientGeneration kafkaGeneration // of the client, payloads and transactions
	strict           bool

	topic      string
	records    int64
	size       int64
	fromFile   bool
	file       string
	delimiter  string
	monotonic  bool
	throughput float64

	bootstrap           string
	servers             string // the same in a target's form
	props               []string
	propsFlag           string
	config, configFlag  string
	metrics             bool
	transactional       bool
	transactionalID     string
	transactionDuration int64 // ms; 0: not given
	warmup              int64
	interval            int64 // ms

	client  *properties
	remarks []string // on flags with no effect or less effect than given
}

const (
	defaultInterval                   = 5000                                            // ms
	defaultTransaction                = 3000                                            // ms
	shortestInterval, longestInterval = 10, 24 * 3600 * 1000                            // ms between lines
	oldTransactionalID                = "performance-producer-default-transactional-id" // of 2018
	// unlimitedRate is the lowest rate that counts as unlimited: no client reaches it,
	// and users who give it mean as fast as possible.
	unlimitedRate = 10_000_000
)

// options reads the given flags and checks them in the tool's order.
func (r producerReading) options(given map[string][]string, strict bool) (*producerOptions, *argparseError) {
	o := &producerOptions{
		generation: r.lines, clientGeneration: r.clientGeneration, strict: strict,
		topic: producerText(given, "--topic"), records: producerNumber(given, "--num-records", 0),
		size: producerNumber(given, "--record-size", 0), fromFile: hasProducerFlag(given, "--payload-file"), file: producerText(given, "--payload-file"), delimiter: `\n`,
		bootstrap: producerText(given, "--bootstrap-server"),
		metrics:   hasProducerFlag(given, "--print-metrics"), monotonic: hasProducerFlag(given, "--payload-monotonic"),
		transactionalID:     producerText(given, "--transactional-id"),
		transactionDuration: producerNumber(given, "--transaction-duration-ms", 0),
		warmup:              max(producerNumber(given, "--warmup-records", 0), 0),
		interval:            producerNumber(given, "--reporting-interval", defaultInterval),
	}
	if hasProducerFlag(given, "--payload-delimiter") {
		o.delimiter = producerText(given, "--payload-delimiter")
	}
	o.throughput, _ = strconv.ParseFloat(producerText(given, "--throughput"), 64)
	for _, name := range []string{"--command-property", "--producer-props"} {
		if given[name] != nil {
			o.props, o.propsFlag = given[name], name
		}
	}
	for _, name := range []string{"--command-config", "--producer.config"} {
		if hasProducerFlag(given, name) {
			o.config, o.configFlag = producerText(given, name), name
		}
	}
	o.remark(given)
	return o, o.check(given)
}

func producerText(given map[string][]string, name string) string {
	if v := given[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

func hasProducerFlag(given map[string][]string, name string) bool { _, ok := given[name]; return ok }

func producerNumber(given map[string][]string, name string, otherwise int64) int64 {
	if !hasProducerFlag(given, name) {
		return otherwise
	}
	n, _ := strconv.ParseInt(producerText(given, name), 10, 64) // parse has checked it
	return n
}

func (o *producerOptions) check(given map[string][]string) *argparseError {
	dot := ""
	if o.generation == of43 {
		dot = "."
	}
	positive := func(name string) *argparseError { return argparseErrorf("%s should be greater than zero%s", name, dot) }
	_, transaction := given["--transaction-duration-ms"]
	switch {
	case o.records <= 0:
		return positive("--num-records")
	case o.warmup >= o.records:
		return argparseErrorf("The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records.")
	case hasProducerFlag(given, "--record-size") && o.size <= 0:
		return positive("--record-size")
	case o.bootstrap == "" && o.props == nil && o.configFlag == "":
		if o.generation == of43 {
			return argparseErrorf("At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or --command-config must be specified.")
		}
		return argparseErrorf("Either --producer-props or --producer.config must be specified.")
	case hasProducerFlag(given, "--command-property") && hasProducerFlag(given, "--producer-props"):
		return argparseErrorf("--command-property and --producer-props cannot be specified together.")
	case hasProducerFlag(given, "--command-config") && hasProducerFlag(given, "--producer.config"):
		return argparseErrorf("--command-config and --producer.config cannot be specified together.")
	case transaction && o.transactionDuration <= 0 && o.clientGeneration > of2018:
		return positive("--transaction-duration-ms")
	case o.interval <= 0:
		return positive("--reporting-interval")
	case o.throughput == 0:
		return argparseErrorf("--throughput 0 would wait forever: give a rate, or -1 for no limit")
	}
	return nil
}

// read reads the properties and the names that depend on them. Its errors are
// exceptions in the tool.
func (o *producerOptions) read() error {
	for _, p := range o.props {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" || o.strict && (value == "" || strings.Contains(value, "=")) {
			// The value may be a password.
			return &dropin.Exception{Class: "java.lang.IllegalArgumentException", Text: "Invalid property: " + name}
		}
	}
	var err error
	if o.client, err = readProperties(o.config, o.props); err != nil {
		return err
	}
	if o.bootstrap == "" {
		o.bootstrap, _ = o.client.get("bootstrap.servers")
	}
	if o.bootstrap == "" {
		return &dropin.Exception{Class: "org.apache.kafka.common.config.ConfigException", Text: `Missing required configuration "bootstrap.servers" which has no default value.`}
	}
	if o.servers, err = readServers(o.bootstrap); err != nil {
		return &dropin.Exception{Class: "org.apache.kafka.common.config.ConfigException", Text: err.Error()}
	}
	o.remarkConflicts()
	id, inProps := o.client.get("transactional.id")
	switch o.clientGeneration {
	case of2018:
		o.transactional = o.transactionDuration > 0 || inProps
		id = cmp.Or(id, oldTransactionalID)
	default:
		o.transactional = o.transactionDuration > 0 || o.transactionalID != "" || inProps
		id = cmp.Or(id, "performance-producer-"+rand.Text())
	}
	o.transactionalID = cmp.Or(o.transactionalID, id)
	if o.transactionDuration <= 0 {
		o.transactionDuration = defaultTransaction
	}
	return nil
}

// payload is the workload's payload setting.
func (o *producerOptions) payload() string {
	switch {
	case o.fromFile:
		return fmt.Sprintf("file(%s,random,match=%s)", o.file, o.delimiter)
	case o.monotonic:
		return "monotonic"
	case o.clientGeneration == of2018 && o.strict:
		return "letters(1)" // one payload for all records
	}
	return "letters"
}

// values counts the records in the payload file.
func (o *producerOptions) values() (int, error) {
	g, err := payload.New(payload.Spec{Payload: o.payload()})
	if err != nil {
		return 0, err
	}
	return g.FileValues(), nil
}

// scheduled reports whether records are due by a schedule.
func (o *producerOptions) scheduled() bool { return o.throughput > 0 && o.throughput < unlimitedRate }

// workload translates the options to a workload.
func (o *producerOptions) workload() *workload.Document {
	var d dropin.Draft
	d.Setf("target", "--bootstrap-server", "kafka://%s/%s", o.servers, o.topic)
	d.Set("profile", "--generation", o.clientGeneration.profile())
	if _, ok := o.client.get("client.id"); !ok {
		d.Set("client-property", "client.id", "client.id="+producerClientID)
	}
	o.client.set(&d, o.configFlag, o.propsFlag)
	d.Set("create-topic", "--topic", "auto")
	d.Set("payload", "--record-size", o.payload())
	if o.size > 0 {
		d.Set("size", "--record-size", strconv.FormatInt(o.size, 10))
	}
	// The tool makes each record and compresses each batch as it sends them.
	d.Set("fresh", "kafka-producer-perf-test", "true")
	d.Set("count", "--num-records", strconv.FormatInt(o.records-o.warmup, 10))
	if o.warmup > 0 {
		d.Set("warmup", "--warmup-records", strconv.FormatInt(o.warmup, 10))
	}
	d.Setf("interval", "--reporting-interval", "%dms", min(max(o.interval, shortestInterval), longestInterval))
	// The tool ends when everything was answered or given up, however long that
	// takes: overdue records wait as long as the run would.
	drain := "3m"
	if o.scheduled() {
		d.SetRate("--throughput", o.throughput)
		drain = "168h"
	}
	d.Set("drain", "--num-records", drain)
	if o.transactional {
		d.Set("engine", "--transactional-id", "client")
		d.Set("transactions", "--transactional-id", "true")
		d.Set("transactional-id", "--transactional-id", o.transactionalID)
		d.Setf("transaction-interval", "--transaction-duration-ms", "%dms", o.transactionDuration)
	}
	return &d.Document
}

// absolutePath is a file's path as the tool shows it.
func absolutePath(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		return path
	}
	return file
}
