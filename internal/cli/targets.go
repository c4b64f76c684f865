package cli

import (
	"context"

	"github.com/spf13/cobra"

	"carronade/internal/apm"
	standinapm "carronade/internal/apm/standin"
	"carronade/internal/cli/profile"
	"carronade/internal/cli/query"
	"carronade/internal/cli/topics"

	"carronade/internal/dropin"
	"carronade/internal/dropin/heyapm"
	"carronade/internal/dropin/kafkatools"
	"carronade/internal/dropin/mongoose"
	"carronade/internal/dropin/omb"
	"carronade/internal/dropin/riemannload"
	"carronade/internal/dropin/sangrenel"
	"carronade/internal/kafka"
	standinkafka "carronade/internal/kafka/standin"
	"carronade/internal/null"
	"carronade/internal/otlp"
	standinotlp "carronade/internal/otlp/standin"
	"carronade/internal/riemann"
	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/standin"
	"carronade/internal/workload"
	"carronade/protocol"
)

// This file is the only list of protocols in the program. It has the kinds of target, and for each
// descriptions in addition to those of the kind itself, its demo, and its own command. Nothing
// else in this package, in the engine or in reports names a protocol (a test in test/arch
// checks that), so a new protocol is a line in Kinds and an entry in protocols.

// Kinds returns the kinds of target of the carronade program, the most used first. The command
// line has those of its Program instead: a program with another protocol adds its own.
func Kinds() []protocol.Kind {
	return []protocol.Kind{kafka.Kind{}, riemann.Kind{}, apm.Kind{}, otlp.Kind{}, null.Kind{}}
}

