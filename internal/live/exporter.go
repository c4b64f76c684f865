package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"carronade/internal/secret"
	"carronade/load"
)

// ExporterOptions select where metrics go. With zero ExporterOptions they go nowhere.
type ExporterOptions struct {
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

// An ExportedRun identifies a run in the exported metrics.
type ExportedRun struct {
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

// An Exporter publishes runs, one at a time. It is safe for concurrent use. A nil Exporter
// publishes nothing.
type Exporter struct {
	mu      sync.Mutex
	closed  bool
	state   state
	outlets []outlet
	metrics *metricsServer
}

// OpenExporter prepares publishing, and checks what it can: that the address for Prometheus
// is free, and that a collector's address is valid. A collector that is absent now
// may start later. It returns nil if the options name no destination. Errors are
// *protocol.Error.
func OpenExporter(o ExporterOptions) (*Exporter, error) {
	if o.MetricsAddr == "" && o.Graphite == "" && o.OTLP == "" {
		return nil, nil
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	e := &Exporter{}
	if o.Graphite != "" {
		g, err := newGraphite(o)
		if err != nil {
			return nil, err
		}
		e.outlets = append(e.outlets, g)
	}
	if o.OTLP != "" {
		c, err := newCollector(o)
		if err != nil {
			e.Close(context.Background())
			return nil, err
		}
		e.outlets = append(e.outlets, c)
	}
	if o.MetricsAddr != "" {
		p, err := newMetricsServer(e, o)
		if err != nil {
			e.Close(context.Background())
			return nil, err
		}
		e.metrics = p
	}
	return e, nil
}

// Addr is the address for Prometheus; "" if there is none.
func (e *Exporter) Addr() string {
	if e == nil || e.metrics == nil {
		return ""
	}
	return e.metrics.addr
}

// Begin starts publishing another run.
func (e *Exporter) Begin(r ExportedRun) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var mask secret.Mask
	r.Target = mask.Text(r.Target)
	e.state = state{run: r, began: time.Now(), running: true}
}

// Show publishes an interval. It does not block, and does not retain the snapshot.
func (e *Exporter) Show(s load.Snapshot) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.add(&s)
	if len(e.outlets) > 0 {
		e.push(e.state.point(&s))
	}
}

// push passes a point to the outlets; e.mu must be locked.
func (e *Exporter) push(p *point) {
	if e.closed {
		return
	}
	for _, o := range e.outlets {
		o.take(p) // shared: outlets must not change it
	}
}

// End records that the run is over, and publishes its final metrics. They stay
// available to Prometheus.
func (e *Exporter) End() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.running = false
	e.state.phase = "ended"
	if e.state.seen && len(e.outlets) > 0 {
		e.push(e.state.point(&load.Snapshot{}))
	}
}

// Shown reports whether there are metrics of a run.
func (e *Exporter) Shown() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.seen
}

// Close ends publishing.
func (e *Exporter) Close(ctx context.Context) (warnings []string) {
	if e == nil {
		return nil
	}
	warnings = e.Flush(ctx)
	if e.metrics != nil {
		e.metrics.close()
	}
	return warnings
}

// Flush ends the sending of metrics. Only the page for Prometheus stays until
// Close. Queued intervals are still sent until the context ends, at most for two
// seconds. It returns warnings about what was not sent.
func (e *Exporter) Flush(ctx context.Context) (warnings []string) {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	for _, o := range e.outlets {
		if w := o.close(ctx); w != "" {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// flushTimeout is how long outlets may take in Flush to send queued intervals.
const flushTimeout = 2 * time.Second

// A sender sends points to a remote collector, one after the other, in a separate
// goroutine.
type sender struct {
	name      string // for messages
	queue     chan *point
	done      chan struct{}
	stop      context.CancelFunc
	logf      func(string, ...any)
	published func(error) // gets each result; may be nil

	dropped int // points for which the queue was full; guarded by the exporter's lock
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
