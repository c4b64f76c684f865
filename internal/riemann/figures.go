package riemann

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/measure"
	"carronade/protocol"
)

// A Riemann server emits events about itself every ten seconds. Their services
// begin with "riemann " (core.clj, instrumentation-service). Rates are per
// second, times are in milliseconds (instrumentation.clj, and interval-metrics'
// core.clj, whose rate+latency the transports use). A transport's rate counts
// messages, except that of WebSockets, which counts events (tcp.clj, udp.clj: an
// update for each message; websockets.clj, input-event!); the rate of the
// streams counts events (transport.clj, handle; core.clj, stream!).
const (
	ownServices = `service =~ "riemann %"`
	ownPrefix   = "riemann "
	streamsRate = "riemann streams rate"
)

// Searching the whole index for these events is expensive for the server, and
// queries must not disturb the measurement. So the index is searched once, and
// again only where nothing was found. After that each event is queried by its
// host and service, which is a lookup (index.clj, query-for-host-and-service).
const (
	searchInterval = 1500 * time.Millisecond
	mostMisses     = 3  // lookups without an event before the index is searched again
	mostFigures    = 64 // figures of one server
)

// A figureSource reads one server's metrics about itself, on a separate
// connection. It belongs to one goroutine at a time.
type figureSource struct {
	a          *asker
	label      string // distinguishes the servers of a run; "": one server
	mustAnswer bool   // its address was given for queries, so no answer is an error
	names      []figureName
	searched   time.Time // when the index was searched last
	misses     int       // lookups in a row that found nothing
	windows    map[string]*window
	refused    bool // the last query got no answer
}

// A window is the time between two of a server's events about itself. Its rates
// are means over a window. A window that lies within the run counts only the
// run's events; the others also count time before or after it.
type window struct {
	end     int64   // time of the event that ended it; 0: none was seen
	ends    int     // windows that ended since the run began
	written uint64  // bytes that we had written when that was noticed
	rate    float64 // in the window
	inside  bool    // counted is from a window that began and ended while we were sending
	counted float64
}

// observe processes the newest event. started says that the run has begun;
// written is how many bytes were written since then.
func (w *window) observe(e *wire.Event, started bool, written uint64) {
	at, _ := e.When()
	switch end := at.UnixMicro(); {
	case !started || w.end == 0:
		w.end = end
	case end != w.end:
		w.end, w.written, w.rate = end, written, e.Metric.Value()
		w.ends++
	case w.ends >= 2 && written > w.written:
		w.inside, w.counted = true, w.rate
	}
}

// A figureName is the key of a figure in the index.
type figureName struct{ host, service string }

// openSources makes a source for each server of the run that answers queries, or one
// for the server that the option query-address names.
func (s *session) openSources() ([]*figureSource, error) {
	c := s.cfg
	var all []*figureSource
	must := c.values.String("query-address") != "" || c.transport.scheme == plainScheme || c.transport.scheme == tlsScheme
	for _, host := range c.hosts {
		r, addr, err := c.queryPlace(host)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(t *figureSource) bool { return t.a.addr == addr }) {
			continue
		}
		a, err := newAsker(r, addr, c.values)
		if err != nil {
			return nil, err
		}
		all = append(all, &figureSource{a: a, mustAnswer: must})
	}
	if len(all) > 1 {
		for _, t := range all {
			t.label = " at " + t.a.addr
		}
	}
	return all, nil
}

// Figures are the servers' metrics about themselves.
// A server without an index is not an error, nor is one that answers no queries
// unless its address was given for them.
func (s *session) Figures(ctx context.Context) ([]measure.Figure, error) {
	if s.figureSources == nil {
		t, err := s.openSources()
		if err != nil {
			return nil, err
		}
		s.figureSources = t
	}
	var all []measure.Figure
	var errs []error
	for _, t := range s.figureSources {
		written, _ := s.Wire()
		figures, err := t.figures(ctx, s.started.Load(), written)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, figures...)
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, errors.Join(errs...)
}

func (t *figureSource) figures(ctx context.Context, started bool, written uint64) ([]measure.Figure, error) {
	events, err := t.events(ctx)
	switch answerErr := (*answerError)(nil); {
	case err == nil:
	case errors.As(err, &answerErr) && answerErr.noIndex():
		return nil, nil
	case t.refused && !t.mustAnswer:
		return nil, nil
	default:
		return nil, &protocol.Error{Doing: "read the server metrics of " + t.a.addr, Err: err}
	}
	return append(figuresOf(events, t.label), t.counted(events, started, written)...), nil
}

