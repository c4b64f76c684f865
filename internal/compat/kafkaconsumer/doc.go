// Package kafkaconsumer is the command lines of Kafka's consuming tools:
// kafka-consumer-perf-test of 2018, of 4.1 and of 4.3, and
// kafka-share-consumer-perf-test. It answers for flags, lines and words; runs
// and numbers are those of a workload like any other.
//
// Its invariant: every row is taken from a snapshot or from the report, --strict
// or not.
package kafkaconsumer
