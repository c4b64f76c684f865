package riemann

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	accounts "carronade/internal/run/ledger"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func verifiedSpec(t testing.TB, url string, most uint64, given ...string) protocol.Spec {
	t.Helper()
	s := specOf(t, url, given...)
	s.Verify, s.RunID, s.Most = true, 0xfeed_c0ffee00, most
	return s
}

// runVerified runs a plan and reads its events back, with a ledger as in a real
// run. between is called after all events are sent, before they are read.
func runVerified(t *testing.T, s *session, p load.Plan, between func()) (*load.Result, measure.Ledger) {
	t.Helper()
	seek := s.src
	account := accounts.New(accounts.Config{Logs: len(seek.Logs()), Start: seek.Starts(), LogOf: s.Target().Capabilities().LogOf, RunID: s.cfg.runID, Stamped: s.cfg.verify})
	p.Observe = account.Fired
	r := runChecked(t, s, p)
	if between != nil {
		between()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.Source().Receive(ctx, func() time.Duration { return time.Since(began) }, func(_ int, a []load.Arrival) { account.Arrived(a) })
		assert.True(t, errors.Is(err, context.Canceled), "receive: %v", err)
	})
	ends := assert.Value(seek.Ends(ctx))(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i < len(ends); {
		if ctx.Err() != nil {
			t.Fatalf("read to %v of %v", seek.Positions(), ends)
		}
		if seek.Positions()[i] >= ends[i] {
			i++
			continue
		}
		<-tick.C
	}
	cancel()
	wg.Wait()
	heads := assert.Value(seek.Heads(t.Context()))(t)
	for i, h := range heads {
		if h > 0 {
			account.Removed(int32(i), 0, h)
		}
	}
	return r, account.Verdict(slices.Repeat([]bool{true}, len(ends)), ends)
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, transport string
		standin         standinriemann.Options
		given           []string
		perBatch        int
		events          uint64
		schedule        bool
	}{
		{name: "all is well", transport: "tcp", events: 12_000, perBatch: 7},
		{name: "several clients, all types", transport: "tcp", events: 3000, perBatch: 1, given: []string{"clients=3", "metric-type=sint64", "time=us", "attribute=env=test", "ttl=120s"}},
		{name: "floats, the server's time", transport: "tcp", events: 1000, perBatch: 10, given: []string{"metric-type=float", "time=none", "description=none"}},
		{name: "loss", transport: "tcp", standin: standinriemann.Options{Drop: 0.01, Seed: 3}, events: 20_000, perBatch: 10},
		{name: "refusals", transport: "tcp", standin: standinriemann.Options{Errors: []standinriemann.ErrorRule{{Name: "no", Share: 0.1}}}, events: 2000, perBatch: 1, schedule: true},
		{name: "UDP, where one port serves TCP too", transport: "same", events: 2000, perBatch: 2, schedule: true},
		{name: "UDP", transport: "udp", events: 2000, perBatch: 2, schedule: true},
		{name: "UDP with loss", transport: "udp", standin: standinriemann.Options{Drop: 0.05, Seed: 3}, events: 2000, perBatch: 2, schedule: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var srv *standinriemann.Server
			var s *session
			if tt.transport == "same" {
				srv = startOnOnePort(t, tt.standin)
				s = openSession(t, verifiedSpec(t, "riemann+udp://"+srv.Addr(), tt.events, tt.given...))
			} else {
				srv = startStandin(t, tt.standin)
				scheme := map[string]string{"tcp": "riemann", "udp": "riemann+udp"}[tt.transport]
				s = openSession(t, verifiedSpec(t, scheme+"://"+srv.AddrOf(tt.transport), tt.events, append(tt.given, "query-address="+srv.Addr())...))
			}
			p := load.Plan{BatchEvents: tt.perBatch, MaxInFlight: 100, Measurement: load.Limits{Events: tt.events}}
			if tt.schedule {
				p.Schedule = load.Constant(5000)
			}
			r, v := runVerified(t, s, p, nil)
			c := srv.Counts()
			kept := c.Events - c.Dropped
			want := measure.Ledger{Acked: r.Measurement.Acked, Read: kept, Lost: c.Dropped}
			if tt.transport != "tcp" { // missing events may never have arrived
				want.Recovered, want.Lost = kept, 0
			}
			assert.Must(t, !strings.Contains(tt.name, "loss") || c.Dropped != 0, "the server dropped nothing, so the case tests nothing")
			got := measure.Ledger{
				Acked: v.Acked, Read: v.Read, Lost: v.Lost, Recovered: v.Recovered,
				Duplicated: v.Duplicated, Corrupted: v.Corrupted, Foreign: v.Foreign, Reordered: v.Reordered, Inexact: v.Inexact,
			}
			if got.Acked != want.Acked || got.Read != want.Read || got.Lost != want.Lost || got.Recovered != want.Recovered ||
				got.Duplicated+got.Corrupted+got.Foreign+got.Reordered+got.Inexact > 0 {
				t.Errorf("verdict %+v,\nwant %+v (the server: %v)\n%v", got, want, c, s.Warnings())
			}
			assert.True(t, v.Complete, "the index was not read to the end")
		})
	}
}

