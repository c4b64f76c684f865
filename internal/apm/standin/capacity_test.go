package standin

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/standin"
	"carronade/internal/standin/standintest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func requestOf(events int) string {
	body := meta + strings.Repeat(goodSpan, events)
	return fmt.Sprintf("POST /intake/v2/events?verbose HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func pipeline(t *testing.T, s *Server, requests ...string) *bufio.Reader {
	t.Helper()
	nc := assert.Value(net.Dial("tcp", s.Addr()))(t)
	t.Cleanup(func() { nc.Close() })
	assert.OK(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	assert.Value(nc.Write([]byte(strings.Join(requests, ""))))(t)
	return bufio.NewReader(nc)
}

func receive(t *testing.T, in *bufio.Reader) (status int, a answer) {
	t.Helper()
	resp := assert.Value(http.ReadResponse(in, nil))(t) //nolint:bodyclose // it is closed below
	defer resp.Body.Close()
	assert.OK(t, json.NewDecoder(resp.Body).Decode(&a))
	return resp.StatusCode, a
}

// TestServerAnswersWhenServed: each answer leaves when its last event is served. Over HTTP/1.1 pipelined requests enter
// the queue when they come, and not when the one before them is answered.
func TestServerAnswersWhenServed(t *testing.T) {
	t.Parallel()
	t.Run("HTTP/1.1", func(t *testing.T) {
		s := start(t, Options{Capacity: standintest.Limited(10, 10_000)})
		begin := time.Now()
		in := pipeline(t, s, requestOf(1), requestOf(5), requestOf(1000))
		testkit.Until(t, "all are accepted", func() bool { return s.Counts().Accepted == 1006 })
		for i, want := range []time.Duration{100 * time.Millisecond, 600 * time.Millisecond} {
			status, a := receive(t, in)
			assert.Must(t, status == 202 && a.Accepted != 0, "got %d %+v", status, a)
			got := time.Since(begin)
			assert.True(t, got >= want, "answer %d came after %v, want %v at least", i, got, want)
		}
		// The third would come after 100 s; the connection's deadline is earlier.
	})
	t.Run("HTTP/2", func(t *testing.T) {
		s := start(t, Options{Capacity: standintest.Limited(10, 10)})
		var h2 http.Protocols
		h2.SetUnencryptedHTTP2(true)
		cl := &http.Client{Transport: &http.Transport{Protocols: &h2}}
		defer cl.CloseIdleConnections()
		begin := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+"/intake/v2/events", strings.NewReader(meta+strings.Repeat(goodSpan, 6)))
		assert.OK(t, err)
		r.Header.Set("Content-Type", "application/x-ndjson")
		resp := assert.Value(cl.Do(r))(t) //nolint:bodyclose // it is closed below
		resp.Body.Close()
		if got := time.Since(begin); resp.StatusCode != http.StatusAccepted || resp.ProtoMajor != 2 || got < 600*time.Millisecond {
			t.Errorf("got %s over %s after %v, want 202 after 600ms at least", resp.Status, resp.Proto, got)
		}
	})
	t.Run("v1", func(t *testing.T) {
		s := start(t, Options{V1: true, Capacity: standintest.Limited(10, 10)})
		begin := time.Now()
		status, text := post(t, "http://"+s.Addr()+"/v1/errors", v1Errors(t, 3))
		if got := time.Since(begin); status != 202 || got < 300*time.Millisecond {
			t.Errorf("got %d %s after %v, want 202 after 300ms at least", status, text, got)
		}
	})
}

// TestServerRefuses: events that find the queue full are refused as by a full queue,
// which ends the connection: not before the answers to what was accepted left.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, Options{V1: true, Capacity: standintest.Limited(2, 3)})
	begin := time.Now()
	in := pipeline(t, s, requestOf(2), requestOf(100))
	if status, a := receive(t, in); status != 202 || a.Accepted != 2 {
		t.Errorf("got %d %+v, want 2 accepted", status, a)
	}
	status, a := receive(t, in)
	// Two more find room, or some more if the test is slow.
	assert.True(t, status == 503 && a.Accepted >= 2 && len(a.Errors) == 1 && a.Errors[0].Message == "queue is full",
		"got %d %+v, want 503 after 2", status, a)
	got, want := time.Since(begin), time.Duration(2+a.Accepted)*time.Second/2
	assert.True(t, got >= want, "answered after %v, want %v at least: %d events are served", got, want, 2+a.Accepted)
	if c := s.Counts(); c.Full != 1 || c.Accepted != uint64(2+a.Accepted) || c.Waiting != 0 {
		t.Errorf("got %+v, want one refusal and %d events", c, 2+a.Accepted)
	}
	status, text := post(t, "http://"+s.Addr()+"/v1/errors", v1Errors(t, 5))
	assert.True(t, status == 503 && text == `{"error":"queue is full"}`, "got %d %s, want 503", status, text)
}

