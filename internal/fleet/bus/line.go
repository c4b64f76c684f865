package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"
)

// An ownLine is a line to a server of this package.
type ownLine struct {
	link    *link
	dial    func(context.Context) (*tls.Conn, answer, error)
	unknown error // why it ends if the server does not know the key any more
	ctx     context.Context
	cancel  context.CancelFunc

	mu   sync.Mutex
	peer *peer // nil without a connection
}

// openLine starts the line of a link with a connection that was made.
func (l *link) openLine(conn *tls.Conn, unknown error, dial func(context.Context) (*tls.Conn, answer, error)) {
	o := &ownLine{link: l, dial: dial, unknown: unknown}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	l.line = o
	p := newPeer(conn)
	o.set(p)
	go o.run(p)
}

// run moves messages, and connects again when a connection is lost, until the line is shut.
func (o *ownLine) run(p *peer) {
	for p != nil {
		why := p.run(func(agent string, message []byte) error {
			o.link.got(agent, message)
			return nil
		})
		o.set(nil)
		if o.ctx.Err() != nil {
			return
		}
		o.link.logf("%s: connection lost: %v", o.link.what, why)
		if p = o.again(); p != nil {
			o.set(p)
			o.link.logf("%s: connected again", o.link.what)
		}
	}
}

// again connects again. It returns nil if the line is shut, also because the server does not know the
// key any more: trying again cannot help then.
func (o *ownLine) again() *peer {
	said := ""
	for attempt := 1; ; attempt++ {
		select {
		case <-time.After(retry(attempt)):
		case <-o.ctx.Done():
			return nil
		}
		conn, _, err := o.dial(o.ctx)
		switch {
		case o.ctx.Err() != nil:
			if err == nil {
				conn.NetConn().Close()
			}
			return nil
		case err == nil:
			return newPeer(conn)
		case errors.Is(err, ErrNoToken):
			o.link.logf("%s: %v", o.link.what, o.unknown)
			o.link.end(o.unknown)
			return nil
		case said != err.Error():
			said = err.Error()
			o.link.logf("%v; trying again", err)
		}
	}
}

// set sets the connection, which ends at once if the line was shut.
func (o *ownLine) set(p *peer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peer = p
	if p != nil && o.ctx.Err() != nil {
		p.end(nil)
	}
}

func (o *ownLine) now() *peer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.peer
}

func (o *ownLine) connected() bool {
	p := o.now()
	return p != nil && !p.ended()
}

func (o *ownLine) send(agent string, message []byte) error {
	if p := o.now(); p == nil || !p.put(messageFrame(agent, message)) {
		return ErrDown
	}
	return nil
}

// flush waits until the server has closed the connection, which it does when it has read everything.
func (o *ownLine) flush() {
	p := o.now()
	if p == nil {
		return
	}
	p.finish()
	select {
	case <-p.over:
	case <-time.After(closeFor):
	}
}

func (o *ownLine) shut() {
	o.cancel()
	if p := o.now(); p != nil {
		p.end(nil)
	}
}
