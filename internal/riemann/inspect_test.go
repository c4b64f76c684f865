package riemann

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"carronade/internal/conn"
	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/standin/standintest"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{Interval: 50 * time.Millisecond})
	certs := newCertificates(t)
	secured := serve(t, certs.server)
	ours := []string{"tls-ca=" + certs.ca, "tls-cert=" + certs.cert, "tls-key=" + certs.key}
	inspects := protocoltest.Inspector(t, Kind{})
	inspects("an address", specOf(t, "riemann://"+srv.Addr()), "address", protocol.LevelOK, "accepts connections")
	inspects("a stand-in", specOf(t, "riemann://"+srv.Addr()), "server", protocol.LevelOK, "stand-in")
	inspects("an index", specOf(t, "riemann://"+srv.Addr()), "index", protocol.LevelOK, "answers queries")
	inspects("the clock", specOf(t, "riemann://"+srv.Addr()), "clock", protocol.LevelOK, "on this machine")
	inspects("the version", specOf(t, "riemann://"+srv.Addr()), "version", protocol.LevelUnknown, "no field")
	inspects("other ports", specOf(t, "riemann://"+srv.Addr()), "other ports", protocol.LevelOK, "127.0.0.1")
	inspects("one of two", specOf(t, "riemann://"+srv.Addr()+","+testkit.ClosedPort), "address "+testkit.ClosedPort, protocol.LevelError, "does not answer as a Riemann server")
	inspects("UDP", specOf(t, "riemann+udp://"+srv.AddrOf("udp")), "address", protocol.LevelOK, "nothing refuses datagrams")
	inspects("UDP without queries", specOf(t, "riemann+udp://"+silentSocket(t)), "index", protocol.LevelNote, "does not answer queries")
	inspects("UDP with queries", specOf(t, "riemann+udp://"+srv.AddrOf("udp"), "query-address="+srv.Addr()), "index", protocol.LevelOK, "answers queries")
	inspects("TLS", specOf(t, "riemann+tls://"+secured.addr, ours...), "certificate", protocol.LevelWarning, "TLS 1.3")
	for _, tt := range []struct{ name, url, want string }{
		{"nothing listens", "riemann://" + testkit.ClosedPort, "refused"},
		{"TLS", "riemann://" + secured.addr, "speaks TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := Kind{}.Inspect(t.Context(), specOf(t, tt.url))
			protocoltest.Explained(t, err, tt.want, "")
			assert.Equal(t, len(in.Findings), 0, "findings")
		})
	}
}

// A server that never answers ends with the deadline.
func TestInspectBlackHole(t *testing.T) {
	t.Parallel()
	silent := testkit.Listen(t, func(nc *net.TCPConn) { io.Copy(io.Discard, nc) })
	_, err := protocoltest.Inspect(t, Kind{}, specOf(t, "riemann://"+silent), 200*time.Millisecond)
	assert.True(t, err != nil, "a server that does not answer is fine")
}

func TestClockFinding(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, addr string
		newest     time.Time
		level      protocol.Level
		want       string
	}{
		{"the same machine", "127.0.0.1:5555", time.Time{}, protocol.LevelOK, "runs on this machine"},
		{"nothing", "192.0.2.1:5555", time.Time{}, protocol.LevelUnknown, "no event of its own"},
		{"equal", "192.0.2.1:5555", now.Add(-3 * time.Second), protocol.LevelOK, "less than 12 s: its newest event about itself is 3 s old"},
		{"ahead", "192.0.2.1:5555", now.Add(time.Minute), protocol.LevelWarning, "at least 1m00s ahead"},
		{"hardly ahead", "192.0.2.1:5555", now.Add(time.Second), protocol.LevelOK, "less than 12 s"},
		{"old", "192.0.2.1:5555", now.Add(-time.Minute), protocol.LevelUnknown, "1m00s old"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			protocoltest.Found(t, clockFinding(tt.addr, tt.newest, now, now.Add(time.Millisecond)), tt.level, tt.want)
		})
	}
}

// A datagram is a connection, too: none goes to an address that this process may not connect to.
func TestProbeUDPIsRestricted(t *testing.T) {
	t.Parallel()
	addr := silentSocket(t)
	conn.Restrict(func(a string) error { // others may run meanwhile
		if a == addr {
			return conn.NotAllowed(errors.New("not there"), "ask")
		}
		return nil
	})
	defer conn.Restrict(nil)
	_, err := probeUDP(t.Context(), nil, addr)
	assert.True(t, conn.IsNotAllowed(err), "got %v, want a refusal", err)
}

