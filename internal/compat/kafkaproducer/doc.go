// Package kafkaproducer is the command line of kafka-producer-perf-test: the
// flags and lines of 2018 (0.10 to 1.1), of 4.1 and of 4.3. It answers for
// flags, usage errors and lines; runs and numbers are those of a workload like
// any other.
//
// Its invariant: a line's records and rates add up to the report's, whichever
// generation prints it.
//
// Facts: ProducerPerformance and ToolsUtils of Kafka 1.1.0, 4.1.0 and 4.3.1,
// as their programs print.
package kafkaproducer
