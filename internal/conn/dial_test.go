package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func secured(t *testing.T) (addr, ca string) {
	t.Helper()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	assert.OK(t, os.WriteFile(ca, pemOf(srv.Certificate().Raw), 0o600))
	return srv.Listener.Addr().String(), ca
}

func TestDial(t *testing.T) {
	addr, ca := secured(t)
	for _, tt := range []struct {
		name  string
		given protocol.Values
		want  string // in the error
		hint  string // in the hint
	}{
		{"a trusted authority", protocol.Values{"tls-ca": {ca}}, "", ""},
		{"an unknown authority", protocol.Values{}, "unknown authority", "--tls-ca"},
		{"another name", protocol.Values{"tls-ca": {ca}, "tls-server-name": {"elsewhere"}}, "elsewhere", "--tls-server-name"},
		{"any certificate", protocol.Values{"tls-insecure-skip-verify": {"true"}}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := assert.Value(ReadMaterial(tt.given))(t)
			d := Dialer{Timeout: time.Minute, SendBuffer: 32 << 10, RecvBuffer: 32 << 10}
			d.TLS = assert.Value(m.Config())(t)
			conn, err := d.Dial(t.Context(), addr)
			if err == nil {
				defer conn.Close()
				_, ok := conn.(*tls.Conn)
				assert.True(t, ok, "got a %T", conn)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if err != nil && (!errors.As(err, new(*TLSError)) || !strings.Contains(Hint(err, false), tt.hint)) {
				t.Errorf("got %v (%s), want the hint %q", err, Hint(err, false), tt.hint)
			}
		})
	}
	assert.True(t, SpeaksTLS(t.Context(), addr), "TLS is not detected")
}

func TestMaterialErrors(t *testing.T) {
	_, ca := secured(t)
	junk := filepath.Join(t.TempDir(), "junk.pem")
	assert.OK(t, os.WriteFile(junk, []byte("no PEM"), 0o600))
	for _, tt := range []struct {
		name  string
		given protocol.Values
		want  string
	}{
		{"no file", protocol.Values{"tls-ca": {"/no/such/file"}}, "read --tls-ca"},
		{"no certificate in it", protocol.Values{"tls-ca": {junk}}, "no certificate in PEM form"},
		{"a certificate without its key", protocol.Values{"tls-cert": {ca}}, "client's certificate"},
		{"a key alone", protocol.Values{"tls-key": {ca}}, "without a certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ReadMaterial(tt.given)
			if err == nil {
				_, err = m.Config()
			}
			protocoltest.Explained(t, err, tt.want, "")
		})
	}
}

// When the context ends, reading ends; otherwise the connection stays as it was.
func TestInterrupt(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	ctx, cancel := context.WithCancel(t.Context())
	stop := Interrupt(ctx, here)
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err := here.Read(make([]byte, 1))
	assert.True(t, IsTimeout(err), "got %v, want a timeout", err)
	assert.True(t, !stop(), "stop reports that it was in time")
	stop = Interrupt(t.Context(), here)
	assert.True(t, stop(), "stop reports that it was too late")
	go io.WriteString(there, "x")
	assert.Value(here.Read(make([]byte, 1)))(t, "after a stop")
}

func TestNoServer(t *testing.T) {
	closing := testkit.Listen(t, func(*net.TCPConn) {})
	assert.True(t, !SpeaksTLS(t.Context(), closing), "a server that closes the connection is taken for one that speaks TLS")
	d := Dialer{Timeout: time.Minute}
	_, err := d.Dial(t.Context(), testkit.ClosedPort)
	assert.True(t, IsRefused(err) && !IsTimeout(err) && !IsConnectionClosed(err), "got %v", err)
	assert.True(t, IsConnectionClosed(io.ErrUnexpectedEOF) && !IsConnectionClosed(context.Canceled),
		"a closed connection is not recognized")
}

func pemOf(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) }

func TestHosts(t *testing.T) {
	for _, tt := range []struct{ name, list, want, wrong string }{
		{"a name", "h", "h:17", ""},
		{"a port", "h:1", "h:1", ""},
		{"several", "a:1, b,[::1]", "a:1 b:17 [::1]:17", ""},
		{"an IPv6 address with a port", "[::1]:7", "[::1]:7", ""},
		{"a bare IPv6 address", "::1", "[::1]:17", ""},
		{"none", "", "", "no address"},
		{"one that is empty", "a,,b", "", "no address"},
		{"a port alone", ":5555", "", "no host"},
		{"a colon alone", "h:", "", "invalid port"},
		{"the port 0", "h:0", "", "invalid port 0"},
		{"a port in letters", "h:x", "", `"h:x": invalid port x`},
		{"too large a port", "a,h:70000", "", `"h:70000": invalid port 70000: want 1 to 65535`},
		{"half an IPv6 address", "[::1:x", "", "::1:x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hosts, err := Hosts(tt.list, "17")
			if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
				t.Fatalf("got %v, want %q", err, tt.wrong)
			}
			got := strings.Join(hosts, " ")
			assert.True(t, err != nil || got == tt.want, "got %s, want %s", got, tt.want)
		})
	}
}

