// Package kafka encodes and decodes the messages of the Kafka protocol that are
// too frequent for a general encoder: record batches (format v2), produce requests
// and answers, and fetch answers. It encodes, patches, compresses, iterates and
// checks them. It does not handle connections, brokers, retries or load; package
// kmsg encodes rare requests.
//
// Its invariant: it writes exactly the bytes that kmsg would write, and no bytes
// received can make it panic or read out of bounds.
//
// Protocol facts are from https://kafka.apache.org/protocol and
// https://kafka.apache.org/documentation/#recordbatch.
package kafka
