// Package kafkaconsumer is the command lines of Kafka's consuming tools:
// kafka-consumer-perf-test of 2018, of 4.1 and of 4.3, and
// kafka-share-consumer-perf-test. It is responsible for flags, lines and messages.
// Its runs are ordinary workloads.
// Its invariant: every row comes from a snapshot or from the report, with or
// without --strict.
package kafkaconsumer
