package riemann

import (
	"cmp"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// seen collects outcomes.
type seen struct {
	mu  sync.Mutex
	all []load.Outcome
}

func (s *seen) observe(out []load.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, out...)
}

// runPlan runs a plan, for at most a minute. The engine checks that the counts add up.
func runPlan(t *testing.T, s *session, p load.Plan) *load.Result {
	t.Helper()
	ctx := testkit.Minute(t)
	if p.BatchEvents == 0 {
		p.BatchEvents = 1
	}
	if p.MaxInFlight == 0 {
		p.MaxInFlight = 1000
	}
	r := assert.Value(load.Fire(ctx, p, s.Target()))(t)
	assert.OK(t, ctx.Err(), "the run did not end in time: %+v, failures %+v", r.Measurement.Counts, r.Failures)
	return r
}

const tickEvery = 5 * time.Millisecond

// tick calls f at every tickEvery until the test ends or f returns true.
func tick(t *testing.T, f func() (done bool)) {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(tickEvery)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				if f() {
					return
				}
			}
		}
	})
	t.Cleanup(func() { close(ended); wg.Wait() })
}

// Connections are reset repeatedly: what was written and not answered is
// unknown, everything else is acked, and the run continues.
func TestResets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		plan  load.Plan
		given []string
		pause bool // the server stops reading before it is reset
	}{
		{name: "batch groups"},
		{name: "one by one", plan: load.Plan{Retry: 1, MaxInFlight: 50}},
		{name: "by a schedule", plan: load.Plan{Schedule: load.Constant(20_000)}},
		{name: "large messages", plan: load.Plan{BatchEvents: 100, MaxInFlight: 100}},
		{name: "within messages", given: []string{"send-buffer=16KiB"}, pause: true, plan: load.Plan{BatchEvents: 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.plan.Schedule == nil {
				testkit.Need(t, "a second of a whole processor")
			}
			f := serve(t, nil)
			spec := specOf(t, "riemann://"+f.addr, append([]string{"clients=2", "reconnect-backoff=5ms"}, tt.given...)...)
			tt.plan.BatchEvents, tt.plan.MaxInFlight = max(1, tt.plan.BatchEvents), cmp.Or(tt.plan.MaxInFlight, 1000)
			tt.plan.Measurement.Time = time.Minute // more than is needed
			spec.BatchEvents = tt.plan.BatchEvents
			sess := openSession(t, spec)
			var acked, unknown atomic.Int64
			tt.plan.Trace = func(_ int, out []load.Outcome) {
				for i := range out {
					acked.Add(int64(out[i].Acked))
					unknown.Add(int64(out[i].Unknown))
				}
			}
			run := assert.Value(load.New(tt.plan, sess.Target()))(t)
			run.Start()
			n := 0
			tick(t, func() bool {
				n++
				if n%20 == 10 {
					f.pause(tt.pause)
				}
				if n%20 == 0 {
					f.resetAll()
					f.pause(false)
				}
				// It ends after six resets or more, once they have had their effects.
				if n <= 120 || n%20 != 5 || acked.Load() == 0 || unknown.Load() == 0 || reconnects(sess) < 2 {
					return false
				}
				run.Stop(load.ByTime)
				return true
			})
			r := assert.Value(run.Wait())(t)
			h := r.Measurement
			assert.True(t, h.Unknown != 0 && h.Acked != 0 && (h.Counts.Failed == 0 || tt.plan.Retry != 0), "%+v", h.Counts)
			got := f.taken()
			assert.True(t, got >= h.Acked, "%d events acked, but the server accepted %d", h.Acked, got)
			// The server may have accepted the unknown ones, but no others.
			got = f.taken()
			assert.True(t, got <= h.Acked+h.Unknown || tt.plan.Retry != 0, "%d events accepted, but %d were acked and %d are unknown", got, h.Acked, h.Unknown)
			again := reconnects(sess)
			assert.True(t, again >= 2, "%d reconnects", again)
			if got := f.invalid(); got > 0 {
				t.Errorf("%d connections began within a message", got)
			}
			// Few texts: of reading and of writing, reset and broken pipe. Not one per connection.
			assert.True(t, len(r.Failures) <= 5, "failures %+v", r.Failures)
		})
	}
}

func reconnects(s *session) (n uint64) {
	for _, b := range s.Brokers() {
		n += b.Reconnects
	}
	return n
}

