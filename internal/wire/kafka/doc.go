// Package kafka holds the bytes of the Kafka protocol that are too hot for a
// general encoder: record batches (format v2), produce requests and answers,
// and fetch answers. It answers for encoding, patching, compressing, walking
// and checking them. It refuses to know connections, brokers, retries and
// load; rare requests are left to package kmsg.
//
// Its invariant: what it writes is what kmsg would have written, byte for
// byte, and no bytes received can make it panic or read out of their bounds.
//
// Protocol facts are from https://kafka.apache.org/protocol and
// https://kafka.apache.org/documentation/#recordbatch.
package kafka
