// Package cluster is what the engines of Kafka and package admin have in common. It reads the
// settings of a run, reaches brokers (addresses, TLS, logins, and what a failed attempt means), finds
// or creates the topic, and knows a cluster's brokers, leaders, offsets, settings and permissions. It
// divides events into streams of clients and partitions. It loads nothing and knows no engine.
//
// Its invariant: a Config that ParseConfig returns is complete and does not contradict itself, and an
// error of reaching a cluster says what to check.
package cluster
