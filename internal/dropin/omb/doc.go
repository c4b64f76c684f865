// Package omb is the drop-in for OpenMessaging Benchmark (OMB): its command line, its workload files, its
// driver files for Kafka, its log lines and its result file. Each workload with each driver is an
// ordinary run. A workload without a rate is a search first, and then a run at what it found.
//
// Its invariant: each field of a file becomes a setting, or there is a message about it.
package omb