// Events that differ in the index from what was sent count as corrupted, and a warning says how they differ.
func TestVerifyFindsChanges(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{})
	s := openSession(t, verifiedSpec(t, "riemann://"+srv.Addr(), 500))
	_, v := runVerified(t, s, load.Plan{BatchEvents: 5, Measurement: load.Limits{Events: 500}}, func() {
		// Two events are changed, and one of another run appears.
		one, two := s.cfg.shape.event(0, 17), s.cfg.shape.event(0, 400)
		one.Time, one.HasTime = time.Now().Unix(), true
		two.Time, two.HasTime = time.Now().Unix(), true
		one.State = "altered"
		two.Metric = wire.Metric{Kind: wire.Double, Real: 1e9}
		other := s.cfg.shape.event(0, 3)
		other.Service = serviceOf(1, 0, 3)
		put(t, srv.Addr(), one, two, other)
	})
	assert.True(t, v.Corrupted == 2 && v.Lost == 0 && v.Read == 500 && v.Inexact == 0 && v.Foreign == 0,
		"verdict %+v, want 2 corrupted of 500", v)
	w := strings.Join(s.Warnings(), "\n")
	assert.True(t, strings.Contains(w, "2 events are not in the index as they were sent") && strings.Contains(w, `state "altered"`), "warnings: %s", w)
}

func TestDiffers(t *testing.T) {
	t.Parallel()
	s := &source{cfg: &config{shape: shapeOf(t, map[string]string{"attribute": "env=a", "ttl": "60s"})}, began: time.Now()}
	sound := func() wire.Event {
		e := s.cfg.shape.event(0, 5)
		e.Time, e.HasTime = time.Now().Unix(), true
		return e
	}
	for _, tt := range []struct {
		name   string
		change func(*wire.Event)
		want   string
	}{
		{"sound", func(*wire.Event) {}, ""},
		{"host", func(e *wire.Event) { e.Host += "x" }, "host"},
		{"state", func(e *wire.Event) { e.State = "" }, "state"},
		{"description", func(e *wire.Event) { e.Description = "y" }, "description"},
		{"tags", func(e *wire.Event) { e.Tags = e.Tags[:1] }, "tags"},
		{"an attribute changed", func(e *wire.Event) { e.Attributes = []wire.Attribute{{Key: "env", Value: "b"}} }, "attributes"},
		{"an attribute added", func(e *wire.Event) { e.Attributes = append(e.Attributes, wire.Attribute{Key: "b"}) }, "attributes"},
		{"ttl", func(e *wire.Event) { e.TTL = 61 }, "ttl"},
		{"metric", func(e *wire.Event) { e.Metric.Real++ }, "metric"},
		{"no metric", func(e *wire.Event) { e.Metric = wire.Metric{} }, "metric"},
		{"no time", func(e *wire.Event) { e.HasTime = false }, "time"},
		{"an old time", func(e *wire.Event) { e.Time -= 3600 }, "time"},
		{"a time to come", func(e *wire.Event) { e.Time += 3600 }, "time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := sound()
			tt.change(&e)
			got := s.differs(&e, 0, 5)
			assert.True(t, (got == "") == (tt.want == "") && (strings.Contains(got, ": "+tt.want) || tt.want == ""),
				"got %q, want one about %q", got, tt.want)
		})
	}
}

