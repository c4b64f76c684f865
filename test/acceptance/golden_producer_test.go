//go:build conformance

package acceptance

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
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

// wantRecords checks that a topic has n records.
func wantRecords(n int64) func(*testing.T, *kafkatest.Cluster, string, side) {
	return func(t *testing.T, broker *kafkatest.Cluster, topic string, s side) {
		assert.Equal(t, broker.EndSum(t, topic), n, "%s: records in the topic", s.who)
	}
}

// producerSet is a set of kafka-producer-perf-test 4.3.
func producerSet(name, args string, forms []form) golden {
	return golden{
		name: name, tool: "kafka-producer-perf-test", class: "ProducerPerformance",
		args: args, forms: forms, ourFlags: []string{"--generation", "4.3"},
	}
}

// wrongProducer is a set that both sides refuse with the same message.
func wrongProducer(name, args, says string) golden {
	g := producerSet(name, args, nil)
	g.code, g.says = 1, []string{says}
	g.exact = strings.Contains(says, "error: ") && !strings.Contains(says, "unrecognized") // carronade makes other suggestions
	return g
}

const toTopic = "--topic TOPIC --bootstrap-server BROKER "

func producerSets() []golden {
	with := func(g golden, n int64, change func(*golden)) golden {
		g.same = append(g.same, "total.records")
		if n >= 0 {
			g.after = wantRecords(n)
		}
		if change != nil {
			change(&g)
		}
		return g
	}
	// A busy machine may halve the rate of a schedule; without the schedule the rate
	// would be many times higher.
	paced := func(g *golden) { g.factors = map[string]float64{"total.rate": 2} }
	// For rates that are visible in two decimals.
	megabytes := func(g *golden) { paced(g); g.factors["total.mb"] = 2 }
	properties := func(text string) func(*golden) {
		return func(g *golden) {
			g.before = func(t *testing.T, broker *kafkatest.Cluster, _, dir string) {
				writeFile(t, filepath.Join(dir, "client.properties"), "bootstrap.servers="+broker.Bootstrap()+"\n"+text)
			}
		}
	}
	payloads := func(text string) func(*golden) {
		return func(g *golden) {
			g.before = func(t *testing.T, _ *kafkatest.Cluster, _, dir string) {
				writeFile(t, filepath.Join(dir, "payloads"), text)
			}
			g.same = append(g.same, "read.records")
		}
	}
	all := producerForms
	wrong := wrongProducer("no records", toTopic+"--num-records 0 --record-size 10 --throughput 1", "kafka-producer-perf-test: error: --num-records should be greater than zero.")
	return []golden{
		with(producerSet("a rate", toTopic+"--num-records 3000 --record-size 1000 --throughput 1000", all), 3000, megabytes),
		with(producerSet("by link, warm-up, lines each second", toTopic+"--num-records 10000 --record-size 100 --throughput 1000 --warmup-records 1000 --reporting-interval 1000", steadyForms), 10_000, func(g *golden) {
			g.linked, g.same = true, []string{"total.records", "steady.records", "warmup.records"}
			// A JVM that is late in the warm-up catches up after it, at a rate that depends
			// on the machine. Ten seconds are enough that it still prints lines after that.
			g.factors = map[string]float64{"total.rate": 2}
		}),
		wrong,
		with(producerSet("a transaction", toTopic+"--num-records 400 --record-size 10 --throughput 100 --transaction-duration-ms 500", all), -1, paced),
		with(producerSet("transactions by an id", toTopic+"--num-records 800 --record-size 100 --throughput 250 --transactional-id golden --transaction-duration-ms 300", all), -1, paced),
		// A JVM needs a second to become fast, or several if it shares its processor.
		with(producerSet("as fast as it goes", toTopic+"--num-records 600000 --record-size 1000 --throughput -1", all), 600_000, func(g *golden) {
			g.factors = map[string]float64{"total.rate": 10, "total.mb": 10}
		}),
		// The tool's definition of times: without linger no record waits for a batch, and
		// the warm-up excludes a JVM's first seconds.
		with(producerSet("times", toTopic+"--num-records 6000 --record-size 100 --throughput 1000 --warmup-records 2000 --reporting-interval 1000 --command-property linger.ms=0", steadyForms), 6000, func(g *golden) {
			g.ourFlags, g.same = append(g.ourFlags, "--strict"), append(g.same, "steady.records")
			g.factors = map[string]float64{"total.rate": 2, "steady.avg": 50, "steady.p50": 50, "steady.p95": 50} // a wrong unit is a factor of 1000
		}),
		with(producerSet("a fraction", toTopic+"--num-records 100 --record-size 100 --throughput 33.5", all), 100, paced),
		with(producerSet("numbers", toTopic+"--num-records 4500 --payload-monotonic --throughput 1500", all), 4500, paced),
		with(producerSet("lines of a file", toTopic+"--num-records 1000 --payload-file DIR/payloads --throughput 500", all), 1000, payloads("\none\ntwo\n\nfour\n")),
		with(producerSet("a file cut at an expression", toTopic+"--num-records 1000 --payload-file DIR/payloads --payload-delimiter [0-9]+ --throughput 500", all), 1000, payloads("a1b22c333")),
		with(producerSet("a file split at one to three digits", toTopic+"--num-records 500 --payload-file DIR/payloads --payload-delimiter [0-9]{1,3} --throughput 500", all), 500, payloads("a1b22c333d4444e")),
		with(producerSet("a file cut at blanks", toTopic+"--num-records 500 --payload-file DIR/payloads --payload-delimiter \\x20 --throughput 500", all), 500, payloads("a b  c, d")),
		with(producerSet("old names of flags", "--topic TOPIC --num-records=1500 --record-size=100 --throughput=500 --producer-props bootstrap.servers=BROKER acks=1 linger.ms=0", all), 1500, paced),
		with(producerSet("a file of properties", "--topic TOPIC --num-records 1500 --record-size 100 --throughput 500 --producer.config DIR/client.properties", all), 1500, properties("acks=all\nbatch.size=500\n")),
		with(producerSet("properties that win over a file", "--topic TOPIC --num-records 1500 --record-size 100 --throughput 500 --command-config DIR/client.properties --command-property compression.type=lz4", all), 1500, properties("compression.type=none\n")),
		with(producerSet("an unknown property", toTopic+"--num-records 500 --record-size 100 --throughput 500 --command-property made.up=1", all), 500, nil),
		with(producerSet("metrics", toTopic+"--num-records 600 --record-size 100 --throughput 200 --print-metrics", slices.Concat(all, producerMetrics)), 600, func(g *golden) {
			paced(g)
			g.subsetOf = []string{"metric.name", "words.name"}
		}),
		with(producerSet("the beginning of a flag's name", toTopic+"--num-rec 600 --record-s 100 --through 200", all), 600, paced),
		with(producerSet("records that are too large", toTopic+"--num-records 20 --record-size 2000000 --throughput 20", all), 0, func(g *golden) { g.ourFlags = append(g.ourFlags, "--strict") }),
		wrongProducer("nothing but a topic", "--topic TOPIC", "error: argument --throughput is required"),
		wrongProducer("no topic", "--num-records 5 --record-size 10 --throughput 1", "error: argument --topic is required"),
		wrongProducer("no payload", toTopic+"--num-records 5 --throughput 1", "error: one of the arguments --record-size --payload-file --payload-monotonic is required"),
		wrongProducer("two payloads", toTopic+"--num-records 5 --throughput 1 --record-size 5 --payload-monotonic", "error: argument --payload-monotonic: not allowed with argument --record-size"),
		wrongProducer("no such flag", toTopic+"--foo", "error: unrecognized arguments: '--foo'"),
		wrongProducer("no number", toTopic+"--num-records x --throughput 1 --record-size 5", `error: argument --num-records: could not convert 'x' to Long (For input string: "x")`),
		wrongProducer("no servers", "--topic TOPIC --num-records 5 --throughput 1 --record-size 5", "error: At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or --command-config must be specified."),
		wrongProducer("a flag of two beginnings", toTopic+"--pay 1", "error: ambiguous option: --pay could match --payload-delimiter, --payload-file, --payload-monotonic"),
		wrongProducer("a property without a value", toTopic+"--num-records 5 --throughput 1 --record-size 5 --command-property acks", `Exception in thread "main" java.lang.IllegalArgumentException: Invalid property: acks`),
		wrongProducer("no such file of payloads", toTopic+"--num-records 5 --throughput 1 --payload-file DIR/none", "java.lang.IllegalArgumentException: File does not exist or empty file provided."),
		wrongProducer("a warm-up of everything", toTopic+"--num-records 5 --throughput 1 --record-size 5 --warmup-records 5", "error: The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records."),
	}
}

