package kafka

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A clientLateness measures the delay that a reader itself adds to events that it reads
// through a client: what the client has read waits until it is polled, and the client
// asks the broker for more only then. It covers what the client's hooks report; how
// long bytes wait in the socket is not known.
//
// The client's goroutines call the hooks; the polling goroutine calls the other methods.
type clientLateness struct {
	now   func() time.Duration
	logOf func(topic string, partition int32) int32

	mu    sync.Mutex
	reads map[int32]time.Duration // by broker: when its newest answer had been read
	logs  map[int32]*fetched

	askDelay, nextAskDelay map[int32]time.Duration // by broker: how late the last request was; how late the next one is
	polled                 time.Duration           // time of the previous poll
}

// A fetched describes what was read from a log and is not polled yet.
type fetched struct {
	broker         int32
	oldest, newest time.Duration // when it was read; 0: nothing was
	ownDelay       time.Duration // see part.ownDelay
}

var (
	_ kgo.HookBrokerRead     = (*clientLateness)(nil)
	_ kgo.HookFetchBatchRead = (*clientLateness)(nil)
)

func newClientLateness(now func() time.Duration, logOf func(topic string, partition int32) int32) *clientLateness {
	return &clientLateness{
		now: now, logOf: logOf, reads: map[int32]time.Duration{}, logs: map[int32]*fetched{},
		askDelay: map[int32]time.Duration{}, nextAskDelay: map[int32]time.Duration{},
	}
}

// OnBrokerRead implements kgo.HookBrokerRead.
func (l *clientLateness) OnBrokerRead(meta kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key != int16(kmsg.Fetch) {
		return
	}
	l.mu.Lock()
	l.reads[meta.NodeID] = l.now()
	l.mu.Unlock()
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead: the batch is from the broker's
// newest answer.
func (l *clientLateness) OnFetchBatchRead(meta kgo.BrokerMetadata, topic string, partition int32, _ kgo.FetchBatchMetrics) {
	log := l.logOf(topic, partition)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.log(log)
	f.broker, f.newest = meta.NodeID, l.reads[meta.NodeID]
	if f.oldest == 0 {
		f.oldest = f.newest
	}
}

// log returns the entry of a log. The lock is held.
func (l *clientLateness) log(log int32) *fetched {
	f := l.logs[log]
	if f == nil {
		f = &fetched{broker: -1}
		l.logs[log] = f
	}
	return f
}

// earliest is the time at which what a poll returned from a log could have arrived if
// the reader had never been late. more: the log has more than that.
func (l *clientLateness) earliest(log int32, at time.Duration, more bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.log(log)
	read := f.oldest
	known := read > 0 && read <= at
	switch {
	case !known:
		read = l.polled // not before the previous poll, which took everything
	case f.newest > at:
		f.oldest = f.newest // of the next answer, which came while this one was handled
	default:
		f.oldest = 0
	}
	f.ownDelay += l.askDelay[f.broker]
	earliest := max(1, read-f.ownDelay)
	if !more {
		f.ownDelay = 0
	}
	if known {
		l.nextAskDelay[f.broker] = max(l.nextAskDelay[f.broker], at-read)
	}
	return earliest
}

// endPoll ends a poll.
func (l *clientLateness) endPoll(at time.Duration) {
	for broker, late := range l.nextAskDelay {
		l.askDelay[broker] = late
	}
	clear(l.nextAskDelay)
	l.polled = at
}
