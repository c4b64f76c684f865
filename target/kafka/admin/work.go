package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/measure"
	"carronade/target"
	"carronade/target/kafka/cluster"
)

// Operations on topics, for Work.Op.
const (
	Create        = "create"
	List          = "list"
	Describe      = "describe"
	Delete        = "delete"
	DeleteRecords = "delete-records"
	Read          = "read"
)

// A Work is a load of operations on topics, such as "create 10,000
// topics, 500 requests a second, 8 at a time".
//
//	res, err := kafka.Topics(ctx, admin.Work{
//		Op: admin.Create, URL: u, Options: v, Given: given,
//		Names: admin.Names("load-", 10_000), Spec: spec,
//		Concurrency: 8, PerRequest: 100, Rate: 500,
//	})
//
// An operation is one topic; a request carries PerRequest of them. An error of
// Topics means that the load could not start (no broker, wrong password); the
// result contains the outcomes of the operations.
type Work struct {
	Op      string
	URL     *url.URL      // as for a run; its topic is used when Names is empty
	Options target.Values // of Kind: security, timeouts, what read decodes
	Given   map[string]bool

	Names []string // the topics; list needs none
	// Next returns the next name, for Times topics to create: it is called once
	// for each, in order, by one goroutine at a time. Nil: Names is used.
	Next func() string
	Spec cluster.TopicSpec // create: partitions, replicas and settings; the name is not used
	Upto int64             // delete-records: offset before which records are deleted; -1: all records

	Concurrency int     // requests in flight at once; 0 means 1
	PerRequest  int     // topics in a request, for all but list and read; 0 means 1
	Rate        float64 // requests due per second; 0: each when the one before it is answered
	// Times is the number of operations for list, for read, which starts again
	// with the first topic, and for Next. 0 is one listing, or each topic once;
	// -1 has no end, until For has passed or the context ends. With For, the
	// number is a limit: operations for which no time was left are not Unsent.
	Times    int
	Internal bool // list: the brokers' own topics as well

	For      time.Duration // begin no request after this time; 0: no limit
	Failures uint64        // begin no request once more operations failed or are unknown; 0: no limit

	// Started is called once, when the brokers were reached, with the time that
	// all times are relative to; nil: not called.
	Started func(time.Time)
	// Each is called once for every operation, when its request is answered, by
	// one goroutine at a time. It must not block for long; nil: not called.
	Each func(Done)
	Logf func(format string, args ...any)
}

// A Done is one answered operation. Times are from the start of the load.
type Done struct {
	Name          string
	Due, Sent, At time.Duration // without a rate, Due is Sent
	Free          time.Duration // with a rate: when one of the Concurrency became free for it; it may be before Due
	Class         string        // of the failure; "" when it succeeded
	Err           error         // likewise
	Certain       bool          // of a failure: the brokers certainly did not do it; else it is unknown
	Events, Bytes uint64        // read
	InFlight      int           // requests in flight when this one was answered, including it
	Last          bool          // of its request, whose operations come one after the other
}

// A Result is the result of a Work. Operations is the sum of Done,
// Failed and Unknown.
type Result struct {
	Op         string
	Operations uint64 // begun
	Done       uint64 // and succeeded
	Failed     uint64 // and certainly refused, or never requested
	Unknown    uint64 // and requested without a certain answer: a timeout, a lost connection, an interruption
	Requests   uint64
	Unsent     uint64 // due, or without a rate to be made, but not begun when the load ended

	Begun         time.Duration // when the load stopped beginning operations; none was due after that
	Elapsed       time.Duration
	PerSecond     float64 // operations done per second
	PerRequest    int
	Concurrency   int
	BusyMean      float64            // requests in flight, time-weighted mean
	Service       *measure.Histogram // answered - sent, per request with an operation done
	FailedService *measure.Histogram // likewise, per request with none done and one failed
	Response      *measure.Histogram // answered - due, per request with an operation done; nil without a rate
	Censored      *measure.Histogram // ended - due, per request with only unknown operations; nil without a rate
	Events        uint64             // read: records
	Bytes         uint64             // read: of keys, values and headers; with BytesWire, as fetched
	BytesWire     bool               // read: some batches were compressed and not decoded, so Bytes is their size as fetched
	Classes       map[string]uint64  // of operations that failed or are unknown
	Failures      []measure.Failure  // likewise: the first 32 distinct texts
	Topics        []Topic            // list, describe and read: the topics found, sorted by name
	Interrupted   bool
	OtherFailure  uint64 // failed and unknown operations whose text was not kept
}

