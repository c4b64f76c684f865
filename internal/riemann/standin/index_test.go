package standin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

var epoch = time.Unix(1_700_000_000, 0)

func foundServices(t testing.TB, x *index, now time.Time) []string {
	t.Helper()
	q := assert.Value(parseQuery("true"))(t)
	services := []string{}
	x.search(q, now, func(s *subject) bool {
		e := s.read()
		assert.True(t, e.Service == s.service && e.Host == s.host, "the key (%s, %s) has the event of (%s, %s)", s.host, s.service, e.Host, e.Service)
		services = append(services, s.host+"/"+s.service)
		return true
	})
	slices.Sort(services)
	return services
}

func put(t testing.TB, x *index, e wire.Event) {
	t.Helper()
	assert.Value(x.put(&e, nil))(t)
}

func TestIndexKeepsOneEachPlace(t *testing.T) {
	x := newIndex(1 << 20)
	at := epoch.Unix()
	for i, place := range [][2]string{{"a", "b"}, {"a", "c"}, {"ab", ""}, {"", "ab"}, {"a", "b"}} {
		put(t, x, wire.Event{Host: place[0], Service: place[1], Time: at, HasTime: true, Metric: wire.Metric{Kind: wire.Sint64, Int: int64(i)}})
	}
	assert.Same(t, foundServices(t, x, epoch), []string{"/ab", "a/b", "a/c", "ab/"})
	q := assert.Value(parseQuery(`host = "a" and service = "b"`))(t)
	x.search(q, epoch, func(s *subject) bool {
		assert.Equal(t, s.read().Metric.Int, 4, "metric of the newest")
		return true
	})
	put(t, x, wire.Event{Host: "a", Service: "b", State: "expired"})
	put(t, x, wire.Event{Host: "gone", Service: "was here", State: "expired"})
	assert.Same(t, foundServices(t, x, epoch), []string{"/ab", "a/c", "ab/"}, "services after one expired")
}

func TestIndexExpires(t *testing.T) {
	for _, test := range []struct {
		name string
		e    wire.Event
		want time.Duration // after the epoch, the last time it is found
	}{
		{"a time to live", wire.Event{Time: epoch.Unix(), HasTime: true, TTL: 2.5, HasTTL: true}, 2500 * time.Millisecond},
		{"the default", wire.Event{Time: epoch.Unix(), HasTime: true}, time.Minute},
		{"sent before", wire.Event{Time: epoch.Unix() - 50, HasTime: true}, 10 * time.Second},
		{"microseconds count before seconds", wire.Event{Time: 1, HasTime: true, TimeMicros: epoch.UnixMicro() + 250_000, HasTimeMicros: true}, time.Minute + 250*time.Millisecond},
		{"a negative one", wire.Event{Time: epoch.Unix(), HasTime: true, TTL: -5, HasTTL: true}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newIndex(1 << 20)
			put(t, x, test.e)
			last := epoch.Add(test.want)
			assert.Equal(t, len(foundServices(t, x, last)), 1, "events at its last moment")
			assert.Equal(t, len(foundServices(t, x, last.Add(1))), 0, "events after its last moment")
			expired := 0
			for part := range 2 * shards {
				x.expire(part, last.Add(1), func(string, string) { expired++ })
			}
			assert.True(t, expired == 1 && x.used.Load() == 0, "%d expired, %d bytes left; want 1 expired and 0 left", expired, x.used.Load())
		})
	}
	for _, far := range []wire.Event{
		{Time: 1 << 62, HasTime: true, TTL: 1e30, HasTTL: true},
		{TimeMicros: 1<<63 - 1, HasTimeMicros: true},
	} {
		x := newIndex(1 << 20)
		put(t, x, far)
		assert.Equal(t, len(foundServices(t, x, epoch)), 1, "events of the far future")
	}
}

