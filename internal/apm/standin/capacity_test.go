package standin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// limited is a server of this many events a second, for which this many may wait.
func limited(rate float64, queue int64) standin.CapacityOptions {
	return standin.CapacityOptions{Server: standin.CapacitySettings{Rate: rate, Service: standin.Service{Kind: standin.Constant}, Servers: 1, Queue: queue}}
}

func requestOf(events int) string {
	body := meta + strings.Repeat(goodSpan, events)
	return fmt.Sprintf("POST /intake/v2/events?verbose HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// pipeline sends requests at once, and returns the reader of their answers.
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
	resp, err := http.ReadResponse(in, nil)
	assert.OK(t, err)
	defer resp.Body.Close()
	assert.OK(t, json.NewDecoder(resp.Body).Decode(&a))
	return resp.StatusCode, a
}

// TestServerAnswersWhenServed: each answer leaves when its last event is served. Over
// HTTP/1.1 pipelined requests enter the queue when they come, and not when the one
// before them is answered.
func TestServerAnswersWhenServed(t *testing.T) {
	t.Parallel()
	t.Run("HTTP/1.1", func(t *testing.T) {
		s := start(t, Options{Capacity: limited(10, 10_000)})
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
		s := start(t, Options{Capacity: limited(10, 10)})
		var h2 http.Protocols
		h2.SetUnencryptedHTTP2(true)
		cl := &http.Client{Transport: &http.Transport{Protocols: &h2}}
		defer cl.CloseIdleConnections()
		begin := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+"/intake/v2/events", strings.NewReader(meta+strings.Repeat(goodSpan, 6)))
		assert.OK(t, err)
		r.Header.Set("Content-Type", "application/x-ndjson")
		resp, err := cl.Do(r)
		assert.OK(t, err)
		resp.Body.Close()
		if got := time.Since(begin); resp.StatusCode != http.StatusAccepted || resp.ProtoMajor != 2 || got < 600*time.Millisecond {
			t.Errorf("got %s over %s after %v, want 202 after 600ms at least", resp.Status, resp.Proto, got)
		}
	})
	t.Run("v1", func(t *testing.T) {
		s := start(t, Options{V1: true, Capacity: limited(10, 10)})
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
	s := start(t, Options{V1: true, Capacity: limited(2, 3)})
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

// TestServerAndErrors: an error that ends the connection does not overtake the answers
// that wait.
func TestServerAndErrors(t *testing.T) {
	t.Parallel()
	rule := assert.Value(ParseErrorRule("internal@50%"))(t)
	s := start(t, Options{Capacity: limited(4, 100), Errors: []ErrorRule{rule}})
	var in *bufio.Reader
	for status := 0; status != 500; { // until the second of two gets the error
		in = pipeline(t, s, requestOf(1), requestOf(1))
		if first, _ := receive(t, in); first == 202 {
			status, _ = receive(t, in)
		}
	}
}

// TestServerEnds: answers that are due in a quarter of an hour do not delay the end
// of the stand-in.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Capacity: limited(0.001, 10)})
	pipeline(t, s, requestOf(1))
	pipeline(t, s, strings.Replace(requestOf(1), "Host: h", "Host: h\r\nConnection: close", 1))
	testkit.Until(t, "both are accepted", func() bool { return s.Counts().Accepted == 2 })
	assert.OK(t, s.Close())
}

func v1Errors(t *testing.T, n int) []byte {
	return bodyOf(t, wire.Makeup{Protocol: wire.V1, Events: wire.Range{Min: n, Max: n}}, 0).Bytes
}