// A Topic describes a topic.
type Topic struct {
	Name       string
	ID         string `json:",omitempty"`
	Partitions int
	Replicas   int
	Internal   bool              `json:",omitempty"`
	Leaders    string            `json:",omitempty"` // describe
	Settings   map[string]string `json:",omitempty"` // describe: those that differ from the broker's, and those that affect speed
	Events     uint64            `json:",omitempty"` // read
	Bytes      uint64            `json:",omitempty"` // read
	Elapsed    time.Duration     `json:",omitempty"` // read
}

// Names returns n names that begin with prefix: "load-0", "load-1", ...
func Names(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return names
}

// maxFailureTexts is how many distinct texts of failures are kept.
const maxFailureTexts = 32

// A ReadTopic reads a topic completely by a client, to the ends that it has when reading begins. It does
// not create a missing topic.
type ReadTopic func(ctx context.Context, c *cluster.Config, client *kgo.Client, topic string) (Reading, error)

// A Reading is what was read of a topic.
type Reading struct {
	Partitions, Replicas int
	Events, Bytes        uint64
	Wire                 bool // Bytes is the size as fetched
}

// A work is a Work that was checked, and then one in progress.
type work struct {
	Work
	cl      *cluster.Cluster
	reading ReadTopic

	mu       sync.Mutex
	res      *Result
	rows     map[[2]string]*failureRow
	found    map[string]int // index in res.Topics of each topic that was read
	busy     time.Duration  // total time of all requests
	inFlight int            // requests
	ended    time.Duration  // when the load stopped beginning operations; -1: not yet
	byTime   bool           // For ended it
	stop     func()         // ends the beginning of operations

	firstName string // of Next, made ahead to be checked; "" when it is used
}

// Run makes a load of operations on topics; read reads topics. It returns when all are answered, or
// when the context ends, with the result so far. An error means that the load could not start.
func Run(ctx context.Context, w Work, read ReadTopic) (*Result, error) {
	c, err := cluster.ParseConfig(target.Spec{URL: w.URL, Op: cluster.OpConsume, Options: w.Options, Given: w.Given, Logf: w.Logf})
	if err != nil {
		return nil, err
	}
	t, err := prepare(w, c.Topic)
	if err != nil {
		return nil, err
	}
	if t.cl, err = c.Reach(ctx); err != nil {
		return nil, err
	}
	defer t.cl.Close()
	t.reading = read
	return t.run(ctx), nil
}

// prepare checks a Work. topic is that of its target.
func prepare(w Work, topic string) (*work, error) {
	w.Concurrency, w.PerRequest = max(1, w.Concurrency), max(1, w.PerRequest)
	firstName := ""
	switch w.Op {
	case List:
		w.PerRequest = 1
		w.Times = cmp.Or(w.Times, 1)
	case Read:
		w.PerRequest = 1
		fallthrough
	case Create, Describe, Delete, DeleteRecords:
		switch {
		case w.Next != nil:
			firstName = w.Next()
			w.Names = nil
		case len(w.Names) == 0:
			w.Names = []string{topic}
		}
		if firstName != "" {
			if err := cluster.CheckTopic(firstName); err != nil {
				return nil, err
			}
		}
		for _, n := range w.Names {
			if err := cluster.CheckTopic(n); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("unknown operation %q on topics", w.Op)
	}
	if w.Times < 0 && w.Next == nil && w.Op != List && w.Op != Read {
		return nil, &target.Error{
			Doing: "repeat an operation on topics without end", Err: fmt.Errorf("%s handles each topic once", w.Op),
			Hint: "give the topics by name, or list or read without end",
		}
	}
	t := &work{
		Work: w, firstName: firstName,
		rows: map[[2]string]*failureRow{}, found: map[string]int{}, ended: -1, stop: func() {},
		res: &Result{
			Op: w.Op, PerRequest: w.PerRequest, Concurrency: w.Concurrency,
			Service: measure.NewHistogram(), FailedService: measure.NewHistogram(), Classes: map[string]uint64{},
		},
	}
	if w.Rate > 0 {
		t.res.Response, t.res.Censored = measure.NewHistogram(), measure.NewHistogram()
	}
	return t, nil
}