// counted returns what the server counted in windows within the run. That
// includes the events of other senders.
func (t *figureSource) counted(events []wire.Event, started bool, written uint64) []measure.Figure {
	var all []measure.Figure
	for i := range events {
		e := &events[i]
		if e.Service != streamsRate || e.Metric.Kind == wire.NoMetric {
			continue
		}
		w := t.windows[e.Host]
		if w == nil {
			if t.windows == nil {
				t.windows = map[string]*window{}
			}
			w = &window{}
			t.windows[e.Host] = w
		}
		if w.observe(e, started, written); w.inside {
			f := measure.Figure{Name: "streams rate within the run" + t.label, Unit: "events/s", Value: w.counted, Counts: true}
			if len(t.windows) > 1 {
				f.Name += " of " + e.Host
			}
			all = append(all, f)
		}
	}
	return all
}

// events asks for the server's events about itself.
func (t *figureSource) events(ctx context.Context) ([]wire.Event, error) {
	if len(t.names) == 0 {
		if time.Since(t.searched) < searchInterval && !t.searched.IsZero() {
			if t.refused && t.mustAnswer {
				return nil, errors.New("it was unreachable a moment ago")
			}
			return nil, nil
		}
		t.searched = time.Now()
		found, err := t.a.ask(ctx, ownServices)
		t.refused = err != nil && t.a.nc == nil
		if err != nil {
			return nil, err
		}
		for i := range found {
			if len(t.names) < mostFigures {
				t.names = append(t.names, figureName{found[i].Host, found[i].Service})
			}
		}
		return found, nil
	}
	texts := make([]string, len(t.names))
	for i, n := range t.names {
		texts[i] = "host = " + quoted(n.host) + " and service = " + quoted(n.service)
	}
	found, err := t.a.askAll(ctx, texts)
	t.refused = err != nil && t.a.nc == nil
	if t.misses++; len(found) > 0 {
		t.misses = 0
	}
	if t.misses >= mostMisses { // the server restarted, under another name
		t.names, t.searched, t.misses = nil, time.Time{}, 0
	}
	return found, err
}

// quoted returns a text as a query literal (query.g4), nil for an empty one.
func quoted(s string) string {
	if s == "" {
		return "nil"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// figuresOf are the figures in a server's events about itself.
func figuresOf(events []wire.Event, label string) []measure.Figure {
	type row struct {
		measure.Figure
		rank int
		host string
	}
	var rows []row
	for i := range events {
		e := &events[i]
		name, own := strings.CutPrefix(e.Service, ownPrefix)
		if !own || e.Metric.Kind == wire.NoMetric || strings.HasSuffix(name, " latency 0.0") {
			continue // nothing was timed, or it is only the minimum of all times
		}
		r := row{host: e.Host, rank: rankOf(name)}
		r.Name, r.Unit, r.Value = name, unitOf(name), e.Metric.Value()
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.Name, b.Name), strings.Compare(a.host, b.host))
	})
	figures := make([]measure.Figure, len(rows))
	for i, r := range rows {
		if i > 0 && rows[i-1].Name == r.Name || i+1 < len(rows) && rows[i+1].Name == r.Name {
			r.Name += " of " + r.host // several servers send their events to this one
		}
		r.Name += label
		figures[i] = r.Figure
	}
	return figures
}

// rankOf sorts the most informative figures first.
func rankOf(name string) int {
	switch {
	case strings.HasPrefix(name, "streams "):
		return 0
	case strings.HasPrefix(name, "server "):
		return 1
	}
	return 2
}

// unitOf returns the unit of a figure by its name; "" is a plain number.
func unitOf(name string) string {
	switch {
	case strings.Contains(name, " latency "):
		return "ms"
	case name == "streams rate", strings.HasPrefix(name, "server ws ") && strings.HasSuffix(name, " rate"):
		return "events/s"
	case strings.HasPrefix(name, "server ") && strings.HasSuffix(name, " rate"):
		return "messages/s"
	case strings.HasSuffix(name, " rate"):
		return "1/s"
	}
	return ""
}
