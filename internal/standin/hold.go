package standin

import (
	"context"
	"net"
	"time"
)

// A Holder holds back the answers of a connection. A nil one holds nothing back.
type Holder struct{ c *faultConn }

// HolderOf returns the holder of nc, which a server accepted from a listener of
// WithFaults, maybe through wrappers with a method NetConn; nil if that holds nothing.
func HolderOf(nc net.Conn) *Holder {
	for {
		switch c := nc.(type) {
		case *faultConn:
			if !c.l.late {
				return nil
			}
			return &Holder{c}
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// Hold makes what is written from now on leave at a time, or when it is written if
// that is later. A delay comes in addition. Answers stay in order: one that may leave
// earlier than the one before it leaves right after that.
func (h *Holder) Hold(until time.Time) {
	if h == nil {
		return
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if until.After(h.c.until) {
		h.c.until, h.c.atOnce = until, false
	}
}

// Wait waits until everything that was written has left, or for the end of ctx or of
// the connection. What is written afterwards, until the next Hold, leaves at once: the
// end of the connection does not overtake it.
func (h *Holder) Wait(ctx context.Context) {
	if h == nil {
		return
	}
	h.c.mu.Lock()
	until := h.c.until.Add(h.c.l.delay)
	h.c.mu.Unlock()
	if !sleepUntil(until, ctx.Done(), h.c.done) {
		return
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for h.c.waiting > 0 && h.c.err == nil && !h.c.closed {
		h.c.changed.Wait()
	}
	h.c.atOnce = true
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
