package bus

import (
	"math/rand/v2"
	"sync"
	"time"
)

func randomBelow(d time.Duration) time.Duration { return rand.N(max(d, 1)) }

// A link is what agents and operators are made of: a connection that comes back by itself, and an inbox.
type link struct {
	line line
	in   *inbox
	at   *stamp
	logf func(string, ...any)
	what string // for messages

	quit chan struct{} // closed when the connection is over
	mu   sync.Mutex
	why  error
	over bool
}

// A line makes the connections of a link and moves messages: to a server of this package, or to one of NATS.
type line interface {
	connected() bool
	send(agent string, message []byte) error // of at most MaxMessage; ErrDown, ErrClosed
	flush()                                  // sends what was not sent yet, for closeFor at most
	shut()                                   // ends it; does not wait
}

// closeFor bounds the sending of what is left.
const closeFor = 2 * time.Second

// newLink returns a link that has no line yet. early keeps messages that come before there is a function to
// receive them.
func newLink(what string, at *stamp, early bool, logf func(string, ...any)) *link {
	if logf == nil {
		logf = func(string, ...any) {}
	}
	return &link{in: newInbox(early), at: at, logf: logf, what: what, quit: make(chan struct{})}
}

// got puts a message that has arrived into the inbox.
func (l *link) got(agent string, message []byte) {
	if !l.in.put(letter{agent, message, l.at.last()}) {
		l.logf("%s: messages are lost: more than %d MiB wait to be received", l.what, mostWaiting>>20)
	}
}

// end ends the link for a reason; the first one counts.
func (l *link) end(why error) {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	l.over, l.why = true, why
	line := l.line // nil until it was made
	l.mu.Unlock()
	if line != nil {
		line.shut()
	}
	l.in.close()
	close(l.quit)
}

func (l *link) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

func (l *link) connected() bool { return l.line.connected() }

// close sends what is left and ends the link.
func (l *link) close() {
	if l.connected() {
		l.line.flush()
	}
	l.end(ErrClosed)
}

// send sends a message; agent is "" if an agent does.
func (l *link) send(agent string, message []byte) error {
	if len(message) > MaxMessage {
		return ErrTooLarge
	}
	if !l.connected() {
		if why := l.err(); why != nil {
			return why
		}
		return ErrDown
	}
	return l.line.send(agent, message)
}
