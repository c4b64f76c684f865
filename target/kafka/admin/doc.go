// Package admin makes operations on topics of Kafka as a load: it creates, lists, describes, deletes
// and reads topics, or deletes their records, many at a time or at a rate, and counts and times each
// operation. It has the protocol of these requests and their schedule. How brokers are reached,
// how their errors are classified and how records are fetched is up to package kafka, which
// gives it a Cluster.
//
// Its invariant: each operation that began is counted once, as done, failed (certainly refused) or
// unknown, and an operation that was due but not begun is unsent.
package admin
