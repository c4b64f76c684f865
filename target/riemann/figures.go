package riemann

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"carronade/internal/wire/riemann"
	"carronade/measure"
	"carronade/target"
)

// A Riemann tells how it fares by events about itself, every ten seconds, whose
// services begin with "riemann " (core.clj, instrumentation-service). Rates are
// a second's, times are in milliseconds (instrumentation.clj, and
// interval-metrics' core.clj, whose rate+latency the transports use). A
// transport's rate counts messages, but that of WebSocket events (tcp.clj,
// udp.clj: an update for each message; websockets.clj, input-event!); the rate
// of the streams counts events (transport.clj, handle; core.clj, stream!).
const (
	ownServices = `service =~ "riemann %"`
	ownPrefix   = "riemann "
	streamsRate = "riemann streams rate"
)

// Looking through the whole index for its own events costs the server, which is
// not to be measured by asking it: they are looked for once, and again where
// none were found, and each is then asked for by its host and service, which is
// a lookup (index.clj, query-for-host-and-service).
const (
	lookAgain   = 1500 * time.Millisecond
	mostMisses  = 3  // lookups without any event, before they are looked for again
	mostFigures = 64 // figures of one server
)

// A source asks one server about itself, on a connection of its own. It belongs
// to one goroutine at a time.
type figureSource struct {
	a       *asker
	label   string // tells the servers of a run apart; "": there is one
	asked   bool   // its address was given to be asked, so that silence is an error
	names   []figureName
	looked  time.Time // when the index was searched last
	misses  int       // lookups in a row that found nothing
	windows map[string]*window
	refused bool // there was nobody to ask then
}

// A window is the time between two of a server's looks at itself, of which its
// rates are the means. Those that lie within the firing say what it counted of
// a run; the others tell of before and after, too.
type window struct {
	end     int64   // time of the event that ended it; 0: none was seen
	ends    int     // of windows since firing began
	written uint64  // by us, when that was noticed
	rate    float64 // of it
	inside  bool    // counted is of a window that began and ended while we fired
	counted float64
}

// look takes in the event that there is now. started says that firing has
// begun, written how much was fired since.
func (w *window) look(e *riemann.Event, started bool, written uint64) {
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

// A figureName is where in the index a figure is.
type figureName struct{ host, service string }

// tellers are those of a run's servers: of each of its hosts, or of the one
// that the option tell names.
func (s *session) openSources() ([]*figureSource, error) {
	c := s.cfg
	var all []*figureSource
	add := func(r *transport, addr string, asked bool) error {
		a, err := askerOf(r, addr, c.values)
		if err == nil {
			all = append(all, &figureSource{a: a, asked: asked})
		}
		return err
	}
	answers := c.transport.scheme == plainScheme || c.transport.scheme == tlsScheme
	if c.values.String("query-address") == "" && answers {
		for i, addr := range c.hosts {
			if slices.Index(c.hosts, addr) < i {
				continue
			}
			if err := add(c.transport, addr, true); err != nil {
				return nil, err
			}
		}
		if len(all) > 1 {
			for _, t := range all {
				t.label = " at " + t.a.addr
			}
		}
		return all, nil
	}
	r, addr, err := queryAddress(c.url, c.values)
	if err != nil {
		return nil, err
	}
	return all, add(r, addr, c.values.String("query-address") != "")
}

// Figures implements target.FigureSource: what the servers say of themselves. That a
// server which was not said to answer queries does not is no error; nor is one
// that keeps no index.
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
		figures, err := t.figures(ctx, s.firing.Load(), written)
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
	case t.refused && !t.asked:
		return nil, nil
	default:
		return nil, &target.Error{Doing: "read the server metrics of " + t.a.addr, Err: err}
	}
	return append(figuresOf(events, t.label), t.counted(events, started, written)...), nil
}

// counted is what the server counted in windows within the firing. Nobody else
// is distinguished by that: it is what came in.
func (t *figureSource) counted(events []riemann.Event, started bool, written uint64) []measure.Figure {
	var all []measure.Figure
	for i := range events {
		e := &events[i]
		if e.Service != streamsRate || e.Metric.Kind == riemann.NoMetric {
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
		if w.look(e, started, written); w.inside {
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
func (t *figureSource) events(ctx context.Context) ([]riemann.Event, error) {
	if len(t.names) == 0 {
		if time.Since(t.looked) < lookAgain && !t.looked.IsZero() {
			if t.refused && t.asked {
				return nil, errors.New("it could not be reached a moment ago")
			}
			return nil, nil
		}
		t.looked = time.Now()
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
	if t.misses >= mostMisses { // a server that began anew, under another name
		t.names, t.looked, t.misses = nil, time.Time{}, 0
	}
	return found, err
}

// quoted is a text as queries have it (query.g4), nil for an absent one.
func quoted(s string) string {
	if s == "" {
		return "nil"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// figuresOf are the figures in a server's events about itself.
func figuresOf(events []riemann.Event, label string) []measure.Figure {
	type row struct {
		measure.Figure
		rank int
		host string
	}
	var rows []row
	for i := range events {
		e := &events[i]
		name, own := strings.CutPrefix(e.Service, ownPrefix)
		if !own || e.Metric.Kind == riemann.NoMetric || strings.HasSuffix(name, " latency 0.0") {
			continue // nothing was timed, or it is no more than the least of all times
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
			r.Name += " of " + r.host // of several servers that send their events to this one
		}
		r.Name += label
		figures[i] = r.Figure
	}
	return figures
}

// rankOf sorts what says most before the rest.
func rankOf(name string) int {
	switch {
	case strings.HasPrefix(name, "streams "):
		return 0
	case strings.HasPrefix(name, "server "):
		return 1
	}
	return 2
}

// unitOf is the unit of a figure, from its name; "" is a plain number.
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
