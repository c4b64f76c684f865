// Package protocoltest is the suite that every kind of target passes: what a
// driver of a protocol owes the engine, tried against a system of its own. A
// kind's test starts a stand-in, fills in a System, and calls Run.
//
// Its invariant: it looks only at what any target has, so a protocol from
// outside passes the same suite.
package protocoltest

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"carronade/load"
	"carronade/protocol"
)

// A System is a running stand-in to fire at. The functions that are nil are
// not tried.
type System struct {
	Kind    protocol.Kind
	URL     string
	Op      string            // "": the kind's first
	Options map[string]string // beyond the kind's defaults

	// Events is how many events the system has taken since it started. It is
	// asked until it is what was acked, for a minute at most.
	Events func() uint64
	// Slow makes every answer take about this time; 0 ends that.
	Slow func(d time.Duration)
	// Refuse makes the system refuse every event; false ends that. Want is
	// the class that such failures must have.
	Refuse     func(on bool)
	RefuseWant load.Class
	// Few makes the tests send a tenth of the events, for options with which each event
	// costs much, such as a connection of its own.
	Few bool
}

// events is how many events a test sends that sends n usually.
func (s *System) events(n uint64) uint64 {
	if s.Few {
		return n / 10
	}
	return n
}

// Run tries a target.
func Run(t *testing.T, s System) {
	t.Run("every event arrives once", func(t *testing.T) {
		n := s.events(5000)
		r := s.fire(t, load.Plan{Measurement: load.Limits{Events: n}})
		if r.Measurement.Sent != n || r.Measurement.Acked+r.Measurement.Unknown != n {
			t.Errorf("sent %d, acked %d, failed %d, unknown %d; want %d acked", r.Measurement.Sent, r.Measurement.Acked, r.Measurement.Counts.Failed, r.Measurement.Unknown, n)
		}
	})
	t.Run("what was acked is there", func(t *testing.T) {
		if s.Events == nil {
			t.Skip("the system does not count")
		}
		before := s.Events()
		r := s.fire(t, load.Plan{BatchEvents: 7, Measurement: load.Limits{Events: s.events(1000)}})
		s.reaches(t, before+r.Measurement.Sent)
	})
	t.Run("a schedule is kept to the event", func(t *testing.T) {
		r := s.fire(t, load.Plan{Schedule: load.Constant(2000), Linger: 2 * time.Millisecond, Measurement: load.Limits{Time: 500 * time.Millisecond}})
		if r.Measurement.Offered != 1000 {
			t.Errorf("offered %d, want 1000", r.Measurement.Offered)
		}
	})
	t.Run("bytes are the events'", func(t *testing.T) {
		one := s.fire(t, load.Plan{BatchEvents: 1, Measurement: load.Limits{Events: 100}})
		many := s.fire(t, load.Plan{BatchEvents: 50, Measurement: load.Limits{Events: 100}})
		if one.Measurement.Bytes == 0 || one.Measurement.Bytes != many.Measurement.Bytes {
			t.Errorf("100 events are %d bytes one by one, %d bytes in batches of 50", one.Measurement.Bytes, many.Measurement.Bytes)
		}
	})
	t.Run("a closed loop fires when answered", func(t *testing.T) {
		r := s.fire(t, load.Plan{Concurrency: 3, BatchEvents: 1, Measurement: load.Limits{Events: 300}})
		if r.Measurement.Sent != 300 || r.Measurement.InFlight > 3.01 {
			t.Errorf("sent %d with %.2f in flight, want 300 with 3 at most", r.Measurement.Sent, r.Measurement.InFlight)
		}
	})
	t.Run("several clients", func(t *testing.T) {
		if !slices.ContainsFunc(s.Kind.Options(), func(o protocol.Option) bool { return o.Name == "clients" }) {
			t.Skip("the kind has one client")
		}
		many := s
		many.Options = maps.Clone(s.Options)
		if many.Options == nil {
			many.Options = map[string]string{}
		}
		many.Options["clients"] = "3"
		for _, p := range []load.Plan{
			{Measurement: load.Limits{Events: s.events(3000)}},
			{Concurrency: 4, BatchEvents: 1, Measurement: load.Limits{Events: 300}},
			{Schedule: load.Constant(2000), Measurement: load.Limits{Time: 200 * time.Millisecond}},
		} {
			p.Threads = 2
			r := many.fire(t, p)
			want := p.Measurement.Events
			if p.Schedule != nil {
				want = 400
			}
			if r.Measurement.Sent != want || r.Measurement.Acked+r.Measurement.Unknown != want {
				t.Errorf("%s: sent %d, acked %d, failed %d, unknown %d; want %d acked", r.Mode, r.Measurement.Sent, r.Measurement.Acked, r.Measurement.Counts.Failed, r.Measurement.Unknown, want)
			}
		}
	})
	t.Run("a stop drains", func(t *testing.T) {
		r := s.fireUntil(t, 20, load.Plan{Schedule: load.Constant(1000), BatchEvents: 1})
		if r.Stopped != load.Interrupted || r.Measurement.Sent == 0 {
			t.Errorf("stopped by %q after %d events", r.Stopped, r.Measurement.Sent)
		}
	})
	t.Run("the bound is felt", func(t *testing.T) {
		if s.Slow == nil {
			t.Skip("the system cannot be slowed")
		}
		s.Slow(20 * time.Millisecond)
		defer s.Slow(0)
		r := s.fire(t, load.Plan{Schedule: load.Constant(500), BatchEvents: 1, MaxInFlight: 2, Measurement: load.Limits{Time: 100 * time.Millisecond}, Drain: 10 * time.Second})
		// A client that makes batches by itself has a bound of its own, and what waits
		// for it waits inside the client: that is its service time.
		waited := r.Measurement.Queueing.Max()
		if s.selfBatching(t) {
			waited = r.Measurement.Service.Max()
		}
		if waited < 20*time.Millisecond {
			t.Errorf("50 events at 20 ms each, two at a time, waited for %v at most", waited)
		}
	})
	t.Run("a refusal has its class", func(t *testing.T) {
		if s.Refuse == nil {
			t.Skip("the system cannot be made to refuse")
		}
		s.Refuse(true)
		defer s.Refuse(false)
		r := s.fire(t, load.Plan{BatchEvents: 1, Measurement: load.Limits{Events: 20}})
		if r.Measurement.Counts.Failed != 20 || r.Classes[s.RefuseWant.String()] != 20 {
			t.Errorf("%d failed, classes %v; want 20 %s", r.Measurement.Counts.Failed, r.Classes, s.RefuseWant)
		}
		if len(r.Failures) == 0 || r.Failures[0].Text == "" {
			t.Error("the failures have no text")
		}
	})
	t.Run("an abort completes everything", func(t *testing.T) {
		if s.Slow != nil {
			s.Slow(time.Second)
			defer s.Slow(0)
		}
		sess := s.open(t)
		seen := &once{Target: sess.Target(), completed: map[batchKey]int{}}
		r, err := load.New(load.Plan{Schedule: load.Constant(1000), BatchEvents: 1, MaxInFlight: 50}, seen)
		if err != nil {
			t.Fatal(err)
		}
		r.Start()
		time.AfterFunc(50*time.Millisecond, r.Abort)
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
		if err := sess.Close(); err != nil {
			t.Error(err)
		}
		seen.check(t)
	})
}

