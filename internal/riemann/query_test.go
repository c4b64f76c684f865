package riemann

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"carronade/internal/conn"
	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/internal/standin/standintest"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func standinWith(t testing.TB, o standinriemann.Options, events ...wire.Event) *standinriemann.Server {
	t.Helper()
	srv := startStandin(t, o)
	put(t, srv.Addr(), events...)
	return srv
}

// A report says that its server was a stand-in, and whether it discarded events.
// Only a query that names the event that says so finds it.
func TestStandinFacts(t *testing.T) {
	t.Parallel()
	for _, discard := range []bool{false, true} {
		srv := startStandin(t, standinriemann.Options{Discard: discard})
		f := openSession(t, specOf(t, "riemann://"+srv.Addr())).Facts()
		_, discards := f["discards"]
		assert.True(t, f["standin"] == true && discards == discard, "discarding %t: the facts are %v", discard, f)
		got, err := ask(t, "riemann://"+srv.Addr(), nil, "true")
		for _, e := range got {
			assert.True(t, e.Service != standinService, "discarding %t: every query finds %+v", discard, e)
		}
		assert.True(t, err == nil, "%v", err)
	}
}

func put(t testing.TB, addr string, events ...wire.Event) {
	t.Helper()
	nc := assert.Value(net.Dial("tcp", addr))(t)
	defer nc.Close()
	assert.Value(nc.Write(wire.AppendFramed(nil, &wire.Msg{Events: events})))(t)
	var ack [len(wire.Ack)]byte
	_, err := nc.Read(ack[:])
	assert.Must(t, err == nil && string(ack[:]) == wire.Ack, "the server answers % x (%v)", ack, err)
}

func ask(t testing.TB, text string, v protocol.Values, query string) ([]Event, error) {
	t.Helper()
	u := assert.Value(url.Parse(text))(t)
	ctx := testkit.Minute(t)
	return Query(ctx, u, v, query)
}

func TestQuery(t *testing.T) {
	t.Parallel()
	now := time.Now().Unix()
	srv := standinWith(t, standinriemann.Options{},
		wire.Event{
			Host: "a", Service: "x", State: "ok", Description: "words", Tags: []string{"one", "two"}, TTL: 30, HasTTL: true, Time: now, HasTime: true,
			Metric: wire.Metric{Kind: wire.Sint64, Int: -7}, Attributes: []wire.Attribute{{Key: "env", Value: "test"}},
		},
		wire.Event{Host: "b", Service: "x", Time: now, HasTime: true, Metric: wire.Metric{Kind: wire.Double, Real: 0.25}},
	)
	full := Event{
		Host: "a", Service: "x", State: "ok", Description: "words", Tags: []string{"one", "two"}, TTL: 30, Time: time.Unix(now, 0).UTC(),
		Metric: int64(-7), Attributes: map[string]string{"env": "test"},
	}
	for _, tt := range []struct {
		name, url, query string
		values           protocol.Values
		want             []Event
	}{
		{name: "all fields", url: "riemann://" + srv.Addr(), query: `host = "a"`, want: []Event{full}},
		{name: "nothing found", url: "riemann://" + srv.Addr(), query: `host = "c"`, want: []Event{}},
		{
			name: "a transport without queries, with a query address", url: "riemann+udp://127.0.0.1:9", query: `metric = 0.25`, values: protocol.Values{"query-address": {srv.Addr()}},
			want: []Event{{Host: "b", Service: "x", Time: time.Unix(now, 0).UTC(), Metric: 0.25, TTL: 60}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := assert.Value(ask(t, tt.url, tt.values, tt.query))(t)
			for i := range got {
				if tt.want[i].TTL == 60 { // the server's default
					got[i].TTL = 60
				}
			}
			assert.Same(t, got, tt.want)
		})
	}
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{})
	certs := newCertificates(t)
	secure := serve(t, certs.server)
	for _, tt := range []struct {
		name, url, query string
		values           protocol.Values
		want, hint       string
	}{
		{name: "a bad query", url: "riemann://" + srv.Addr(), query: `service = `, want: "parse error", hint: "double quotes"},
		{name: "an empty query", url: "riemann://" + srv.Addr(), query: ``, want: "parse error", hint: "true"},
		{name: "nothing listens", url: "riemann://" + testkit.ClosedPort, query: "true", want: "connection refused", hint: "nothing listens there"},
		{name: "plaintext to TLS", url: "riemann://" + secure.addr, query: "true", want: "speaks TLS", hint: "riemann+tls"},
		{
			name: "TLS without a certificate", url: "riemann+tls://" + secure.addr, query: "true", values: protocol.Values{"tls-ca": {certs.ca}},
			want: "requires a client certificate", hint: "--tls-cert",
		},
		{name: "a query address that answers none", url: "riemann://x", values: protocol.Values{"query-address": {"riemann+udp://x:1"}}, query: "true", want: "does not answer queries", hint: "--query-address HOST:5555"},
		{name: "a query address without a host", url: "riemann://x", values: protocol.Values{"query-address": {":5555"}}, query: "true", want: "no host", hint: "--query-address HOST:5555"},
		{name: "a URL of another scheme", url: "http://x", query: "true", want: "no scheme http", hint: "riemann://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := ask(t, tt.url, tt.values, tt.query)
			protocoltest.Explained(t, err, tt.want, tt.hint)
		})
	}
	t.Run("over TLS", func(t *testing.T) {
		got, err := ask(t, "riemann+tls://"+secure.addr, protocol.Values{"tls-ca": {certs.ca}, "tls-cert": {certs.cert}, "tls-key": {certs.key}}, "true")
		assert.True(t, err == nil && len(got) == 0, "got %d events, %v", len(got), err)
	})
}

