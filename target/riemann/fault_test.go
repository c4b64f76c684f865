package riemann

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carronade/internal/wire/riemann"
	"carronade/load"
)

// seen keeps what became of batches.
type seen struct {
	mu  sync.Mutex
	all []load.Outcome
}

func (s *seen) observe(out []load.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, out...)
}

// fire runs a plan, of which the engine checks the identities, and gives up
// after a time that no test needs.
func fire(t *testing.T, s *session, p load.Plan) *load.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if p.BatchEvents == 0 {
		p.BatchEvents = 1
	}
	if p.MaxInFlight == 0 {
		p.MaxInFlight = 1000
	}
	r, err := load.Fire(ctx, p, s)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("the run did not end by itself: %+v, failures %+v", r.Measurement.Counts, r.Failures)
	}
	return r
}

// tick calls f every few milliseconds until the test ends or f says that it is
// done.
func tick(t *testing.T, f func() (done bool)) {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
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

// Connections that are reset under way, again and again: what was written and
// not answered is unknown, everything else is acked, and it goes on.
func TestResets(t *testing.T) {
	for _, tt := range []struct {
		name  string
		plan  load.Plan
		given []string
		pause bool // the server stops reading before it is reset
	}{
		{name: "batch groups", plan: load.Plan{Measurement: load.Limits{Time: 700 * time.Millisecond}}},
		{name: "one by one", plan: load.Plan{Measurement: load.Limits{Time: 700 * time.Millisecond}, Retry: 1, MaxInFlight: 50}},
		{name: "by a schedule", plan: load.Plan{Schedule: load.Constant(20_000), Measurement: load.Limits{Time: 700 * time.Millisecond}}},
		{name: "large messages", plan: load.Plan{Measurement: load.Limits{Time: 700 * time.Millisecond}, BatchEvents: 100, MaxInFlight: 100}},
		{
			name: "within messages", given: []string{"send-buffer=16KiB"}, pause: true,
			plan: load.Plan{Measurement: load.Limits{Time: 700 * time.Millisecond}, BatchEvents: 100, MaxInFlight: 1000},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, nil)
			spec := specOf(t, "riemann://"+f.addr, append([]string{"clients=2", "reconnect-backoff=5ms"}, tt.given...)...)
			spec.BatchEvents = max(1, tt.plan.BatchEvents)
			sess := opened(t, spec)
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
				return false
			})
			r := fire(t, sess, tt.plan)
			h := r.Measurement
			if h.Unknown == 0 || h.Acked == 0 || h.Counts.Failed > 0 && tt.plan.Retry == 0 {
				t.Errorf("%+v", h.Counts)
			}
			if got := f.taken(); got < h.Acked {
				t.Errorf("%d events acked, and the server took %d", h.Acked, got)
			}
			// What is called unknown may have been taken, and nothing else was.
			if got := f.taken(); got > h.Acked+h.Unknown && tt.plan.Retry == 0 {
				t.Errorf("%d events taken, where %d were acked and %d are unknown", got, h.Acked, h.Unknown)
			}
			again := uint64(0)
			for _, b := range sess.Brokers() {
				again += b.Reconnects
			}
			if again < 2 { // on a busy machine; else there are a dozen
				t.Errorf("%d reconnects", again)
			}
			if got := f.unread(); got > 0 {
				t.Errorf("%d connections began within a message", got)
			}
			// Of reading and of writing, reset and broken: not one for each connection.
			if len(r.Failures) > 5 {
				t.Errorf("failures %+v", r.Failures)
			}
		})
	}
}

