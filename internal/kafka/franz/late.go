package franz

import (
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
)

// An ownLateness measures the delay that a reader itself adds to events that it reads
// through a client: an answer waits in the socket until the client reads it, its records
// wait until they are polled, and the client asks the broker for more only then. The
// connections report when answers arrived and when requests were written; the client's
// hooks report which logs an answer has records of.
//
// The client's goroutines call the hooks and use the connections; the polling goroutine
// calls the other methods.
type ownLateness struct {
	now   func() time.Duration
	logOf func(topic string, partition int32) int32
	times arrivalTimes

	mu      sync.Mutex
	brokers map[int32]*brokerFetches
	logs    map[int32]*fetched
	polled  time.Duration // time of the previous poll
}

// brokerFetches are the requests to one broker for records, one at a time.
type brokerFetches struct {
	late   cluster.Lateness
	newest fetchAnswer
}

// A fetchAnswer is an answer to such a request.
type fetchAnswer struct {
	arrived  time.Duration // the earliest possible time; 0: there is none
	askDelay time.Duration // by how much its request was later than it could have been
}

// A fetched describes the answers with records of a log that are not polled yet.
type fetched struct {
	oldest, newest fetchAnswer
	from           fetchedFrom
	ownDelay       time.Duration // how much the reader's own delays delay its events, as in cluster.Lateness
}

// A fetchedFrom is the broker that a log was last read from.
type fetchedFrom struct {
	broker int32
	known  bool
}

var (
	_ kgo.HookBrokerConnect  = (*ownLateness)(nil)
	_ kgo.HookBrokerThrottle = (*ownLateness)(nil)
	_ kgo.HookFetchBatchRead = (*ownLateness)(nil)
)

func newOwnLateness(now func() time.Duration, logOf func(topic string, partition int32) int32) *ownLateness {
	return &ownLateness{
		now: now, logOf: logOf, times: arrivalTimes{now: now}, brokers: map[int32]*brokerFetches{}, logs: map[int32]*fetched{},
	}
}

// fetches returns the requests to a broker. The lock is held.
func (l *ownLateness) fetches(broker int32) *brokerFetches {
	f := l.brokers[broker]
	if f == nil {
		f = &brokerFetches{}
		l.brokers[broker] = f
	}
	return f
}

// asked notes that a request for records was written between two moments.
func (l *ownLateness) asked(broker int32, before, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetches(broker).late.Asked(before, after)
}

// answered notes that an answer with records, or without any, arrived.
func (l *ownLateness) answered(broker int32, arrived time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.fetches(broker)
	arrived = max(arrived, f.late.Since)
	f.late.Answered(arrived, arrived)
	f.newest = fetchAnswer{arrived, f.late.AskDelay}
}

// lost notes that a connection ended: the next request is not late.
func (l *ownLateness) lost(broker int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetches(broker).late.CouldAsk = 0
}

// resume notes that the reader goes on after a pause: the next requests are not late, and what the pause
// dropped was not polled.
func (l *ownLateness) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.brokers {
		f.late.CouldAsk = 0
	}
	for _, f := range l.logs {
		f.oldest = fetchAnswer{}
	}
}

// OnBrokerConnect implements kgo.HookBrokerConnect. The client calls it before it uses the
// connection.
func (*ownLateness) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, conn net.Conn, err error) {
	if c, ok := conn.(*fetchConn); ok && err == nil {
		c.broker = meta.NodeID
	}
}

// OnBrokerThrottle implements kgo.HookBrokerThrottle: the client pauses as the broker wants.
func (l *ownLateness) OnBrokerThrottle(meta kgo.BrokerMetadata, pause time.Duration, _ bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.fetches(meta.NodeID); f.late.CouldAsk > 0 {
		f.late.Throttled(pause)
	}
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead: the batch is from the broker's
// newest answer.
func (l *ownLateness) OnFetchBatchRead(meta kgo.BrokerMetadata, topic string, partition int32, _ kgo.FetchBatchMetrics) {
	log := l.logOf(topic, partition)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.log(log)
	f.from = fetchedFrom{meta.NodeID, true}
	f.newest = l.fetches(meta.NodeID).newest
	if f.oldest.arrived == 0 {
		f.oldest = f.newest
	}
}

// log returns the entry of a log. The lock is held.
func (l *ownLateness) log(log int32) *fetched {
	f := l.logs[log]
	if f == nil {
		f = &fetched{}
		l.logs[log] = f
	}
	return f
}

// earliest is the time at which what a poll returned from a log could have arrived if
// the reader had never been late. more: the log has more than that.
func (l *ownLateness) earliest(log int32, at time.Duration, more bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.log(log)
	answer := f.oldest
	switch {
	case answer.arrived == 0 || answer.arrived > at:
		answer = fetchAnswer{arrived: l.polled} // not before the previous poll, which took everything
	case f.newest.arrived > at:
		f.oldest = f.newest // of the next answer, which came while this one was handled
	default:
		f.oldest = fetchAnswer{}
	}
	f.ownDelay += answer.askDelay
	earliest := max(1, answer.arrived-f.ownDelay)
	if !more {
		f.ownDelay = 0
	}
	return earliest
}

// endPoll ends a poll.
func (l *ownLateness) endPoll(at time.Duration) { l.polled = at }

// answeredFor returns when the newest answer of the broker arrived that a log was last read from; 0: none
// is known.
func (l *ownLateness) answeredFor(log int32) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.logs[log]
	if f == nil || !f.from.known {
		return 0
	}
	return l.fetches(f.from.broker).newest.arrived
}
