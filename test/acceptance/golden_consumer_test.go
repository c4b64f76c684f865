//go:build conformance

package acceptance

import (
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/kafkatest"
)

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

// fillTopic puts n records of 100 bytes into a side's topic.
func fillTopic(n string) func(*testing.T, *kafkatest.Cluster, string, string) {
	return func(t *testing.T, broker *kafkatest.Cluster, topic, _ string) {
		run(t, "run", "kafka://"+broker.Bootstrap()+"/"+topic, "--count", n, "--size", "100", "--acks", "all", "--quiet").wantOneOf(t, 0, 3)
	}
}

// consumerSet is a set of kafka-consumer-perf-test over a topic of 5,000 records.
func consumerSet(name, args string, forms []form, flags ...string) golden {
	return golden{
		name: name, tool: "kafka-consumer-perf-test", class: "ConsumerPerformance",
		args: args, forms: forms, ourFlags: append([]string{"--generation", "4.3"}, flags...), before: fillTopic("5000"),
	}
}

// wrongConsumer is a set that both sides refuse with the same message.
func wrongConsumer(name, args, says string) golden {
	return golden{
		name: name, tool: "kafka-consumer-perf-test", class: "ConsumerPerformance",
		args: args, ourFlags: []string{"--generation", "4.3"}, says: []string{says}, code: 1,
	}
}

func TestGoldenConsumer(t *testing.T) {
	t.Parallel()
	runGoldens(t, consumerSets())
}

func consumerSets() []golden {
	const (
		from = "--bootstrap-server BROKER --topic TOPIC "
		// Both give up if no record arrives for this long. The default is 10 s, in which
		// a JVM on a busy machine may not have started.
		patient = " --timeout 60000"
	)
	all := []string{"total.messages", "total.mb"}
	simple := consumerSet("all that is there", from+"--num-records 5000"+patient, consumerForms)
	simple.same = all
	linked := consumerSet("by a link", from+"--num-records 5000 --hide-header"+patient, consumerForms)
	linked.linked, linked.same = true, all
	old := consumerSet("messages", from+"--messages 5000 --timeout", consumerForms)
	old.same = all
	dates := consumerSet("dates", from+"--num-records 5000 --date-format yyyyMMdd'T'HHmmss.SSSXX"+patient, []form{
		consumerHeader, line("total", strings.ReplaceAll(`STAMP, STAMP, `, "STAMP", `\d{8}T\d{6}\.\d{3}(Z|[+-]\d{4})`)+consumerValues),
	})
	dates.same = all
	detailed := consumerSet("in detail", from+"--num-records 100000 --show-detailed-stats --reporting-interval 20"+patient, consumerDetails)
	detailed.before, detailed.factors = fillTopic("100000"), map[string]float64{"row.messages": 10, "row.mb": 10}
	late := consumerSet("fewer than asked for", from+"--num-records 6000 --timeout 10000", consumerForms, "--strict")
	late.same = append([]string{"late.ms"}, all...)
	late.factors = map[string]float64{"total.rate": 2, "total.fetch": 2}
	none := consumerSet("from the end", from+"--num-records 10 --timeout 1500 --from-latest", consumerForms, "--strict")
	none.same = append([]string{"total.rate", "total.mbs"}, all...)
	// The brokers create the first topic on demand, but not the second.
	missing := consumerSet("a topic that is not there", "--bootstrap-server BROKER --topic TOPIC-none --num-records 10 --timeout 2000", consumerForms, "--strict")
	missing.same, missing.factors = none.same, map[string]float64{"total.fetch": 4}
	noMatch := consumerSet("an expression that nothing matches", "--bootstrap-server BROKER --include ^TOPIC-no.match$ --num-records 10 --timeout 2000", consumerForms, "--strict")
	noMatch.same, noMatch.factors = none.same, missing.factors
	sizes := consumerSet("sizes", from+"--num-records 5000 --fetch-size 20000 --socket-buffer-size 65536 --command-property client.id=me"+patient, consumerForms)
	sizes.same = all
	group := consumerSet("a group", from+"--num-records 5000 --group TOPIC-group"+patient, consumerForms)
	group.same = all
	include := consumerSet("an expression", "--bootstrap-server BROKER --include ^TOPIC$ --num-records 5000"+patient, consumerForms)
	include.same = all
	// A JVM that has just started is slow, and becomes faster.
	million := consumerSet("six million", from+"--num-records 6000000 --command-property max.poll.records=2000"+patient, consumerForms)
	million.before, million.same, million.factors = fillTopic("6000000"), all, map[string]float64{"total.rate": 10, "total.mbs": 10}
	metrics := consumerSet("metrics", from+"--num-records 5000 --print-metrics"+patient, consumerMetrics)
	metrics.same, metrics.subsetOf = all, []string{"metric.name"}
	return []golden{
		simple, linked, old, dates, million, detailed, late, none, missing, noMatch, sizes, group, include, metrics,
		wrongConsumer("no brokers", "--topic TOPIC --num-records 5", `Missing required argument "[bootstrap-server]"`),
		wrongConsumer("no topic", "--bootstrap-server BROKER --num-records 5", `Exactly one of the following arguments is required: [topic], [include]`),
		wrongConsumer("no count", from, `Exactly one of the following arguments is required: [messages], [num-records]`),
		wrongConsumer("two counts", from+"--num-records 5 --messages 5", `Exactly one of the following arguments is required: [messages], [num-records]`),
		wrongConsumer("two files", from+"--num-records 5 --consumer.config a --command-config b", `Option "[consumer.config]" can't be used with option "[command-config]"`),
		wrongConsumer("no such option", from+"--num-records 5 --threads 3", `threads is not a recognized option`),
		wrongConsumer("no number", from+"--num-records five", `Cannot parse argument 'five' of option num-records`),
		wrongConsumer("no interval", from+"--num-records 5 --reporting-interval 0", `Reporting interval must be greater than 0.`),
		wrongConsumer("no date", from+"--num-records 5 --date-format qqq", `Illegal pattern character 'q'`),
		wrongConsumer("no such file", from+"--num-records 5 --command-config DIR/none", `/none`),
		wrongConsumer("an empty topic", "--bootstrap-server BROKER --num-records 5 --topic=", `Topic collection to subscribe to cannot contain null or empty topic`),
		wrongConsumer("an empty expression", "--bootstrap-server BROKER --num-records 5 --include=", `Topic pattern to subscribe to cannot be empty`),
		wrongConsumer("no address", "--bootstrap-server BROKER/x --topic TOPIC --num-records 5", `Invalid url in bootstrap.servers: `),
		wrongConsumer("nothing", "", `--hide-header`),
	}
}