// entries is the list, in the order of help; the first demo is the default.
func entries() []kindEntry {
	return []kindEntry{
		{
			kind: "null", form: "null://",
			about: "Sends nothing: measures what this machine can generate.",
		},
		{
			kind: "kafka", form: "kafka://HOST:PORT,HOST:PORT/TOPIC",
			about: "Apache Kafka. Several hosts are bootstrap brokers; the default port is 9092, the default topic carronade.",
			event: "a Kafka record", batch: "a record batch",
			expressions: "in keys, which must not depend on the time, and in names and values of headers. A ${...} or #{...} turns on --fresh, since a pool would repeat its values",
			demo: &demo{
				server: server{[]string{"kafka", "--listen", "127.0.0.1:0", "--in-memory"}, "kafka://ADDR/demo"},
				name:   "Kafka broker",
				about: `Keyed records go to the broker and are read back at the same time. The report
has the time from when an event was due to when it was consumed, and whether
every event arrived once, in order and unaltered.`,
				workload: [][2]string{
					{"op", workload.RoundTrip},
					{"verify", "true"},
					{"rate", "10k/s"},
					{"for", "9s"},
					{"warmup", "1s"},
					{"size", "100-300"},
					{"key", "uniform(1000)"},
					{"create-topic", "partitions=3"},
				},
				next: `  carronade run kafka://HOST:9092/TOPIC --rate 50k/s --for 20s
                                   the same at your own cluster
  carronade run kafka://HOST:9092/TOPIC --for 20s
                                   as fast as it goes`,
			},
			sink: &server{[]string{"kafka", "--discard", "--listen", "127.0.0.1:0"}, "kafka://ADDR/calibrate"},
			// Another engine makes its own batches, and null:// does not compress.
			prepares: func(w *workload.Workload) bool {
				return w.String("engine") == "wire" && !(w.Bool("fresh") && w.String("compression") != "none")
			},
			own: func(s *session, k protocol.Kind) *cobra.Command {
				return topics.Command(s.console(), k, s.room, s.keepTopics)
			},
			topics: topics.LoadTopics,
			profiled: func(s *session, k protocol.Kind, t *profile.Tools) {
				t.Topics = k
				t.Broker = func(ctx context.Context) (string, func() error, error) {
					return s.standIn(ctx, entryOf(k).demo.args)
				}
			},
		},
		{
			kind: "riemann", form: "riemann://HOST:PORT,HOST:PORT",
			about: "Riemann over TCP, default port 5555; other transports are riemann+tls:// (5554), riemann+udp:// (5555), riemann+ws:// and riemann+http:// (5556, path /events). Clients are spread over several hosts in turn.",
			event: "a Riemann event", batch: "a Riemann message",
			expressions: "in text fields, tags and attributes, for the events of the pool; ${...} must not depend on the time",
			demo: &demo{
				server: server{[]string{"riemann", "--listen", "127.0.0.1:0", "--interval", "1s"}, "riemann://ADDR"},
				name:   "Riemann server",
				about: `Single events go to the server, each in its own message, and the server's own
metrics are read, too. The report has round trips (service time), acks and
bytes a second, events in flight, and at the end whether the server's index has
every event as it was sent.`,
				workload: [][2]string{
					{"rate", "10k/s"},
					{"for", "9s"},
					{"warmup", "1s"},
					{"batch-events", "1"},
					{"verify", "true"},
				},
				next: `  carronade run riemann://HOST:5555 --rate 50k/s --for 20s
                                   single events at your own server
  carronade run riemann://HOST:5555 --batch-events 100 --for 20s
                                   in bulk, as fast as it goes
  carronade query riemann://HOST:5555 'service =~ "riemann %"'
                                   a server's own metrics`,
			},
			sink: &server{[]string{"riemann", "--discard", "--listen", "127.0.0.1:0"}, "riemann://ADDR"},
			own: func(s *session, k protocol.Kind) *cobra.Command {
				return query.Command(s.console(), k)
			},
			profiled: func(_ *session, k protocol.Kind, t *profile.Tools) { t.Index = k },
		},
		{
			kind: "apm", form: "apm+http://HOST:PORT,HOST:PORT",
			about: "Elastic APM Server over HTTP; apm+https:// uses TLS. Connections are spread over several hosts in turn.",
			event: "an APM transaction, span, error, metricset or log", batch: "an APM request",
			expressions: "in --event-label, for the events of the pool; ${...} must not depend on the time",
			demo: &demo{
				server: server{[]string{"apm", "--listen", "127.0.0.1:0"}, "apm+http://ADDR"},
				name:   "APM Server", watched: true,
				about: `The server validates requests of ten transactions with three spans each. The
report has the time of a request, the answers, the number of accepted events,
and the memory and processor time of the server's process.`,
				workload: [][2]string{
					{"rate", "8k/s"},
					{"for", "9s"},
					{"warmup", "1s"},
					{"verbose", "true"},
				},
				next: `  carronade run apm+http://HOST:8200 --rate 10k/s --for 30s
                                   the same at your own server
  carronade run apm+http://HOST:8200 --events 10 --spans 10 --frames 10 \
    --concurrency 4 --gzip 1 --for 30s --index http://HOST:9200
                                   heavier requests at concurrency 4, as fast as
                                   they are answered, and what was indexed of it
  carronade run apm+http://127.0.0.1:8200 --concurrency 4 --for 30s \
    --system-cmd './apm-server -e' --system-git .
                                   start a server of yours, and watch it`,
			},
			sink: &server{[]string{"apm", "--discard", "--listen", "127.0.0.1:0"}, "apm+http://ADDR"},
		},
		{
			kind: "otlp", form: "otlp+http://HOST:PORT,HOST:PORT",
			about: "OpenTelemetry's protocol, to a Collector or any other receiver: over HTTP (default port 4318) or gRPC (otlp+grpc://, 4317); otlp+https:// and otlp+grpcs:// use TLS. Connections are spread over several hosts in turn.",
			event: "a span, a data point or a log record", batch: "an export request",
			expressions: "in the values of --header, for the requests of the pool; ${...} must not depend on the time",
			demo: &demo{
				server: server{[]string{"otlp", "--listen", "127.0.0.1:0"}, "otlp+http://ADDR"},
				name:   "OTLP receiver", watched: true,
				about: `The receiver decodes requests of a hundred spans, data points or log records.
The report has the time of a request, the answers, the number of accepted
events, and the memory and processor time of the receiver's process.`,
				workload: [][2]string{
					{"signal", "traces=1,metrics=1,logs=2"},
					{"rate", "20k/s"},
					{"for", "9s"},
					{"warmup", "1s"},
				},
				next: `  carronade run otlp+grpc://HOST:4317 --signal logs --rate 20k/s --for 30s
                                   log records over gRPC to your own Collector
  carronade run otlp+http://HOST:4318 --signal metrics --series 100k \
    --rate 20k/s --for 30s --system-metrics http://HOST:8888/metrics \
    --system-names 'otelcol_*'
                                   data points of many series, and what the
                                   Collector itself counts`,
			},
			sink: &server{[]string{"otlp", "--discard", "--listen", "127.0.0.1:0"}, "otlp+http://ADDR"},
		},
	}
}

