package standin

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
	"carronade/internal/standin/standintest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestMain(m *testing.M) {
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}

func start(t testing.TB, opts Options) *Server {
	t.Helper()
	if opts.Listen == "" {
		opts.Listen = "127.0.0.1:0"
	}
	s := assert.Value(Start(opts))(t)
	t.Cleanup(func() { assert.OK(t, s.Close(), "closing the stand-in") })
	return s
}

func forBoth(t *testing.T, f func(t *testing.T, opts Options)) {
	t.Run("index", func(t *testing.T) { f(t, Options{}) })
	t.Run("discard", func(t *testing.T) { f(t, Options{Discard: true}) })
}

// A peer is a client's end of a connection, with a deadline.
type peer struct {
	net.Conn
	t   testing.TB
	buf []byte
}

func dial(t testing.TB, addr string) *peer {
	t.Helper()
	nc := assert.Value(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { nc.Close() })
	return wrap(t, nc)
}

func wrap(t testing.TB, nc net.Conn) *peer {
	assert.OK(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	return &peer{Conn: nc, t: t}
}

func (p *peer) send(msgs ...wire.Msg) {
	p.t.Helper()
	var out []byte
	for i := range msgs {
		out = wire.AppendFramed(out, &msgs[i])
	}
	assert.Value(p.Write(out))(p.t)
}

// answer reads one answer.
func (p *peer) answer() wire.Msg {
	p.t.Helper()
	for {
		msg, rest, err := wire.NextFrame(p.buf, 1<<30)
		assert.OK(p.t, err)
		if rest != nil {
			m := assert.Value(wire.DecodeMsg(msg))(p.t)
			p.buf = rest
			return m
		}
		more := make([]byte, 64<<10)
		n, err := p.Read(more)
		assert.Must(p.t, n != 0 || err == nil, "reading an answer: %v", err)
		p.buf = append(p.buf, more[:n]...)
	}
}

func (p *peer) find(query string) (services []string, events []wire.Event) {
	p.t.Helper()
	p.send(wire.Msg{Query: query})
	m := p.answer()
	assert.Must(p.t, m.OK, "%s: %s", query, m.Error)
	slices.SortFunc(m.Events, func(a, b wire.Event) int { return strings.Compare(a.Service, b.Service) })
	for _, e := range m.Events {
		services = append(services, e.Service)
	}
	return services, m.Events
}

func message(services ...string) (m wire.Msg) {
	for _, s := range services {
		m.Events = append(m.Events, wire.Event{Host: "h", Service: s, State: "ok"})
	}
	return m
}

var acked = wire.Msg{OK: true, HasOK: true}

// TestAcks sends messages of many kinds and sizes at once, and expects an answer to each, in order.
func TestAcks(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Interval = time.Hour
		s := start(t, opts)
		p := dial(t, s.Addr())
		long := message(strings.Repeat("x", 3<<20)) // longer than any window
		p.send(wire.Msg{}, message("a"), wire.Msg{Query: `service = "b"`}, message("b", "c"), wire.Msg{Query: `service = "b"`},
			long, wire.Msg{Query: "service ="}, message("d"))
		none := wire.Msg{OK: true, HasOK: true}
		for i, want := range []wire.Msg{acked, acked, none, acked, none, acked, {HasOK: true}, acked} {
			got := p.answer()
			found := 0
			if i == 4 && !opts.Discard {
				found = 1
			}
			assert.True(t, got.OK == want.OK && len(got.Events) == found,
				"answer %d: got ok=%v with %d events (%s), want ok=%v with %d", i, got.OK, len(got.Events), got.Error, want.OK, found)
			assert.True(t, want.OK || strings.HasPrefix(got.Error, "parse error: character 10: want a field"),
				"answer %d: got error %q", i, got.Error)
		}
		c := s.Counts()
		assert.True(t, c.Messages == 8 && c.Queries == 3 && c.Connections == 1, "counted %+v, want 8 messages, 3 of them queries", c)
		want := uint64(5)
		assert.True(t, opts.Discard || c.Events == want, "counted %d events, want %d", c.Events, want)
	})
}