func TestCheckURL(t *testing.T) {
	for _, tt := range []struct{ url, wrong, hint string }{
		{"x://h:1/path", "", ""},
		{"x://me:canary@h", "a user or a password", "log in so"},
		{"x://me@h", "a user or a password", "log in so"},
		{"x://h?token=canary", "must not have a query", "settings"},
		{"x://h/#canary", "must not have a query", "settings"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			u := assert.Value(url.Parse(tt.url))(t)
			err := CheckURL(u, "read it", "log in so", "settings are flags")
			if tt.wrong == "" {
				assert.True(t, err == nil, "got %v, want none", err)
				return
			}
			var e *protocol.Error
			assert.Must(t, errors.As(err, &e) && e.Doing == "read it" && strings.Contains(err.Error(), tt.wrong) &&
				strings.Contains(e.Hint, tt.hint), "got %v, want %q with a hint on %s", err, tt.wrong, tt.hint)
			assert.True(t, !strings.Contains(err.Error()+e.Hint, "canary"), "the error reveals the secret: %v", err)
		})
	}
}

func TestListenAddress(t *testing.T) {
	for text, want := range map[string]string{
		"8080": "127.0.0.1 8080", ":8080": "127.0.0.1 8080", "0": "127.0.0.1 0", "0.0.0.0:1": "0.0.0.0 1", "[::1]:2": "::1 2", "name:3": "name 3",
		"": `"" is not a port`, "x": `"x" is not a port`, "h:99999": `"99999" is not a port`, "a:b:c": "too many colons in address", "[::1": "missing ']' in address",
	} {
		host, port, err := ListenAddress(text)
		got := host + " " + port
		if err != nil {
			got = err.Error()
		}
		assert.Equal(t, got, want, "%q", text)
	}
}

// TestRestrict: no connection is made to an address that is not allowed.
func TestRestrict(t *testing.T) {
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	addr := ln.Addr().String()
	why := errors.New("not there")
	Restrict(func(a string) error {
		if a == addr {
			return NotAllowed(why, "ask")
		}
		return nil
	})
	defer Restrict(nil)
	var d Dialer
	if _, err := d.Dial(t.Context(), addr); !errors.Is(err, why) || Hint(err, false) != "ask" {
		t.Errorf("got %v (%s)", err, Hint(err, false))
	}
	assert.True(t, !SpeaksTLS(t.Context(), addr), "TLS was tried")
	end := Own(addr)
	conn, err := d.Dial(t.Context(), addr)
	if err != nil {
		t.Errorf("a server of this process cannot be reached: %v", err)
	} else {
		conn.Close()
	}
	end()
	end()
	_, err = d.Dial(t.Context(), addr)
	assert.True(t, errors.Is(err, why), "a server of this process that has ended: got %v", err)
	Restrict(func(string) error { return nil })
	conn = assert.Value(d.Dial(t.Context(), addr))(t)
	conn.Close()
}

func TestContact(t *testing.T) {
	addr, ca := secured(t)
	m := assert.Value(ReadMaterial(protocol.Values{"tls-ca": {ca}}))(t)
	trusting := assert.Value(m.Config())(t)
	const closed = testkit.ClosedPort
	_, port, _ := net.SplitHostPort(addr)
	for _, tt := range []struct {
		name, addr string
		tls        *tls.Config
		level      protocol.Level // of the worst
		want       string
	}{
		{"plain", addr, nil, protocol.LevelOK, "accepts connections within"},
		{"TLS", addr, trusting, protocol.LevelOK, "TLS 1.3, with a certificate until"},
		{"an authority that is not known", addr, &tls.Config{}, protocol.LevelError, "unknown authority"},
		{"closed", closed, nil, protocol.LevelError, closed + " does not accept connections: connection refused"},
		// It has an IPv6 address, too, at which nothing listens.
		{"a name", net.JoinHostPort("localhost", port), nil, protocol.LevelOK, "127.0.0.1"},
		{"no port", "127.0.0.1", nil, protocol.LevelError, "missing port"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := (&Dialer{TLS: tt.tls}).Contact(t.Context(), tt.addr)
			worst, text := protocol.LevelOK, ""
			for _, f := range c.Findings(time.Now()) {
				worst, text = max(worst, f.Level), text+f.Found+"\n"
				assert.True(t, f.Level < protocol.LevelNote || f.Effect != "" && f.Fix != "", "%+v lacks its effect or what changes it", f)
			}
			assert.True(t, worst == tt.level && strings.Contains(text, tt.want), "got %v: %s, want %v: %s", worst, text, tt.level, tt.want)
		})
	}
	Restrict(func(string) error { return NotAllowed(errors.New("not there"), "ask") })
	defer Restrict(nil)
	c := (&Dialer{}).Contact(t.Context(), addr)
	assert.True(t, c.Err != nil && len(c.IPs) == 0, "an address that is not allowed was contacted: %+v", c)
}

