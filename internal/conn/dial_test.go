package conn

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
			m, err := ReadMaterial(tt.given)
			assert.OK(t, err)
			d := Dialer{Timeout: time.Minute, SendBuffer: 32 << 10, RecvBuffer: 32 << 10}
			d.TLS, err = m.Config()
			assert.OK(t, err)
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

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

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
	conn, err = d.Dial(t.Context(), addr)
	assert.OK(t, err)
	conn.Close()
}
