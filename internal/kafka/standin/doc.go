// Package standin contains the stand-ins for Kafka.
//
// Two of them share one front. The broker (kfake) is a small broker that keeps
// what it receives. The discard broker keeps nothing: it answers produce requests
// and fetches as fast as this machine can, so that the limit of any client can be
// measured against the same server.
//
// The package knows nothing about its clients.
//
// Its invariant: a stand-in counts records (Counts) before it acknowledges them,
// and the offsets that it assigns in a partition never repeat.
package standin
