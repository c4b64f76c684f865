package franz

import (
	"sync"
	"time"

	"carronade/internal/conn/socket"
)

// answerTimes holds the earliest times at which answers to produce requests can have
// arrived, by log and offset. franz-go calls a record's promise later, when its
// own goroutines get to it. Safe for concurrent use.
type answerTimes struct {
	arrivalTimes
	byLog map[int32][]answerAt
}

// arrivalTimes are what the connections of a client need to know when bytes arrived. Safe
// for concurrent use.
type arrivalTimes struct {
	mu   sync.Mutex
	now  func() time.Duration // nil before the run
	gaps socket.RunDelays     // of the threads that read
}

type answerAt struct {
	base     int64
	earliest time.Duration
	written  time.Duration // when its request was written; 0: not known
	room     time.Duration // the last moment at which the connection or the in-flight limit began to let requests through; 0: before the run
}

// mostAnswers bounds the times kept for a log: promises come soon after.
const mostAnswers = 256

func (a *answerTimes) start(now func() time.Duration) {
	a.mu.Lock()
	a.now, a.byLog = now, map[int32][]answerAt{}
	a.mu.Unlock()
}

// clock returns the run's clock, nil before the run.
func (a *arrivalTimes) clock() func() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *answerTimes) add(log int32, at answerAt) {
	if at.earliest == 0 || at.base < 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := append(a.byLog[log], at)
	if len(l) > mostAnswers {
		l = append(l[:0], l[len(l)/2:]...)
	}
	a.byLog[log] = l
}

// find returns when the answer for an offset can have arrived at the earliest, 0 if it is
// not known; and for how long the client did not write its request although it could:
// a batch may be written from due on, and the client's own goroutines do that, which a busy
// machine delays.
func (a *answerTimes) find(log int32, offset int64, due time.Duration) (earliest, unwritten time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.byLog[log]
	for i := len(l) - 1; i >= 0; i-- {
		if at := &l[i]; at.base <= offset {
			if at.written > 0 {
				unwritten = max(0, at.written-max(due, at.room))
			}
			return at.earliest, unwritten
		}
	}
	return 0, 0
}

// A readTimes determines when the bytes that a connection's reader reads can have
// arrived.
type readTimes struct {
	in      *socket.Stamped
	of      *arrivalTimes
	emptyAt time.Duration // when the socket was last seen empty
	wokenAt time.Duration // the earliest arrival of what woke the reader since then; 0: nothing woke it
	delay   time.Duration // how late the reader wakes, see woken
}

// read notes that a read has returned. If the read slept, arriving bytes woke it, so
// the socket was empty until now, less the time for which the thread waited for a
// processor, and for which the goroutine waited for a thread.
func (r *readTimes) read() {
	clock := r.of.clock()
	if clock == nil || !r.in.Slept() {
		return
	}
	now := clock()
	r.woken(now-r.of.gaps.Waited(), r.in.Arrived(r.emptyAt, now))
}

// woken notes that bytes woke the reader, by the evidence of its thread at the given
// time, and that the newest of them arrived at another; 0: not known.
//
// On busy processors the runtime looks for arrived bytes late, and then lets the reader
// wait for a thread: some milliseconds, which no counter shows. The kernel's time shows
// it, but not for the first of several answers, which have the time of the last. So the
// longest recent delay counts, each one for some 16 reads.
func (r *readTimes) woken(at, arrived time.Duration) {
	r.delay -= r.delay / 16
	if arrived > 0 {
		r.delay = max(r.delay, at-arrived)
		at = min(at, arrived)
	}
	r.wokenAt = max(r.emptyAt, at-r.delay)
}

// arrived is the earliest time at which the answer that a read has just completed can
// have arrived. The kernel's time of a read is that of the newest bytes near it, so it
// is the answer's time only if nothing follows; else only the time when the socket was
// last empty is known.
func (r *readTimes) arrived() time.Duration {
	clock := r.of.clock()
	if clock == nil {
		return 0
	}
	now := clock()
	empty := r.in.Empty()
	at := r.in.Arrived(r.emptyAt, now)
	first := max(r.emptyAt, r.wokenAt)
	switch {
	case !empty && first > 0:
		return first
	case at == 0 && first > 0:
		at = first
	case at == 0:
		at = now
	}
	if empty {
		r.emptyAt, r.wokenAt = now, 0
	}
	return at
}
