package publish

import (
	"context"
	"fmt"
	"sync"
	"time"

	"carronade/internal/secret"
	"carronade/load"
)

// Options select where metrics go. With zero Options they go nowhere.
type Options struct {
	// MetricsAddr is the address for Prometheus, HOST:PORT; without a host it is
	// reachable only from this machine.
	MetricsAddr string
	// Graphite is the address, HOST:PORT, that gets metrics once per interval in
	// Graphite's plaintext protocol; Prefix begins their names ("" is this host's
	// name).
	Graphite, Prefix string
	// ZeroP99 sends sangrenel's p99 as 0 in an interval in which nothing was
	// answered, as sangrenel did; otherwise none is sent.
	ZeroP99 bool
	// OTLP is the URL of a collector that accepts OTLP over HTTP as JSON.
	OTLP    string
	Headers []Header // for the collector

	Version string // of the program
	// Published is called for each interval, one call at a time, with the error if
	// it did not reach Graphite. Nil: Logf gets the first such error.
	Published func(error)
	// Logf gets messages for users; calls may be concurrent. May be nil.
	Logf func(format string, args ...any)
}

// A Header is a header of requests. Its value may be a secret and is not shown.
type Header struct{ Name, Value string }

// A Run identifies a run in the exported metrics.
type Run struct {
	ID         string // of its report
	Target     string // the URL; logins in it are not published
	Op         string
	Labels     map[string]string
	Repetition int
}

// An outlet receives a point per interval of a run. It must not block.
type outlet interface {
	take(p *point)
	close(ctx context.Context) (warning string)
}

// A Hub publishes runs, one at a time. It is safe for concurrent use. A nil Hub
// publishes nothing.
type Hub struct {
	mu      sync.Mutex
	closed  bool
	state   state
	outlets []outlet
	page    *page
}

// Open prepares publishing, and checks what it can: that the address for Prometheus
// is free, and that a collector's address is valid. A collector that is absent now
// may start later. It returns nil if the options name no destination. Errors are
// *target.Error.
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

// Addr is the address for Prometheus; "" if there is none.
func (h *Hub) Addr() string {
	if h == nil || h.page == nil {
		return ""
	}
	return h.page.addr
}

// Begin starts publishing another run.
func (h *Hub) Begin(r Run) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var mask secret.Mask
	r.Target = mask.Text(r.Target)
	h.state = state{run: r, began: time.Now(), running: true}
}

// Show publishes an interval. It does not block, and does not retain the snapshot.
func (h *Hub) Show(s load.Snapshot) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.add(&s)
	if len(h.outlets) > 0 {
		h.push(h.state.point(&s))
	}
}

// push passes a point to the outlets; h.mu must be locked.
func (h *Hub) push(p *point) {
	if h.closed {
		return
	}
	for _, o := range h.outlets {
		o.take(p) // shared: outlets must not change it
	}
}

// End records that the run is over, and publishes its final metrics. They stay
// available to Prometheus.
func (h *Hub) End() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.running = false
	h.state.phase = "ended"
	if h.state.seen && len(h.outlets) > 0 {
		h.push(h.state.point(&load.Snapshot{}))
	}
}

// Shown reports whether there are metrics of a run.
func (h *Hub) Shown() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.seen
}

// Close ends publishing.
func (h *Hub) Close(ctx context.Context) (warnings []string) {
	if h == nil {
		return nil
	}
	warnings = h.Flush(ctx)
	if h.page != nil {
		h.page.close()
	}
	return warnings
}

// Flush ends the sending of metrics. Only the page for Prometheus stays until
// Close. Queued intervals are still sent until the context ends, at most for two
// seconds. It returns warnings about what was not sent.
func (h *Hub) Flush(ctx context.Context) (warnings []string) {
	if h == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	h.mu.Lock()
	closed := h.closed
	h.closed = true
	h.mu.Unlock()
	if closed {
		return nil
	}
	for _, o := range h.outlets {
		if w := o.close(ctx); w != "" {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// closeTimeout is how long outlets may take in Close to send queued intervals.
const closeTimeout = 2 * time.Second

// A sender sends points to a remote collector, one after the other, in a separate
// goroutine.
type sender struct {
	name      string // for messages
	queue     chan *point
	done      chan struct{}
	stop      context.CancelFunc
	logf      func(string, ...any)
	published func(error) // gets each result; may be nil

	dropped int // points for which the queue was full; guarded by the hub's lock
	// Owned by the goroutine:
	lost      int // points that could not be sent
	first     error
	lostFinal bool // the last point of a run could not be sent
}

// maxQueued is the maximum number of queued points.
const maxQueued = 30

// newSender starts a sender. send sends a point, and published gets its result. If
// published is nil, the first error is logged.
func newSender(name string, logf func(string, ...any), published func(error), send func(context.Context, *point) error) *sender {
	ctx, stop := context.WithCancel(context.Background())
	s := &sender{name: name, queue: make(chan *point, maxQueued), done: make(chan struct{}), stop: stop, logf: logf, published: published}
	go func() {
		defer close(s.done)
		for p := range s.queue {
			err := send(ctx, p)
			if s.published != nil && (err == nil || ctx.Err() == nil) {
				s.published(err)
			}
			if err == nil {
				continue
			}
			if p.running {
				s.lost++
			} else {
				s.lostFinal = true
			}
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

// take queues a point. If the queue is full, it drops the oldest: the last points
// have the totals.
func (s *sender) take(p *point) {
	for {
		select {
		case s.queue <- p:
			return
		default:
		}
		select {
		case <-s.queue:
			s.dropped++
		default:
		}
	}
}

func (s *sender) close(ctx context.Context) string {
	close(s.queue)
	select {
	case <-s.done:
	case <-ctx.Done():
		s.stop()
		<-s.done
	}
	s.stop()
	n := s.lost + s.dropped
	what := intervals(n)
	switch {
	case n == 0 && !s.lostFinal:
		return ""
	case s.first == nil:
		return fmt.Sprintf("%s was too slow for %s", s.name, what)
	case n == 0:
		what = "the final values"
	case s.lostFinal:
		what += " and the final values"
	}
	return fmt.Sprintf("%s did not get %s: %v", s.name, what, s.first)
}

func intervals(n int) string {
	if n == 1 {
		return "one interval"
	}
	return fmt.Sprintf("%d intervals", n)
}