// TestServerAndErrors: an error that ends the connection does not overtake the answers that wait.
func TestServerAndErrors(t *testing.T) {
	t.Parallel()
	rule := assert.Value(ParseErrorRule("internal@50%"))(t)
	s := start(t, Options{Capacity: standintest.Limited(4, 100), Errors: []ErrorRule{rule}})
	var in *bufio.Reader
	for status := 0; status != 500; { // until the second of two gets the error
		in = pipeline(t, s, requestOf(1), requestOf(1))
		if first, _ := receive(t, in); first == 202 {
			status, _ = receive(t, in)
		}
	}
}

// TestServerEnds: answers that are due in a quarter of an hour do not delay the end of the stand-in.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Capacity: standintest.Limited(0.001, 10)})
	pipeline(t, s, requestOf(1))
	pipeline(t, s, strings.Replace(requestOf(1), "Host: h", "Host: h\r\nConnection: close", 1))
	testkit.Until(t, "both are accepted", func() bool { return s.Counts().Accepted == 2 })
	assert.OK(t, s.Close())
}

func v1Errors(t *testing.T, n int) []byte {
	return bodyOf(t, wire.Makeup{Protocol: wire.V1, Events: wire.Range{Min: n, Max: n}}, 0).Bytes
}

// The record contains each request with events, with the times of its answer.
func TestRecord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		discard bool
		events  string
	}{{"judging", false, "2"}, {"discard", true, ""}} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "record.csv")
			s := start(t, Options{Discard: tt.discard, Record: path})
			body := bodyOf(t, wire.Makeup{Events: wire.Range{Min: 2, Max: 2}, Mix: [wire.Kinds]int{1}}, 0)
			for range 3 {
				status, text := post(t, "http://"+s.Addr()+"/intake/v2/events", body.Bytes, "Content-Type", "application/x-ndjson")
				assert.Must(t, status == http.StatusAccepted, "got %d %s", status, text)
			}
			assert.OK(t, s.Close())
			rows := testkit.CSV(t, path)
			assert.Must(t, len(rows) == 4, "%q, want 3 requests", rows)
			for _, r := range rows[1:] {
				assert.True(t, r[2] == "request" && r[6] == tt.events && r[7] != "" && r[8] != "" && r[9] != "",
					"got %q, want a request of %q events, and its answer", r, tt.events)
			}
		})
	}
}

func tlsFiles(cert, key string) standin.TLS { return standin.TLS{Cert: cert, Key: key} }

// certificate makes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (files standin.TLS, pool *x509.CertPool) {
	t.Helper()
	own := testkit.NewAuthority("test")
	files.Cert, files.Key = own.Files(t)
	return files, own.Pool()
}

func TestProtocolsOfHTTP(t *testing.T) {
	t.Parallel()
	files, pool := certificate(t)
	plain, secure := start(t, Options{}), start(t, Options{TLS: files})
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	for _, tt := range []struct {
		name, url string
		tr        *http.Transport
		major     int
	}{
		{"1.1", "http://" + plain.Addr(), &http.Transport{}, 1},
		{"2 without TLS", "http://" + plain.Addr(), &http.Transport{Protocols: h2c}, 2},
		{"1.1 over TLS", "https://" + secure.Addr(), &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, 1},
		{"2", "https://" + secure.Addr(), &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer tt.tr.CloseIdleConnections()
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, tt.url+"/intake/v2/events", strings.NewReader(meta+goodSpan))
			resp := assert.Value((&http.Client{Transport: tt.tr}).Do(r))(t) //nolint:bodyclose // it is closed below
			resp.Body.Close()
			assert.True(t, resp.StatusCode == http.StatusAccepted && resp.ProtoMajor == tt.major,
				"got %d by HTTP/%d, want 202 by %d", resp.StatusCode, resp.ProtoMajor, tt.major)
		})
	}
}

func TestDelayAndStall(t *testing.T) {
	t.Parallel()
	for _, discard := range []bool{false, true} {
		standintest.Late(t, func(t *testing.T, delay time.Duration, stall standin.Stall) func() {
			s := start(t, Options{Delay: delay, Stall: stall, Discard: discard})
			return func() { _, _ = post(t, "http://"+s.Addr()+"/intake/v2/events", []byte(meta+goodSpan)) }
		})
	}
}
