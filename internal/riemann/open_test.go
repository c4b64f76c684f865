package riemann

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Open reports whatever is wrong with an address, with a hint.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	certs := newCertificates(t)
	secured, plain := serve(t, certs.server), serve(t, nil)
	ours := []string{"tls-ca=" + certs.ca, "tls-cert=" + certs.cert, "tls-key=" + certs.key}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	const closed = testkit.ClosedPort
	tcp := startStandin(t, standinriemann.Options{Web: "127.0.0.1:0"})
	silent := testkit.Listen(t, func(nc *net.TCPConn) { io.Copy(io.Discard, nc) })
	closing := testkit.Listen(t, func(*net.TCPConn) {})
	// Like the real server, it takes a TLS hello for a frame and waits for the rest of it.
	waiting := testkit.Listen(t, func(nc *net.TCPConn) {
		b := make([]byte, 4)
		if _, err := io.ReadFull(nc, b); err != nil || b[0] != 0 {
			io.Copy(io.Discard, nc)
			return
		}
		io.CopyN(io.Discard, nc, int64(b[2])<<8|int64(b[3]))
		nc.Write([]byte(wire.Ack))
		io.Copy(io.Discard, nc)
	})
	endless := testkit.Listen(t, func(nc *net.TCPConn) {
		io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\n")
		for err := error(nil); err == nil; {
			_, err = nc.Write([]byte("X: " + strings.Repeat("y", 8<<10) + "\r\n"))
		}
	})
	quick := "connect-timeout=2s"
	for _, tt := range []struct {
		name, url string
		given     []string
		wrong     string // part of the error
		hint      string // part of the hint
	}{
		{"nothing listens", "riemann://" + closed, nil, "refused", "carronade standin riemann"},
		{"one of two is not there", "riemann://" + plain.addr + "," + closed, nil, closed, "carronade standin riemann"},
		{"plain to TLS", "riemann://" + secured.addr, nil, "speaks TLS", "riemann+tls://"},
		{"TLS to plain", "riemann+tls://" + plain.addr, ours, "speaks plaintext", "riemann://"},
		{"TLS to a plaintext server that waits", "riemann+tls://" + waiting, append([]string{quick}, ours...), "speaks plaintext", "riemann://"},
		{"no client certificate", "riemann+tls://" + secured.addr, ours[:1], "client certificate", "--tls-cert"},
		{"an untrusted certificate", "riemann+tls://" + secured.addr, []string{ours[0], "tls-cert=" + certs.untrusted}, "does not accept the client's certificate", "authority that the server trusts"},
		{"no authority", "riemann+tls://" + secured.addr, ours[1:], "unknown authority", "--tls-ca"},
		{"another authority", "riemann+tls://" + secured.addr, append([]string{"tls-ca=" + certs.otherCA}, ours[1:]...), "unknown authority", "--tls-ca"},
		{"another name", "riemann+tls://" + secured.addr, append([]string{"tls-server-name=elsewhere"}, ours...), "elsewhere", "--tls-server-name"},
		{"TLS options without TLS", "riemann://" + plain.addr, ours, "without TLS", "riemann+tls://"},
		{"a web server", "riemann://" + strings.TrimPrefix(web.URL, "http://"), nil, "not Riemann", "5555"},
		{"silence", "riemann://" + silent, []string{quick}, "no answer came", "stuck"},
		{"silence for a WebSocket", "riemann+ws://" + silent, []string{quick}, "no answer came", "stuck"},
		{"a WebSocket to TLS", "riemann+ws://" + secured.addr, nil, "speaks TLS", "has no TLS"},
		{"a WebSocket, and nothing listens", "riemann+ws://" + closed, nil, "refused", "ws-server"},
		{"no such path", "riemann+http://" + strings.TrimPrefix(web.URL, "http://") + "/elsewhere", nil, "/elsewhere", "/events"},
		{"no such path for a WebSocket", "riemann+ws://" + strings.TrimPrefix(web.URL, "http://") + "/elsewhere", nil, "HTTP 404", ""},
		{"a WebSocket to the port of TCP", "riemann+ws://" + tcp.Addr(), nil, "the port speaks Riemann's TCP", ""},
		{"HTTP to the port of TCP", "riemann+http://" + tcp.Addr(), nil, "the port speaks Riemann's TCP", ""},
		{"the port of WebSockets", "riemann://" + tcp.AddrOf("ws"), nil, "the port is Riemann's for WebSockets", ""},
		{"an endless handshake", "riemann+ws://" + endless, nil, "not Riemann", "check the port"},
		{"closed at once", "riemann://" + closing, nil, "not Riemann", "check the port"},
		{"a path", "riemann://" + plain.addr + "/events", nil, "/events", "leave it out"},
		{"no time", "riemann://" + plain.addr, []string{"request-timeout=0s"}, "request-timeout", "--request-timeout"},
		{"a message too large", "riemann://" + plain.addr, []string{"description=" + strings.Repeat("x", 1000), "events=1000000"}, "a message of", "--batch-events"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			given := tt.given
			events := 1
			if n := len(given); n > 0 && given[n-1] == "events=1000000" {
				given, events = given[:n-1], 1_000_000
			}
			spec := specOf(t, tt.url, given...)
			spec.BatchEvents = events
			ctx := testkit.Minute(t)
			s, err := Kind{}.Open(ctx, spec)
			if err == nil {
				s.Close()
				t.Fatal("it opened")
			}
			protocoltest.Explained(t, err, tt.wrong, tt.hint)
		})
	}
}

