package riemann

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
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
			if targetErr := (*answerError)(nil); errors.As(err, &targetErr) != (tt.name == "no index") || targetErr != nil && !targetErr.noIndex() {
				t.Errorf("the error is a %T", err)
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		here, there := net.Pipe()
		defer there.Close()
		go func() {
			buf := make([]byte, 100)
			there.Read(buf)
		}()
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
