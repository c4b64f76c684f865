package kafka

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
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
	// Beside For a number is a bound, and what is not begun then is not Unsent.
	Times    int
	Internal bool // list: the brokers' own topics as well

	For      time.Duration // begin no request after so long; 0: no limit
	Failures uint64        // begin none after more failed operations than this; 0: no limit

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
	Class         string        // of the failure; "" when it succeeded
	Err           error         // likewise
	Events, Bytes uint64        // read
	InFlight      int           // requests that were in flight as this one was answered, it included
}

// A TopicResult is what became of a TopicWork.
type TopicResult struct {
	Op         string
	Operations uint64 // begun
	Done       uint64 // and succeeded
	Failed     uint64 // and refused for certain, or not answered
	Requests   uint64
	Unsent     uint64 // not begun when the load ended

	Elapsed      time.Duration
	PerSecond    float64 // operations done a second
	PerRequest   int
	Concurrency  int
	BusyMean     float64            // requests in flight, time-weighted mean
	Service      *measure.Histogram // answered - sent, per request
	Response     *measure.Histogram // answered - due, per request; nil without a rate
	Events       uint64             // read: records
	Bytes        uint64             // read: of keys, values and headers; of what was fetched, where BytesWire is set
	BytesWire    bool               // read: some batches were compressed and not decoded, so Bytes is as they travelled
	Classes      map[string]uint64
	Failures     []measure.Failure // the first 32 distinct texts
	Topics       []TopicInfo       // list, describe and read: what was found, by name
	Interrupted  bool
	OtherFailure uint64 // failed operations whose text was not kept
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

	mu   sync.Mutex
	res  *TopicResult
	rows map[[2]string]*measure.Failure
	busy time.Duration // time of all requests together
	out  int           // requests in flight

	first string // of Next, made ahead to be checked; "" when it is taken
}

// An attempt is one request: the topics in it, and what became of each.
type attempt struct {
	names []string
	errs  []error
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
		return nil, fmt.Errorf("no operation %q on topics", w.Op)
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
		TopicWork: w, first: first, cl: &cluster{cfg: c, control: control, admin: kadm.NewClient(control)}, rows: map[[2]string]*measure.Failure{},
		res: &TopicResult{Op: w.Op, PerRequest: w.PerRequest, Concurrency: w.Concurrency, Service: measure.NewHistogram(), Classes: map[string]uint64{}},
	}
	if w.Rate > 0 {
		t.res.Response = measure.NewHistogram()
	}
	return t, control.Ping(ctx)
}

// run makes the requests: as many at once as asked for, each when it is due.
func (t *topicLoad) run(ctx context.Context) *TopicResult {
	total := t.operations()
	var (
		wg     sync.WaitGroup
		begun  int // operations
		next   int // request
		nextMu sync.Mutex
		start  = time.Now()
		claim  = func() (i int, names []string, ok bool) {
			nextMu.Lock()
			defer nextMu.Unlock()
			if begun == total || ctx.Err() != nil || t.For > 0 && time.Since(start) >= t.For || t.failedEnough() {
				return 0, nil, false
			}
			n := t.PerRequest
			if total > 0 {
				n = min(n, total-begun)
			}
			names = t.names(begun, n)
			begun += n
			next++
			return next - 1, names, true
		}
	)
	if t.Started != nil {
		t.Started(start)
	}
	most := t.Concurrency
	if total > 0 {
		most = min(most, 1+(total-1)/t.PerRequest)
	}
	for range most {
		wg.Go(func() {
			// A client of its own, so that requests do not queue on one connection.
			own, err := kgo.NewClient(t.cl.cfg.baseOpts()...)
			if err != nil {
				own = t.cl.control
			} else {
				defer own.Close()
			}
			for {
				i, names, ok := claim()
				if !ok {
					return
				}
				due := time.Duration(0)
				if t.Rate > 0 {
					due = time.Duration(float64(i) / t.Rate * float64(time.Second))
					if t.For > 0 && due >= t.For {
						t.unsent(len(names))
						return
					}
					if wait := due - time.Since(start); wait > 0 {
						select {
						case <-ctx.Done():
							t.unsent(len(names))
							return
						case <-time.After(wait):
						}
					}
				}
				t.begin()
				sent := time.Since(start)
				if t.Rate <= 0 {
					due = sent
				}
				a := &attempt{names: names, errs: make([]error, len(names))}
				t.do(ctx, own, a)
				t.took(a, due, sent, time.Since(start))
			}
		})
	}
	wg.Wait()
	r := t.res
	if total < 0 || t.Times > 0 && t.For > 0 {
		r.Unsent = 0 // there was no number of them, or it was a bound
	} else {
		r.Unsent += uint64(total - begun)
	}
	r.Elapsed = time.Since(start)
	if s := r.Elapsed.Seconds(); s > 0 {
		r.PerSecond = float64(r.Done) / s
		r.BusyMean = t.busy.Seconds() / s
	}
	for _, f := range t.rows {
		r.Failures = append(r.Failures, *f)
	}
	slices.SortFunc(r.Failures, func(a, b measure.Failure) int {
		if a.Events != b.Events {
			return int(b.Events) - int(a.Events)
		}
		return slices.Compare([]string{a.Class, a.Text}, []string{b.Class, b.Text})
	})
	slices.SortFunc(r.Topics, func(a, b TopicInfo) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	r.Interrupted = ctx.Err() != nil
	return r
}

func (t *topicLoad) unsent(n int) {
	t.mu.Lock()
	t.res.Unsent += uint64(n)
	t.mu.Unlock()
}

func (t *topicLoad) begin() {
	t.mu.Lock()
	t.out++
	t.mu.Unlock()
}

// failedEnough tells whether the limit of failures ends the load.
func (t *topicLoad) failedEnough() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Failures > 0 && t.res.Failed > t.Failures
}

