package conn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
	Restrict(func(string) error {
		return NotAllowed(errors.New("not there"), "ask")
	})
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
