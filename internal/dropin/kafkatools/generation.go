package kafkatools

import "fmt"

// Kafka's own performance tools are kafka-producer-perf-test, kafka-consumer-perf-test and
// kafka-e2e-latency of 2018 (0.10 to 1.1), of 4.1 and of 4.3, and
// kafka-share-consumer-perf-test of 4.1 to 4.3. The producer's tool reads its arguments with
// argparse4j (kafka_argparse.go), the others with JOpt Simple (kafka_jopt.go). Facts come
// from the output of ProducerPerformance, ConsumerPerformance, ShareConsumerPerformance,
// EndToEndLatency and ToolsUtils of Kafka 1.1.0, 4.1.0 and 4.3.1.

// A kafkaGeneration is a form that Kafka's tools had for some time: their options, lines and defaults.
type kafkaGeneration uint8

const (
	guessedGeneration kafkaGeneration = iota // from the options
	of2018                                   // 0.10 to 1.1
	of41                                     // 2.0 to 4.1
	of43                                     // 4.2 and later
)

var kafkaGenerations = map[string]kafkaGeneration{"": guessedGeneration, "2018": of2018, "4.1": of41, "4.2": of43, "4.3": of43}

// askedGeneration reads the value of --generation for a tool whose first generation is since.
func askedGeneration(value string, since kafkaGeneration) (kafkaGeneration, error) {
	g, ok := kafkaGenerations[value]
	switch {
	case ok && (g == guessedGeneration || g >= since):
		return g, nil
	case since == of2018:
		return 0, fmt.Errorf("--generation %s: this tool has 2018, 4.1 and 4.3 (4.2 is the same)", value)
	}
	return 0, fmt.Errorf("--generation %s: this tool has 4.1, 4.2 and 4.3", value)
}

// kafkaVersion is the version of the tools that these replace.
const kafkaVersion = "4.3.1"

// mib is the tools' MB.
const mib = 1 << 20

// events is the tools' word for what they count.
func (g kafkaGeneration) events() string {
	if g == of43 {
		return "records"
	}
	return "messages"
}