// A server is unreachable for a while: events that become due wait, and their response time shows it. Without a
// schedule the longest stall shows it. Each reset connection leaves at most the in-flight limit unknown. The test does
// not depend on the machine's speed: the server goes away at a certain message, and the run ends at another.
func TestAwayAndBack(t *testing.T) {
	t.Parallel()
	const away = 300 * time.Millisecond
	for _, tt := range []struct {
		name string
		plan load.Plan
		at   int64 // the message that the server goes away at
	}{
		{"by a schedule", load.Plan{Schedule: load.Constant(1000), Measurement: load.Limits{Events: 600}, MaxInFlight: 20}, 100},
		{"at full speed", load.Plan{Measurement: load.Limits{Time: 30 * time.Second}, MaxInFlight: 1000}, 5000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, nil)
			sess := openSession(t, specOf(t, "riemann://"+f.addr))
			var s seen
			tt.plan.BatchEvents, tt.plan.Observe = 1, s.observe
			run := assert.Value(load.New(tt.plan, sess.Target()))(t)
			var came atomic.Int64
			var back atomic.Bool
			heard, started := make(chan time.Duration, 1), make(chan struct{})
			f.answers(func(int, net.Conn) ([]byte, bool) {
				<-started // the first message may come before Start returns
				if back.Load() && tt.plan.Schedule == nil {
					run.Stop(load.ByTime)
				}
				if came.Add(1) != tt.at {
					return []byte(wire.Ack), true
				}
				f.setResetting(true)
				time.AfterFunc(away, func() {
					heard <- run.Now()
					back.Store(true)
					f.setResetting(false)
				})
				return nil, false
			})
			run.Start()
			close(started)
			r := assert.Value(run.Wait())(t)
			h, again := r.Measurement, <-heard
			last, next := time.Duration(0), load.Never // acks around the end of the silence
			for _, o := range s.all {
				if o.Acked > 0 && o.Done < again {
					last = max(last, o.Done)
				} else if o.Acked > 0 { // which may have waited for its reader, or for the whole process
					next = min(next, max(last, min(cmp.Or(o.Earliest, o.Done), ranAt(r.Freezes, o.Done))))
				}
			}
			if most := uint64(f.resets() * tt.plan.MaxInFlight); h.Counts.Failed > 0 || h.Acked == 0 || h.Unknown == 0 || h.Unknown > most {
				t.Errorf("%+v, want no more than %d unknown, of %d connections", h.Counts, most, f.resets())
			}
			if tt.plan.Schedule == nil {
				// The server's first request after its return ends the measurement, and the
				// stall with it; the answer comes later.
				assert.True(t, r.Stall.Longest >= min(next, h.End)-last && next != load.Never,
					"longest stall %v, but no answer from %v to %v, and the server was away until %v", r.Stall.Longest, last, next, again)
				return
			}
			assert.Equal(t, h.Acked+h.Unknown, 600, "%+v", h.Counts)
			// One event was due per millisecond, so the index of the first event after the silence gives its due time.
			due := time.Duration(uint64(tt.at)+h.Unknown) * time.Millisecond
			want := again - due
			assert.True(t, h.Response.Max() >= want && want >= away/2, "longest response time %v, want %v or more", h.Response.Max(), want)
		})
	}
}

// ranAt returns when this process, which was about to do something at a point in time,
// ran before: until then a freeze of its own may have kept it from doing so.
func ranAt(freezes measure.Freezes, at time.Duration) time.Duration {
	const after = 2 * time.Millisecond // what waited is not done at once
	since := at
	for _, f := range freezes.Process {
		if f.At < at && at <= f.At+f.Length+after {
			since = min(since, f.At)
		}
	}
	return since
}

// A server never comes back: the run ends, and says why. Events fail with each attempt to connect, and not at full speed.
func TestServerNeverComesBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		measurement load.Limits
		want        uint64 // events; 0: no more than a few times the bound
	}{{"a number of events", load.Limits{Events: 2500}, 2500}, {"for a time", load.Limits{Time: 3 * time.Second}, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			sess := openSession(t, specOf(t, "riemann://"+f.addr, "request-timeout=200ms"))
			f.waitConnections(2) // the probe's and the lane's
			f.ln.Close()
			f.resetAll()
			r := runPlan(t, sess, load.Plan{Measurement: tt.measurement})
			h := r.Measurement
			assert.True(t, h.Counts.Failed != 0 && r.Classes["refused"] == h.Counts.Failed &&
				r.Classes["disconnected"] == h.Unknown, "%+v, classes %v", h.Counts, r.Classes)
			got := h.Counts.Failed + h.Unknown
			assert.True(t, got == tt.want || tt.want == 0 && got <= 10_000, "%d events of %+v", got, h.Counts)
			assert.True(t, len(r.Failures) > 0 && strings.Contains(r.Failures[len(r.Failures)-1].Text, "refused"),
				"failures %+v", r.Failures)
			if got := strings.Join(sess.Warnings(), "\n"); !strings.Contains(got, "connecting to "+f.addr) || !strings.Contains(got, "refused") {
				t.Errorf("the warnings do not say why: %q", got)
			}
		})
	}
}