func TestGoldenProducer(t *testing.T) {
	t.Parallel()
	runGoldens(t, producerSets())
}

// The published sample lines match the grammar.
func TestGoldenProducerGrammar(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		forms []form
		out   string
		ok    bool
	}{
		{"4.3", producerForms, "2000 records sent, 990.099010 records/sec (0.09 MB/sec), 49.33 ms avg latency, 737.00 ms max latency, 8 ms 50th, 128 ms 95th, 129 ms 99th, 131 ms 99.9th.\n", true},
		{"2018", producerForms2018, "561241 records sent, 112248.2 records/sec (214.10 MB/sec), 130.1 ms avg latency, 487.0 max latency.\n" +
			"10000 records sent, 9680.542110 records/sec (18.46 MB/sec), 27.31 ms avg latency, 247.00 ms max latency, 2 ms 50th, 92 ms 95th, 108 ms 99th, 112 ms 99.9th.\n", true},
		{"2018's line does not match 4.3", producerForms, "561241 records sent, 112248.2 records/sec (214.10 MB/sec), 130.1 ms avg latency, 487.0 max latency.\n", false},
		{"one row of two", []form{atLeast(2, "row", `\d+`)}, "1\n", false},
		{"two rows of two", []form{atLeast(2, "row", `\d+`)}, "1\n2\n", true},
		{"no end of line", producerForms, "Warmup first 5 records. Steady state results will print after the complete test summary.", false},
	} {
		s := side{out: tt.out}
		err := s.parse(tt.forms)
		assert.True(t, (err == nil) == tt.ok, "%s: %v", tt.name, err)
	}
}
