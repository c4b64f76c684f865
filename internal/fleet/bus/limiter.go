package bus

import (
	"sync"
	"time"
)

// A limiter slows guesses of tokens: after three wrong ones an address has to wait before another
// is looked at, twice as long after each further one. Machines with registered keys are not slowed.
// Safe for concurrent use.
type limiter struct {
	mu    sync.Mutex
	tries map[string]tries // by address
}

type tries struct {
	wrong int
	next  time.Time // when the next is looked at
}

// Settings of a limiter.
const (
	freeTries   = 3
	firstWait   = 2 * time.Second
	longestWait = time.Minute
	forgetTries = 15 * time.Minute // after the last wrong one
	mostTries   = 4096             // addresses that are remembered
)

// wait is for how long an address still has to wait.
func (l *limiter) wait(address string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tries[address]
	if t.wrong < freeTries {
		return 0
	}
	return max(0, t.next.Sub(now))
}

// failed records a wrong token.
func (l *limiter) failed(address string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tries == nil {
		l.tries = map[string]tries{}
	}
	t := l.tries[address]
	if now.Sub(t.next) > forgetTries {
		t = tries{}
	}
	t.wrong++
	t.next = now
	if over := t.wrong - freeTries; over >= 0 {
		t.next = now.Add(min(longestWait, firstWait<<min(over, 10)))
	}
	if _, known := l.tries[address]; !known && len(l.tries) >= mostTries {
		for a, t := range l.tries {
			if now.Sub(t.next) > forgetTries {
				delete(l.tries, a)
			}
		}
		if len(l.tries) >= mostTries { // from very many addresses, which may try again; a token cannot be guessed
			clear(l.tries)
		}
	}
	l.tries[address] = t
}