// An invalid answer is an error, in bounded memory and time.
func TestQueryStrangeAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer, want string
	}{
		{"an endless frame", "\xff\xff\xff\xff", "not a frame"},
		{"a frame cut short", "\x00\x10\x00\x00\x10\x01", "in the middle of an answer"},
		{"no message", "\x00\x00\x00\x02\xff\xff", "read message"},
		{"nothing", "", "closed the connection"},
		{"no index", string(wire.AppendFramed(nil, &wire.Msg{HasOK: true, Error: "no index"})), "no index"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			here, there := net.Pipe()
			go func() {
				buf := make([]byte, 100)
				there.Read(buf)
				there.Write([]byte(tt.answer))
				there.Close()
			}()
			a := &asker{addr: "x", dial: func(context.Context) (net.Conn, error) { return here, nil }}
			defer a.close()
			_, err := a.ask(t.Context(), "true")
			assert.ErrorHas(t, err, tt.want)
			targetErr := (*answerError)(nil)
			assert.True(t, errors.As(err, &targetErr) == (tt.name == "no index") && (targetErr == nil || targetErr.noIndex()), "the error is a %T", err)
		})
	}
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		here, there := net.Pipe()
		defer there.Close()
		go func() { buf := make([]byte, 100); there.Read(buf) }()
		a := &asker{addr: "x", dial: func(context.Context) (net.Conn, error) { return here, nil }}
		defer a.close()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := a.ask(ctx, "true")
		assert.True(t, errors.Is(err, context.DeadlineExceeded), "got %v, want the context's error", err)
	})
}

// Queries go to the target's own address if that can answer them, otherwise to the usual port of its host.
func TestQueryPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ target, given, scheme, addr string }{
		{"riemann://h:6000", "", plainScheme, "h:6000"},
		{"riemann+tls://h", "", tlsScheme, "h:5554"},
		{"riemann+udp://h:6000", "", plainScheme, "h:6000"},
		{"riemann+udp://h", "", plainScheme, "h:5555"},
		{"riemann+udp://[::1]:6000", "", plainScheme, "[::1]:6000"},
		{"riemann+ws://h:6000", "", plainScheme, "h:5555"},
		{"riemann+ws://[::1]:6000", "", plainScheme, "[::1]:5555"},
		{"riemann+http://h", "", plainScheme, "h:5555"},
		{"riemann+udp://h:6000", "i:7000", plainScheme, "i:7000"},
		{"riemann+ws://h", "riemann+tls://i", tlsScheme, "i:5554"},
	} {
		t.Run(tt.target+" "+tt.given, func(t *testing.T) {
			u := assert.Value(url.Parse(tt.target))(t)
			r, addr, err := queryAddress(u, protocol.Values{"query-address": {tt.given}})
			assert.True(t, err == nil && r.scheme == tt.scheme && addr == tt.addr,
				"got %v %s, %v; want %s %s", r, addr, err, tt.scheme, tt.addr)
		})
	}
}

// With several addresses each client's events are looked for at its own server.
func TestVerifyAsksEachServer(t *testing.T) {
	t.Parallel()
	for transport, want := range map[string]string{"riemann+udp": "127.0.0.1:9001 127.0.0.2:9002 127.0.0.1:9001", "riemann+ws": "127.0.0.1:5555 127.0.0.2:5555 127.0.0.1:5555"} {
		c := assert.Value(parseConfig(specOf(t, transport+"://127.0.0.1:9001,127.0.0.2:9002", "clients=3")))(t)
		s := assert.Value(newSource(c))(t)
		var got []string
		for _, a := range s.askers {
			got = append(got, a.addr)
		}
		assert.Equal(t, strings.Join(got, " "), want, "%s: addresses that it asks", transport)
	}
}

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
	conn.Restrict(func(a string) error { // others may run at the same time
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
		assert.Equal(t, udpState(tt.err, tt.local), tt.want, tt.name)
	}
	protocoltest.Found(t, udpFinding("192.0.2.1:5555", false), protocol.LevelUnknown, "is not known: "+whyUDP)
}

func TestPortsFinding(t *testing.T) {
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
		f := portsFinding("h", tt.of)
		assert.True(t, f.Level == tt.level && f.Found == tt.want, "%s: got %v: %s, want %v: %s", tt.name, f.Level, f.Found, tt.level, tt.want)
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
			assert.Must(t, l.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}) == 1, "not taken")
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