func TestContactFindings(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	until := func(d time.Duration) *tls.ConnectionState {
		return &tls.ConnectionState{Version: tls.VersionTLS13, PeerCertificates: []*x509.Certificate{{NotAfter: now.Add(1000 * time.Hour)}, {NotAfter: now.Add(d)}}}
	}
	// One chain ends later than another; the server also sends an expired certificate.
	verified := until(-time.Hour)
	verified.VerifiedChains = [][]*x509.Certificate{{{NotAfter: now.Add(50 * time.Hour)}}, {{NotAfter: now.Add(900 * time.Hour)}, {NotAfter: now.Add(800 * time.Hour)}}}
	slow := &net.OpError{Op: "dial", Err: timeoutError{}}
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	two := []string{"192.0.2.1", "192.0.2.2"}
	for _, tt := range []struct {
		name    string
		contact Contact
		level   protocol.Level
		want    string
	}{
		{"one IP is silent", Contact{Addr: "a:1", IPs: two, Errs: map[string]error{"192.0.2.2": slow}}, protocol.LevelWarning, "1 of the 2 IPs of a:1 do not accept connections, such as 192.0.2.2: no answer in time"},
		{"one IP refuses", Contact{Addr: "a:1", IPs: two, Errs: map[string]error{"192.0.2.1": refused}}, protocol.LevelNote, "such as 192.0.2.1: refused"},
		{"the name is not known", Contact{Addr: "a:1", Err: &net.DNSError{Err: "no such host"}}, protocol.LevelError, "the name is not known (no such host)"},
		{"no name server", Contact{Addr: "a:1", Err: &net.DNSError{IsTimeout: true}}, protocol.LevelError, "name servers do not answer"},
		{"a good certificate", Contact{Addr: "a:1", IPs: two, TLS: until(900 * time.Hour)}, protocol.LevelOK, "until 2026-04-08"},
		{"soon expired", Contact{Addr: "a:1", IPs: two, TLS: until(50 * time.Hour)}, protocol.LevelNote, "expires on 2026-03-03, in 2 days"},
		{"about to expire", Contact{Addr: "a:1", IPs: two, TLS: until(90 * time.Minute)}, protocol.LevelWarning, "expires in 1h30m"},
		{"expired", Contact{Addr: "a:1", IPs: two, TLS: until(-time.Hour)}, protocol.LevelWarning, "expired on 2026-03-01"},
		{"expired, but not needed", Contact{Addr: "a:1", IPs: two, TLS: verified}, protocol.LevelOK, "until 2026-04-03"},
		{"no certificate", Contact{Addr: "a:1", IPs: two, TLS: &tls.ConnectionState{}}, protocol.LevelUnknown, "no certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := tt.contact.Findings(now)
			f := fs[len(fs)-1]
			protocoltest.Found(t, f, tt.level, tt.want)
		})
	}
}

type timeoutError struct{}

func (timeoutError) Error() string { return "i/o timeout" }
func (timeoutError) Timeout() bool { return true }

func TestIsLocal(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "192.0.2.1:1": false, "kafka.example.org:1": false, "127.9.9.9": true} {
		assert.Equal(t, IsLocal(addr), want, "%s", addr)
	}
}

func TestAbsence(t *testing.T) {
	var a ConnectFailures
	if got := a.Warnings(); len(got) != 0 {
		t.Errorf("nothing failed: got %q", got)
	}
	a.Note("b:1", 2*time.Second, "timeout")
	a.Note("a:1", 1960*time.Millisecond, "reset")
	a.Note("a:1", 6900*time.Millisecond, "connection refused")
	want := []string{
		"connecting to a:1 failed 2 times, from 1.96 s to 6.9 s after the start; the last error: connection refused",
		"connecting to b:1 failed 2 s after the start: timeout",
	}
	if got := a.Warnings(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q\nwant %q", got, want)
	}
	for i := range 20 {
		a.Note(fmt.Sprintf("c%02d:1", i), time.Second, "timeout")
	}
	got := a.Warnings()
	assert.True(t, len(got) == mostAbsent+1 && got[mostAbsent] == "connecting to 14 other addresses failed, too", "got %q", got)
}

// An outage that ends is kept with its whole length. A connection that is made again at once is none.
func TestOutageIsKept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		length time.Duration
		kept   int
	}{{"none", -1, 0}, {"short", 50 * time.Millisecond, 0}, {"long", 29 * time.Second, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var o Outage
				if tt.length >= 0 {
					o.Note(0, errors.New("lost"))
					o.Note(tt.length/2, errors.New("refused"))
					time.Sleep(tt.length)
				}
				kept := 0
				happened := func(name string, began time.Time, length time.Duration) {
					kept++
					assert.Equal(t, name, "no connection", "name")
					assert.True(t, began.Equal(start) && length == tt.length, "it began %v after the start and lasted %v", began.Sub(start), length)
				}
				o.Over(time.Since(start), happened)
				o.Over(time.Since(start), happened) // it is over
				assert.Equal(t, kept, tt.kept, "outages that are kept")
			})
		})
	}
}