// TestSplit sends messages a byte at a time.
func TestSplit(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		p := dial(t, start(t, opts).Addr())
		var out []byte
		for _, m := range []wire.Msg{message("a"), {Query: "true"}, message("b", "c")} {
			out = wire.AppendFramed(out, &m)
		}
		for i := range out {
			assert.Value(p.Write(out[i : i+1]))(t)
		}
		for range 3 {
			m := p.answer()
			assert.True(t, m.OK, "got %+v, want ok", m)
		}
	})
}

// TestManyConnections checks that each connection finds its own events immediately.
func TestManyConnections(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	s := start(t, Options{Interval: time.Hour})
	const conns, each = 8, 500
	var wg sync.WaitGroup
	for c := range conns {
		p := dial(t, s.Addr())
		wg.Go(func() {
			for i := range each {
				service := fmt.Sprintf("conn %d event %d", c, i)
				m := message(service)
				m.Query = fmt.Sprintf("service = %q", service) // answered after the event is in the index
				p.send(m)
				if got := p.answer(); len(got.Events) != 1 {
					t.Errorf("%s: found %d, want 1", service, len(got.Events))
					return
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, s.Counts().Events, conns*each, "counted events")
}

// TestFields sends an event with all fields and reads it back unchanged.
func TestFields(t *testing.T) {
	t.Parallel()
	p := dial(t, start(t, Options{}).Addr())
	micros := time.Now().UnixMicro()
	e := everyField
	e.Time, e.TimeMicros, e.HasTimeMicros = micros/1e6, micros, true
	bare := wire.Event{Service: "bare"}
	p.send(wire.Msg{Events: []wire.Event{e, bare}})
	p.answer()
	_, got := p.find(`service = "api latency" or service = "bare"`)
	assert.Must(t, len(got) == 2, "got %d events, want 2", len(got))
	at, ok := got[1].When()
	assert.True(t, ok && time.Since(at) <= time.Minute && time.Since(at) >= 0, "an event without time got %v, want the server's time", at)
	got[1].Time, got[1].HasTime = 0, false
	assert.Same(t, got, []wire.Event{e, bare})
}

// TestBadFrames checks that the server closes a connection that sends something
// other than messages, after it has answered the messages before.
func TestBadFrames(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		for _, test := range []struct {
			name, bytes string
			fine        bool // for the discarding server, which does not decode it
		}{
			{"HTTP", "GET / HTTP/1.1\r\n\r\n", false},
			{"TLS", "\x16\x03\x01\x02\x00\x01\x00", false},
			{"not a message", "\x00\x00\x00\x03\xff\xff\xff", true},
			{"an event that is cut off", "\x00\x00\x00\x02\x32\x05", true},
		} {
			t.Run(test.name, func(t *testing.T) {
				p := dial(t, start(t, opts).Addr())
				p.send(message("before"))
				p.answer()
				assert.Value(p.Write([]byte(test.bytes)))(t)
				if test.fine && opts.Discard {
					m := p.answer()
					assert.True(t, m.OK, "got %+v, want an ack", m)
					return
				}
				n, err := p.Read(make([]byte, 1))
				assert.True(t, n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded), "got %d bytes, %v; want the connection closed", n, err)
			})
		}
	})
}

// TestErrors refuses a share of the messages: they get an error and are not kept.
func TestErrors(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Errors, opts.Interval = []ErrorRule{{Name: "overloaded", Share: 0.2}, {Name: "disk full", Share: 0.1}}, time.Hour
		s := start(t, opts)
		p := dial(t, s.Addr())
		const n = 2000
		want := []string{}
		errorCounts := map[string]float64{}
		for i := range n {
			p.send(message(fmt.Sprintf("%04d", i)))
			m := p.answer()
			if errorCounts[m.Error]++; m.OK {
				want = append(want, fmt.Sprintf("%04d", i))
			} else if m.Error == "" {
				t.Fatal("refused without an error text")
			}
		}
		for text, share := range map[string]float64{"overloaded": 0.2, "disk full": 0.1} {
			mean := n * share
			assert.True(t, math.Abs(errorCounts[text]-mean) <= 6*math.Sqrt(mean*(1-share)), "%q was sent %v times of %d, want about %v", text, errorCounts[text], n, mean)
		}
		got := s.Counts()
		assert.True(t, got.Refused == uint64(n-len(want)), "counted %d refused, want %d", got.Refused, n-len(want))
		if opts.Discard {
			return
		}
		if got, _ := p.find("true"); !slices.Equal(got, want) {
			t.Errorf("%d events are kept, want the %d that were acknowledged", len(got), len(want))
		}
	})
}

