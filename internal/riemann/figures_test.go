package riemann

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func number(v float64) wire.Metric { return wire.Metric{Kind: wire.Double, Real: v} }

func TestFiguresOf(t *testing.T) {
	t.Parallel()
	events := []wire.Event{
		{Host: "h", Service: "riemann server tcp 0.0.0.0:5555 in rate", Metric: number(12.5)},
		{Host: "h", Service: "riemann server tcp 0.0.0.0:5555 in latency 0.0", Metric: number(0.1)},
		{Host: "h", Service: "riemann server tcp 0.0.0.0:5555 in latency 0.99", Metric: number(0.7)},
		{Host: "h", Service: "riemann server tcp 0.0.0.0:5555 in latency 0.999"}, // nothing was timed
		{Host: "h", Service: "riemann server tcp 0.0.0.0:5555 conns", Metric: wire.Metric{Kind: wire.Sint64, Int: 3}},
		{Host: "h", Service: "riemann server ws 0.0.0.0:5556 in rate", Metric: number(1)},
		{Host: "h", Service: "riemann netty event-executor queue size", Metric: wire.Metric{Kind: wire.Sint64, Int: 9}},
		{Host: "h", Service: "riemann executor x accepted rate", Metric: number(2)},
		{Host: "h", Service: "riemann streams rate", Metric: number(1000)},
		{Host: "i", Service: "riemann streams latency 0.5", Metric: number(3)},
		{Host: "h", Service: "riemann streams latency 0.5", Metric: number(2)},
		{Host: "h", Service: "riemannish", Metric: number(2)},
	}
	want := []measure.Figure{
		{Name: "streams latency 0.5 of h at X", Unit: "ms", Value: 2},
		{Name: "streams latency 0.5 of i at X", Unit: "ms", Value: 3},
		{Name: "streams rate at X", Unit: "events/s", Value: 1000},
		{Name: "server tcp 0.0.0.0:5555 conns at X", Value: 3},
		{Name: "server tcp 0.0.0.0:5555 in latency 0.99 at X", Unit: "ms", Value: 0.7},
		{Name: "server tcp 0.0.0.0:5555 in rate at X", Unit: "messages/s", Value: 12.5},
		{Name: "server ws 0.0.0.0:5556 in rate at X", Unit: "events/s", Value: 1},
		{Name: "executor x accepted rate at X", Unit: "1/s", Value: 2},
		{Name: "netty event-executor queue size at X", Value: 9},
	}
	assert.Equal(t, cmp.Diff(want, figuresOf(events, " at X")), "")
}

// A server's count comes from windows that lie within the run: not from those
// before it, and not from those in which the run began or ended.
func TestWindows(t *testing.T) {
	t.Parallel()
	tl := &figureSource{}
	at := func(end int64, rate float64) []wire.Event {
		return []wire.Event{{Host: "h", Service: streamsRate, Metric: number(rate), Time: end, HasTime: true}}
	}
	for _, step := range []struct {
		what    string
		end     int64
		rate    float64
		started bool
		written uint64
		want    float64 // 0: nothing
	}{
		{"before", 100, 7, false, 0, 0},
		{"the same still", 100, 7, true, 10, 0},
		{"the run began in it", 110, 500, true, 20, 0},
		{"the run continues", 110, 500, true, 30, 0},
		{"one within the run", 120, 1000, true, 40, 0},
		{"it ended before the run did", 120, 1000, true, 50, 1000},
		{"another", 130, 1100, true, 60, 1000},
		{"the run has ended", 130, 1100, true, 60, 1000},
		{"after the run", 140, 200, true, 60, 1000},
		{"the same again", 140, 200, true, 60, 1000},
	} {
		got := tl.counted(at(step.end, step.rate), step.started, step.written)
		switch {
		case step.want == 0 && len(got) > 0:
			t.Errorf("%s: counted %+v", step.what, got)
		case step.want > 0 && (len(got) != 1 || got[0].Value != step.want || !got[0].Counts):
			t.Errorf("%s: counted %+v, want %v", step.what, got, step.want)
		}
	}
	// A server without earlier events begins with its second window.
	late := &figureSource{}
	for i := range int64(3) {
		got := late.counted(at(100+i/2*10, 5), true, uint64(i))
		assert.True(t, len(got) == 0, "counted %+v of a window whose beginning is unknown", got)
	}
}

// waitFigure reads the figures until one has the name and ok accepts its value.
func waitFigure(t *testing.T, s *session, name string, ok func(float64) bool) measure.Figure {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond) // each reading is dozens of queries, which the server counts as messages
	defer tick.Stop()
	for ctx := testkit.Minute(t); ; <-tick.C {
		figures := assert.Value(s.Figures(ctx))(t, "without the expected %q", name)
		for _, f := range figures {
			if f.Name == name && ok(f.Value) {
				return f
			}
		}
	}
}

