// Package kafka answers for Kafka's stand-ins.
//
// There are two behind one front. The broker (kfake) is a real little broker
// which keeps what it takes. The discard broker keeps nothing: it takes produce
// requests and answers fetches as fast as this machine can, so that the limit
// of any client can be measured against the same thing.
//
// The package refuses to know who fires at it.
//
// Its invariant: what a stand-in acknowledged, it counted first (Counts), and
// offsets it hands out per partition never repeat.
package kafka
