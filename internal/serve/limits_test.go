package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/door"
	"carronade/internal/serve/jobs"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestThousandSubmissions: jobs that two users submit at once for one system, in several spellings, never
// run at the same time, and each runs once.
func TestThousandSubmissions(t *testing.T) {
	if runtime.GOOS == "windows" || testing.Short() {
		t.Skip("it needs a Unix shell and much time")
	}
	script := `mkdir here || echo "$2" >> overlaps; echo "$2" >> ran; rmdir here`
	s := openTestSite(t, jobs.Options{Program: []string{"/bin/sh", "-c", script}, Parallel: 3, QueuedPerUser: 1000}, func(l net.Listener) net.Listener { return l })
	bob := assert.Value(s.tokens.Add("bob"))(t)
	targets := []string{"kafka://localhost/t", "kafka://127.0.0.1:9092/u", "kafka://LOCALHOST:9092,b/t", "kafka://b,localhost./t"}
	const each = 500
	var work sync.WaitGroup
	for k, secret := range []string{s.secret, bob} {
		client := &http.Client{Transport: &http.Transport{}} // a connection of its own
		defer client.CloseIdleConnections()
		work.Go(func() {
			for i := range each {
				body, _ := json.Marshal(map[string]any{"args": []string{"run", targets[i%len(targets)], fmt.Sprintf("%d-%d", k, i)}}) //nolint:errchkjson // strings
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/v1/jobs", strings.NewReader(string(body)))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+secret)
				r.Header.Set("Content-Type", "application/json")
				a, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, a.Body)
				a.Body.Close()
				assert.Equal(t, a.StatusCode, http.StatusCreated, "status")
			}
		})
	}
	work.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for id := range int64(2 * each) {
		job, err := s.queue.Wait(ctx, id+1)
		assert.Must(t, err == nil && job.State == jobs.Done, "%+v, %v", job, err)
	}
	if text, err := os.ReadFile(filepath.Join(s.folder, "overlaps")); err == nil {
		t.Errorf("these ran beside others: %s", text)
	}
	text, err := os.ReadFile(filepath.Join(s.folder, "ran"))
	ran := strings.Fields(string(text))
	slices.Sort(ran)
	if len(ran) != 2*each || len(slices.Compact(ran)) != 2*each {
		t.Errorf("%d jobs ran, %d of them different: %v", len(ran), len(slices.Compact(ran)), err)
	}
}

// A counter is a listener that counts its open connections.
type counter struct {
	net.Listener
	accepted chan struct{}

	mu         sync.Mutex
	open, most int
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *counter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.open++
	c.most = max(c.most, c.open)
	c.mu.Unlock()
	c.accepted <- struct{}{}
	return &countedConn{conn, sync.OnceFunc(func() {
		c.mu.Lock()
		c.open--
		c.mu.Unlock()
	})}, nil
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// TestThousandConnections: connections without a token have few places, and keep no user with a token
// out: neither a new one nor one that is connected.
func TestThousandConnections(t *testing.T) {
	testkit.Need(t, "some seconds")
	c := counter{accepted: make(chan struct{}, 2000)}
	s := openTestSite(t, jobs.Options{}, func(l net.Listener) net.Listener { c.Listener = l; return &c })
	dial := func() net.Conn {
		conn := assert.Value(net.Dial("tcp", strings.TrimPrefix(s.url, "http://")))(t)
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(time.Minute))
		return conn
	}
	ask := func(conn net.Conn) {
		t.Helper()
		fmt.Fprintf(conn, "GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", s.secret)
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		assert.Must(t, err == nil && a.StatusCode == http.StatusOK, "%+v, %v", a, err)
		a.Body.Close()
	}
	user := dial()
	ask(user)
	const many = 1000
	for k := range many {
		conn := dial()
		if k%2 == 0 {
			io.WriteString(conn, "GET /api/v1/status HTTP/1.1\r\nHost: ")
		}
	}
	for range many + 1 {
		<-c.accepted
	}
	ask(user)
	ask(dial())
	c.mu.Lock()
	defer c.mu.Unlock()
	if most := door.FromOne + 4; c.most > most { // those of the user, and one that comes while another leaves
		t.Errorf("%d connections were open at once, want %d at most", c.most, most)
	}
}

// TestSlowReader: a job does not wait for a client that follows its output and reads nothing.
func TestSlowReader(t *testing.T) {
	s := newTestSite(t)
	id := s.submit("run", "null://", "print")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/api/v1/jobs/%d/output?follow=1", s.url, id), http.NoBody)
	assert.OK(t, err)
	r.Header.Set("Authorization", "Bearer "+s.secret)
	a, err := http.DefaultTransport.RoundTrip(r)
	assert.OK(t, err)
	defer a.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job, err := s.queue.Wait(ctx, id)
	assert.Must(t, err == nil && job.State == jobs.Done, "%+v, %v", job, err)
	if text, err := io.ReadAll(a.Body); err == nil && (len(text) > manyLines*1000 || !strings.HasPrefix(string(text), "run null:// print\n")) {
		t.Errorf("%d bytes, %.99q", len(text), text)
	}
}

// TestArrivingDeadline: a client that sends a byte now and then loses its place.
func TestArrivingDeadline(t *testing.T) {
	began := time.Unix(1000, 0)
	for _, tt := range []struct {
		bytes int64
		after time.Duration
		want  time.Duration
	}{
		{0, 0, slowest},
		{1, slowest - time.Second, slowest + time.Second/leastRate},
		{10 * leastRate, 3 * time.Second, 3*time.Second + slowest},
		{10 * leastRate, 15 * time.Second, slowest + 10*time.Second},
	} {
		b := arriving{began: began, bytes: tt.bytes}
		assert.Equal(t, b.deadline(began.Add(tt.after)).Sub(began), tt.want, "%d bytes after %v", tt.bytes, tt.after)
	}
}