// TestDrop acknowledges events, loses some, and counts them.
func TestDrop(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Drop: 0.1, Interval: time.Hour})
	p := dial(t, s.Addr())
	const n = 2000
	for i := range n {
		p.send(message(fmt.Sprint(i)))
		m := p.answer()
		assert.Must(t, m.OK, "%v", m.Error)
	}
	got, _ := p.find("true")
	c := s.Counts()
	assert.True(t, c.Events == n && c.Dropped == uint64(n-len(got)),
		"counted %d events and %d dropped; want %d and the %d that are missing", c.Events, c.Dropped, n, n-len(got))
	assert.True(t, math.Abs(float64(c.Dropped)-0.1*n) <= 6*math.Sqrt(n*0.1*0.9), "dropped %d of %d, want about a tenth", c.Dropped, n)
}

func TestDelayAndStall(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		standintest.Late(t, func(t *testing.T, delay time.Duration, stall standin.Stall) func() {
			opts.Delay, opts.Stall = delay, stall
			p := dial(t, start(t, opts).Addr())
			return func() { p.send(message("a")); p.answer() }
		})
	})
}

func TestIndexFull(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	s := start(t, Options{MaxIndex: 2048, Interval: time.Hour, Log: &log})
	p := dial(t, s.Addr())
	refused := 0
	for i := range 50 {
		p.send(message(fmt.Sprint(i)))
		if m := p.answer(); !m.OK {
			refused++
			assert.Must(t, strings.Contains(m.Error, "the index is full: it keeps 2KiB (--max-index)"), "got error %q", m.Error)
		}
	}
	kept, _ := p.find("true")
	assert.True(t, refused != 0 && refused+len(kept) == 50, "refused %d and kept %d, want some refused and 50 in sum", refused, len(kept))
	got := strings.Count(log.String(), "full")
	assert.True(t, got == 1, "it was logged %d times, want once:\n%s", got, log.String())
}

// TestUDP loses datagrams that are too long, and those that are not Riemann's.
func TestUDP(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		opts.UDP, opts.Interval = "127.0.0.1:0", time.Hour
		s := start(t, opts)
		nc := assert.Value(net.Dial("udp", s.AddrOf("udp")))(t)
		defer nc.Close()
		sized := func(size int) []byte {
			m := message(strings.Repeat("x", size-13))
			b := wire.AppendMsg(nil, &m)
			assert.Must(t, len(b) == size, "made a message of %d bytes, want %d", len(b), size)
			return b
		}
		want := Counts{Messages: 2, Lost: 1}
		for _, b := range [][]byte{sized(16384), sized(16385), sized(1000), {0xff, 0xff}} {
			assert.Value(nc.Write(b))(t)
		}
		if opts.Discard {
			want.Messages++ // it does not decode them
		} else {
			want.Lost++
		}
		waitMessages(t, s, want.Messages)
		testkit.Until(t, "the lost ones are counted", func() bool { return s.Counts().Lost >= want.Lost })
		got := s.Counts()
		assert.True(t, got.Messages == want.Messages && got.Lost == want.Lost, "accepted %d and lost %d, want %d and %d", got.Messages, got.Lost, want.Messages, want.Lost)
		kept, _ := dial(t, s.Addr()).find("true")
		assert.True(t, opts.Discard || len(kept) == 2, "kept %d events, want 2", len(kept))
	})
}

// TestUDPStallEnds: serveUDP returns when its context ends, even during a stall.
func TestUDPStallEnds(t *testing.T) {
	t.Parallel()
	pc := assert.Value(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer pc.Close()
	client := assert.Value(net.Dial("udp", pc.LocalAddr().String()))(t)
	defer client.Close()
	assert.Value(client.Write([]byte("a message")))(t)
	c := newCore(Options{Stall: standin.Stall{Every: 2 * time.Hour, Length: time.Hour}}.withDefaults())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.serveUDP(ctx, pc, new(meter), time.Now().Add(-2*time.Hour)) }() // the stall has just begun
	assert.OK(t, testkit.Wait(t, "the end, before that of the stall", ended))
}

