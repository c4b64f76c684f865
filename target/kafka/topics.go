package kafka

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/measure"
	"carronade/target"
)

// Operations on topics, for TopicWork.Op.
const (
	TopicsCreate        = "create"
	TopicsList          = "list"
	TopicsDescribe      = "describe"
	TopicsDelete        = "delete"
	TopicsDeleteRecords = "delete-records"
	TopicsRead          = "read"
)

// A TopicWork is a load of operations on topics, such as "create 10,000
// topics, 500 requests a second, 8 at a time".
//
//	res, err := kafka.Topics(ctx, kafka.TopicWork{
//		Op: kafka.TopicsCreate, URL: u, Options: v, Given: given,
//		Names: kafka.TopicNames("load-", 10_000), Spec: spec,
//		Concurrency: 8, PerRequest: 100, Rate: 500,
//	})
//
// An operation is one topic; a request carries PerRequest of them. An error of
// Topics means that the load could not be made at all (no broker, wrong
// password); what becomes of single operations is in the result.
type TopicWork struct {
	Op      string
	URL     *url.URL      // as for a run; the topic in it is one of the names, unless there are others
	Options target.Values // of Kind: security, timeouts, what read decodes
	Given   map[string]bool

	Names []string // the topics; list needs none
	// Next makes the names as they are needed, for Times topics to create: it is
	// called once for each, in their order, by one goroutine at a time. Nil: Names
	// has them.
	Next func() string
	Spec TopicSpec // create: partitions, replicas and settings; the name is not used
	Upto int64     // delete-records: offset before which records are deleted; -1: all there are

	Concurrency int     // requests in flight at once; 0 means 1
	PerRequest  int     // topics in a request, for all but list and read; 0 means 1
	Rate        float64 // requests due a second; 0: each when the one before it is answered
	// Times is how many operations there are, of those that list and read, which
	// begins with the first topic again, and of Next: 0 is one listing, or each
	// topic once; -1 is without end, until For has passed or the context ends.
	// Beside For a number is a bound, and what time left of it is not Unsent.
	Times    int
	Internal bool // list: the brokers' own topics as well

	For      time.Duration // begin no request after so long; 0: no limit
	Failures uint64        // begin none after more operations that failed or are unknown; 0: no limit

	// Started is called once, when the brokers were reached, with the moment that
	// all times are from; nil: nobody looks.
	Started func(time.Time)
	// Each is called once for every operation, when its request is answered, by
	// one goroutine at a time. It must not block for long; nil: nobody looks.
	Each func(TopicDone)
	Logf func(format string, args ...any)
}

// A TopicDone is one operation, answered. Times are from the start of the load.
type TopicDone struct {
	Name          string
	Due, Sent, At time.Duration // due is sent without a rate
	Free          time.Duration // with a rate: since when one of those in flight was free for it; it may be before it was due
	Class         string        // of what went wrong; "" when it succeeded
	Err           error         // likewise
	Certain       bool          // of a class: the brokers certainly did not do it; else they may have, and it is unknown
	Events, Bytes uint64        // read
	InFlight      int           // requests that were in flight as this one was answered, it included
	Last          bool          // of its request: those of one come one behind the other
}

// A TopicResult is what became of a TopicWork. Operations are those Done, Failed
// and Unknown.
type TopicResult struct {
	Op         string
	Operations uint64 // begun
	Done       uint64 // and succeeded
	Failed     uint64 // and refused for certain, or never asked for
	Unknown    uint64 // and asked for without a certain answer: a timeout, a lost connection, an interruption
	Requests   uint64
	Unsent     uint64 // due, or where there is no rate to be made, and not begun when the load ended

	Begun         time.Duration // the end of beginning any; none was due from then on
	Elapsed       time.Duration
	PerSecond     float64 // operations done a second
	PerRequest    int
	Concurrency   int
	BusyMean      float64            // requests in flight, time-weighted mean
	Service       *measure.Histogram // answered - sent, per request of which something was done
	FailedService *measure.Histogram // likewise, per request of which nothing was done and something failed
	Response      *measure.Histogram // answered - due, per request of which something was done; nil without a rate
	Censored      *measure.Histogram // ended - due, per request of which nothing is certain; nil without a rate
	Events        uint64             // read: records
	Bytes         uint64             // read: of keys, values and headers; of what was fetched, where BytesWire is set
	BytesWire     bool               // read: some batches were compressed and not decoded, so Bytes is as they travelled
	Classes       map[string]uint64  // of those that failed or are unknown
	Failures      []measure.Failure  // likewise: the first 32 distinct texts
	Topics        []TopicInfo        // list, describe and read: what was found, by name
	Interrupted   bool
	OtherFailure  uint64 // failed and unknown operations whose text was not kept
}

