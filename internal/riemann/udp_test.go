package riemann

import (
	"net"
	"strings"
	"testing"
	"time"

	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func startStandin(t testing.TB, o standinriemann.Options) *standinriemann.Server {
	t.Helper()
	o.Listen, o.UDP, o.Web = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	s := assert.Value(standinriemann.Start(o))(t)
	t.Cleanup(func() { assert.OK(t, s.Close()) })
	return s
}

// startOnOnePort starts a stand-in that serves TCP and UDP on one port, as Riemann does.
func startOnOnePort(t testing.TB, o standinriemann.Options) *standinriemann.Server {
	t.Helper()
	for tries := 0; ; tries++ {
		free := assert.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
		o.Listen = free.LocalAddr().String()
		o.UDP = o.Listen
		free.Close()
		s, err := standinriemann.Start(o)
		if err == nil {
			t.Cleanup(func() { assert.OK(t, s.Close()) })
			return s
		}
		assert.Must(t, tries != 20, "%v", err) // other tests may take the port first
	}
}

func TestUDPSuite(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{})
	protocoltest.Run(t, protocoltest.System{
		Kind: Kind{}, URL: "riemann+udp://" + srv.AddrOf("udp"),
		Events: func() uint64 { processed(t, srv); return srv.Counts().Events },
	})
}

// processed waits until a server has processed all datagrams that were sent so far:
// it counts a later one, which is not Riemann's, as lost.
func processed(t testing.TB, srv *standinriemann.Server) {
	t.Helper()
	nc := assert.Value(net.Dial("udp", srv.AddrOf("udp")))(t)
	defer nc.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	lost := srv.Counts().Lost
	for n := 0; srv.Counts().Lost == lost; n++ {
		assert.Must(t, n != 20*200, "the server does not read its datagrams")
		if n%200 == 0 { // one is enough, unless the socket's buffer is full
			assert.Value(nc.Write([]byte("\xff")))(t)
		}
		<-tick.C
	}
}

func runChecked(t testing.TB, s *session, p load.Plan) *load.Result {
	t.Helper()
	p.Unanswered = s.Capabilities().Unanswered
	r := assert.Value(load.Fire(t.Context(), p, s.Target()))(t)
	c := r.Measurement.Counts
	assert.Equal(t, c.Sent, c.Acked+c.Failed+c.Unknown, "events sent, of %d acked, %d failed, %d unknown", c.Acked, c.Failed, c.Unknown)
	return r
}

// A sent event is unknown: nothing acknowledges it.
func TestUDPIsNeverAcked(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{})
	for name, p := range map[string]load.Plan{
		"batch groups": {BatchEvents: 3, Measurement: load.Limits{Events: 9000}, MaxInFlight: 1000},
		"by a rate":    {BatchEvents: 1, Schedule: load.Constant(5000), Measurement: load.Limits{Time: 200 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSession(t, specOf(t, "riemann+udp://"+srv.AddrOf("udp")))
			assert.True(t, s.Capabilities().Unanswered, "UDP reports that it is answered")
			r := runChecked(t, s, p)
			assert.True(t, r.Measurement.Unknown == r.Measurement.Sent && r.Measurement.Sent > 0 && r.Measurement.Acked == 0,
				"sent %d: %d unknown, %d acked; want all unknown", r.Measurement.Sent, r.Measurement.Unknown, r.Measurement.Acked)
			assert.Equal(t, r.Measurement.Service.Count(), 0, "service times without an answer")
			w, _ := s.Wire()
			assert.True(t, w > r.Measurement.Bytes, "%d bytes on the wire for events of %d", w, r.Measurement.Bytes)
			assert.Equal(t, s.Brokers()[0].Events, r.Measurement.Sent, "the connection carried events")
		})
	}
}

func TestUDPClosedPort(t *testing.T) {
	t.Parallel()
	pc := assert.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	addr := pc.LocalAddr().String()
	s := openSession(t, specOf(t, "riemann+udp://"+addr))
	pc.Close()
	// Before the run it is an error ...
	_, err := Kind{}.Open(t.Context(), specOf(t, "riemann+udp://"+addr))
	protocoltest.Explained(t, err, "nothing listens there", "")
	// ... and during it the events that are not sent have failed.
	r := runChecked(t, s, load.Plan{BatchEvents: 1, Schedule: load.Constant(2000), Measurement: load.Limits{Time: 200 * time.Millisecond}})
	assert.True(t, r.Measurement.Failed > 0 && r.Classes[load.Refused.String()] == r.Measurement.Failed,
		"of %d events %d failed, classes %v; want refused ones", r.Measurement.Sent, r.Measurement.Failed, r.Classes)
	assert.True(t, len(r.Failures) > 0 && strings.Contains(r.Failures[0].Text, "port unreachable"),
		"failures: %+v, want port unreachable", r.Failures)
	w := strings.Join(s.Warnings(), "\n")
	assert.True(t, strings.Contains(w, addr) && strings.Contains(w, "lost"), "warnings: %q, want that datagrams were lost", w)
	// Events to an open port do not fail.
	r = runChecked(t, openSession(t, specOf(t, "riemann+udp://"+silentSocket(t))), load.Plan{BatchEvents: 1, Measurement: load.Limits{Events: 100}})
	assert.Equal(t, r.Measurement.Failed, 0, "events that failed at an open port")
}

// A lane that was started and never used ends with its session.
func TestUDPClosesUnused(t *testing.T) {
	t.Parallel()
	s := assert.Value(Kind{}.Open(t.Context(), specOf(t, "riemann+udp://"+silentSocket(t))))(t)
	sess := s.(*session)
	sess.Start(&recordingSink{})
	assert.OK(t, s.Close())
	testkit.Wait(t, "the end of its goroutine", sess.lanes[0].(*udpLane).flusherDone)
}

