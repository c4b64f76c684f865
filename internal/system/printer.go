package system

import (
	"sync"
	"time"

	"carronade/units"
)

// queuedLines is how many lines may wait to be shown.
const queuedLines = 4096

// lastShownTimeout is how long to wait until the last lines are shown.
const lastShownTimeout = time.Second

// A printer shows lines on its own goroutine: a system must not wait until its output
// is masked and shown. If too many lines wait, further ones are left out, and counted.
type printer struct {
	show func(line string)
	done chan struct{} // closed after the last line

	mu     sync.Mutex
	queue  chan queued
	missed int // lines since the last one that was queued
	closed bool
}

// A queued line, and how many before it are not shown.
type queued struct {
	missed int
	line   string
}

func newPrinter(show func(line string)) *printer {
	p := &printer{show: show, done: make(chan struct{}), queue: make(chan queued, queuedLines)}
	go p.run()
	return p
}

func (p *printer) run() {
	defer close(p.done)
	for q := range p.queue {
		p.tell(q.missed)
		p.show(q.line)
	}
	p.mu.Lock()
	missed := p.missed
	p.mu.Unlock()
	p.tell(missed)
}

func (p *printer) tell(missed int) {
	if missed > 0 {
		p.show(units.Plural(missed, "line") + " not shown")
	}
}

// add never waits.
func (p *printer) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	select {
	case p.queue <- queued{p.missed, line}:
		p.missed = 0
	default:
		p.missed++
	}
}

// close waits, not for long, until all lines are shown. It may be called twice, and on
// nil.
func (p *printer) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.queue)
	}
	p.mu.Unlock()
	select {
	case <-p.done:
	case <-time.After(lastShownTimeout):
	}
}