// The server's figures are read, also for a transport that answers nothing.
func TestFigures(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{Interval: 100 * time.Millisecond})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for { // until the server has emitted events about itself
		if found, err := ask(t, "riemann://"+srv.Addr(), nil, ownServices); err != nil || len(found) > 0 {
			break
		}
		<-tick.C
	}
	for _, tt := range []struct {
		name, url    string
		given        []string
		figure, unit string
	}{
		{name: "TCP", url: "riemann://" + srv.Addr(), figure: "server tcp " + srv.Addr() + " in rate", unit: "messages/s"},
		{name: "UDP, with a query address", url: "riemann+udp://" + srv.AddrOf("udp"), given: []string{"query-address=" + srv.Addr()}, figure: "server udp " + srv.AddrOf("udp") + " in rate", unit: "messages/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openSession(t, specOf(t, tt.url, tt.given...))
			run := assert.Value(load.New(load.Plan{BatchEvents: 2, Schedule: load.Constant(2000), Unanswered: s.Capabilities().Unanswered}, s.Target()))(t)
			run.Start()
			defer run.Abort()
			f := waitFigure(t, s, tt.figure, func(v float64) bool { return v > 300 && v < 3000 })
			assert.True(t, f.Unit == tt.unit, "%s is in %s, want %s", f.Name, f.Unit, tt.unit)
			run.Stop(load.ByTime)
			assert.Value(run.Wait())(t)
			f = waitFigure(t, s, "streams rate", func(float64) bool { return true })
			assert.True(t, !f.Counts && f.Unit == "events/s", "%+v, want one in events/s that does not count this run", f)
		})
	}
}

// After the first query, which searches the whole index, only the server's own events are queried.
func TestFiguresSearchOnce(t *testing.T) {
	t.Parallel()
	own := wire.Event{Host: `a "b" \c`, Service: "riemann streams rate", Metric: number(7)}
	queries := make(chan string, 100)
	addr := testkit.Listen(t, func(nc *net.TCPConn) {
		a := &asker{nc: nc, in: bufio.NewReader(nc)}
		for {
			b, err := a.frame()
			if err != nil {
				return
			}
			m, err := wire.DecodeMsg(b)
			if err != nil {
				t.Error(err)
				return
			}
			queries <- m.Query
			nc.Write(wire.AppendFramed(nil, &wire.Msg{HasOK: true, OK: true, Events: []wire.Event{own}}))
		}
	})
	a := newTestAsker(t, addr)
	defer a.close()
	tl := &figureSource{a: a}
	for range 3 {
		f, err := tl.figures(t.Context(), false, 0)
		assert.Must(t, err == nil && len(f) == 1 && f[0].Value == 7, "got %+v, %v", f, err)
	}
	want := []string{ownServices, `host = "a \"b\" \\c" and service = "riemann streams rate"`, `host = "a \"b\" \\c" and service = "riemann streams rate"`}
	for _, w := range want {
		assert.Equal(t, <-queries, w, "asked")
	}
}

func TestFiguresWithoutServer(t *testing.T) {
	t.Parallel()
	// Without a query address, an unreachable server is not an error.
	s := openSession(t, specOf(t, "riemann+udp://"+silentSocket(t)))
	s.figureSources = []*figureSource{{a: newTestAsker(t, testkit.ClosedPort)}}
	for range 2 {
		f, err := s.Figures(t.Context())
		assert.True(t, err == nil && len(f) == 0, "got %v, %v; want nothing, and no error", f, err)
	}
	// Over UDP the server's count is then unknown, and the report says so.
	w := strings.Join(s.Warnings(), "\n")
	assert.True(t, strings.Contains(w, testkit.ClosedPort) && strings.Contains(w, "--query-address"), "warnings %q, want one that no server answers queries", w)
	// With a query address it is an error.
	s = openSession(t, specOf(t, "riemann+udp://"+silentSocket(t), "query-address="+testkit.ClosedPort))
	for range 2 {
		_, err := s.Figures(t.Context())
		assert.ErrorHas(t, err, "read the server metrics")
	}
	// A server without an index has no figures.
	noIndex := testkit.Listen(t, func(nc *net.TCPConn) {
		buf := make([]byte, 1000)
		nc.Read(buf)
		nc.Write(wire.AppendFramed(nil, &wire.Msg{HasOK: true, Error: "no index"}))
		nc.Read(buf)
	})
	s = openSession(t, specOf(t, "riemann+udp://"+silentSocket(t), "query-address="+noIndex))
	f, err := s.Figures(t.Context())
	assert.True(t, err == nil && len(f) == 0, "got %v, %v; want nothing, and no error", f, err)
}

func newTestAsker(t *testing.T, addr string) *asker {
	t.Helper()
	a := assert.Value(newAsker(transportOf(plainScheme), addr, nil))(t)
	return a
}
