package standin

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

	"carronade/internal/riemann/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func webServer(t *testing.T, opts Options) *Server {
	opts.Web, opts.Interval = "127.0.0.1:0", time.Hour
	return start(t, opts)
}

func socket(t *testing.T, s *Server, path string) (*websocket.Conn, context.Context) {
	t.Helper()
	ctx := testkit.Minute(t)
	c, _, err := websocket.Dial(ctx, "ws://"+s.AddrOf("ws")+path, nil) //nolint:bodyclose // none, of a WebSocket
	assert.OK(t, err)
	t.Cleanup(func() { c.CloseNow() })
	return c, ctx
}

func receive(ctx context.Context, t *testing.T, c *websocket.Conn) string {
	t.Helper()
	_, b, err := c.Read(ctx)
	assert.OK(t, err)
	return string(b)
}

// TestEventSocket sends events over WebSocket, and text that is not an event.
func TestEventSocket(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		s := webServer(t, opts)
		c, ctx := socket(t, s, "/events")
		for _, send := range []string{`{"host":"h","service":"a","metric":1,"x":"y","time":"2999-01-01T00:00:00.000Z"}`, `nonsense`, `{"service":"b"}`} {
			assert.OK(t, c.Write(ctx, websocket.MessageText, []byte(send)))
			answer := receive(ctx, t, c)
			bad := send == "nonsense" && !opts.Discard
			assert.True(t, (answer != "{}") == bad, "%s: got %s", send, answer)
		}
		if opts.Discard {
			return
		}
		got, events := dial(t, s.Addr()).find("true")
		diff := cmp.Diff([]string{"a", "b"}, got)
		assert.Must(t, diff == "", "(-want +got):\n%s", diff)
		want := wire.Event{
			Host: "h", Service: "a", Metric: wire.Metric{Kind: wire.Sint64, Int: 1}, Attributes: []wire.Attribute{{Key: "x", Value: "y"}},
			Time: 32472144000, HasTime: true,
		}
		assert.Same(t, events[0], want)
	})
}

// TestEventLines sends a body of lines and reads the answers while the body is
// still open.
func TestEventLines(t *testing.T) {
	t.Parallel()
	s := webServer(t, Options{})
	body, in := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.AddrOf("ws")+"/events", body)
	assert.OK(t, err)
	go io.WriteString(in, "{\"service\":\"a\"}\n\n{\"service\":\"b\"}\n")
	resp, err := http.DefaultClient.Do(req)
	assert.OK(t, err)
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
	assert.Value(io.WriteString(in, "{\"service\":\"c\"}\n"))(t)
	next("{}")
	// A line that is not an event ends it.
	go io.WriteString(in, "nonsense\n{\"service\":\"d\"}\n")
	next(`{"error":"read JSON event: `)
	if answers.Scan() {
		t.Errorf("got %q after an error, want the end", answers.Text())
	}
	in.Close()
	got, _ := dial(t, s.Addr()).find("true")
	assert.True(t, cmp.Diff([]string{"a", "b", "c"}, got) == "", "got %q, want a, b and c", got)
}

func TestWebRefusals(t *testing.T) {
	t.Parallel()
	s := webServer(t, Options{Errors: []ErrorRule{{Name: `no "room"`, Share: 1}}})
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+s.AddrOf("ws")+test.path, strings.NewReader(test.body))
			assert.OK(t, err)
			resp, err := http.DefaultClient.Do(req)
			assert.OK(t, err)
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			assert.True(t, err == nil && resp.StatusCode == test.code && strings.Contains(string(b), test.want),
				"got %d %q, %v; want %d and %q", resp.StatusCode, b, err, test.code, test.want)
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
	assert.OK(t, json.Unmarshal([]byte(event), &e), "%q", event)
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
	assert.Equal(t, service(t, receive(ctx, t, once)), "there")
	if _, _, err := once.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("got %v, want the end", err)
	}

	more, ctx := socket(t, s, "/index"+query+"&subscribe=true")
	assert.Equal(t, service(t, receive(ctx, t, more)), "there")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.AddrOf("ws")+"/index"+query, http.NoBody)
	assert.OK(t, err)
	resp, err := http.DefaultClient.Do(req)
	assert.OK(t, err)
	defer resp.Body.Close()
	assert.Equal(t, resp.Header.Get("Content-Type"), "text/event-stream", "content type")
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
	assert.Equal(t, sent(), "there", "server-sent")
	p.send(message("other", "new"))
	p.answer()
	assert.Equal(t, service(t, receive(ctx, t, more)), "new")
	assert.Equal(t, sent(), "new", "server-sent")
	// Expired events are sent too.
	s.core.index.put(&wire.Event{Host: "h", Service: "old", Time: 1, HasTime: true}, nil)
	assert.Equal(t, service(t, receive(ctx, t, more)), "old")
	// The server's end closes all connections.
	assert.OK(t, s.Close())
	_, _, err = more.Read(ctx)
	assert.True(t, err != nil && ctx.Err() == nil, "got %v after the server's end, want the connection closed", err)
}

// TestSlowSubscriber: a slow subscriber is dropped and does not delay others.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	var h hub
	q := assert.Value(parseQuery("true"))(t)
	slow, quick := h.subscribe(q), h.subscribe(q)
	for range subscriptionBuffer + 1 {
		h.publish(&wire.Event{})
		<-quick.events
	}
	got := 0
	for range slow.events {
		got++
	}
	assert.Equal(t, got, subscriptionBuffer, "events of the slow subscriber")
	assert.Equal(t, h.subscribers.Load(), 1, "subscribers")
	h.unsubscribe(slow)
	h.unsubscribe(quick)
	h.publish(&wire.Event{})
}
