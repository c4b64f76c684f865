package riemann

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	wire "carronade/internal/wire/riemann"
)

func webServer(t *testing.T, opts Options) *Server {
	opts.Web, opts.Interval = "127.0.0.1:0", time.Hour
	return start(t, opts)
}

func socket(t *testing.T, s *Server, path string) (*websocket.Conn, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	c, _, err := websocket.Dial(ctx, "ws://"+s.AddrOf("ws")+path, nil) //nolint:bodyclose // none, of a WebSocket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	return c, ctx
}

func receive(ctx context.Context, t *testing.T, c *websocket.Conn) string {
	t.Helper()
	_, b, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestEventSocket sends events over WebSocket, and text that is not an event.
func TestEventSocket(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		s := webServer(t, opts)
		c, ctx := socket(t, s, "/events")
		for _, send := range []string{`{"host":"h","service":"a","metric":1,"x":"y","time":"2999-01-01T00:00:00.000Z"}`, `nonsense`, `{"service":"b"}`} {
			if err := c.Write(ctx, websocket.MessageText, []byte(send)); err != nil {
				t.Fatal(err)
			}
			answer := receive(ctx, t, c)
			if bad := send == "nonsense" && !opts.Discard; (answer != "{}") != bad {
				t.Errorf("%s: got %s", send, answer)
			}
		}
		if opts.Discard {
			return
		}
		got, events := dial(t, s.Addr()).find("true")
		if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		want := wire.Event{
			Host: "h", Service: "a", Metric: wire.Metric{Kind: wire.Sint64, Int: 1}, Attributes: []wire.Attribute{{Key: "x", Value: "y"}},
			Time: 32472144000, HasTime: true,
		}
		if diff := cmp.Diff(want, events[0]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestEventLines sends a body of lines and reads the answers while the body is
// still open.
func TestEventLines(t *testing.T) {
	t.Parallel()
	s := webServer(t, Options{})
	body, in := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.AddrOf("ws")+"/events", body)
	if err != nil {
		t.Fatal(err)
	}
	go io.WriteString(in, "{\"service\":\"a\"}\n\n{\"service\":\"b\"}\n")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answers := bufio.NewScanner(resp.Body)
	next := func(want string) {
		t.Helper()
		if !answers.Scan() || !strings.HasPrefix(answers.Text(), want) {
			t.Fatalf("got %q, %v; want %q", answers.Text(), answers.Err(), want)
		}
	}
	next("{}")
	next("{}")
	if _, err := io.WriteString(in, "{\"service\":\"c\"}\n"); err != nil {
		t.Fatal(err)
	}
	next("{}")
	// A line that is not an event ends it.
	go io.WriteString(in, "nonsense\n{\"service\":\"d\"}\n")
	next(`{"error":"read JSON event: `)
	if answers.Scan() {
		t.Errorf("got %q after an error, want the end", answers.Text())
	}
	in.Close()
	if got, _ := dial(t, s.Addr()).find("true"); cmp.Diff([]string{"a", "b", "c"}, got) != "" {
		t.Errorf("got %q, want a, b and c", got)
	}
}

func TestWebRefusals(t *testing.T) {
	t.Parallel()
	s := webServer(t, Options{Errors: []ErrorRule{{Name: `no "room"`, Share: 1}}})
	tests := []struct {
		name, method, path, body string
		code                     int
		want                     string
	}{
		{"no such path", "GET", "/", "", 404, ""},
		{"events by GET", "GET", "/events", "", 405, "PUT"},
		{"index by PUT", "PUT", "/index?query=true", "", 405, "GET"},
		{"a bad query", "GET", "/index?query=service+%3D", "", 400, "parse error: character 10: want"},
		{"no query", "GET", "/index", "", 400, "parse error: character 1: want"},
		{"an injected error", "POST", "/events/", `{"service":"a"}`, 200, `{"error":"no \"room\""}`},
		{"pubsub without a socket", "GET", "/pubsub/index?query=true", "", 426, "WebSocket"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+s.AddrOf("ws")+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != test.code || !strings.Contains(string(b), test.want) {
				t.Errorf("got %d %q, %v; want %d and %q", resp.StatusCode, b, err, test.code, test.want)
			}
		})
	}
	c, ctx := socket(t, s, "/index?query=service+%3D")
	_, _, err := c.Read(ctx)
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "parse error: character 10") {
		t.Errorf("a bad query over WebSocket: got %v, want the error of the parser", err)
	}
}

func service(t *testing.T, event string) string {
	t.Helper()
	var e struct{ Service string }
	if err := json.Unmarshal([]byte(event), &e); err != nil {
		t.Fatalf("%q: %v", event, err)
	}
	return e.Service
}

// TestSubscribe reads the index, and what enters it, over WebSocket and as
// server-sent events.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	s := webServer(t, Options{})
	p := dial(t, s.Addr())
	p.send(message("there", "other"))
	p.answer()
	query := "?query=" + url.QueryEscape(`service != "other"`)

	once, ctx := socket(t, s, "/index"+query)
	if got := service(t, receive(ctx, t, once)); got != "there" {
		t.Errorf("got %q, want the existing event", got)
	}
	if _, _, err := once.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("got %v, want the end", err)
	}

	more, ctx := socket(t, s, "/index"+query+"&subscribe=true")
	if got := service(t, receive(ctx, t, more)); got != "there" {
		t.Errorf("got %q, want the existing event", got)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.AddrOf("ws")+"/index"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("got content type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	sent := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || !lines.Scan() || lines.Text() != "" {
			t.Fatalf("got %q, want data and an empty line", lines.Text())
		}
		return service(t, data)
	}
	if got := sent(); got != "there" {
		t.Errorf("server-sent: got %q, want the existing event", got)
	}
	p.send(message("other", "new"))
	p.answer()
	if got := service(t, receive(ctx, t, more)); got != "new" {
		t.Errorf("got %q, want the new one", got)
	}
	if got := sent(); got != "new" {
		t.Errorf("server-sent: got %q, want the new one", got)
	}
	// Expired events are sent too.
	s.core.index.put(&wire.Event{Host: "h", Service: "old", Time: 1, HasTime: true}, nil)
	if got := service(t, receive(ctx, t, more)); got != "old" {
		t.Errorf("got %q, want the expired one", got)
	}
	// The server's end closes all connections.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := more.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("got %v after the server's end, want the connection closed", err)
	}
}

// TestSlowSubscriber: a slow subscriber is dropped and does not delay others.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	var h hub
	q, err := parseQuery("true")
	if err != nil {
		t.Fatal(err)
	}
	slow, quick := h.subscribe(q), h.subscribe(q)
	for range subscriptionBuffer + 1 {
		h.publish(&wire.Event{})
		<-quick.events
	}
	got := 0
	for range slow.events {
		got++
	}
	if got != subscriptionBuffer {
		t.Errorf("the slow subscriber got %d events, want %d", got, subscriptionBuffer)
	}
	if n := h.subscribers.Load(); n != 1 {
		t.Errorf("%d are subscribed, want 1", n)
	}
	h.unsubscribe(slow)
	h.unsubscribe(quick)
	h.publish(&wire.Event{})
}
