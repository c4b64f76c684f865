package bus

import (
	"sync"
	"sync/atomic"
	"time"
)

// mostWaiting bounds the messages that wait in a process until a function receives them, in bytes.
const mostWaiting = 64 << 20

// A letter is a message with what a receiver wants to know of it.
type letter struct {
	agent string
	data  []byte
	at    time.Time
}

// An inbox has the messages that arrived and calls a function with one after the other. The time of
// arrival is taken when a message is put in, so that a slow function does not change it.
type inbox struct {
	mu      sync.Mutex
	changed sync.Cond
	early   bool // messages wait for the first function
	letters []letter
	bytes   int
	lost    int
	f       func(letter)
	closed  bool
}

// newInbox returns an inbox. early keeps the messages that come before the first function is set; otherwise they
// are lost.
func newInbox(early bool) *inbox {
	b := &inbox{early: early}
	b.changed.L = &b.mu
	go b.deliver()
	return b
}

// put adds a message. It reports false for the first one that is lost because too many wait.
func (b *inbox) put(l letter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.early && b.f == nil {
		return true
	}
	if b.bytes+len(l.data) > mostWaiting {
		b.lost++
		return b.lost != 1
	}
	b.lost = 0
	b.letters = append(b.letters, l)
	b.bytes += len(l.data)
	b.changed.Signal()
	return true
}

// receive sets the function.
func (b *inbox) receive(f func(letter)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.f = f
	b.changed.Signal()
}

// close ends the delivery.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.letters, b.bytes = nil, 0
	b.changed.Signal()
}

func (b *inbox) deliver() {
	b.mu.Lock()
	for {
		for !b.closed && (b.f == nil || len(b.letters) == 0) {
			b.changed.Wait()
		}
		if b.closed {
			b.mu.Unlock()
			return
		}
		l, f := b.letters[0], b.f
		b.letters[0] = letter{}
		b.letters = b.letters[1:]
		b.bytes -= len(l.data)
		b.mu.Unlock()
		f(l)
		b.mu.Lock()
	}
}

// A stamp is when bytes last came from a socket. It is later than any message that has been read,
// since a message is read before the next read from the socket begins, and earlier than the moment
// at which a goroutine gets the message.
type stamp struct{ ns atomic.Int64 } // since epoch

// epoch is only a point in time with a monotonic reading.
var epoch = time.Now()

func (s *stamp) set() { s.ns.Store(int64(time.Since(epoch))) }

// last returns the time, with a monotonic reading.
func (s *stamp) last() time.Time {
	now := time.Now()
	return now.Add(min(0, time.Duration(s.ns.Load())-now.Sub(epoch)))
}
