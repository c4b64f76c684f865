package kafka

import (
	"sync"
	"time"

	"carronade/internal/socket"
)

// answers is when answers to produce requests can have arrived at the earliest, by
// partition and offset: franz-go calls a record's promise when its own goroutines come
// to it, which is later. Safe for concurrent use.
type answers struct {
	mu   sync.Mutex
	now  func() time.Duration // nil before the run
	logs map[int32][]answerAt // by partition
	gaps socket.Gaps          // of the threads that read
}

type answerAt struct {
	base     int64
	earliest time.Duration
	written  time.Duration // when its request was written; 0: not known
	room     time.Duration // when the in-flight limit let it be written; 0: it was not reached
}

// mostAnswers bounds what is remembered of a partition: promises come soon after.
const mostAnswers = 256

func (a *answers) start(now func() time.Duration) {
	a.mu.Lock()
	a.now, a.logs = now, map[int32][]answerAt{}
	a.mu.Unlock()
}

// clock returns the run's, nil before it.
func (a *answers) clock() func() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *answers) note(partition int32, at answerAt) {
	if at.earliest == 0 || at.base < 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := append(a.logs[partition], at)
	if len(l) > mostAnswers {
		l = append(l[:0], l[len(l)/2:]...)
	}
	a.logs[partition] = l
}

// earliest returns when the answer about an offset would have arrived at the earliest, had
// the client written its request as soon as it could: batches are handed to the client at
// sent, and its own goroutines write them, which a busy machine delays. 0: not known.
func (a *answers) earliest(partition int32, offset int64, sent time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.logs[partition]
	for i := len(l) - 1; i >= 0; i-- {
		if at := &l[i]; at.base <= offset {
			if at.written == 0 {
				return at.earliest
			}
			return at.earliest - max(0, at.written-max(sent, at.room))
		}
	}
	return 0
}

// A readTimes knows when what a connection's reader finds can have arrived.
type readTimes struct {
	in    *socket.Stamped
	of    *answers
	empty time.Duration // when nothing was left to read, the last time it was looked
	woke  time.Duration // the earliest that what woke the reader since then can have come; 0: nothing did
}

// read notes that a read has returned. One that slept was woken by what came: until
// then, less the time for which its thread waited for a processor, there was nothing.
func (r *readTimes) read() {
	clock := r.of.clock()
	if clock == nil || !r.in.Slept() {
		return
	}
	r.woke = max(r.empty, clock()-r.of.gaps.Waited())
}

// arrived is the earliest moment at which the answer can have arrived that a read has
// just completed. The kernel's time of a read is that of the newest bytes near it, so
// it is the answer's own only when nothing follows; else nothing is known but when the
// socket was last empty.
func (r *readTimes) arrived() time.Duration {
	clock := r.of.clock()
	if clock == nil {
		return 0
	}
	now := clock()
	empty := r.in.Empty()
	at := r.in.Arrived(r.empty, now)
	first := max(r.empty, r.woke)
	switch {
	case !empty && first > 0:
		return first
	case at == 0 && first > 0:
		at = first
	case at == 0:
		at = now
	}
	if empty {
		r.empty, r.woke = now, 0
	}
	return at
}