// TestTLS accepts only client certificates of the configured authority.
func TestTLS(t *testing.T) {
	t.Parallel()
	certs, others := testkit.MakeCertificates(t), testkit.MakeCertificates(t)
	s := start(t, Options{TLSListen: "127.0.0.1:0", TLS: standin.TLS{Cert: certs.ServerCert, Key: certs.ServerKey, ClientCA: certs.CA}})
	pem := assert.Value(os.ReadFile(certs.CA))(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	tests := []struct {
		name, cert, key string
		ok              bool
	}{
		{"its own", certs.ClientCert, certs.ClientKey, true},
		{"none", "", "", false},
		{"another authority's", others.ClientCert, others.ClientKey, false},
		{"a server's", certs.ServerCert, certs.ServerKey, false},
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, test := range tests {
			t.Run(test.name+", "+tls.VersionName(version), func(t *testing.T) {
				config := &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: version, MaxVersion: version}
				if test.cert != "" {
					pair := assert.Value(tls.LoadX509KeyPair(test.cert, test.key))(t)
					config.Certificates = []tls.Certificate{pair}
				}
				raw := assert.Value(net.Dial("tcp", s.AddrOf("tls")))(t)
				defer raw.Close()
				p := wrap(t, tls.Client(raw, config))
				out := wire.AppendFramed(nil, &wire.Msg{Events: message("a").Events})
				_, err := p.Write(out)
				if err == nil {
					_, err = p.Read(make([]byte, wire.AckSize))
				}
				assert.Equal(t, (err == nil), test.ok, "got %v", err)
			})
		}
	}
}

// TestEmitsOwn finds the server's events about itself, under the real server's names and with plausible values.
func TestEmitsOwn(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Interval, opts.UDP, opts.Web = 50*time.Millisecond, "127.0.0.1:0", "127.0.0.1:0"
		s := start(t, opts)
		p := dial(t, s.Addr())
		tcp := "riemann server tcp " + s.Addr()
		want := []string{
			tcp + " conns", tcp + " in rate", tcp + " in latency 0.5", tcp + " in latency 0.999",
			"riemann server udp " + s.AddrOf("udp") + " in rate", "riemann server ws " + s.AddrOf("ws") + " conns",
			"riemann netty event-executor queue size",
		}
		if !opts.Discard {
			want = append(want, "riemann streams rate", "riemann streams latency 0.99")
		}
		// The queries run while the events are emitted, so the expected ones may take two intervals.
		missing := func() (text string) {
			p.send(message("a", "b"))
			p.answer()
			got, events := p.find(`service =~ "riemann %" and tagged "riemann"`)
			for _, name := range want {
				if !slices.Contains(got, name) {
					text += fmt.Sprintf("event %q is missing\n", name)
				}
			}
			for _, e := range events {
				switch {
				case e.Service == tcp+" conns" && e.Metric != wire.Metric{Kind: wire.Sint64, Int: 1}:
					text += fmt.Sprintf("it has %v connections, want 1\n", e.Metric)
				case e.Service == tcp+" in rate" && e.Metric.Value() <= 0:
					text += "its rate is 0 although it receives messages all the time\n"
				}
			}
			return text
		}
		text := ""
		t.Cleanup(func() { t.Log(text) })
		testkit.Until(t, "nothing is missing", func() bool { text = missing(); return text == "" })
	})
}