// After a timeout the unanswered messages are unknown, and the lane makes a new connection.
func TestRequestTimeout(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	f := serve(t, nil)
	const limit = 5 * time.Second // no stall of the machine exceeds it
	sess := openSession(t, specOf(t, "riemann://"+f.addr, "request-timeout="+limit.String()))
	f.answers(func(n int, _ net.Conn) ([]byte, bool) {
		if n >= 3 {
			return nil, true
		}
		return []byte(wire.Ack), true
	})
	var s seen
	r := runPlan(t, sess, load.Plan{Measurement: load.Limits{Events: 10}, MaxInFlight: 5, Observe: s.observe})
	h := r.Measurement
	assert.True(t, h.Unknown == 5 && h.Acked == 5 && r.Classes["timeout"] == h.Unknown, "%+v, classes %v", h.Counts, r.Classes)
	for _, o := range s.all {
		// the others end with the connection
		assert.True(t, o.First != 3 || o.Done-o.Sent >= limit, "given up after %v", o.Done-o.Sent)
	}
	assert.Equal(t, f.connections(), 3, "connections") // the probe's, and two of the lane
}

// Invalid answers end the connection, and the outcome has the class protocol.
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer string
		text         string // "": the answer was right
		acked        uint64 // of one message
	}{
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", "not a frame", 0},
		{"an oversized frame", "\x7f\xff\xff\xff\x10\x01", "not a frame", 0},
		{"a length just above the limit", "\x00\x10\x00\x01\x10\x01", "not a frame", 0},
		{"undecodable", "\x00\x00\x00\x02\x12\x7f", "", 0},
		{"an empty message", "\x00\x00\x00\x00", "without the field ok", 0},
		{"twice", wire.Ack + wire.Ack, "not sent", 1},
		{"an ack and half of one", wire.Ack + wire.Ack[:5], "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, nil)
			sess := openSession(t, specOf(t, "riemann://"+f.addr, "request-timeout=5s"))
			f.answers(func(int, net.Conn) ([]byte, bool) { return []byte(tt.answer), true })
			r := runPlan(t, sess, load.Plan{Measurement: load.Limits{Events: 1}})
			h := r.Measurement
			assert.True(t, tt.acked != 0 || h.Unknown == 1 && r.Classes["protocol"] == 1 &&
				strings.Contains(r.Failures[0].Text, tt.text), "%+v, failures %+v", h.Counts, r.Failures)
			assert.True(t, tt.acked == 0 || h.Acked == tt.acked || h.Unknown == tt.acked, "%+v, failures %+v", h.Counts, r.Failures)
		})
	}
}

// When the server closes its side, the lane connects again. How many of the unanswered messages the server accepted is unknown.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	sess := openSession(t, specOf(t, "riemann://"+f.addr, "reconnect-backoff=1ms"))
	f.answers(func(n int, nc net.Conn) ([]byte, bool) {
		if n == 4 {
			nc.(*net.TCPConn).CloseWrite()
		}
		if n >= 4 {
			return nil, true // it keeps reading
		}
		return []byte(wire.Ack), true
	})
	r := runPlan(t, sess, load.Plan{Measurement: load.Limits{Events: 20}, MaxInFlight: 10})
	h := r.Measurement
	assert.True(t, h.Unknown > 0 && h.Acked > 0 && h.Acked+h.Unknown == 20 && r.Classes["disconnected"] == h.Unknown,
		"%+v, classes %v", h.Counts, r.Classes)
	assert.True(t, strings.Contains(r.Failures[0].Text, "closed the connection"), "failures %+v", r.Failures)
}

