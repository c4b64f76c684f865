package ledger

import (
	"sync"
	"time"

	"carronade/load"
)

// A Join pairs what was fired with what arrived, in either order, by log and
// base offset.
type Join struct {
	mu     sync.Mutex
	logOf  func(stripe int32) int32
	paired func(o load.Outcome, at time.Duration)
	fired  map[joinKey]load.Outcome
	came   map[joinKey]time.Duration
}

type joinKey struct {
	log  int32
	base int64
}

// NewJoin returns a join that calls paired for each pair, on the goroutine
// that completed it.
func NewJoin(logOf func(stripe int32) int32, paired func(o load.Outcome, at time.Duration)) *Join {
	return &Join{logOf: logOf, paired: paired, fired: map[joinKey]load.Outcome{}, came: map[joinKey]time.Duration{}}
}

// Fired takes outcomes.
func (j *Join) Fired(out []load.Outcome) {
	for i := range out {
		o := &out[i]
		if o.Acked == 0 || o.Place < 0 {
			continue
		}
		k := joinKey{j.logOf(o.Stripe), o.Place}
		j.mu.Lock()
		at, ok := j.came[k]
		if ok {
			delete(j.came, k)
		} else {
			j.fired[k] = *o
		}
		j.mu.Unlock()
		if ok {
			j.paired(*o, at)
		}
	}
}

// Arrived takes arrivals.
func (j *Join) Arrived(as []load.Arrival) {
	for i := range as {
		k := joinKey{as[i].Log, as[i].Base}
		j.mu.Lock()
		o, ok := j.fired[k]
		if ok {
			delete(j.fired, k)
		} else {
			j.came[k] = as[i].At
		}
		j.mu.Unlock()
		if ok {
			j.paired(o, as[i].At)
		}
	}
}
