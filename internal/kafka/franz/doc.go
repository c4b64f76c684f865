// Package franz is the client engine of Kafka: it produces and consumes by franz-go's record path, as
// an application does, also in transactions, consumer groups and share groups. The bytes on the
// client's connections show it when answers arrived, and which attempts failed. Package cluster has
// the settings and knows the cluster; this one knows nothing of the wire engine.
//
// Its invariant: every batch that it takes is completed exactly once, when the promises of all its
// records were called or its lane is closed, and an event counts as failed only when the broker
// certainly did not append it.
package franz
