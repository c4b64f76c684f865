// Package kafka sends records to Apache Kafka and reads them back. It implements
// the protocol: connections, batches, leader changes, retries that cannot
// duplicate, security and consuming. Operations on topics, as a load, are in
// package admin, which reaches brokers through this one. It does not deal with
// schedules, reports, flags or terminals.
//
// It has two engines. The wire engine writes pre-encoded record batches over its
// own connections; the client engine uses franz-go's record path, to show what a
// real application would see.
//
// Its invariant: every batch that it takes is completed exactly once, and an event
// counts as failed only when the broker certainly did not append it.
package kafka