// A server that is away for a while: what is due meanwhile waits, and its
// response time shows it. Without a schedule the gap between answers does. What
// each reset connection can cost is what the bound let fly. Nothing here depends
// on how fast this machine is: the server goes away at a message, and the run
// ends at another.
func TestAwayAndBack(t *testing.T) {
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
			sess := opened(t, specOf(t, "riemann://"+f.addr))
			var s seen
			tt.plan.BatchEvents, tt.plan.Observe = 1, s.observe
			run, err := load.New(tt.plan, sess)
			if err != nil {
				t.Fatal(err)
			}
			var came atomic.Int64
			var back atomic.Bool
			heard, started := make(chan time.Duration, 1), make(chan struct{})
			f.answers(func(int, net.Conn) ([]byte, bool) {
				<-started // the first message may come before Start returns
				if back.Load() && tt.plan.Schedule == nil {
					run.Stop(load.ByTime)
				}
				if came.Add(1) != tt.at {
					return []byte(riemann.Ack), true
				}
				f.setDeaf(true)
				time.AfterFunc(away, func() {
					heard <- run.Now()
					back.Store(true)
					f.setDeaf(false)
				})
				return nil, false
			})
			run.Start()
			close(started)
			r, err := run.Wait()
			if err != nil {
				t.Fatal(err)
			}
			h, again := r.Measurement, <-heard
			last, next := time.Duration(0), load.Never // acks around the end of the silence
			for _, o := range s.all {
				if o.Acked > 0 && o.Done < again {
					last = max(last, o.Done)
				} else if o.Acked > 0 { // which may have waited for its reader
					next = min(next, max(last, cmp.Or(o.Earliest, o.Done)))
				}
			}
			if most := uint64(f.resets() * tt.plan.MaxInFlight); h.Counts.Failed > 0 || h.Acked == 0 || h.Unknown == 0 || h.Unknown > most {
				t.Errorf("%+v, want no more than %d unknown, of %d connections", h.Counts, most, f.resets())
			}
			if tt.plan.Schedule == nil {
				if r.Stall.Longest < next-last || next == load.Never {
					t.Errorf("at most %v without an answer; none from %v to %v, and nobody listened until %v", r.Stall.Longest, last, next, again)
				}
				return
			}
			if h.Acked+h.Unknown != 600 {
				t.Errorf("%+v", h.Counts)
			}
			// The first event that was answered again was due when those before
			// it had been.
			due := time.Duration(uint64(tt.at)+h.Unknown) * time.Millisecond
			if want := again - due; h.Response.Max() < want || want < away/2 {
				t.Errorf("longest response time %v, want %v or more", h.Response.Max(), want)
			}
		})
	}
}

// A server that never comes back: the run ends, and says why. What fails
// meanwhile fails as often as a connection is tried, and not as fast as we can.
func TestGoneForGood(t *testing.T) {
	for _, tt := range []struct {
		name        string
		measurement load.Limits
		want        uint64 // events; 0: no more than a few times the bound
	}{
		{"a number of events", load.Limits{Events: 2500}, 2500},
		{"for a time", load.Limits{Time: time.Second}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			sess := opened(t, specOf(t, "riemann://"+f.addr, "request-timeout=200ms"))
			f.wait(2) // the look around, and the lane's
			f.ln.Close()
			f.resetAll()
			r := fire(t, sess, load.Plan{Measurement: tt.measurement})
			h := r.Measurement
			if h.Counts.Failed == 0 || r.Classes["refused"] != h.Counts.Failed+h.Unknown {
				t.Errorf("%+v, classes %v", h.Counts, r.Classes)
			}
			if got := h.Counts.Failed + h.Unknown; got != tt.want && (tt.want > 0 || got > 10_000) {
				t.Errorf("%d events of %+v", got, h.Counts)
			}
			if len(r.Failures) == 0 || !strings.Contains(r.Failures[len(r.Failures)-1].Text, "refused") {
				t.Errorf("failures %+v", r.Failures)
			}
			if got := strings.Join(sess.Warnings(), "\n"); !strings.Contains(got, "connecting to "+f.addr) || !strings.Contains(got, "refused") {
				t.Errorf("the report is not told why: %q", got)
			}
		})
	}
}