// Facts contain what the probe learned about the server.
func TestFacts(t *testing.T) {
	t.Parallel()
	certs := newCertificates(t)
	rate := wire.Msg{HasOK: true, OK: true, Events: []wire.Event{{Service: askedService, Host: "db7"}}}
	none := wire.Msg{HasOK: true, Error: "no index"}
	sink := wire.Msg{HasOK: true, OK: true, Events: []wire.Event{{Service: standinService}, {Service: discardService}}}
	for _, tt := range []struct {
		name   string
		answer wire.Msg
		want   map[string]any
	}{
		{"no index", none, map[string]any{"index": "no index", "server": nil}},
		{"a server's name", rate, map[string]any{"index": "answers queries", "server": "db7", "discards": nil, "standin": nil}},
		{"a sink", sink, map[string]any{"discards": true, "standin": true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := testkit.Listen(t, func(raw *net.TCPConn) {
				nc := tls.Server(raw, certs.server)
				buf := make([]byte, 64<<10)
				for {
					n, err := nc.Read(buf)
					if err != nil {
						return
					}
					if n > wire.FrameHead {
						nc.Write(wire.AppendFramed(nil, &tt.answer))
					}
				}
			})
			s := openSession(t, specOf(t, "riemann+tls://"+addr, "tls-ca="+certs.ca, "tls-cert="+certs.cert, "tls-key="+certs.key))
			f := s.Facts()
			for k, want := range tt.want {
				assert.Equal(t, f[k], want, "%s", k)
			}
			v, _ := f["tls"].(string)
			assert.True(t, strings.HasPrefix(v, "TLS 1.3, "), "tls: got %q", v)
			assert.True(t, f["address"] == addr && f["transport"] == "riemann+tls" && f["events"] != nil, "got %v", f)
			e := s.Encoding()
			assert.True(t, e.Events == measure.Pooled && e.Distinct != 0 && e.CodecMeasured == nil, "encoding %+v, want pooled events without a codec", e)
		})
	}
}

// A server that had not said its name when the run began is asked again at its end.
func TestSurveyAsksForTheName(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	addr := testkit.Listen(t, func(nc *net.TCPConn) {
		buf := make([]byte, 64<<10)
		for {
			n, err := nc.Read(buf)
			if err != nil {
				return
			}
			answer := wire.Msg{HasOK: true, OK: true}
			if n > wire.FrameHead && asked.Add(1) > 1 {
				answer.Events = []wire.Event{{Service: askedService, Host: "db7"}}
			}
			nc.Write(wire.AppendFramed(nil, &answer))
		}
	})
	s := openSession(t, specOf(t, "riemann://"+addr))
	name := s.Facts()["server"]
	assert.Must(t, name == nil, "the server was known at the start: %v", name)
	assert.OK(t, s.Survey(t.Context()))
	assert.Equal(t, s.Facts()["server"], "db7", "name at the end")
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for _, tt := range testkit.Table[struct {
		URL          string `yaml:"url"`
		Hosts, Wrong string
	}](t, "testdata/targets.yaml") {
		t.Run(tt.URL, func(t *testing.T) {
			u := &url.URL{}
			u.Scheme, u.Host, _ = strings.Cut(tt.URL, "://")
			if i := strings.IndexByte(u.Host, '/'); i >= 0 {
				u.Host, u.Path = u.Host[:i], u.Host[i:]
			}
			_, hosts, _, err := parseTarget(u)
			if tt.Wrong == "" && err != nil || tt.Wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.Wrong)) {
				t.Fatalf("got %v, want %q", err, tt.Wrong)
			}
			got := strings.Join(hosts, " ")
			assert.True(t, err != nil || got == tt.Hosts, "got %s, want %s", got, tt.Hosts)
		})
	}
	for _, u := range []*url.URL{
		{Scheme: "riemann", Host: "h", User: url.UserPassword("me", "canary")},
		{Scheme: "riemann", Host: "h", RawQuery: "token=canary"},
	} {
		if _, _, _, err := parseTarget(u); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v: got %v", u.Redacted(), err)
		}
	}
}

