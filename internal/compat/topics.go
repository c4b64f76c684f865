package compat

import (
	"time"

	"carronade/load"
)

// A TopicLoad is a load of operations on topics, as `carronade topics` makes
// them: an operation is one topic, a request carries PerRequest of them.
type TopicLoad struct {
	Op    string   // create, list, delete, delete-records or read
	Names []string // the topics; list needs none
	// Next makes names of topics to create as they are needed, Times of them: one
	// call for each, in their order, one at a time. Nil: Names has them.
	Next func() string
	// Times is how many operations there are, of list, read and Next: 0 is one
	// listing, or each topic once; -1 is without end, until For has passed. Beside
	// For a number is a bound: what time left of it is not unsent.
	Times int

	Partitions, Replicas int // of topics to create; 0: as the brokers like

	Concurrency int     // requests in flight at once; 0 means 1
	PerRequest  int     // 0 means 1
	Rate        float64 // requests due a second; 0: each when the one before it is answered

	For      time.Duration // begin no request after so long; 0: no limit
	Failures uint64        // begin none after more that failed or are unknown; 0: no limit

	Labels map[string]string // of the report
	Note   string            // likewise

	// Started is called once, before the first Each, with the moment that all times
	// are from: when the brokers were reached. Nil: nobody looks.
	Started func(time.Time)
	// Each is called once for every operation, by one goroutine at a time, and
	// must not block for long. Nil: nobody looks.
	Each func(TopicDone)
}

// A TopicDone is one operation, answered. Times are from the start of the load.
type TopicDone struct {
	Name          string
	Due, Sent, At time.Duration
	Class         string // of what went wrong, as reports have it; "" when it succeeded
	Err           error  // likewise
	Certain       bool   // of a class: it was certainly not done; else that is unknown
	Bytes         uint64 // read
	InFlight      int    // requests in flight as this one was answered, it included
}

// A TopicResult is what became of a TopicLoad.
type TopicResult struct {
	Done, Failed, Unknown, Unsent uint64 // unknown: asked for, without a certain answer

	Elapsed     time.Duration
	Bytes       uint64 // read
	Interrupted bool

	Target string       // the URL, without secrets
	Result *load.Result // the same as a run: its events are operations, its batches requests
}
