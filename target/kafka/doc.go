// Package kafka fires records at Apache Kafka and reads them back. It answers
// for the protocol: connections, batches, leaders and their moves, retries
// that cannot duplicate, security, consuming, and the operations on topics.
// It refuses to know schedules, reports, flags and terminals.
//
// It has two engines. The wire engine writes record batches that were encoded
// ahead over connections of its own; the client engine is franz-go's record
// path, for what a real application would see.
//
// Its invariant: every batch taken is completed exactly once, and an event is
// called failed only when the broker certainly did not append it.
package kafka
