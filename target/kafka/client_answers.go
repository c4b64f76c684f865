package kafka

import (
	"sync"
	"time"

	"carronade/internal/socket"
)

// answerTimes holds the earliest times at which answers to produce requests can have
// arrived, by partition and offset. franz-go calls a record's promise later, when its
// own goroutines get to it. Safe for concurrent use.
type answers struct {
	mu   sync.Mutex
	now  func() time.Duration // nil before the run
	logs map[int32][]answerAt // by partition
	gaps socket.Gaps          // of the threads that read
}

type answerAt struct {
	base     int64
	earliest time.Duration
}

// mostAnswers bounds the times kept for a partition: promises come soon after.
const mostAnswers = 256

func (a *answers) start(now func() time.Duration) {
	a.mu.Lock()
	a.now, a.logs = now, map[int32][]answerAt{}
	a.mu.Unlock()
}

// clock returns the run's clock, nil before the run.
func (a *answers) clock() func() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *answers) note(partition int32, base int64, earliest time.Duration) {
	if earliest == 0 || base < 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := append(a.logs[partition], answerAt{base, earliest})
	if len(l) > mostAnswers {
		l = append(l[:0], l[len(l)/2:]...)
	}
	a.logs[partition] = l
}

// earliest is the earliest time at which the answer for an offset can have arrived, 0
// if it is not known.
func (a *answers) earliest(partition int32, offset int64) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.logs[partition]
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].base <= offset {
			return l[i].earliest
		}
	}
	return 0
}

// A readTimes determines when the bytes that a connection's reader reads can have
// arrived.
type readTimes struct {
	in    *socket.Stamped
	of    *answers
	empty time.Duration // when the socket was last seen empty
	woke  time.Duration // the earliest arrival of what woke the reader since then; 0: nothing woke it
}

// read notes that a read has returned. If the read slept, arriving bytes woke it, so
// the socket was empty until now, less the time for which the thread waited for a
// processor.
func (r *readTimes) read() {
	clock := r.of.clock()
	if clock == nil || !r.in.Slept() {
		return
	}
	r.woke = max(r.empty, clock()-r.of.gaps.Waited())
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