// TestIndexOrder queries services by prefixes while events are added and removed, and compares the results with a model.
func TestIndexOrder(t *testing.T) {
	x := newIndex(1 << 30)
	rng := rand.New(rand.NewPCG(1, 2))
	model := map[string]bool{}
	prefixes := []string{"a", "ab", "b1", "riemann ", "riemann s", "rie", "c"}
	name := func() string { return prefixes[rng.IntN(len(prefixes))] + strconv.Itoa(rng.IntN(300)) }
	ordered := 0
	for range 3000 {
		service := name()
		switch rng.IntN(4) {
		case 0:
			put(t, x, wire.Event{Service: service, Time: epoch.Unix(), HasTime: true})
			model[service] = true
		case 1:
			put(t, x, wire.Event{Service: service, State: "expired"})
			delete(model, service)
		default:
			prefix := name()
			prefix = prefix[:1+rng.IntN(len(prefix))]
			text := fmt.Sprintf("service =~ %q", prefix+"%")
			if rng.IntN(3) == 0 {
				text = fmt.Sprintf("time > 0 and (true or false) and service = %q", prefix)
			}
			q := assert.Value(parseQuery(text))(t)
			got, want := []string{}, []string{}
			x.search(q, epoch, func(s *subject) bool { got = append(got, s.service); return true })
			for s := range model {
				if strings.HasPrefix(s, prefix) && (text[0] == 's' || s == prefix) {
					want = append(want, s)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			diff := cmp.Diff(want, got)
			assert.Must(t, diff == "", "%s (-want +got):\n%s", text, diff)
			for i := range x.parts {
				if s := &x.parts[i]; len(s.ordered) > 0 && s.orderedChanges == s.changes {
					ordered++
				}
			}
		}
	}
	assert.True(t, ordered != 0, "no shard was ever sorted: this test does not cover it")
}

func TestServicePrefix(t *testing.T) {
	for text, want := range map[string]string{
		`service =~ "a b%c%"`: "a b",
		`service = "x"`:       "x",
		`host = "h" and service =~ "ab%" and service =~ "a%"`:     "ab",
		`service =~ "ab%" or service =~ "a%"`:                     "",
		`not service = "x"`:                                       "",
		`service != "x"`:                                          "",
		`host =~ "x%"`:                                            "",
		`(service =~ "q%") and true`:                              "q",
		`service = nil`:                                           "",
		`"x" = service and state = "ok" and service ~= "riemann"`: "",
	} {
		assert.Equal(t, assert.Value(parseQuery(text))(t).prefix, want, "%s: prefix", text)
	}
}

func TestIndexIsBounded(t *testing.T) {
	const limit = 64 << 10
	x := newIndex(limit)
	n := 0
	e := wire.Event{Host: "h", Time: epoch.Unix(), HasTime: true}
	var err error
	for ; err == nil; n++ {
		e.Service = fmt.Sprint("service ", n)
		_, err = x.put(&e, nil)
	}
	if want := (fullError{limit}); err != want { //nolint:errorlint // put does not wrap it
		t.Fatalf("got %v, want %v", err, want)
	}
	used := x.used.Load()
	assert.True(t, used <= limit && used >= limit-1000, "full at %d bytes, want nearly %d", used, limit)
	// An event of the same size replaces the one of its key.
	e.Service = "service 1"
	put(t, x, e)
	// A removed event makes room.
	before := len(foundServices(t, x, epoch))
	put(t, x, wire.Event{Host: "h", Service: "service 1", State: "expired"})
	e.Service = "service x"
	put(t, x, e)
	assert.Equal(t, len(foundServices(t, x, epoch)), before, "events")
}

// everyField is an event with every field.
var everyField = wire.Event{
	Host: "web-1.eu", Service: "api latency", State: "ok", Description: "all \"well\"\n", Tags: []string{"a", "b c"},
	TTL: 60, HasTTL: true, Time: 1700000000, HasTime: true, Metric: wire.Metric{Kind: wire.Double, Real: 1.5},
	Attributes: []wire.Attribute{{Key: "zone", Value: "eu"}, {Key: "k-8.x", Value: "1"}, {Key: "a:b", Value: "c"}, {Key: "zone", Value: "us"}},
}

func matches(t *testing.T, text string, e *wire.Event) bool {
	t.Helper()
	q := assert.Value(parseQuery(text))(t, "%s", text)
	return q.matches(&subject{host: e.Host, service: e.Service, raw: string(wire.AppendEvent(nil, e))})
}

// TestQuery evaluates queries on an event with every field, and on one with only an integer metric.
func TestQuery(t *testing.T) {
	t.Parallel()
	bare := wire.Event{Metric: wire.Metric{Kind: wire.Sint64, Int: 2}}
	for _, test := range testkit.Table[struct {
		Name, Query string
		Every, Bare bool
	}](t, "testdata/queries.yaml") {
		t.Run(test.Name, func(t *testing.T) {
			assert.Equal(t, matches(t, test.Query, &everyField), test.Every, "%s on the event with every field", test.Query)
			assert.Equal(t, matches(t, test.Query, &bare), test.Bare, "%s on the event with only a metric", test.Query)
		})
	}
}

func TestQueryTimes(t *testing.T) {
	for _, test := range []struct {
		name  string
		e     wire.Event
		query string
	}{
		{"microseconds", wire.Event{TimeMicros: 1700000000_250000, HasTimeMicros: true, Time: 1, HasTime: true}, `time = 1700000000.25`},
		{"whole microseconds", wire.Event{TimeMicros: 1700000000_000000, HasTimeMicros: true}, `time = 1700000000`},
		{"none", wire.Event{}, `time = nil`},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.True(t, matches(t, test.query, &test.e), "%s is false, want it true", test.query)
		})
	}
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, query, want string }{
		{"nothing", ``, "character 1: want a field"},
		{"no right side", `service = `, "character 11: want a field, a string, a number, true, false or nil, found the end"},
		{"no left side", `= 1`, "character 1: want a field, a string, a number, true, false or nil, found ="},
		{"order of text", `metric > "1"`, `character 10: want a number after >, found "1"`},
		{"like a number", `host =~ 1`, "character 9: want a string in double quotes after =~, found 1"},
		{"tagged a name", `tagged a`, "character 8: want a string"},
		{"two in a row", `host "x"`, `character 6: want and, or or the end, found "x"`},
		{"not closed", `(host = 1`, "character 10: want and, or or ), found the end"},
		{"not opened", `host = 1)`, "character 9: want and, or or the end, found )"},
		{"no closing quote", `host = "x`, "character 8: a string without its closing quote"},
		{"a bad escape", `host = "\x"`, `unknown escape \x`},
		{"half an escape", `host = "\u12"`, "four hexadecimal digits"},
		{"a large escape", `host = "\400"`, `more than \377`},
		{"a bad expression", `host ~= "("`, "character 9: regular expression:"},
		{"no operator", `host @ 1`, `character 6: unexpected '@'`},
		{"a number that is too large", `metric = 9223372036854775808`, "does not fit into 64 bits"},
		{"characters, not bytes", `漢 = "字" 1`, "character 9: want and"},
		{"deep", strings.Repeat("(", 1000), "nested more than 500 deep"},
		{"deep nots", strings.Repeat("not ", 1000), "nested more than 500 deep"},
	}
	for _, test := range tests {
		_, err := parseQuery(test.query)
		assert.ErrorHas(t, err, test.want, "%s", test.name)
	}
	// A chain is not nesting.
	assert.Value(parseQuery("true"+strings.Repeat(" or true and host", 10000)))(t, "a long chain")
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		`true`, `host = "a\u0041\101" and not (metric >= -1.5e-3 or tagged "x")`, `service =~ "a%b%"`, `x ~= "a+"`, `5N = 5`,
		`a:b != nil, NaN`, `"`, `\`, `-`, `--1`, `1.`, `=`, `not`, `漢=字`, "\xff",
	} {
		f.Add(seed)
	}
	raw := string(wire.AppendEvent(nil, &everyField))
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parseQuery(text)
		if err != nil {
			return
		}
		s := &subject{host: everyField.Host, service: everyField.Service, raw: raw}
		first := q.matches(s)
		assert.Equal(t, q.matches(s), first, "%q is both true and false for one event", text)
		// A valid query in parentheses is a valid query too.
		if len(text) < 1000 {
			if in, err := parseQuery("not (" + text + ")"); err != nil {
				t.Errorf("%q is valid, but not in parentheses: %v", text, err)
			} else if in.matches(s) == first {
				t.Errorf("%q and its negation are both %v", text, first)
			}
		}
	})
}

func startEverywhere(t *testing.T) (*Server, *testkit.Certificates) {
	t.Helper()
	certs := testkit.MakeCertificates(t)
	return start(t, Options{
		Listen: "127.0.0.1:0", UDP: "127.0.0.1:0", TLSListen: "127.0.0.1:0",
		TLS: standin.TLS{Cert: certs.ServerCert, Key: certs.ServerKey, ClientCA: certs.CA},
	}), certs
}

// waitMessages waits until the server has accepted n messages: datagrams are not answered.
func waitMessages(t *testing.T, s *Server, n uint64) {
	t.Helper()
	testkit.Until(t, "the server has the messages", func() bool { return s.Counts().Messages >= n })
}

// TestRiemannClient sends with the C client, over each transport, and reads back with both clients, field by field.
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

// compare compares the events read back, in any order, and checks that their times are not before began.
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
