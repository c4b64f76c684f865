// Package cluster is what the engines of Kafka have in common, and what is asked of a cluster besides
// loading it with records. It reads the settings of a run, reaches brokers (addresses, TLS, logins,
// and what a failed attempt means), finds or creates the topic, and knows a cluster's brokers,
// leaders, offsets, settings and permissions. It divides events into streams of clients and
// partitions. It knows no engine.
//
// It makes operations on topics as a load (topic_load*.go): it creates, lists, describes, deletes and
// reads topics, or deletes their records, many at a time or at a rate, and counts and times each
// operation. Records are read by the wire engine, which passes its function to LoadTopics. And it
// looks at a cluster and its topic before a run (inspect*.go): which brokers, settings and quotas
// will affect it.
//
// Its invariants: a Config that ParseConfig returns is complete and does not contradict itself, and an
// error of reaching a cluster says what to check. Each operation that began is counted once, as done,
// failed (certainly refused) or unknown, and an operation that was due but not begun is unsent. An
// inspection changes nothing.
package cluster