// standins are the stand-ins, in the order of help.
func standins() []standin.Kind {
	return []standin.Kind{standinkafka.Kind, standinriemann.Kind, standinapm.Kind, standinotlp.Kind}
}

// oldTools are the drop-ins, in the order of `carronade as`.
func oldTools() []dropin.Tool {
	return []dropin.Tool{
		sangrenel.Tool,
		mongoose.Tool,
		kafkatools.Producer,
		kafkatools.Consumer,
		kafkatools.Share,
		kafkatools.Latency,
		omb.Tool,
		omb.Worker,
		heyapm.Tool,
		riemannload.Tool,
	}
}

const asExample = `
  carronade as
  carronade as sangrenel -help
  ln -s carronade sangrenel`

const sloExample = `  carronade run kafka://127.0.0.1:9092/orders --rate 50k/s --for 1m \
    --slo 'p99<20ms' --slo 'failure-rate<0.1%' --slo steady
`

const rootExample = `
  carronade demo
  carronade run kafka://127.0.0.1:9092/orders --rate 50k/s --for 20s
  carronade run kafka://127.0.0.1:9092/orders --help`

const replayExample = `
  carronade report replay last
  carronade report replay k3x9 kafka://new:9092/orders
  carronade report replay last --repeat 5 --label host=new`

const runExample = `
  carronade run null:// --for 2s
  carronade run kafka://127.0.0.1:9092/orders --rate 50k/s --for 20s --verify
  carronade run kafka://127.0.0.1:9092/orders --op consume --until-end
  carronade run -f orders.yaml --json > report.json
  carronade run -f orders.yaml --vary acks=1,all --vary linger=1ms,5ms`

const findExample = `
  carronade find kafka://127.0.0.1:9092/orders --slo 'p99<50ms'
  carronade find kafka://127.0.0.1:9092/orders --slo 'p99<50ms' --at-least 20k/s
  carronade find riemann://127.0.0.1:5555 --from 10k/s --budget 5m
  carronade find riemann://127.0.0.1:5555 --to 20k/s --repeat 3 --confirm 30m
  carronade find kafka://127.0.0.1:9092/orders --vary acks=1,all --budget 5m`

const scenarioExample = `
  carronade scenario examples/scenarios/01-first.js
  carronade scenario examples/scenarios/02-arguments.js 50k/s --check
  carronade scenario endless.js --for 1h --label night=yes
  carronade scenario --types > carronade.d.ts`

const markExample = `
  carronade run kafka://127.0.0.1:9092/orders --rate 5k/s --for 2m --marks
  kill -STOP 4711; carronade mark last fault 'stop broker 2'
  kill -CONT 4711; carronade mark last heal 'stop broker 2'`

// filesExample is an example of a workload file.
const filesExample = `  target: kafka://127.0.0.1:9092/orders
  rate: 50k/s
  for: 20s
  compression: lz4
  header: {source: carronade}
`

const calibrateExample = `
  carronade calibrate
  carronade calibrate --size 2KiB --clients 4
  carronade calibrate --target riemann
  carronade calibrate --target kafka://other-host:9092    # there: carronade
                            # standin kafka --discard --listen 0.0.0.0:9092`

const doctorExample = `
  carronade doctor
  carronade doctor kafka://127.0.0.1:9092/orders --acks all --clients 20
  carronade doctor -f orders.yaml --json
  carronade doctor apm+https://apm.example.org:8200 --timeout 5s`

// otherTools are flags of Kafka's tools that stand for no flag here, and what to do instead.
var otherTools = map[string]string{
	"topic":             inTarget,
	"bootstrap-server":  inTarget,
	"bootstrap-servers": inTarget,
	"broker-list":       inTarget,
	"brokers":           inTarget,
	"partitions":        "a topic has its partitions when it is created: --create-topic partitions=12",
	"producer.config":   "did you mean --client-config?",
	"producer-props":    "did you mean --client-property?",
	"command-property":  "did you mean --client-property?",
}

const inTarget = "brokers and topic are the target: carronade run kafka://HOST:9092/TOPIC"
