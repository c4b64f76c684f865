// Package kafka sends records to Apache Kafka and reads them back: it is the kind of
// target, and its wire engine, which writes pre-encoded record batches over its own
// connections. It implements the protocol of that: connections, batches, leader
// changes, retries that cannot duplicate, and consuming, also of single records by
// their offsets. It does not deal with schedules, reports, flags or terminals.
//
// Package cluster has the settings, reaches and describes the cluster, makes operations
// on topics as a load, and looks at a cluster before a run. Package franz is the other
// engine, by franz-go's record path, to show what a real application would see.
//
// Its invariant: every batch that it takes is completed exactly once, and an event
// counts as failed only when the broker certainly did not append it.
package kafka