// An answer that does not come leaves its messages unknown, and the connection
// is another one afterwards.
func TestRequestTimeout(t *testing.T) {
	f := serve(t, nil)
	sess := opened(t, specOf(t, "riemann://"+f.addr, "request-timeout=100ms"))
	f.answers(func(n int, _ net.Conn) ([]byte, bool) {
		if n >= 3 {
			return nil, true
		}
		return []byte(riemann.Ack), true
	})
	var s seen
	r := fire(t, sess, load.Plan{Measurement: load.Limits{Events: 10}, MaxInFlight: 5, Observe: s.observe})
	if h := r.Measurement; h.Unknown != 5 || h.Acked != 5 || r.Classes["timeout"] != h.Unknown {
		t.Errorf("%+v, classes %v", h.Counts, r.Classes)
	}
	for _, o := range s.all {
		if o.First == 3 && o.Done-o.Sent < 100*time.Millisecond { // the others go with it
			t.Errorf("given up after %v", o.Done-o.Sent)
		}
	}
	if got := f.connections(); got != 3 { // the look around, and two of the lane
		t.Errorf("%d connections, want 3", got)
	}
}

// Answers that make no sense end the connection, and complete as such.
func TestSenselessAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer string
		text   string // "": the answer was right
		acked  uint64 // of one message
	}{
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", "not a frame", 0},
		{"an oversized frame", "\x7f\xff\xff\xff\x10\x01", "not a frame", 0},
		{"a length just above what is taken", "\x00\x10\x00\x01\x10\x01", "not a frame", 0},
		{"undecodable", "\x00\x00\x00\x02\x12\x7f", "", 0},
		{"an empty message", "\x00\x00\x00\x00", "without the field ok", 0},
		{"twice", riemann.Ack + riemann.Ack, "not sent", 1},
		{"an ack and half of one", riemann.Ack + riemann.Ack[:5], "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, nil)
			sess := opened(t, specOf(t, "riemann://"+f.addr, "request-timeout=5s"))
			f.answers(func(int, net.Conn) ([]byte, bool) { return []byte(tt.answer), true })
			r := fire(t, sess, load.Plan{Measurement: load.Limits{Events: 1}})
			h := r.Measurement
			if tt.acked == 0 && (h.Unknown != 1 || r.Classes["protocol"] != 1 || !strings.Contains(r.Failures[0].Text, tt.text)) {
				t.Errorf("%+v, failures %+v", h.Counts, r.Failures)
			}
			if tt.acked > 0 && h.Acked != tt.acked && h.Unknown != tt.acked {
				t.Errorf("%+v, failures %+v", h.Counts, r.Failures)
			}
		})
	}
}

// A connection whose other side is shut down, or over, is made anew; how many
// of its messages were taken is not known.
func TestHalfClose(t *testing.T) {
	f := serve(t, nil)
	sess := opened(t, specOf(t, "riemann://"+f.addr, "reconnect-backoff=1ms"))
	f.answers(func(n int, nc net.Conn) ([]byte, bool) {
		if n == 4 {
			nc.(*net.TCPConn).CloseWrite()
			return nil, true // and it reads on
		}
		return []byte(riemann.Ack), true
	})
	r := fire(t, sess, load.Plan{Measurement: load.Limits{Events: 20}, MaxInFlight: 10})
	h := r.Measurement
	if h.Unknown == 0 || h.Acked == 0 || h.Acked+h.Unknown != 20 || r.Classes["refused"] != h.Unknown {
		t.Errorf("%+v, classes %v", h.Counts, r.Classes)
	}
	if !strings.Contains(r.Failures[0].Text, "closed the connection") {
		t.Errorf("failures %+v", r.Failures)
	}
}

// While a server does not read, the bound holds, what waits behind the full
// socket is the system's doing, and response times show it.
func TestServerThatStopsReading(t *testing.T) {
	for _, scheme := range []string{"riemann", "riemann+tls"} {
		t.Run(scheme, func(t *testing.T) {
			certs := mint(t)
			f := serve(t, map[string]*tls.Config{"riemann+tls": certs.server}[scheme])
			given := []string{"send-buffer=16KiB", "reconnect-backoff=1ms"}
			if scheme != "riemann" {
				given = append(given, "tls-ca="+certs.ca, "tls-cert="+certs.cert, "tls-key="+certs.key)
			}
			spec := specOf(t, scheme+"://"+f.addr, given...)
			spec.BatchEvents = 200
			sess := opened(t, spec)
			f.pause(true)
			time.AfterFunc(300*time.Millisecond, func() { f.pause(false) })
			var s seen
			r := fire(t, sess, load.Plan{
				Schedule: load.Constant(400_000), BatchEvents: 200, MaxInFlight: 2000,
				Measurement: load.Limits{Time: 500 * time.Millisecond}, Observe: s.observe,
			})
			if h := r.Measurement; h.Acked != 200_000 || h.Response.Max() < 200*time.Millisecond {
				t.Errorf("%+v, longest response time %v", h.Counts, h.Response.Max())
			}
			raised := 0
			for _, o := range s.all {
				if o.Free > o.Sent {
					t.Fatalf("free at %v, after it was sent at %v", o.Free, o.Sent)
				}
				if o.Free > o.Ready+50*time.Millisecond {
					raised++
				}
			}
			if raised == 0 {
				t.Error("no message waited behind the full socket")
			}
		})
	}
}