func TestSameMetric(t *testing.T) {
	t.Parallel()
	type m = wire.Metric
	for _, tt := range []struct {
		name      string
		got, want m
		same      bool
	}{
		{"a float as a double", m{Kind: wire.Double, Real: float64(float32(0.1))}, m{Kind: wire.Float, Real: float64(float32(0.1))}, true},
		{"a double as a float", m{Kind: wire.Float, Real: float64(float32(0.1))}, m{Kind: wire.Double, Real: 0.1}, true},
		{"a float as another", m{Kind: wire.Double, Real: 0.25}, m{Kind: wire.Float, Real: 0.5}, false},
		{"a number and none", m{}, m{Kind: wire.Float}, false},
		{"a double as another", m{Kind: wire.Double, Real: 0.1000001}, m{Kind: wire.Double, Real: 0.1}, false},
		{"a whole double as a number", m{Kind: wire.Sint64, Int: 3}, m{Kind: wire.Double, Real: 3}, true},
		{"beyond 2^53", m{Kind: wire.Sint64, Int: 1<<53 + 1}, m{Kind: wire.Sint64, Int: 1 << 53}, false},
		{"none", m{}, m{}, true},
	} {
		assert.Equal(t, sameMetric(tt.got, tt.want), tt.same, tt.name)
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{})
	for _, tt := range []struct {
		name, url  string
		most       uint64
		length     time.Duration
		given      []string
		want, hint string
	}{
		{name: "no end", url: "riemann://" + srv.Addr(), want: "the run has no limit", hint: "--count"},
		{name: "too many", url: "riemann://" + srv.Addr(), most: mostVerified + 1, want: "more than 1000000", hint: "smaller"},
		{name: "a short ttl", url: "riemann://" + srv.Addr(), most: 100, length: 2 * time.Minute, given: []string{"ttl=uniform(30s,300s)"}, want: "events expire from the index after 30s", hint: "--ttl 210s"},
		{name: "no ttl", url: "riemann://" + srv.Addr(), most: 100, length: 2 * time.Minute, given: []string{"ttl=none"}, want: "events expire from the index after 1m0s", hint: "--ttl"},
		{name: "expired", url: "riemann://" + srv.Addr(), most: 100, given: []string{"state={cycle(ok,expired)}"}, want: "removes them", hint: "--state"},
		{name: "nowhere to ask", url: "riemann+udp://" + srv.AddrOf("udp"), most: 100, given: []string{"query-address=" + testkit.ClosedPort}, want: "refused", hint: "--query-address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := verifiedSpec(t, tt.url, tt.most, tt.given...)
			spec.Length = tt.length
			_, err := Kind{}.Open(t.Context(), spec)
			protocoltest.Explained(t, err, tt.want, tt.hint)
		})
	}
	t.Run("a ttl is raised", func(t *testing.T) {
		spec := verifiedSpec(t, "riemann://"+srv.Addr(), 100)
		spec.Length = 10 * time.Minute
		s := openSession(t, spec)
		got := s.cfg.retention()
		assert.True(t, got >= 11*time.Minute, "events are kept for %v, but the run takes 10m", got)
		w := strings.Join(s.Warnings(), "\n")
		assert.True(t, strings.Contains(w, "ttl of 690s") && strings.Contains(w, "duplicates are not"), "warnings: %s", w)
	})
}

// Events that had expired before they were read do not count as lost.
func TestVerifyTooLate(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{Drop: 0.5, Seed: 1})
	s := openSession(t, verifiedSpec(t, "riemann://"+srv.Addr(), 100))
	_, v := runVerified(t, s, load.Plan{BatchEvents: 1, Measurement: load.Limits{Events: 100}}, func() {
		s.src.began = s.src.began.Add(-time.Hour)
	})
	assert.True(t, v.Lost == 0 && v.Unread != 0 && v.Unread == srv.Counts().Dropped && v.Inexact == 0,
		"verdict %+v, want the %d missing ones to be unread", v, srv.Counts().Dropped)
	w := strings.Join(s.Warnings(), "\n")
	assert.True(t, strings.Contains(w, "may have expired"), "warnings: %s", w)
}
