package standin

import (
	"os"
	"runtime"
	"strconv"
	"time"

	"carronade/internal/riemann/wire"
)

// quantiles are those that the real server reports, by the suffixes of its
// services.
var quantiles = []struct {
	name string
	q    float64
}{{"0.0", 0}, {"0.5", 0.5}, {"0.95", 0.95}, {"0.99", 0.99}, {"0.999", 0.999}}

// emitOwn puts events about the server into the index, under the names and in the
// units of the real server: rates per second, times in milliseconds. A
// transport's rate counts messages; the streams' rate counts events. Sources:
// core.clj (instrumentation-service: the base of each event), instrumentation.clj,
// transport/tcp.clj, udp.clj, websockets.clj, transport.clj (the executor).
func (s *Server) emitOwn(now time.Time, since time.Duration) {
	t := emitter{server: s, now: now, since: since.Seconds()}
	t.host, _ = os.Hostname()
	if !s.core.opts.Discard {
		t.rateAndTimes("riemann streams rate", "riemann streams latency ", s.core.streams.read())
	}
	t.count("riemann netty event-executor threads active", int64(runtime.GOMAXPROCS(0)))
	t.count("riemann netty event-executor queue size", 0) // this server has no queues for threads
	for _, d := range s.endpoints {
		name := "riemann server " + d.service + " " + d.addr
		if d.name != "udp" {
			t.count(name+" conns", d.meter.conns.Load())
		}
		t.rateAndTimes(name+" in rate", name+" in latency ", d.meter.read())
	}
}

type emitter struct {
	server  *Server
	now     time.Time
	since   float64 // seconds
	host    string
	handler handler
}

func (t *emitter) event(service string, m wire.Metric) {
	// An event that does not fit into a full index is left out.
	t.handler.scratch, _ = t.server.core.index.put(&wire.Event{
		Host: t.host, Service: service, State: "ok", Metric: m, Tags: []string{"riemann"},
		Time: t.now.Unix(), HasTime: true,
		// Times are in whole seconds: with less than two, an event would expire
		// before the next one arrives.
		TTL: float32(max(2, 2*t.server.core.opts.Interval.Seconds())), HasTTL: true,
	}, t.handler.scratch)
}

func (t *emitter) count(service string, n int64) {
	t.event(service, wire.Metric{Kind: wire.Sint64, Int: n})
}

func (t *emitter) rateAndTimes(rate, times string, r reading) {
	t.event(rate, wire.Metric{Kind: wire.Double, Real: float64(r.n) / t.since})
	for _, q := range quantiles {
		var m wire.Metric // none if nothing was timed
		if d, ok := r.quantile(q.q); ok {
			m = wire.Metric{Kind: wire.Double, Real: float64(d) / 1e6}
		}
		t.event(times+q.name, m)
	}
}

// String is the line that a stand-in prints when it ends.
func (c Counts) String() string {
	s := strconv.FormatUint(c.Connections, 10) + " connections; took "
	if c.Events > 0 || c.Refused > 0 || c.Dropped > 0 {
		s += strconv.FormatUint(c.Events, 10) + " events in "
	}
	s += strconv.FormatUint(c.Messages, 10) + " messages (" + strconv.FormatUint(c.Bytes, 10) + " bytes), " +
		strconv.FormatUint(c.Queries, 10) + " queries"
	for _, part := range []struct {
		n    uint64
		what string
	}{{c.Refused, "refused "}, {c.Dropped, "dropped "}, {c.Lost, "lost datagrams "}} {
		if part.n > 0 {
			s += ", " + part.what + strconv.FormatUint(part.n, 10)
		}
	}
	return s
}