// What the server has against a message is told in its words, and the acks
// before and after it are matched to theirs.
func TestRefusals(t *testing.T) {
	f := serve(t, nil)
	sess := opened(t, specOf(t, "riemann://"+f.addr))
	f.answers(func(n int, _ net.Conn) ([]byte, bool) {
		switch n % 10 {
		case 3:
			return riemann.AppendFramed(nil, &riemann.Msg{HasOK: true, Error: "no three"}), true
		case 7:
			return riemann.AppendFramed(nil, &riemann.Msg{HasOK: true}), true
		case 8: // an ack that is longer than it need be
			return riemann.AppendFramed(nil, &riemann.Msg{HasOK: true, OK: true, Error: ""}), true
		}
		return []byte(riemann.Ack), true
	})
	for _, observe := range []func([]load.Outcome){nil, func(out []load.Outcome) {
		for i := range out {
			o := &out[i]
			if n := o.First % 10; (o.Failed > 0) != (n == 3 || n == 7) {
				t.Errorf("event %d: %d failed", o.First, o.Failed)
			}
		}
	}} {
		r := fire(t, sess, load.Plan{Measurement: load.Limits{Events: 1000}, Observe: observe})
		if h := r.Measurement; h.Acked != 800 || h.Counts.Failed != 200 || r.Classes["rejected"] != 200 {
			t.Errorf("%+v, classes %v", h.Counts, r.Classes)
		}
		texts := map[string]uint64{}
		for _, x := range r.Failures {
			texts[x.Text] = x.Events
		}
		if texts["no three"] != 100 || texts["the server refused it without a reason"] != 100 {
			t.Errorf("failures %+v", r.Failures)
		}
		sess = opened(t, specOf(t, "riemann://"+f.addr))
	}
}

// A run that is broken off completes what is on its way: written, unknown; the
// rest, failed.
func TestAbortBehindAFullSocket(t *testing.T) {
	f := serve(t, nil)
	spec := specOf(t, "riemann://"+f.addr, "send-buffer=16KiB")
	spec.BatchEvents = 100
	sess := opened(t, spec)
	f.pause(true)
	run, err := load.New(load.Plan{BatchEvents: 100, MaxInFlight: 1000}, sess)
	if err != nil {
		t.Fatal(err)
	}
	run.Start()
	time.AfterFunc(200*time.Millisecond, run.Abort)
	r, err := run.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Measurement; h.Unknown == 0 || h.Counts.Failed == 0 || r.Classes["canceled"] != h.Unknown+h.Counts.Failed {
		t.Errorf("%+v, classes %v", h.Counts, r.Classes)
	}
}

// Where nothing is in the way, lateness is the generator's: a message was free
// to go when it was ready.
func TestLagIsTheGenerators(t *testing.T) {
	f := serve(t, nil)
	sess := opened(t, specOf(t, "riemann://"+f.addr))
	var s seen
	fire(t, sess, load.Plan{Schedule: load.Constant(1000), Measurement: load.Limits{Time: 200 * time.Millisecond}, Observe: s.observe})
	for _, o := range s.all {
		if o.Free != o.Ready || o.Ready != o.DueFirst {
			t.Fatalf("due at %v, ready at %v, free at %v", o.DueFirst, o.Ready, o.Free)
		}
	}
}
