package riemann

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/load"
	"carronade/protocol"
)

// A config holds a URL and its options, parsed and checked. It does not change
// after parseConfig, so all clients of a run share one.
type config struct {
	transport *transport
	hosts     []string // host:port, as given; clients take them in turn
	path      string   // of the transports that have one
	clients   int      // at least 1
	portion   load.Portion
	sticky    bool // a client sends only its own events
	scheduled bool // events have due times

	batchEvents int // 0: as many as the engine fits into the room
	inFlight    int // batches in flight on a connection; 0: not given

	dialer         conn.Dialer
	absent         *conn.ConnectFailures // of the server, during the run
	skipVerify     bool
	requestTimeout time.Duration
	backoff        time.Duration

	shape *shape

	// Bytes of the largest message, and of the largest event as JSON; known before lanes are made.
	widest, widestJSON int

	verify   bool
	runID    uint32   // of verified events
	warnings []string // warnings for the user
	values   protocol.Values
	logf     func(format string, args ...any)
	happened func(name string, began time.Time, length time.Duration) // see protocol.Spec
}

// mostEvents is the most events in a message where the batch size is not given.
// The engine then makes one message of what is due.
const mostEvents = 100

// mostMessage bounds the size of a message, in bytes. The server keeps one in
// memory, and every lane two.
const mostMessage = 64 << 20

// parseConfig reads a spec. It opens no connection, but it reads the files that
// options name.
func parseConfig(s protocol.Spec) (*config, error) {
	v := s.Options
	c := &config{
		absent:         new(conn.ConnectFailures),
		clients:        max(1, s.Clients, v.Int("clients")),
		portion:        s.Portion,
		sticky:         v.Bool("sticky"),
		scheduled:      s.Scheduled,
		batchEvents:    s.BatchEvents,
		inFlight:       s.MaxInFlight,
		requestTimeout: v.Duration("request-timeout"),
		backoff:        v.Duration("reconnect-backoff"),
		verify:         s.Verify,
		values:         v,
		logf:           s.Logf,
	}
	if c.logf == nil {
		c.logf = func(string, ...any) {}
	}
	if c.happened = s.Happened; c.happened == nil {
		c.happened = func(string, time.Time, time.Duration) {}
	}
	if s.Concurrency > c.inFlight {
		c.inFlight = s.Concurrency
	}
	var err error
	if c.transport, c.hosts, c.path, err = parseTarget(s.URL); err != nil {
		return nil, err
	}
	for _, name := range []string{"connect-timeout", "request-timeout", "reconnect-backoff"} {
		if v.Has(name) && v.Duration(name) <= 0 {
			return nil, contradiction(name+" must be above zero", "give --"+name+" with a unit, such as 5s")
		}
	}
	if c.dialer, err = c.transport.dialer(v); err != nil {
		return nil, err
	}
	c.skipVerify = v.Bool("tls-insecure-skip-verify")
	c.runID = uint32(s.RunID)
	if s.Verify {
		if c.values, c.warnings, err = verifiable(s); err != nil {
			return nil, err
		}
	}
	if c.shape, err = newShape(c.values, s.Seed, s.RunID, s.Verify); err != nil {
		return c, err
	}
	if each := mostPools(c.clients) / int64(c.clients); !s.Given[optPool] && each < v.Size(optPool) {
		c.shape.shrink(max(leastPool, each))
	}
	if s.Verify {
		err = c.checkRetention(s)
	}
	return c, err
}

// mostPools bounds the pools of all clients together, in bytes, unless their size is
// given: ten thousand pools of the default size take 2.5 GiB and half a minute to fill.
// The connections of very many clients take enough memory themselves.
func mostPools(clients int) int64 {
	if clients > 1000 {
		return 16 << 20
	}
	return 64 << 20
}

// perMessage is the most events in a message.
func (c *config) perMessage() int { return cmp.Or(c.batchEvents, mostEvents) }

// connectTimeout bounds how long connecting may take.
func (c *config) connectTimeout() time.Duration {
	return cmp.Or(c.dialer.Timeout, defaultConnectTimeout)
}

func contradiction(what, hint string) error {
	return &protocol.Error{Doing: "read the options", Err: errors.New(what), Hint: hint}
}

// dialer reads the options for the transport's connections.
func (r *transport) dialer(v protocol.Values) (d conn.Dialer, err error) {
	d = conn.Dialer{
		Timeout:    cmp.Or(v.Duration("connect-timeout"), defaultConnectTimeout),
		SendBuffer: int(v.Size("send-buffer")),
		RecvBuffer: int(v.Size("recv-buffer")),
	}
	if !r.tls {
		if conn.UsesTLS(v) && !strings.HasPrefix(v.String("query-address"), tlsScheme+"://") {
			return d, contradiction("TLS options with a target without TLS", "make it riemann+tls://HOST:5554, or leave out the TLS options")
		}
		return d, nil
	}
	m, err := conn.ReadMaterial(v)
	if err != nil {
		return d, err
	}
	d.TLS, err = m.Config()
	return d, err
}

// parseTarget reads SCHEME://host:port,host/path.
func parseTarget(u *url.URL) (r *transport, hosts []string, path string, err error) {
	wrong := func(what, hint string) (*transport, []string, string, error) {
		return nil, nil, "", &protocol.Error{Doing: "read the target", Err: errors.New(what), Hint: hint}
	}
	i := slices.IndexFunc(transports, func(r transport) bool { return r.scheme == u.Scheme })
	if i < 0 {
		return wrong("no scheme "+u.Scheme, "a target is "+transports[0].scheme+"://HOST:"+transports[0].port)
	}
	r = &transports[i]
	if err := conn.CheckURL(u, "read the target", "Riemann identifies clients by their certificates: use riemann+tls and --tls-cert", "settings are flags"); err != nil {
		return nil, nil, "", err
	}
	path = cmp.Or(u.Path, r.path)
	if r.path == "" && strings.Trim(path, "/") != "" {
		return wrong(fmt.Sprintf("the path %s has no meaning with %s", u.Path, r.scheme), "leave it out: services and hosts are options of the events")
	}
	if hosts, err = conn.Hosts(u.Host, r.port); err != nil {
		return wrong(err.Error(), "a target is "+r.scheme+"://HOST:"+r.port+", several with commas between")
	}
	return r, hosts, path, nil
}