// silentSocket opens a UDP socket that is never read, and returns its address.
func silentSocket(t testing.TB) string {
	t.Helper()
	pc := assert.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { pc.Close() })
	return pc.LocalAddr().String()
}

func TestUDPClosedPortInBatchGroups(t *testing.T) {
	t.Parallel()
	pc := assert.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	s := openSession(t, specOf(t, "riemann+udp://"+pc.LocalAddr().String()))
	pc.Close()
	r := runChecked(t, s, load.Plan{BatchEvents: 1, MaxInFlight: 1000, Measurement: load.Limits{Events: 5000}})
	// On the loopback interface each datagram that is sent makes the next one fail.
	assert.True(t, r.Measurement.Failed >= 1000 && r.Measurement.Unknown >= 1000,
		"%d failed and %d unknown of 5000, want about half of each", r.Measurement.Failed, r.Measurement.Unknown)
}

func TestUDPDatagramsAreBounded(t *testing.T) {
	t.Parallel()
	addr := silentSocket(t)
	for _, tt := range []struct {
		name, want, hint string
		events           int
		given            []string
	}{
		{name: "too many events", events: 500, want: "at most", hint: "--batch-events"},
		{name: "one too large", events: 1, given: []string{"max-datagram=64"}, want: "at most", hint: "--description"},
		{name: "beyond UDP", events: 1, given: []string{"max-datagram=70000"}, want: "65507", hint: "smaller"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := specOf(t, "riemann+udp://"+addr, tt.given...)
			spec.BatchEvents = tt.events
			_, err := Kind{}.Open(t.Context(), spec)
			protocoltest.Explained(t, err, tt.want, tt.hint)
		})
	}
	spec := specOf(t, "riemann+udp://"+addr)
	l := openSession(t, spec).lanes[0].(*udpLane)
	b, _ := l.p.datagram(nil, 0, l.Room(0, 0), time.Now())
	if len(b) > 16384 || len(b) < 16384*3/4 {
		t.Errorf("the %d events of Room are %d bytes; want at most 16384, and not much less", l.Room(0, 0), len(b))
	}
}

// Batches that are not written when the lane is closed complete as canceled.
func TestUDPCloseCompletesUnwritten(t *testing.T) {
	t.Parallel()
	s := openSession(t, specOf(t, "riemann+udp://"+silentSocket(t)))
	l := s.lanes[0].(*udpLane)
	sink := &recordingSink{}
	l.start(sink)
	batches := []load.Batch{{Events: 1}, {Seq: 1, First: 1, Events: 4, Batches: 2}}
	n := l.Fire(batches)
	assert.Must(t, n == 2, "took %d of 2", n)
	if batches[1].Bytes == 0 || batches[1].Bytes <= batches[0].Bytes {
		t.Errorf("bytes %d and %d", batches[0].Bytes, batches[1].Bytes)
	}
	assert.OK(t, l.Close())
	events := int32(0)
	for _, o := range sink.got {
		events += o.Failed
		assert.True(t, o.Class == load.Canceled && o.Sent < 0, "outcome %+v, want a canceled one", o)
	}
	assert.Equal(t, events, 5, "events completed")
	assert.Equal(t, l.Fire(batches[:1]), 0, "batches that a closed lane takes")
}

// A recordingSink keeps the outcomes.
type recordingSink struct {
	got   []load.Outcome
	ready int
}

func (s *recordingSink) Now() time.Duration           { return time.Second }
func (s *recordingSink) Complete(out []load.Outcome)  { s.got = append(s.got, out...) }
func (s *recordingSink) Ready(_ int, _ time.Duration) { s.ready++ }

// The flusher waits for a full socket, and then calls Ready.
func TestUDPFullSocket(t *testing.T) {
	t.Parallel()
	s := openSession(t, specOf(t, "riemann+udp://"+silentSocket(t)))
	l := s.lanes[0].(*udpLane)
	sink := &recordingSink{}
	l.start(sink)
	l.mu.Lock()
	l.busy = true // as if the socket were full
	batch := load.Batch{Events: 1}
	l.addBatch(&batch, time.Now())
	l.mu.Unlock()
	assert.Equal(t, l.Fire([]load.Batch{{Seq: 1, First: 1, Events: 1}}), 0, "batches that a lane with a full socket takes")
	l.work <- struct{}{}
	testkit.Until(t, "the lane calls Ready", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return sink.ready == 1
	})
	assert.OK(t, l.Close())
	assert.True(t, len(sink.got) == 1 && sink.got[0].Unknown == 1 && sink.got[0].Free == time.Second,
		"completed %+v, want one unknown, free when the socket accepted it", sink.got)
}

// The events of a datagram are those of the shape.
func TestUDPSendsTheShapesEvents(t *testing.T) {
	t.Parallel()
	pc := assert.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	defer pc.Close()
	s := openSession(t, specOf(t, "riemann+udp://"+pc.LocalAddr().String()))
	runChecked(t, s, load.Plan{BatchEvents: 5, Measurement: load.Limits{Events: 20}})
	buf := make([]byte, 1<<16)
	assert.OK(t, pc.SetReadDeadline(time.Now().Add(time.Minute)))
	index := uint64(0)
	for index < 20 {
		n, _, err := pc.ReadFrom(buf)
		assert.OK(t, err)
		m := assert.Value(wire.DecodeMsg(buf[:n]))(t)
		for i := range m.Events { // the probe's has none
			want := s.cfg.shape.event(0, index)
			assert.True(t, m.Events[i].Service == want.Service && m.Events[i].Metric == want.Metric,
				"event %d: %+v, want %+v", index, m.Events[i], want)
			index++
		}
	}
}
