package load

import "time"

// A waiter lets a sending thread sleep until a point in time, or until
// somebody wakes it, whichever comes first.
type waiter interface {
	// prepare is called once, on the thread that will wait.
	prepare()
	// wait returns at until (an offset from the start of the run; Never: only
	// when woken), or after a wake since the last return. It may return early.
	// patient: nothing waits for an answer; idle: no answer is to come.
	wait(until time.Duration, patient, idle bool)
	// wake may be called from anywhere.
	wake()
	close()
}

// timed is the waiter of the runtime's own timers: cheap to wake, and late by
// about half a millisecond where the runtime rounds short sleeps up. It is
// right when no schedule asks for precision, and under virtual time.
type timed struct {
	start time.Time
	woken chan struct{}
	timer *time.Timer
}

func newTimed(start time.Time) *timed {
	return &timed{start: start, woken: make(chan struct{}, 1)}
}

func (w *timed) prepare() {}

func (w *timed) wait(until time.Duration, _, _ bool) {
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

func (w *timed) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *timed) close() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
