package run

import (
	"sync"
	"time"

	"carronade/load"
)

// A returner wraps a target in a closed-loop round trip: an acked batch returns to its caller
// when its events were consumed, not before. After a timeout it returns anyway; the ledger
// reports what became of it. It has the capabilities of the target, and its lanes those of the lanes.
type returner struct {
	load.Target
	readers readers // each of them consumes the events
	sink    load.Sink

	mu      sync.Mutex
	waiting map[batchKey]waitingOutcome
	lanes   map[load.Lane]*returnerLane
}

type batchKey struct {
	lane int32
	seq  uint64
}

type waitingOutcome struct {
	o     load.Outcome
	left  int32 // events that were not consumed so far, by each reader
	since time.Duration
}

// longestWait is how long a caller waits for its event to be consumed.
const longestWait = 30 * time.Second

// newReturner wraps a target whose events the readers read.
func newReturner(t load.Target, all readers) *returner {
	r := &returner{Target: t, readers: all, waiting: map[batchKey]waitingOutcome{}, lanes: map[load.Lane]*returnerLane{}}
	for _, b := range all {
		b.returner = r
	}
	return r
}

// Start implements load.Target.
func (r *returner) Start(sink load.Sink) {
	r.sink = sink
	r.Target.Start(&returnerSink{Sink: sink, r: r})
	go r.watch(r.readers[0].run.Done())
}

// watch returns batches that waited too long.
func (r *returner) watch(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			r.expire(anyLane, longestWait)
		}
	}
}

// Route implements load.Target.
func (r *returner) Route(stream int32) load.Lane {
	l := r.Target.Route(stream)
	if l == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.lanes[l]
	if waiting == nil {
		waiting = &returnerLane{Lane: l, r: r}
		r.lanes[l] = waiting
	}
	return waiting
}

// release notes that events of a batch, all or a part, were consumed; with the last of them the
// batch returns to its caller. It does so under the lock, so that a lane that closes without
// waiting batches has returned all of them.
func (r *returner) release(part load.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := batchKey{part.Lane, part.Seq}
	h, ok := r.waiting[k]
	if !ok {
		return
	}
	if h.left -= part.Events; h.left > 0 {
		r.waiting[k] = h
		return
	}
	delete(r.waiting, k)
	r.sink.Complete([]load.Outcome{h.o})
}

const anyLane int32 = -1

// expire returns batches that waited for most or longer.
func (r *returner) expire(lane int32, most time.Duration) {
	now := r.sink.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, h := range r.waiting {
		if (lane == anyLane || k.lane == lane) && now-h.since >= most {
			r.sink.Complete([]load.Outcome{h.o})
			delete(r.waiting, k)
		}
	}
}

// A returnerSink delays acked batches.
type returnerSink struct {
	load.Sink
	r *returner
}

// Complete implements load.Sink.
func (s *returnerSink) Complete(out []load.Outcome) {
	var pass, wait []load.Outcome
	s.r.mu.Lock()
	for i := range out {
		if out[i].Acked == 0 {
			pass = append(pass, out[i])
			continue
		}
		wait = append(wait, out[i])
		s.r.waiting[batchKey{out[i].Lane, out[i].Seq}] = waitingOutcome{out[i], out[i].Acked * int32(len(s.r.readers)), s.Now()} //nolint:gosec // few groups
	}
	s.r.mu.Unlock()
	s.Sink.Complete(pass)
	if len(wait) > 0 {
		for _, b := range s.r.readers {
			b.pair.Fired(wait) // may release at once: the event can be consumed before its ack came
		}
	}
}

// A returnerLane drops waiting batches when its lane is closed.
type returnerLane struct {
	load.Lane
	r *returner
}

// Close implements load.Lane.
func (l *returnerLane) Close() error {
	err := l.Lane.Close()
	l.r.expire(int32(l.ID()), 0)
	return err
}
