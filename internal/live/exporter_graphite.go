package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/measure"
	"carronade/protocol"
)

// collectorTimeout is how long a collector may take to accept a connection or an
// interval.
const collectorTimeout = 5 * time.Second

// reconnectDelay is the pause before connecting again to an absent collector.
const reconnectDelay = time.Second

// A graphite sends metrics in Graphite's plaintext protocol, a line "name value
// seconds" for each
// (https://graphite.readthedocs.io/en/latest/feeding-carbon.html), over a
// persistent connection.
type graphite struct {
	*sender
	addr, prefix string
	zeroP99      bool // see ExporterOptions
	conn         net.Conn
	retryAt      time.Time // no connection attempt before this time
	err          error     // of the last attempt
}

func newGraphite(o ExporterOptions) (*graphite, error) {
	addr, err := conn.Host(o.Graphite, "2003")
	if bad, ok := errors.AsType[*net.AddrError](err); ok {
		err = errors.New(bad.Err)
	}
	if err != nil {
		return nil, &protocol.Error{Doing: "read --graphite", Err: fmt.Errorf("%q is not HOST:PORT: %w", o.Graphite, err), Hint: "such as graphite.example:2003"}
	}
	prefix := o.Prefix
	if prefix == "" {
		if host, err := os.Hostname(); err == nil {
			prefix = strings.ReplaceAll(host, ".", "_")
		}
	}
	g := &graphite{addr: addr, prefix: cleanName(prefix), zeroP99: o.ZeroP99}
	g.sender = newSender("Graphite at "+addr, o.Logf, o.Published, g.send)
	return g, nil
}

// tagValue replaces the characters that the value of a tag must not contain
// (https://graphite.readthedocs.io/en/latest/tags.html), and spaces.
func tagValue(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == ';' || c <= ' ' || c == '\u007f' {
			return '_'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if s == "" || s[0] == '~' {
		return "_" + s
	}
	return s
}

// cleanName replaces the characters that a Graphite name must not contain. Points
// stay, as they separate levels.
func cleanName(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			return c
		}
		return '_'
	}, s)
	if s == "" {
		return "carronade"
	}
	return s
}

// take queues the point of an interval. The last point of a run has no interval.
func (g *graphite) take(p *point) {
	if p.running {
		g.sender.take(p)
	}
}

// send sends a point.
func (g *graphite) send(ctx context.Context, p *point) error {
	if g.conn == nil {
		if time.Now().Before(g.retryAt) {
			return g.err
		}
		d := conn.Dialer{Timeout: collectorTimeout}
		nc, err := d.Dial(ctx, g.addr)
		if err != nil {
			g.retryAt, g.err = time.Now().Add(reconnectDelay), err
			return err
		}
		g.conn = nc
	}
	nc := g.conn // disconnect sets g.conn to nil
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	if err := g.conn.SetWriteDeadline(time.Now().Add(collectorTimeout)); err != nil {
		return g.disconnect(err)
	}
	if _, err := g.conn.Write(g.lines(p)); err != nil {
		return g.disconnect(err)
	}
	return nil
}

// disconnect closes the connection; the next point opens another.
func (g *graphite) disconnect(err error) error {
	g.conn.Close()
	g.conn = nil
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("it accepted nothing for %v", collectorTimeout)
	}
	return err
}

func (g *graphite) close(ctx context.Context) string {
	w := g.sender.close(ctx)
	if g.conn != nil {
		g.conn.Close()
	}
	return w
}

// lines are the metrics of an interval. Four of them have sangrenel's names and
// units, for existing dashboards, and so no tags. Rate and output cover accepted events, like the
// rates of reports. There is a p99 only if anything was answered, since a p99 of 0
// would make an outage look like the best interval.
func (g *graphite) lines(p *point) []byte {
	var b strings.Builder
	at := p.at.Unix()
	tags := ""
	line := func(name string, v float64) { fmt.Fprintf(&b, "%s.%s%s %f %d\n", g.prefix, name, tags, v, at) }
	perS := func(n uint64) float64 {
		if p.length <= 0 {
			return 0
		}
		return float64(n) / p.length
	}
	line("sangrenel.rate", perS(p.accepted()))
	line("sangrenel.error_rate", p.errorRate())
	line("sangrenel.output", perS(p.acceptedBytes()))
	answered := false
	for _, q := range p.p99 {
		if q.name == "service" {
			line("sangrenel.p99", q.d.Seconds()*1e3)
			answered = true
		}
	}
	if !answered && g.zeroP99 {
		line("sangrenel.p99", 0)
	}
	tags = ";target=" + tagValue(p.run.Target) + ";op=" + tagValue(p.run.Op)
	for _, c := range measure.Counters {
		line("carronade."+c.Metric+"_per_s", perS(c.Of(&p.interval)))
	}
	line("carronade.in_flight_events", float64(p.inFlight))
	if p.behind >= 0 && p.counts.Consumed > 0 {
		line("carronade.behind_events", float64(p.behind))
	}
	whole := tags
	for _, gr := range p.groups {
		tags = whole + ";group=" + tagValue(gr.name)
		line("carronade.group_backlog_events", float64(gr.backlog))
	}
	tags = whole
	for i, q := range p.p50 {
		line("carronade."+q.name+"_p50_ms", q.d.Seconds()*1e3)
		line("carronade."+q.name+"_p99_ms", p.p99[i].d.Seconds()*1e3)
	}
	return []byte(b.String())
}
