package standin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func startEverywhere(t *testing.T) (*Server, *testkit.Certificates) {
	t.Helper()
	certs := testkit.MakeCertificates(t)
	return start(t, Options{
		Listen: "127.0.0.1:0", UDP: "127.0.0.1:0", TLSListen: "127.0.0.1:0",
		TLS: standin.TLS{Cert: certs.ServerCert, Key: certs.ServerKey, ClientCA: certs.CA},
	}), certs
}

// waitMessages waits until the server has accepted n messages: datagrams are not
// answered.
func waitMessages(t *testing.T, s *Server, n uint64) {
	t.Helper()
	testkit.Until(t, "the server has the messages", func() bool { return s.Counts().Messages >= n })
}

// TestRiemannClient sends with the C client, over each transport, and reads
// back with both clients, field by field.
func TestRiemannClient(t *testing.T) {
	t.Parallel()
	s, certs := startEverywhere(t)
	for _, test := range []struct {
		name, addr string
		how        []string
	}{
		{"tcp", s.Addr(), []string{"-T"}},
		{"udp", s.AddrOf("udp"), []string{"-U"}},
		{"tls", s.AddrOf("tls"), certs.ClientOptions()},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, began := s.Counts().Messages, time.Now().Unix()
			send := func(args ...string) {
				t.Helper()
				testkit.RiemannClient(t, test.addr, slices.Concat([]string{"send"}, test.how, []string{"-h", "web-1"}, args)...)
			}
			send("-S", test.name+" whole", "-s", "ok", "-D", "a 漢 text", "-t", "one", "-t", "two", "-a", "zone=a", "-a", "rack=7", "-L", "120", "-i", "-9007199254740993")
			send("-S", test.name+" double", "-s", "warning", "-d", "0.1")
			send("-S", test.name+" float", "-f", "2.5")
			waitMessages(t, s, before+3)
			attributes := func(more ...string) map[string]string {
				m := map[string]string{"x-client": "riemann-c-client"} // the client adds it
				for i := 0; i < len(more); i += 2 {
					m[more[i]] = more[i+1]
				}
				return m
			}
			want := []testkit.RiemannEvent{
				{Service: test.name + " double", Host: "web-1", State: "warning", MetricD: new(0.1), Attributes: attributes()},
				{Service: test.name + " float", Host: "web-1", MetricF: new(2.5), Attributes: attributes()},
				{
					Service: test.name + " whole", Host: "web-1", State: "ok", Description: "a 漢 text", Tags: []string{"one", "two"}, TTL: new(120.0),
					MetricSint64: new(int64(-9007199254740993)), Attributes: attributes("zone", "a", "rack", "7"),
				},
			}
			query := fmt.Sprintf("service =~ %q and host = \"web-1\"", test.name+" %")
			var tcp []string
			var withCerts *testkit.Certificates
			queryAddr := s.Addr()
			if test.name == "tls" {
				tcp, withCerts, queryAddr = test.how, certs, test.addr
			}
			t.Run("read by C", func(t *testing.T) {
				compare(t, testkit.RiemannQuery(t, queryAddr, query, tcp...), want, began)
			})
			t.Run("read by ruby", func(t *testing.T) {
				compare(t, testkit.RiemannRubyQuery(t, queryAddr, withCerts, query), want, began)
			})
		})
	}
}

// compare compares the events read back, in any order, and checks that their times
// are not before began.
func compare(t *testing.T, got, want []testkit.RiemannEvent, began int64) {
	t.Helper()
	slices.SortFunc(got, func(a, b testkit.RiemannEvent) int { return strings.Compare(a.Service, b.Service) })
	for i := range got {
		if at := got[i].Time; at < began || at > time.Now().Unix() {
			t.Errorf("%s: got time %d, want one since %d", got[i].Service, at, began)
		}
		got[i].Time = 0
		if len(got[i].Tags) == 0 {
			got[i].Tags = nil
		}
		if got[i].TTL != nil && *got[i].TTL == 0 {
			got[i].TTL = nil // the C client prints 0 if there is none
		}
	}
	assert.Same(t, got, want)
}

// TestRubyClient sends with the ruby client over each transport.
func TestRubyClient(t *testing.T) {
	t.Parallel()
	s, certs := startEverywhere(t)
	at := time.Now().Unix() - 5
	for _, test := range []struct {
		name, addr string
		udp        bool
		certs      *testkit.Certificates
	}{
		{"tcp", s.Addr(), false, nil},
		{"udp", s.AddrOf("udp"), true, nil},
		{"tls", s.AddrOf("tls"), false, certs},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := s.Counts().Messages
			testkit.RiemannRubySend(t, test.addr, test.udp, test.certs,
				fmt.Sprintf(`{service: "ruby %s", host: "h", state: "critical", description: "d", tags: ["a", "b"], ttl: 33.5, time: %d, metric: 12345678901234, color: "red"}`, test.name, at),
				fmt.Sprintf(`{service: "ruby %s real", host: "h", metric: 0.25, time: %d}`, test.name, at))
			waitMessages(t, s, before+2)
			got := testkit.RiemannQuery(t, s.Addr(), fmt.Sprintf(`service =~ "ruby %s%%"`, test.name))
			for i := range got {
				assert.Equal(t, got[i].Time, at, "time")
			}
			began := at
			compare(t, got, []testkit.RiemannEvent{
				{Service: "ruby " + test.name, Host: "h", State: "critical", Description: "d", Tags: []string{"a", "b"}, TTL: new(33.5), MetricSint64: new(int64(12345678901234)), Attributes: map[string]string{"color": "red"}},
				{Service: "ruby " + test.name + " real", Host: "h", MetricD: new(0.25)},
			}, began)
		})
	}
}

// TestClientsAreRefused checks that clients report the server's errors.
func TestClientsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Listen: "127.0.0.1:0", Errors: []ErrorRule{{Name: "no room", Share: 1}}})
	if out, err := testkit.TryRiemannClient(t, s.Addr(), "send", "-S", "x"); err == nil || !strings.Contains(out, "no room") {
		t.Errorf("got %q, %v; want a failure that says no room", out, err)
	}
	if out, err := testkit.TryRiemannClient(t, s.Addr(), "query", "service ="); err == nil || !strings.Contains(out, "parse error: character 10: want a field") {
		t.Errorf("got %q, %v; want a failure that says where the query is invalid", out, err)
	}
	script := `
begin
  Riemann::Client.new(host: ARGV[0], port: ARGV[1].to_i).tcp << {service: "x"}
rescue Riemann::Client::ServerError => e
  print "error: ", e.message
end`
	host, port, _ := strings.Cut(s.Addr(), ":")
	out := testkit.RiemannRuby(t, script, host, port)
	assert.True(t, strings.Contains(out, "error: no room"), "got %q, want the server's error text", out)
	_, certs := startEverywhere(t)
	out, err := testkit.TryRiemannClient(t, s.Addr(), append([]string{"send", "-S", "x"}, certs.ClientOptions()...)...)
	assert.True(t, err != nil, "TLS to a plain port: got %q, want a failure", out)
}
