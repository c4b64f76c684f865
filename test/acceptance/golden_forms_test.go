//go:build conformance

package acceptance

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit/kafkatest"
)

// producerForms are the lines of kafka-producer-perf-test 4.3.
var producerForms = []form{
	many("window", `(?P<records>\d+) records sent, (?P<rate>\d+\.\d) records/sec \((?P<mb>\d+\.\d\d) MB/sec\), (?P<avg>\d+\.\d) ms avg latency, (?P<max>\d+\.\d) ms max latency\.`),
	line("total", `(?P<records>\d+) records sent, `+producerRates),
	line("steady", `(?P<records>\d+) steady state records sent, `+producerRates),
	line("warmup", `Warmup first (?P<records>\d+) records\. Steady state results will print after the complete test summary\.`),
	line("reading", `Reading payloads from: /.+`),
	line("read", `Number of records read: (?P<records>\d+)`),
	line("deprecated", `Option --producer(-props|\.config) has been deprecated and will be removed in a future version\. Use --command-(property|config) instead\.`),
}

// steadyForms are those of a run with a warm-up.
var steadyForms = slices.Concat(producerForms, []form{line("in steady state", `In steady state\.`)})

// producerForms2018 are those of 1.1, whose window prints the maximum without a unit.
var producerForms2018 = []form{
	many("window", `(?P<records>\d+) records sent, (?P<rate>\d+\.\d) records/sec \((?P<mb>\d+\.\d\d) MB/sec\), (?P<avg>\d+\.\d) ms avg latency, (?P<max>\d+\.\d) max latency\.`),
	line("total", `(?P<records>\d+) records sent, `+producerRates),
}

// producerMetrics are the table of --print-metrics. Each client has its own rows.
var producerMetrics = []form{
	line("blank", ``),
	line("head", `Metric Name +Value`),
	atLeast(5, "metric", `(?P<name>[a-z-]+:[a-z0-9-]+):\{client-id=[^}]+\} +: (-?\d+\.\d{3}|NaN|-?Infinity)`),
	atLeast(1, "words", `(?P<name>app-info:[a-z-]+):\{client-id=[^}]+\} +: .+`),
}

const producerRates = `(?P<rate>\d+\.\d{6}) records/sec \((?P<mb>\d+\.\d\d) MB/sec\), (?P<avg>\d+\.\d\d|NaN) ms avg latency, (?P<max>\d+\.\d\d) ms max latency, ` +
	`(?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99\.9th\.`

// The lines of kafka-consumer-perf-test 4.3.
const (
	consumerStamp   = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}`
	consumerColumns = `data\.consumed\.in\.MB, MB\.sec, data\.consumed\.in\.nMsg, nMsg\.sec, rebalance\.time\.ms, fetch\.time\.ms, fetch\.MB\.sec, fetch\.nMsg\.sec`
	consumerValues  = `(?P<mb>\d+\.\d{4}), (?P<mbs>\d+\.\d{4}), (?P<messages>\d+), (?P<rate>\d+\.\d{4}), (?P<rebalance>\d+), (?P<fetch>\d+), (?P<fetchmbs>\d+\.\d{4}), (?P<fetchrate>\d+\.\d{4})`
)

var (
	consumerHeader = line("header", `start\.time, end\.time, `+consumerColumns)
	consumerTotal  = line("total", consumerStamp+`, `+consumerStamp+`, `+consumerValues)
	consumerLate   = line("late", `WARNING: Exiting before consuming the expected number of records: timeout \((?P<ms>\d+) ms\) exceeded\. You can use the --timeout option to increase the timeout\.`)
	consumerOld    = line("deprecated", `Warning: --messages is deprecated\. Use --num-records instead\.`)

	consumerForms   = []form{consumerHeader, consumerTotal, consumerLate, consumerOld}
	consumerDetails = []form{line("header", `time, threadId, `+consumerColumns), atLeast(1, "row", consumerStamp+`, 0, `+consumerValues), consumerLate}
	consumerMetrics = []form{
		consumerHeader, consumerTotal, line("blank", ``), line("head", `Metric Name +Value`),
		consumerMetric,
	}
	consumerMetric = atLeast(5, "metric", `(?P<name>[a-z-]+:[a-z0-9.-]+):\{client-id=[^}]+\} +: (-?\d+\.\d{3}|NaN|-?Infinity|[^ ].*)`)
)

// latencyForms are the lines of kafka-e2e-latency 4.3.
var latencyForms = []form{
	line("made", `Topic "[^"]+" does not exist\. Will create topic with 1 partition\(s\) and replication factor = 1`),
	line("deprecated", `WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5\.0\. Please use named arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, --record-size, --command-config`),
	line("thousandth", `(?P<i>\d+)\t(?P<ms>\d+\.\d+)`),
	line("mean", `Avg latency: (?P<ms>\d+\.\d{4}) ms`),
	line("percentiles", `Percentiles: 50th = (?P<p50>\d+), 99th = (?P<p99>\d+), 99\.9th = (?P<p999>\d+)`),
}

// shareForms are the lines of kafka-share-consumer-perf-test 4.3, whose columns have another order.
var shareForms = []form{
	line("header", `start\.time, end\.time, data\.consumed\.in\.MB, MB\.sec, nMsg\.sec, data\.consumed\.in\.nMsg, fetch\.time\.ms`),
	line("total", shareValues),
	line("consumer", `Share consumer (?P<i>\d+) having client id (?P<id>\S+) consumption metrics- `+shareValues),
	consumerLate, consumerOld,
}

// shareDetails are those of --show-detailed-stats, shareMetrics of --print-metrics.
var (
	shareDetails = slices.Concat(shareForms, []form{atLeast(1, "row", shareValues+` for share consumer \d+`)})
	shareMetrics = slices.Concat(shareForms, []form{line("blank", ``), line("head", `Metric Name +Value`), consumerMetric})
)

const shareValues = consumerStamp + `, ` + consumerStamp + `, (?P<mb>\d+\.\d{4}), (?P<mbs>\d+\.\d{4}), (?P<rate>\d+\.\d{4}), (?P<messages>\d+), (?P<fetch>\d+)`

// goldenForms are the forms that testdata/goldens.yaml names.
var goldenForms = map[string][]form{
	"producer": producerForms, "producer steady": steadyForms, "producer metrics": slices.Concat(producerForms, producerMetrics),
	"consumer": consumerForms, "consumer details": consumerDetails, "consumer metrics": consumerMetrics,
	"consumer dates": {consumerHeader, line("total", strings.ReplaceAll(`STAMP, STAMP, `, "STAMP", `\d{8}T\d{6}\.\d{3}(Z|[+-]\d{4})`)+consumerValues)},
	"latency":        latencyForms,
	"share":          shareForms, "share details": shareDetails, "share metrics": shareMetrics,
}

// goldenClasses are the classes of Kafka's tools.
var goldenClasses = map[string]string{
	"kafka-producer-perf-test": "ProducerPerformance", "kafka-consumer-perf-test": "ConsumerPerformance",
	"kafka-e2e-latency": "EndToEndLatency", "kafka-share-consumer-perf-test": "ShareConsumerPerformance",
}

// fillTopic puts n records of 100 bytes into a topic.
func fillTopic(t *testing.T, broker *kafkatest.Cluster, topic string, n int) {
	t.Helper()
	run(t, "run", topicURL(broker, topic), "--count", strconv.Itoa(n), "--size", "100", "--acks", "all", "--quiet").wantOneOf(t, 0, 3)
}