// tell shows the operations of a request to whoever looks.
func (t *topicLoad) tell(a *attempt, due, sent, done time.Duration) {
	if t.Each == nil {
		return
	}
	for i, name := range a.names {
		d := TopicDone{Name: name, Due: due, Sent: sent, At: done, Err: a.errs[i], InFlight: t.out}
		if d.Err != nil {
			class, _ := classify(d.Err)
			d.Class = class.String()
		} else if t.Op == TopicsRead {
			for _, info := range t.res.Topics {
				if info.Name == name {
					d.Events, d.Bytes = info.Events, info.Bytes
				}
			}
		}
		t.Each(d)
	}
}

// took counts a request that is over.
func (t *topicLoad) took(a *attempt, due, sent, done time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(a, due, sent, done)
	t.out--
	r := t.res
	r.Requests++
	t.busy += done - sent
	r.Service.Record(done - sent)
	if r.Response != nil {
		r.Response.Record(done - due)
	}
	for _, err := range a.errs {
		r.Operations++
		if err == nil {
			r.Done++
			continue
		}
		r.Failed++
		class, _ := classify(err)
		r.Classes[class.String()]++
		key := [2]string{class.String(), failureText(err)}
		row := t.rows[key]
		if row == nil {
			if len(t.rows) == maxFailureTexts {
				r.OtherFailure++
				continue
			}
			row = &measure.Failure{Class: key[0], Text: key[1]}
			t.rows[key] = row
		}
		row.Events++
		row.Shots++
	}
}

// failureText is a text that failures of one kind share: the name of the
// protocol's error where there is one, since the broker's words name the topic.
func failureText(err error) string {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return ke.Message + ": " + ke.Description
	}
	return err.Error()
}

// do makes one request.
func (t *topicLoad) do(ctx context.Context, client *kgo.Client, a *attempt) {
	timeout := t.cl.cfg.requestTimeout
	if t.Op != TopicsRead { // a topic may be large, and its fetches have deadlines of their own
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+time.Second)
		defer cancel()
	}
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(int32(timeout.Milliseconds()))
	switch t.Op {
	case TopicsCreate:
		specs := make([]TopicSpec, len(a.names))
		for i, n := range a.names {
			specs[i] = t.Spec
			specs[i].Name = n
		}
		a.errs = createTopics(ctx, client, specs, timeout)
	case TopicsDelete:
		a.deleteTopics(ctx, client, timeout)
	case TopicsList:
		a.errs[0] = t.list(ctx, admin)
	case TopicsDescribe:
		t.describe(ctx, admin, a)
	case TopicsDeleteRecords:
		t.deleteRecords(ctx, admin, a)
	case TopicsRead:
		a.errs[0] = t.read(ctx, client, a.names[0])
	}
}

// failAll says of each topic of a request that it failed.
func (a *attempt) failAll(err error) {
	for i := range a.errs {
		a.errs[i] = err
	}
}

// set sets a topic's error; a topic that was not asked for is ignored.
func (a *attempt) set(name string, err error) {
	if i := slices.Index(a.names, name); i >= 0 {
		a.errs[i] = err
	}
}
