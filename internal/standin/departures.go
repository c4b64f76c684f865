package standin

import (
	"context"
	"net"
	"time"
)

// Departures are the times at which the answers of a connection leave. With nil ones an answer
// leaves when it is written.
type Departures struct{ c *faultConn }

// DeparturesOf returns the departures of nc, which a server accepted from a listener of
// WithFaults, maybe through wrappers with a method NetConn; nil if that has none.
func DeparturesOf(nc net.Conn) *Departures {
	for {
		switch c := nc.(type) {
		case *faultConn:
			if !c.l.late {
				return nil
			}
			return &Departures{c}
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// NotBefore makes what is written from now on leave at a time, or when it is written if
// that is later. A delay comes in addition. Answers stay in order: one that may leave
// earlier than the one before it leaves right after that.
func (d *Departures) NotBefore(at time.Time) {
	if d == nil {
		return
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if at.After(d.c.until) {
		d.c.until, d.c.atOnce = at, false
	}
}

// Wait waits until everything that was written has left, or for the end of ctx or of
// the connection. What is written afterwards, until the next NotBefore, leaves at once: the
// end of the connection does not overtake it.
func (d *Departures) Wait(ctx context.Context) {
	if d == nil {
		return
	}
	d.c.mu.Lock()
	until := d.c.until.Add(d.c.l.delay)
	d.c.mu.Unlock()
	if !sleepUntil(until, ctx.Done(), d.c.done) {
		return
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	for d.c.waiting > 0 && d.c.err == nil && !d.c.closed {
		d.c.changed.Wait()
	}
	d.c.atOnce = true
}

// SleepUntil sleeps with a precision of about 50 us where the system allows it, so
// that an answer leaves when it is due and not later. It reports false if done was
// closed before.
func SleepUntil(done <-chan struct{}, due time.Time) bool {
	return sleepUntil(due, done, nil)
}

func sleepUntil(due time.Time, done, gone <-chan struct{}) bool {
	if !due.After(time.Now()) {
		return true // also for the zero time, for which a difference overflows
	}
	if !sleep(time.Until(due)-timerSlack, done, gone) {
		return false
	}
	kernelSleep(min(time.Until(due), timerSlack))
	return sleep(time.Until(due), done, gone) // if kernelSleep did not sleep
}

// timerSlack is a bit more than how late the runtime's timers may be: it rounds
// waits up to full milliseconds.
const timerSlack = 1500 * time.Microsecond

func sleep(d time.Duration, done, gone <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	case <-gone:
		return false
	}
}
