package compat

import (
	"time"

	"carronade/load"
)

// A TopicLoad is a load of operations on topics, as in `carronade topics`: an
// operation concerns one topic, and a request carries PerRequest operations.
type TopicLoad struct {
	Op    string   // create, list, delete, delete-records or read
	Names []string // the topics; list needs none
	// Next makes the names of topics to create when they are needed, Times of them:
	// one call for each, in order, one at a time. Nil: Names contains them.
	Next func() string
	// Times is the number of operations, for list, read and Next: 0 means one
	// listing, or each topic once; -1 means no limit until For has passed. If For
	// is also set, the number is an upper bound: operations that the time did not
	// allow do not count as unsent.
	Times int

	Partitions, Replicas int // of topics to create; 0: the brokers' defaults

	Concurrency int     // requests in flight at once; 0 means 1
	PerRequest  int     // 0 means 1
	Rate        float64 // requests due per second; 0: each once the one before it is answered

	For      time.Duration // start no request after this time; 0: no limit
	Failures uint64        // start none after more than this failed or are unknown; 0: no limit

	Labels map[string]string // for the report
	Note   string            // likewise

	// Started is called once, before the first Each, with the zero point of all
	// times: when the brokers were reached. May be nil.
	Started func(time.Time)
	// Each is called once for every operation, by one goroutine at a time, and must
	// not block for long. May be nil.
	Each func(TopicDone)
}

// A TopicDone is one answered operation. Times are since the start of the load.
type TopicDone struct {
	Name          string
	Due, Sent, At time.Duration
	Class         string // of the error, as in reports; "" if it succeeded
	Err           error  // likewise
	Certain       bool   // if Class is set: it was certainly not done; otherwise that is unknown
	Bytes         uint64 // read
	InFlight      int    // requests in flight when this one was answered, including it
}

// A TopicResult is the result of a TopicLoad.
type TopicResult struct {
	Done, Failed, Unknown, Unsent uint64 // unknown: requested, without a certain answer

	Elapsed     time.Duration
	Bytes       uint64 // read
	Interrupted bool

	Target string       // the URL, without secrets
	Result *load.Result // the same as that of a run; events are operations, batches are requests
}
