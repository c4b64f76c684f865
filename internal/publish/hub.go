package publish

import (
	"context"
	"fmt"
	"sync"
	"time"

	"carronade/load"
)

// Options say where figures go. A zero Options is nowhere.
type Options struct {
	// MetricsAddr is where Prometheus may ask, HOST:PORT; without a host, this
	// machine alone.
	MetricsAddr string
	// Graphite takes figures once an interval, HOST:PORT, in its plaintext
	// protocol; Prefix begins their names ("" is this host's name).
	Graphite, Prefix string
	// Zeros has sangrenel's p99 be 0 in an interval in which nothing was answered,
	// as sangrenel sent it; else there is none.
	Zeros bool
	// OTLP is the URL of a collector that takes OTLP over HTTP as JSON.
	OTLP    string
	Headers []Header // for the collector

	Version string // of the program
	// Told is told of each interval whether Graphite was told of it, one call at a
	// time; the error is why not. Nil: Logf takes the first such error.
	Published func(error)
	// Logf takes words for people, from several goroutines; nil: none.
	Logf func(format string, args ...any)
}

// A Header is one of a request's; its value may be a secret, and is not shown.
type Header struct{ Name, Value string }

// A Run is what others are told a run is.
type Run struct {
	ID         string // of its report
	Target     string // the URL, without secrets
	Op         string
	Labels     map[string]string
	Repetition int
}

// An outlet takes the states of a run, one an interval. It must not block.
type outlet interface {
	take(p *point)
	close(ctx context.Context) (warning string)
}

// A Hub tells others about runs, one at a time. Its methods may be called from
// several goroutines. A nil Hub tells nobody.
type Hub struct {
	mu      sync.Mutex
	closed  bool
	state   state
	outlets []outlet
	page    *page
}

// Open prepares to tell, and tries what can be tried: that the address for
// Prometheus is free, and that a collector has an address. A collector that is
// not there now may come later. It returns nil where nobody is to be told. An
// error is a *target.Error.
func Open(o Options) (*Hub, error) {
	if o.MetricsAddr == "" && o.Graphite == "" && o.OTLP == "" {
		return nil, nil
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	h := &Hub{}
	if o.Graphite != "" {
		g, err := newGraphite(o)
		if err != nil {
			return nil, err
		}
		h.outlets = append(h.outlets, g)
	}
	if o.OTLP != "" {
		c, err := newCollector(o)
		if err != nil {
			h.Close(context.Background())
			return nil, err
		}
		h.outlets = append(h.outlets, c)
	}
	if o.MetricsAddr != "" {
		p, err := newPage(h, o)
		if err != nil {
			h.Close(context.Background())
			return nil, err
		}
		h.page = p
	}
	return h, nil
}

// Addr is where Prometheus may ask; "" where it may not.
func (h *Hub) Addr() string {
	if h == nil || h.page == nil {
		return ""
	}
	return h.page.addr
}

// Begin starts telling of another run.
func (h *Hub) Begin(r Run) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = state{run: r, began: time.Now(), running: true}
}

// Show tells what came of an interval. It returns at once, and keeps nothing of
// the snapshot.
func (h *Hub) Show(s load.Snapshot) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.add(&s)
	if len(h.outlets) == 0 || h.closed {
		return
	}
	p := h.state.point(&s)
	for _, o := range h.outlets {
		o.take(p) // nobody changes it
	}
}

// End says that the run is over. Its last figures stay.
func (h *Hub) End() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.running = false
	h.state.phase = "ended"
}

// Close ends the telling. What waits is still told, as long as the context
// lasts and two seconds at most. It returns what was not told, in words.
func (h *Hub) Close(ctx context.Context) (warnings []string) {
	if h == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	h.mu.Lock()
	closed := h.closed
	h.closed = true
	h.mu.Unlock()
	if closed {
		return nil
	}
	if h.page != nil {
		h.page.close()
	}
	for _, o := range h.outlets {
		if w := o.close(ctx); w != "" {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// lastWords is how long outlets may take to tell what waits when all is over.
const lastWords = 2 * time.Second

// A sender tells points to somebody far away, one after the other, from a
// goroutine of its own.
type sender struct {
	name      string // for people
	to        chan *point
	done      chan struct{}
	stop      context.CancelFunc
	logf      func(string, ...any)
	published func(error) // takes what became of each; nil: nobody

	dropped int // of the points, for want of room; the hub's lock is over it
	lost    int // could not be told; the goroutine's
	first   error
}

// queued is how many points wait at most.
const queued = 30

// newSender starts one; send tells a point, and told takes what became of it. Nil:
// nobody does, and the first error is said.
func newSender(name string, logf func(string, ...any), published func(error), send func(context.Context, *point) error) *sender {
	ctx, stop := context.WithCancel(context.Background())
	s := &sender{name: name, to: make(chan *point, queued), done: make(chan struct{}), stop: stop, logf: logf, published: published}
	go func() {
		defer close(s.done)
		for p := range s.to {
			err := send(ctx, p)
			if s.published != nil && (err == nil || ctx.Err() == nil) {
				s.published(err)
			}
			if err == nil {
				continue
			}
			s.lost++
			if s.first == nil {
				s.first = err
				if ctx.Err() == nil && s.published == nil {
					s.logf("cannot send to %s: %v", s.name, err)
				}
			}
		}
	}()
	return s
}

func (s *sender) take(p *point) {
	select {
	case s.to <- p:
	default:
		s.dropped++
	}
}

func (s *sender) close(ctx context.Context) string {
	close(s.to)
	select {
	case <-s.done:
	case <-ctx.Done():
		s.stop()
		<-s.done
	}
	s.stop()
	n := s.lost + s.dropped
	switch {
	case n == 0:
		return ""
	case s.first == nil:
		return fmt.Sprintf("%s was too slow for %s", s.name, intervals(n))
	}
	return fmt.Sprintf("%s did not get %s: %v", s.name, intervals(n), s.first)
}

func intervals(n int) string {
	if n == 1 {
		return "one interval"
	}
	return fmt.Sprintf("%d intervals", n)
}
