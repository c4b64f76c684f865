// Package kafkaproducer is the command line of kafka-producer-perf-test: the
// flags and lines of 2018 (0.10 to 1.1), of 4.1 and of 4.3. It is responsible for
// flags, usage errors and lines. Its runs are ordinary workloads.
// Its invariant: in each generation the lines' records and rates add up to the
// report's.
// Facts come from the output of ProducerPerformance and ToolsUtils of Kafka 1.1.0,
// 4.1.0 and 4.3.1.
package kafkaproducer