// While a server does not read, the in-flight limit applies, messages that wait behind the full socket count
// as the system's delay, and response times show it.
func TestServerThatStopsReading(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, scheme := range []string{"riemann", "riemann+tls"} {
		t.Run(scheme, func(t *testing.T) {
			certs := newCertificates(t)
			f := serve(t, map[string]*tls.Config{"riemann+tls": certs.server}[scheme])
			given := []string{"send-buffer=16KiB", "reconnect-backoff=1ms"}
			if scheme != "riemann" {
				given = append(given, "tls-ca="+certs.ca, "tls-cert="+certs.cert, "tls-key="+certs.key)
			}
			spec := specOf(t, scheme+"://"+f.addr, given...)
			spec.BatchEvents = 200
			sess := openSession(t, spec)
			f.pause(true)
			whenFull(t, sess, 300*time.Millisecond, func() { f.pause(false) })
			var s seen
			r := runPlan(t, sess, load.Plan{
				Schedule: load.Constant(40_000), BatchEvents: 200, MaxInFlight: 2000,
				Measurement: load.Limits{Time: 500 * time.Millisecond}, Observe: s.observe,
				Drain: time.Hour, // all events are sent, however long it takes
			})
			h := r.Measurement
			assert.True(t, h.Acked == 20_000 && h.Response.Max() >= 200*time.Millisecond, "%+v, longest response time %v", h.Counts, h.Response.Max())
			raised := 0
			for _, o := range s.all {
				assert.Must(t, o.Free <= o.Sent, "free at %v, after it was sent at %v", o.Free, o.Sent)
				if o.Free > o.Ready+50*time.Millisecond {
					raised++
				}
			}
			assert.True(t, raised != 0, "no message waited behind the full socket")
		})
	}
}

// whenFull calls f once a lane's socket has accepted nothing for that long although there is something to write.
func whenFull(t *testing.T, s *session, long time.Duration, f func()) {
	l := s.lanes[0].(*lane)
	ticks, written := 0, uint64(0)
	tick(t, func() bool {
		l.mu.Lock()
		full, before := l.link != nil && l.link.Writing() && l.link.Pending(), written
		l.mu.Unlock()
		written, _ = l.wire()
		if !full || written != before {
			ticks = 0
		} else if ticks++; ticks >= int(long/tickEvery) {
			f()
			return true
		}
		return false
	})
}

// A refused message gets the server's text, and the acks before and after it are matched to their messages.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	sess := openSession(t, specOf(t, "riemann://"+f.addr))
	f.answers(func(n int, _ net.Conn) ([]byte, bool) {
		switch n % 10 {
		case 3:
			return wire.AppendFramed(nil, &wire.Msg{HasOK: true, Error: "no three"}), true
		case 7:
			return wire.AppendFramed(nil, &wire.Msg{HasOK: true}), true
		case 8: // an ack that is longer than usual
			return wire.AppendFramed(nil, &wire.Msg{HasOK: true, OK: true, Error: ""}), true
		}
		return []byte(wire.Ack), true
	})
	for _, observe := range []func([]load.Outcome){nil, func(out []load.Outcome) {
		for i := range out {
			o := &out[i]
			n := o.First % 10
			assert.True(t, (o.Failed > 0) == (n == 3 || n == 7), "event %d: %d failed", o.First, o.Failed)
		}
	}} {
		r := runPlan(t, sess, load.Plan{Measurement: load.Limits{Events: 1000}, Observe: observe})
		h := r.Measurement
		assert.True(t, h.Acked == 800 && h.Counts.Failed == 200 && r.Classes["rejected"] == 200, "%+v, classes %v", h.Counts, r.Classes)
		texts := map[string]uint64{}
		for _, x := range r.Failures {
			texts[x.Text] = x.Events
		}
		assert.True(t, texts["no three"] == 100 && texts["the server refused it without a reason"] == 100, "failures %+v", r.Failures)
		sess = openSession(t, specOf(t, "riemann://"+f.addr))
	}
}

// Aborting a run completes written messages as unknown, and the others as failed.
func TestAbortWithFullSocket(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	spec := specOf(t, "riemann://"+f.addr, "send-buffer=16KiB")
	spec.BatchEvents = 100
	sess := openSession(t, spec)
	f.pause(true)
	run := assert.Value(load.New(load.Plan{BatchEvents: 100, MaxInFlight: 1000}, sess.Target()))(t)
	run.Start()
	whenFull(t, sess, 50*time.Millisecond, run.Abort)
	r := assert.Value(run.Wait())(t)
	h := r.Measurement
	assert.True(t, h.Unknown != 0 && h.Counts.Failed != 0 && r.Classes["canceled"] == h.Unknown+h.Counts.Failed, "%+v, classes %v", h.Counts, r.Classes)
}

// If nothing blocks a message, it is free when it is ready, so that a late send counts as the generator's delay.
func TestUnblockedMessageIsFreeWhenReady(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	sess := openSession(t, specOf(t, "riemann://"+f.addr))
	var s seen
	runPlan(t, sess, load.Plan{Schedule: load.Constant(1000), Measurement: load.Limits{Time: 200 * time.Millisecond}, Observe: s.observe})
	for _, o := range s.all {
		assert.Must(t, o.Free == o.Ready && o.Ready == o.DueFirst, "due at %v, ready at %v, free at %v", o.DueFirst, o.Ready, o.Free)
	}
}
