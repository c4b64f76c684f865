// Package kafkatools is the command lines of tools that load Kafka: sangrenel, and Kafka's own
// performance tools kafka-producer-perf-test, kafka-consumer-perf-test and
// kafka-e2e-latency of 2018 (0.10 to 1.1), of 4.1 and of 4.3, and
// kafka-share-consumer-perf-test of 4.1 to 4.3. It is responsible for options, usage
// errors, properties of Java's clients and lines. Its runs are ordinary workloads.
//
// The producer's tool of Kafka reads its arguments with argparse4j (argparse.go), Kafka's others
// with JOpt Simple (jopt.go), and sangrenel with package flag.
//
// Its invariants: the lines' records, rates and times are those of snapshots and of
// the report; with --strict they are computed from the same data in the tool's way.
// No argument is dropped without a message.
//
// Facts come from the output of ProducerPerformance, ConsumerPerformance,
// ShareConsumerPerformance, EndToEndLatency and ToolsUtils of Kafka 1.1.0, 4.1.0 and
// 4.3.1.
package kafkatools