// What does not refuse datagrams is open on this machine alone. Elsewhere a firewall may drop them.
func TestUDPCannotTell(t *testing.T) {
	t.Parallel()
	refused := &protocol.Error{Doing: "send a datagram to x", Err: errors.New("port unreachable")}
	for _, tt := range []struct {
		name  string
		err   error
		local bool
		want  portState
	}{
		{"silent here", nil, true, portOpen},
		{"silent elsewhere", nil, false, portUnknown},
		{"refused here", refused, true, portClosed},
		{"refused elsewhere", refused, false, portClosed},
		{"not sent", errors.New("no route"), false, portUnknown},
		{"not allowed", conn.NotAllowed(errors.New("not there"), ""), true, portUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, udpState(tt.err, tt.local), tt.want)
		})
	}
	protocoltest.Found(t, udpFinding("192.0.2.1:5555", false), protocol.LevelUnknown, "is not known: "+whyUDP)
}

func TestPortsFinding(t *testing.T) {
	t.Parallel()
	udp, tls, ws := []string{"riemann+udp (5555)"}, []string{"riemann+tls (5554)"}, []string{"riemann+ws (5556)"}
	for _, tt := range []struct {
		name  string
		of    [portUnknown + 1][]string
		level protocol.Level
		want  string
	}{
		{"nothing", [portUnknown + 1][]string{portClosed: append(udp, tls...)}, protocol.LevelOK, "no other port of Riemann is open on h"},
		{"some", [portUnknown + 1][]string{portOpen: ws, portClosed: tls}, protocol.LevelOK, "open on h: riemann+ws (5556); closed: riemann+tls (5554)"},
		{"a firewall", [portUnknown + 1][]string{portSilent: tls, portUnknown: udp}, protocol.LevelUnknown, "no other port of Riemann is known to be open on h; no answer: riemann+tls (5554); cannot tell: riemann+udp (5555), since " + whyUDP},
		{"a firewall for UDP", [portUnknown + 1][]string{portOpen: tls, portUnknown: udp}, protocol.LevelOK, "open on h: riemann+tls (5554); cannot tell: riemann+udp (5555), since " + whyUDP},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if f := portsFinding("h", tt.of); f.Level != tt.level || f.Found != tt.want {
				t.Errorf("got %v: %s, want %v: %s", f.Level, f.Found, tt.level, tt.want)
			}
		})
	}
}

// A connection takes little memory: buffers are borrowed while they are in use. The pools
// of all connections together have a bound of their own.
func TestConnectionMemory(t *testing.T) {
	testkit.Need(t, "some seconds")
	cert, key := testkit.NewAuthority("test").Files(t)
	t.Run("TCP", func(t *testing.T) {
		s := standintest.Spawn(t, "riemann")
		protocoltest.System{Kind: Kind{}, URL: "riemann://" + s.Addr(), Options: map[string]string{"pool": "1KiB"}}.Memory(t, 300, 1300, 16<<10)
	})
	t.Run("TLS", func(t *testing.T) {
		s := standintest.Spawn(t, "riemann", "--tls-listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
		protocoltest.System{Kind: Kind{}, URL: "riemann+tls://" + s.AddrOf("tls"), Options: map[string]string{"tls-ca": cert, "tls-cert": cert, "tls-key": key, "pool": "1KiB"}}.Memory(t, 50, 250, 48<<10)
	})
}

// A firstOutcome is a sink for one outcome.
type firstOutcome struct {
	start time.Time
	came  chan load.Outcome
}

func (s *firstOutcome) Now() time.Duration          { return time.Since(s.start) }
func (s *firstOutcome) Complete(out []load.Outcome) { s.came <- out[0] }
func (*firstOutcome) Ready(int, time.Duration)      {}

// The time for which a message waits for a connection is the system's, and not the generator's lateness:
// the message is free when it can be written.
func TestWaitingIsTheSystems(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "TCP", true: "TLS"}[secure], func(t *testing.T) {
			t.Parallel()
			var conf *tls.Config
			url, given := "riemann://", []string(nil)
			if secure {
				c := newCertificates(t)
				conf, url, given = c.server, "riemann+tls://", []string{"tls-ca=" + c.ca, "tls-cert=" + c.cert, "tls-key=" + c.key}
			}
			f := serve(t, conf)
			s := openSession(t, specOf(t, url+f.addr, given...))
			sink := &firstOutcome{start: time.Now(), came: make(chan load.Outcome, 1)}
			s.Start(sink)
			l := s.lanes[0].(*lane)
			assert.Must(t, l.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}) == 1,
				"not taken")
			f.setResetting(true)
			testkit.Until(t, "the connection is lost", func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.link == nil
			})
			l.Flush()
			back := sink.Now()
			f.setResetting(false)
			o := <-sink.came
			assert.Equal(t, o.Acked, 1, "acked, with the error %q", o.Text)
			assert.True(t, o.Free >= back && o.Free <= o.Sent, "it could be written from %v on and was sent at %v, but counts as free at %v", back, o.Sent, o.Free)
		})
	}
}
