// Package wire encodes and decodes the messages of the Kafka protocol that are
// too frequent for a general encoder: record batches (format v2), produce requests
// and answers, and fetch answers. It encodes, patches, compresses, iterates and
// checks them. It does not handle connections, brokers, retries or load; package
// kmsg encodes rare requests.
//
// It also reads and writes lists of records (list_*.go): text files that say where in a
// topic each record is.
//
// Its invariants: it writes exactly the bytes that kmsg would write, and no bytes
// received can make it panic or read out of bounds. Every line of a list ends in a line
// feed, also after an error of writing, so that a list that was cut off is recognized.
//
// Protocol facts are from https://kafka.apache.org/protocol and
// https://kafka.apache.org/documentation/#recordbatch.
package wire
