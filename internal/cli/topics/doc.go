// Package topics has the command topics, of Kafka: it creates, lists, describes, deletes and reads
// topics, as counted and timed operations.
package topics
