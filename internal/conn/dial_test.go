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

// secured starts a server with TLS and returns its address and the file of its
// authority.
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
