// Package admin is what is asked of a Kafka cluster besides loading it. It makes operations on topics
// as a load: it creates, lists, describes, deletes and reads topics, or deletes their records, many at
// a time or at a rate, and counts and times each operation. And it looks at a cluster and its topic
// before a run: which brokers, settings and quotas will affect it. How brokers are reached and how
// their errors are classified is up to package cluster; records are read by the wire engine, which
// passes its function to Run.
//
// Its invariant: each operation that began is counted once, as done, failed (certainly refused) or
// unknown, and an operation that was due but not begun is unsent; an inspection changes nothing.
package admin