func (s System) reaches(t *testing.T, want uint64) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.Events() != want {
		if time.Now().After(deadline) {
			t.Fatalf("the system has %d events, want %d", s.Events(), want)
		}
		<-tick.C
	}
}

// selfBatching reports whether the target makes batches by itself.
func (s System) selfBatching(t *testing.T) bool {
	t.Helper()
	sess := s.open(t)
	ok := sess.Target().Capabilities().OwnBatching != nil
	if err := sess.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return ok
}

func (s System) open(t *testing.T) protocol.Session {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	values, given := protocol.Values{}, map[string]bool{}
	for _, o := range s.Kind.Options() {
		if o.Default != "" {
			values[o.Name] = []string{o.Default}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		values[name], given[name] = []string{s.Options[name]}, true
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sess, err := s.Kind.Open(ctx, protocol.Spec{
		URL: u, Op: cmp.Or(s.Op, s.Kind.Ops()[0]), Options: values, Given: given, Seed: 1, RunID: 1, Clients: max(1, values.Int("clients")), Logf: t.Logf,
	})
	if err != nil {
		t.Fatalf("open %s: %v", s.URL, err)
	}
	return sess
}

func (s System) fire(t *testing.T, p load.Plan) *load.Result {
	t.Helper()
	return s.fireUntil(t, 0, p)
}

// fireUntil runs a plan in a session of its own, stops it once that many batches
// are completed (0: never), and checks that every batch was completed once.
func (s System) fireUntil(t *testing.T, stop int, p load.Plan) *load.Result {
	t.Helper()
	sess := s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := &once{Target: sess.Target(), completed: map[batchKey]int{}, stopAt: stop, stop: cancel}
	r, err := load.Fire(ctx, p, seen)
	if err != nil {
		t.Fatal(err)
	}
	if err := sess.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	seen.check(t)
	return r
}

// once counts how often each batch was taken and completed.
type once struct {
	load.Target
	mu        sync.Mutex
	completed map[batchKey]int
	stopAt    int // stop is called once this number is completed; 0: never
	stop      func()
}

type batchKey struct {
	lane    int32
	seq     uint64
	attempt int32
}

// Start implements load.Target.
func (o *once) Start(sink load.Sink) { o.Target.Start(&onceSink{sink, o}) }

type onceSink struct {
	load.Sink
	o *once
}

// Complete implements load.Sink.
func (s *onceSink) Complete(out []load.Outcome) {
	s.o.mu.Lock()
	for i := range out {
		for k := range uint64(max(out[i].Batches, 1)) { // a batch group is many batches
			s.o.completed[batchKey{out[i].Lane, out[i].Seq + k, out[i].Attempt}]++
		}
	}
	enough := s.o.stopAt > 0 && len(s.o.completed) >= s.o.stopAt
	s.o.mu.Unlock()
	if enough {
		s.o.stop()
	}
	s.Sink.Complete(out)
}

func (o *once) check(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, n := range o.completed {
		if n != 1 {
			t.Errorf("batch %d of lane %d was completed %d times", k.seq, k.lane, n)
			return
		}
	}
}