// A TopicInfo is what was found out about a topic.
type TopicInfo struct {
	Name       string
	ID         string `json:",omitempty"`
	Partitions int
	Replicas   int
	Internal   bool              `json:",omitempty"`
	Leaders    string            `json:",omitempty"` // describe
	Settings   map[string]string `json:",omitempty"` // describe: those that differ from the broker's, and those that decide speed
	Events     uint64            `json:",omitempty"` // read
	Bytes      uint64            `json:",omitempty"` // read
	Elapsed    time.Duration     `json:",omitempty"` // read
}

// TopicNames returns n names that begin with prefix: "load-0", "load-1", ...
func TopicNames(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return names
}

// maxFailureTexts is how many distinct texts of failures are kept.
const maxFailureTexts = 32

// Topics makes a load of operations on topics. It returns when all are
// answered, or, with what was done so far, when the context ends.
func Topics(ctx context.Context, w TopicWork) (*TopicResult, error) {
	t, err := newTopicLoad(ctx, w)
	if err != nil {
		return nil, err
	}
	defer t.cl.close()
	return t.run(ctx), nil
}

// A topicLoad is a TopicWork in progress.
type topicLoad struct {
	TopicWork
	cl *cluster

	mu    sync.Mutex
	res   *TopicResult
	rows  map[[2]string]*failureRow
	found map[string]int // where in res.Topics a topic that was read is
	busy  time.Duration  // time of all requests together
	out   int            // requests in flight
	ended time.Duration  // when none was begun any more; -1: not yet
	timed bool           // it was For that ended it
	stop  func()         // begins none any more

	first string // of Next, made ahead to be checked; "" when it is taken
}

func newTopicLoad(ctx context.Context, w TopicWork) (*topicLoad, error) {
	w.Concurrency, w.PerRequest = max(1, w.Concurrency), max(1, w.PerRequest)
	c, err := parseConfig(target.Spec{URL: w.URL, Op: opConsume, Options: w.Options, Given: w.Given, Logf: w.Logf})
	if err != nil {
		return nil, err
	}
	first := ""
	switch w.Op {
	case TopicsList:
		w.PerRequest = 1
		if w.Times == 0 {
			w.Times = 1
		}
	case TopicsRead:
		w.PerRequest = 1
		fallthrough
	case TopicsCreate, TopicsDescribe, TopicsDelete, TopicsDeleteRecords:
		switch {
		case w.Next != nil:
			first = w.Next()
			w.Names = nil
		case len(w.Names) == 0:
			w.Names = []string{c.topic}
		}
		if first != "" {
			if err := checkTopic(first); err != nil {
				return nil, err
			}
		}
		for _, n := range w.Names {
			if err := checkTopic(n); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("unknown operation %q on topics", w.Op)
	}
	if w.Times < 0 && w.Next == nil && w.Op != TopicsList && w.Op != TopicsRead {
		return nil, &target.Error{
			Doing: "repeat an operation on topics without end", Err: fmt.Errorf("%s handles each topic once", w.Op),
			Hint: "give the topics by name, or list or read without end",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := c.probe(ctx); err != nil {
		return nil, err
	}
	control, err := kgo.NewClient(c.baseOpts()...)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	t := &topicLoad{
		TopicWork: w, first: first, cl: &cluster{cfg: c, control: control, admin: kadm.NewClient(control)},
		rows: map[[2]string]*failureRow{}, found: map[string]int{}, ended: -1, stop: func() {},
		res: &TopicResult{
			Op: w.Op, PerRequest: w.PerRequest, Concurrency: w.Concurrency,
			Service: measure.NewHistogram(), FailedService: measure.NewHistogram(), Classes: map[string]uint64{},
		},
	}
	if w.Rate > 0 {
		t.res.Response, t.res.Censored = measure.NewHistogram(), measure.NewHistogram()
	}
	if err := control.Ping(ctx); err != nil {
		t.cl.close()
		return nil, err
	}
	return t, nil
}
