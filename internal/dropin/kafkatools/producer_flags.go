package kafkatools

import "slices"

// program is the tool's name in its messages.
func (g kafkaGeneration) program() string {
	if g == of43 {
		return "kafka-producer-perf-test"
	}
	return "producer-performance"
}

// profile is the client whose defaults the tool had.
func (g kafkaGeneration) profile() string {
	if g == of2018 {
		return "java1"
	}
	return "java"
}

// A producerFlag is one of the producer's tool's flags.
type producerFlag struct {
	name, meta string
	kind       valueKind
	since      kafkaGeneration
	required   bool
	oneOf      bool // one of the flags that select the payload
	help       string
}

const propertyPairs = "PROP-NAME=PROP-VALUE"

// producerFlags contains every flag of the producer's tool, in the order of the tool's usage.
var producerFlags = []producerFlag{
	{name: "--help", kind: noValue, help: "this text"},
	{name: "--bootstrap-server", meta: "BOOTSTRAP-SERVER", since: of43, help: "brokers to ask first: host:port, separated by commas"},
	{name: "--topic", meta: "TOPIC", required: true, help: "the topic; created with the broker's defaults if it is missing"},
	{name: "--num-records", meta: "NUM-RECORDS", kind: longValue, required: true, help: "how many records"},
	{name: "--payload-delimiter", meta: "PAYLOAD-DELIMITER", help: "between the records of a file, a regular expression (\\n)"},
	{name: "--throughput", meta: "THROUGHPUT", kind: fractionValue, required: true, help: "records a second; -1: unlimited"},
	{name: "--producer-props", meta: propertyPairs, kind: listValue, help: "properties of the Java client; they override a file's"},
	{name: "--command-property", meta: propertyPairs, kind: listValue, since: of43, help: "the same"},
	{name: "--producer.config", meta: "CONFIG-FILE", help: "a file of such properties"},
	{name: "--command-config", meta: "CONFIG-FILE", since: of43, help: "the same"},
	{name: "--print-metrics", kind: noValue, help: "print client metrics (only measured ones) after the summary"},
	{name: "--transactional-id", meta: "TRANSACTIONAL-ID", help: "produce in transactions of this id"},
	{name: "--transaction-duration-ms", meta: "TRANSACTION-DURATION", kind: longValue, help: "length of a transaction (3000; 2018: no transactions without it)"},
	{name: "--warmup-records", meta: "WARMUP-RECORDS", kind: longValue, since: of43, help: "number of first records that a second summary leaves out (0)"},
	{name: "--reporting-interval", meta: "INTERVAL-MS", kind: longValue, since: of43, help: "milliseconds between lines (5000)"},
	{name: "--record-size", meta: "RECORD-SIZE", kind: integerValue, oneOf: true, help: "bytes of a record: random capital letters, different in each (2018 with --strict: the same in all)"},
	{name: "--payload-file", meta: "PAYLOAD-FILE", oneOf: true, help: "file of records, drawn at random"},
	{name: "--payload-monotonic", kind: noValue, since: of41, oneOf: true, help: "records are the numbers 0, 1, 2 ..."},
}

// flags are the flags of a generation.
func (g kafkaGeneration) flags() []producerFlag {
	out := slices.DeleteFunc(slices.Clone(producerFlags), func(f producerFlag) bool { return f.since > g })
	if g == of2018 {
		for i := range out {
			if out[i].name == "--throughput" {
				out[i].kind = integerValue
			}
		}
	}
	return out
}