// Clients use the hosts round robin.
func TestHostsRoundRobin(t *testing.T) {
	t.Parallel()
	a, b := serve(t, nil), serve(t, nil)
	openSession(t, specOf(t, "riemann://"+a.addr+","+b.addr, "clients=5"))
	a.waitConnections(1 + 3)
	b.waitConnections(1 + 2)
}

func TestSuite(t *testing.T) {
	t.Parallel()
	certs := newCertificates(t)
	for _, tt := range []struct {
		name, scheme string
		secure       bool
		opts         map[string]string
	}{
		{name: "TCP", scheme: "riemann"},
		{name: "TLS", scheme: "riemann+tls", secure: true, opts: map[string]string{"tls-ca": certs.ca, "tls-cert": certs.cert, "tls-key": certs.key}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conf := certs.server
			if !tt.secure {
				conf = nil
			}
			f := serve(t, conf)
			protocoltest.Run(t, protocoltest.System{
				Kind: Kind{}, URL: tt.scheme + "://" + f.addr, Options: tt.opts,
				Events:     f.taken,
				Slow:       f.slow,
				Refuse:     func(on bool) { f.refuse(map[bool]string{true: "no room for such events"}[on]) },
				RefuseWant: load.Rejected,
			})
		})
	}
}

// certificates are an authority, the configuration of a server that requires its certificates, and a client's files.
type certificates struct {
	ca, cert, key string // files
	otherCA       string // of an authority that signed none of them
	untrusted     string // a client's certificate of otherCA, with its key
	server        *tls.Config
}

func newCertificates(t testing.TB) (c certificates) {
	t.Helper()
	ours, other := testkit.NewAuthority("authority"), testkit.NewAuthority("another authority")
	c.ca, _ = ours.Files(t)
	c.otherCA, _ = other.Files(t)
	c.cert, c.key = ours.Sign("client").Files(t)
	stranger := other.Sign("stranger")
	c.untrusted = filepath.Join(t.TempDir(), "both.pem")
	assert.OK(t, os.WriteFile(c.untrusted, append(stranger.Cert, stranger.Key...), 0o600))
	c.server = &tls.Config{
		Certificates: []tls.Certificate{ours.Sign("server").Pair()},
		ClientCAs:    ours.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	}
	return c
}

// However runs are split and shortened, their messages stay in order, each occurs once, and the sums do not change.
func TestRunsStayConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q batchRuns
		var passed, first, seq uint64
		var events, bytes, wire int64
		nextSeq, nextFirst := uint64(0), uint64(0)
		var gotEvents, gotBytes, gotWire int64
		complete := func(r batchRun) {
			if r.batch.Seq != nextSeq || r.batch.First != nextFirst {
				t.Fatalf("got batch %d with event %d, want %d with %d", r.batch.Seq, r.batch.First, nextSeq, nextFirst)
			}
			nextSeq += r.batches()
			nextFirst += uint64(r.batch.Events)
			gotEvents += int64(r.batch.Events)
			gotBytes += r.batch.Bytes
			gotWire += r.wire
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1: // send
				batches := rapid.Uint64Range(1, 50).Draw(t, "batches")
				each := rapid.Uint64Range(1, 5).Draw(t, "each")
				size := int64(batches*each) * rapid.Int64Range(10, 99).Draw(t, "size")
				size += rapid.Int64Range(0, 7).Draw(t, "uneven")
				r := q.push()
				passed += batches
				*r = batchRun{last: passed, wire: size + 7, sent: -1, batch: load.Batch{
					Seq: seq, First: first, Events: int32(batches * each), Bytes: size, Batches: int32(batches),
				}}
				seq, first = seq+batches, first+batches*each
				events, bytes, wire = events+int64(batches*each), bytes+size, wire+size+7
			case 2: // a part was written
				if q.empty() {
					continue
				}
				i := rapid.Uint64Range(q.head, q.tail-1).Draw(t, "run")
				if n := q.at(i).batches(); n > 1 {
					q.split(i, rapid.Uint64Range(1, n-1).Draw(t, "cut"))
				}
			case 3: // answers
				if q.empty() {
					continue
				}
				r := q.at(q.head)
				if n := rapid.Uint64Range(1, r.batches()).Draw(t, "answers"); n < r.batches() {
					complete(r.cut(n))
				} else {
					complete(*r)
					q.head++
				}
			}
		}
		for last := nextSeq; !q.empty(); q.head++ {
			r := q.at(q.head)
			if r.first() != last {
				t.Fatalf("a run begins with message %d, want %d", r.first(), last)
			}
			last = r.last
			complete(*r)
		}
		if gotEvents != events || gotBytes != bytes || gotWire != wire || nextSeq != seq {
			t.Errorf("got %d events, %d bytes, %d on the wire, want %d, %d, %d", gotEvents, gotBytes, gotWire, events, bytes, wire)
		}
	})
}
