package load

import "time"

// A waiter lets a sending thread sleep until a point in time or until another goroutine
// wakes it, whichever comes first.
type waiter interface {
	// prepare is called once, on the thread that will wait.
	prepare()
	// wait returns at until (an offset from the start of the run; Never: only when
	// woken), or after a wake since the last return. It may return early. patient: no
	// event needs an answer before it can be sent; idle: no answer is expected.
	wait(until time.Duration, patient, idle bool)
	// wake may be called from any goroutine.
	wake()
	close()
}

// timerWaiter waits by the runtime's own timers: cheap to wake, and late by about half
// a millisecond where the runtime rounds short sleeps up. It is used if no schedule
// needs precision, and under virtual time.
type timerWaiter struct {
	start time.Time
	woken chan struct{}
	timer *time.Timer
}

func newTimerWaiter(start time.Time) *timerWaiter {
	return &timerWaiter{start: start, woken: make(chan struct{}, 1)}
}

func (w *timerWaiter) prepare() {}

func (w *timerWaiter) wait(until time.Duration, _, _ bool) {
	if until == Never {
		<-w.woken
		return
	}
	d := until - time.Since(w.start)
	if d <= 0 {
		return
	}
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	select {
	case <-w.woken:
		w.timer.Stop()
	case <-w.timer.C:
	}
}

func (w *timerWaiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *timerWaiter) close() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