func TestMeter(t *testing.T) {
	t.Parallel()
	var m meter
	for i := range 1000 {
		m.record(1, time.Duration(i+1)*time.Microsecond)
	}
	r := m.read()
	assert.Equal(t, r.n, 1000)
	for q, want := range map[float64]time.Duration{0: time.Microsecond, 0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond, 0.999: time.Millisecond} {
		got, ok := r.quantile(q)
		assert.True(t, ok && got <= want+time.Microsecond && float64(got) >= float64(want)*15/16-1000,
			"%v: got %v, want %v or up to a sixteenth less", q, got, want)
	}
	_, ok := m.read().quantile(0.5)
	assert.True(t, !ok, "an empty reading has a median")
	for d := time.Duration(1); d > 0; d *= 3 {
		b := bucket(d)
		assert.True(t, bucketStart(b) <= d && float64(d) <= float64(bucketStart(b))*17/16, "%d is in bucket %d, which begins at %d", d, b, bucketStart(b))
	}
	got := bucket(math.MaxInt64)
	assert.True(t, got < len(m.times), "the longest time is in bucket %d of %d", got, len(m.times))
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		opts Options
		want string
	}{
		{"the zero value", Options{}, ""},
		{"no port", Options{UDP: "localhost"}, "for udp: want host:port"},
		{"TLS without certificate", Options{TLSListen: "127.0.0.1:0"}, "needs a certificate"},
		{"a certificate without TLS", Options{TLS: standin.TLS{Cert: "c", Key: "k"}}, "an address to listen on"},
		{"half a certificate", Options{TLSListen: "127.0.0.1:0", TLS: standin.TLS{Cert: "c"}}, "both a certificate and its key"},
		{"message", Options{MaxMessage: -1}, "messages of at most -1"},
		{"datagram", Options{MaxDatagram: 1 << 20}, "want 1 to 65507"},
		{"index", Options{MaxIndex: -1}, "want more than 0"},
		{"interval", Options{Interval: 1}, "1ms at least"},
		{"delay", Options{Delay: -1}, "a delay of"},
		{"drop", Options{Drop: 2}, "dropping"},
		{"errors", Options{Errors: []ErrorRule{{Name: "a", Share: 0.6}, {Name: "b", Share: 0.6}}}, "100% in sum"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.opts.Check()
			if test.want == "" {
				assert.True(t, err == nil, "got %v, want none", err)
				return
			}
			assert.ErrorHas(t, err, test.want)
		})
	}
}

// TestFlags parses every flag, and checks that flags show values in the form in which they may be given.
func TestFlags(t *testing.T) {
	t.Parallel()
	var got Options
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	got.Bind(fs)
	args := []string{
		"--listen", "127.0.0.1:1", "--udp", "127.0.0.1:2", "--tls-listen", "127.0.0.1:3", "--ws", "127.0.0.1:4", "--discard",
		"--max-message", "1MiB", "--max-datagram", "1KiB", "--max-index", "2MiB", "--interval", "1s", "--delay", "5ms", "--stall", "10s/1s", "--server", "rate=5/s", "--collapse", "--credits", "1m@6/s", "--warm", "3s", "--record", "r",
		"--error", "user@host is gone@1%", "--error", "b@2%", "--drop", "0.5%", "--seed", "9", "--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "ca",
	}
	fs.VisitAll(func(f *pflag.Flag) {
		assert.True(t, slices.Contains(args, "--"+f.Name), "--%s is not tried here", f.Name)
	})
	assert.OK(t, fs.Parse(args))
	limited := standin.CapacityOptions{
		Server:   standin.CapacitySettings{Rate: 5, Service: standin.Service{Kind: standin.Exponential}, Servers: 1, Queue: 100_000},
		Collapse: time.Second, Credits: standin.Credits{For: time.Minute, Rate: 6}, Warm: 3 * time.Second,
	}
	want := Options{
		Listen: "127.0.0.1:1", UDP: "127.0.0.1:2", TLSListen: "127.0.0.1:3", Web: "127.0.0.1:4", Discard: true,
		MaxMessage: 1 << 20, MaxDatagram: 1 << 10, MaxIndex: 2 << 20, Interval: time.Second,
		Delay: 5 * time.Millisecond, Stall: standin.Stall{Every: 10 * time.Second, Length: time.Second}, Capacity: limited, Record: "r",
		Errors: []ErrorRule{{Name: "user@host is gone", Share: 0.01}, {Name: "b", Share: 0.02}}, Drop: 0.005, Seed: 9, TLS: standin.TLS{Cert: "c", Key: "k", ClientCA: "ca"},
	}
	assert.Same(t, got, want)
	for name, want := range map[string]string{"max-index": "2MiB", "interval": "1s", "error": "user@host is gone@1%,b@2%", "drop": "0.5%"} {
		assert.Equal(t, fs.Lookup(name).Value.String(), want, "--%s shows", name)
	}
	for _, bad := range [][]string{{"--error", "x"}, {"--error", "@1%"}, {"--error", "x@200%"}, {"--drop", "much"}} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		new(Options).Bind(fs)
		fs.SetOutput(io.Discard)
		assert.True(t, fs.Parse(bad) != nil, "%v is accepted, want an error", bad)
	}
}

// A safeBuffer is a bytes.Buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