func TestGoldenLatency(t *testing.T) {
	t.Parallel()
	runGoldens(t, latencySets())
}

func latencySets() []golden {
	set := func(name, args string, same ...string) golden {
		return golden{
			name: name, tool: "kafka-e2e-latency", class: "EndToEndLatency", args: args, forms: latencyForms,
			ourFlags: []string{"--generation", "4.3", "--strict"}, same: append([]string{"thousandth.i"}, same...),
			factors: map[string]float64{"mean.ms": 50},
		}
	}
	wrong := func(name, args, says string) golden {
		return golden{name: name, tool: "kafka-e2e-latency", class: "EndToEndLatency", args: args, ourFlags: []string{"--generation", "4.3"}, says: []string{says}, code: 1}
	}
	const named = "--bootstrap-server BROKER --topic TOPIC "
	byPlace := set("by place", "BROKER TOPIC 1200 1 100")
	linked := set("by name", named+"--num-records 500 --producer-acks all --record-size 20")
	linked.linked = true
	created := set("a missing topic", "BROKER TOPIC-new 10 all 10")
	created.factors = nil // the first message is slow in a tool that has just started
	return []golden{
		byPlace, linked, created,
		set("keys and headers", named+"--num-records 100 --producer-acks 1 --record-size 20 --record-key-size 5 --num-headers 2 --record-header-key-size 3 --record-header-size 4"),
		wrong("acks", named+"--num-records 10 --producer-acks 0 --record-size 10", "Latency testing requires synchronous acknowledgement. Please use '1' or 'all'."),
		wrong("acks by place", "BROKER TOPIC 10 0 10", "Latency testing requires synchronous acknowledgement. Please use '1' or 'all'."),
		wrong("too few by place", "BROKER TOPIC 10", "Invalid number of arguments. Expected 5 or 6 positional arguments, but got 3."),
		wrong("too few by name", named+"--num-records 10 --producer-acks 1", `Missing required argument "[record-size]"`),
		wrong("no count", named+"--num-records 0 --producer-acks 1 --record-size 10", "Value for --num-records must be a positive integer."),
		wrong("no number", "BROKER TOPIC ten 1 10", "Cannot parse argument 'ten' of option num-records"),
		wrong("no size", named+"--num-records 10 --producer-acks 1 --record-size -1", "Value for --record-size must be a non-negative integer."),
		wrong("an empty topic", "--bootstrap-server BROKER --topic= --num-records 10 --producer-acks 1 --record-size 10", "The given topic name '' cannot be represented in a request."),
		wrong("no headers", named+"--num-records 10 --producer-acks 1 --record-size 10 --num-headers -1", "Value for --num-headers must be a non-negative integer."),
	}
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

// TestGoldenShare compares share groups, which must be configured to start at the first offset.
func TestGoldenShare(t *testing.T) {
	t.Parallel()
	runGoldens(t, shareSets())
}

func shareSets() []golden {
	const from = "--bootstrap-server BROKER --topic TOPIC --group TOPIC-share "
	set := func(name, args string, flags ...string) golden {
		return golden{
			name: name, tool: "kafka-share-consumer-perf-test", class: "ShareConsumerPerformance", args: args, forms: shareForms,
			ourFlags: append([]string{"--generation", "4.3"}, flags...), same: []string{"total.messages", "total.mb"},
			before: func(t *testing.T, broker *kafkatest.Cluster, topic, dir string) {
				fillTopic("5000")(t, broker, topic, dir)
				broker.Tool(t, "kafka.admin.ConfigCommand", "--alter", "--entity-type", "groups", "--entity-name", topic+"-share", "--add-config", "share.auto.offset.reset=earliest")
			},
		}
	}
	wrong := func(name, args, says string) golden {
		return golden{name: name, tool: "kafka-share-consumer-perf-test", class: "ShareConsumerPerformance", args: args, ourFlags: []string{"--generation", "4.3"}, says: []string{says}, code: 1}
	}
	each := set("each consumer", from+"--num-records 5000 --timeout 60000 --threads 2 --show-consumer-stats")
	each.same = append(each.same, "consumer.i", "consumer.id")
	// Once it has records, the tool ends after the timeout, with an exception.
	none := set("no records", from+"--num-records 6000 --timeout 3000 --hide-header", "--strict")
	none.before, none.same = nil, []string{"total.messages", "total.mb", "total.rate", "late.ms"}
	none.factors = map[string]float64{"total.fetch": 3}
	detailed := set("in detail", from+"--num-records 5000 --timeout 60000 --show-detailed-stats --reporting-interval 20")
	detailed.forms, detailed.factors = shareDetails, map[string]float64{"total.rate": 10, "total.mbs": 10, "row.messages": 10}
	size := set("the size of an answer", from+"--num-records 5000 --timeout 60000 --fetch-size 20000")
	// The tool checks it when a record arrives.
	interval := wrong("no interval", from+"--num-records 5000 --timeout 60000 --reporting-interval 0", `Reporting interval must be greater than 0.`)
	interval.before = size.before
	metrics := set("metrics", from+"--num-records 5000 --timeout 60000 --threads 2 --print-metrics")
	metrics.forms, metrics.subsetOf = shareMetrics, []string{"metric.name"}
	return []golden{
		set("all that is there", from+"--num-records 5000 --timeout 60000"), each, detailed, none, size, interval, metrics,
		set("no header", from+"--messages 5000 --timeout 60000 --hide-header"),
		wrong("no brokers", "--topic TOPIC --num-records 5", `Missing required argument "[bootstrap-server]"`),
		wrong("no topic", "--bootstrap-server BROKER --num-records 5", `Missing required argument "[topic]"`),
		wrong("no topic and no brokers", "--num-records 5", `Missing required argument "[topic]"`),
		wrong("an empty topic", "--bootstrap-server BROKER --num-records 5 --topic=", `Topic collection to subscribe to cannot contain null or empty topic`),
		wrong("no count", from, `Exactly one of the following arguments is required: [messages], [num-records]`),
	}
}
