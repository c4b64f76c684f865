package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/measure"
	"carronade/protocol"
)

// Operations on topics, for TopicLoad.Op.
const (
	OpCreateTopics   = "create"
	OpListTopics     = "list"
	OpDescribeTopics = "describe"
	OpDeleteTopics   = "delete"
	OpDeleteRecords  = "delete-records"
	OpReadTopics     = "read"
)

// A TopicLoad is a load of operations on topics, such as "create 10,000
// topics, 500 requests a second, 8 at a time".
//
//	res, err := kafka.Topics(ctx, cluster.TopicLoad{
//		Op: cluster.OpCreateTopics, URL: u, Options: v, Given: given,
//		Names: cluster.NumberedNames("load-", 10_000), Spec: spec,
//		Concurrency: 8, PerRequest: 100, Rate: 500,
//	})
//
// An operation is one topic; a request carries PerRequest of them. An error of
// Topics means that the load could not start (no broker, wrong password); the
// result contains the outcomes of the operations.
type TopicLoad struct {
	Op      string
	URL     *url.URL        // as for a run; its topic is used when Names is empty
	Options protocol.Values // of Kind: security, timeouts, what read decodes
	Given   map[string]bool

	Names []string // the topics; list needs none
	// Next returns the next name, for Times topics to create: it is called once
	// for each, in order, by one goroutine at a time. Nil: Names is used.
	Next func() string
	Spec TopicSpec // create: partitions, replicas and settings; the name is not used
	Upto int64     // delete-records: offset before which records are deleted; -1: all records

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
	Each func(TopicDone)
	Logf func(format string, args ...any)
}

// A TopicDone is one answered operation. Times are from the start of the load.
type TopicDone struct {
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

// A TopicResult is the result of a TopicLoad. Operations is the sum of Done,
// Failed and Unknown.
type TopicResult struct {
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

// NamesNeed is what NumberedNames takes of the machine: a name is kept until the end of the load.
func NamesNeed(prefix string, n int) protocol.Need {
	const header = 16 // of a string
	return protocol.Need{Setting: "count", Number: int64(n), Bytes: header + int64(len(prefix)+len(strconv.Itoa(n-1)))}
}

// NumberedNames returns n names that begin with prefix: "load-0", "load-1", ...
func NumberedNames(prefix string, n int) []string {
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
type ReadTopic func(ctx context.Context, c *Config, client *kgo.Client, topic string) (TopicReading, error)

// A TopicReading is what was read of a topic.
type TopicReading struct {
	Partitions, Replicas int
	Events, Bytes        uint64
	Wire                 bool // Bytes is the size as fetched
}

// A work is a TopicLoad that was checked, and then one in progress.
type work struct {
	TopicLoad
	cl      *Cluster
	reading ReadTopic

	mu       sync.Mutex
	res      *TopicResult
	rows     map[[2]string]*failureRow
	found    map[string]int // index in res.Topics of each topic that was read
	busy     time.Duration  // total time of all requests
	inFlight int            // requests
	ended    time.Duration  // when the load stopped beginning operations; -1: not yet
	byTime   bool           // For ended it
	stop     func()         // ends the beginning of operations

	firstName string // of Next, made ahead to be checked; "" when it is used
}

// LoadTopics makes a load of operations on topics; read reads topics. It returns when all are answered, or
// when the context ends, with the result so far. An error means that the load could not start.
func LoadTopics(ctx context.Context, w TopicLoad, read ReadTopic) (*TopicResult, error) {
	c, err := ParseConfig(protocol.Spec{URL: w.URL, Op: OpConsume, Options: w.Options, Given: w.Given, Logf: w.Logf})
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

// prepare checks a TopicLoad. topic is that of its target.
func prepare(w TopicLoad, topic string) (*work, error) {
	w.Concurrency, w.PerRequest = max(1, w.Concurrency), max(1, w.PerRequest)
	firstName := ""
	switch w.Op {
	case OpListTopics:
		w.PerRequest = 1
		w.Times = cmp.Or(w.Times, 1)
	case OpReadTopics:
		w.PerRequest = 1
		fallthrough
	case OpCreateTopics, OpDescribeTopics, OpDeleteTopics, OpDeleteRecords:
		switch {
		case w.Next != nil:
			firstName = w.Next()
			w.Names = nil
		case len(w.Names) == 0:
			w.Names = []string{topic}
		}
		if firstName != "" {
			if err := CheckTopic(firstName); err != nil {
				return nil, err
			}
		}
		for _, n := range w.Names {
			if err := CheckTopic(n); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("unknown operation %q on topics", w.Op)
	}
	if w.Times < 0 && w.Next == nil && w.Op != OpListTopics && w.Op != OpReadTopics {
		return nil, &protocol.Error{
			Doing: "repeat an operation on topics without end", Err: fmt.Errorf("%s handles each topic once", w.Op),
			Hint: "give the topics by name, or list or read without end",
		}
	}
	t := &work{
		TopicLoad: w, firstName: firstName,
		rows: map[[2]string]*failureRow{}, found: map[string]int{}, ended: -1, stop: func() {},
		res: &TopicResult{
			Op: w.Op, PerRequest: w.PerRequest, Concurrency: w.Concurrency,
			Service: measure.NewHistogram(), FailedService: measure.NewHistogram(), Classes: map[string]uint64{},
		},
	}
	if w.Rate > 0 {
		t.res.Response, t.res.Censored = measure.NewHistogram(), measure.NewHistogram()
	}
	return t, nil
}
