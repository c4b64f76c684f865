package standin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin/standintest"
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

// TestEventLines sends a body of lines and reads the answers while the body is still open.
func TestEventLines(t *testing.T) {
	t.Parallel()
	s := webServer(t, Options{})
	body, in := io.Pipe()
	req := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.AddrOf("ws")+"/events", body))(t)
	go io.WriteString(in, "{\"service\":\"a\"}\n\n{\"service\":\"b\"}\n")
	resp := assert.Value(http.DefaultClient.Do(req))(t) //nolint:bodyclose // it is closed below
	defer resp.Body.Close()
	answers := bufio.NewScanner(resp.Body)
	next := func(want string) {
		t.Helper()
		assert.Must(t, answers.Scan() && strings.HasPrefix(answers.Text(), want), "got %q, %v; want %q", answers.Text(), answers.Err(), want)
	}
	next("{}")
	next("{}")
	assert.Value(io.WriteString(in, "{\"service\":\"c\"}\n"))(t)
	next("{}")
	// A line that is not an event ends it.
	go io.WriteString(in, "nonsense\n{\"service\":\"d\"}\n")
	next(`{"error":"read JSON event: `)
	assert.True(t, !answers.Scan(), "got %q after an error, want the end", answers.Text())
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
			req := assert.Value(http.NewRequestWithContext(t.Context(), test.method, "http://"+s.AddrOf("ws")+test.path, strings.NewReader(test.body)))(t)
			resp := assert.Value(http.DefaultClient.Do(req))(t) //nolint:bodyclose // it is closed below
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			assert.True(t, err == nil && resp.StatusCode == test.code && strings.Contains(string(b), test.want),
				"got %d %q, %v; want %d and %q", resp.StatusCode, b, err, test.code, test.want)
		})
	}
	c, ctx := socket(t, s, "/index?query=service+%3D")
	_, _, err := c.Read(ctx)
	assert.True(t, websocket.CloseStatus(err) == websocket.StatusPolicyViolation && strings.Contains(err.Error(), "parse error: character 10"),
		"a bad query over WebSocket: got %v, want the error of the parser", err)
}

func service(t *testing.T, event string) string {
	t.Helper()
	var e struct{ Service string }
	assert.OK(t, json.Unmarshal([]byte(event), &e), "%q", event)
	return e.Service
}

// TestSubscribe reads the index, and what enters it, over WebSocket and as server-sent events.
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
	req := assert.Value(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.AddrOf("ws")+"/index"+query, http.NoBody))(t)
	resp := assert.Value(http.DefaultClient.Do(req))(t) //nolint:bodyclose // it is closed below
	defer resp.Body.Close()
	assert.Equal(t, resp.Header.Get("Content-Type"), "text/event-stream", "content type")
	lines := bufio.NewScanner(resp.Body)
	sent := func() string {
		t.Helper()
		assert.Must(t, lines.Scan(), "%v", lines.Err())
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		assert.Must(t, ok && lines.Scan() && lines.Text() == "", "got %q, want data and an empty line", lines.Text())
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
	_, _, err := more.Read(ctx)
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

func events(n int) wire.Msg { return message(strings.Split(strings.Repeat("x,", n-1)+"x", ",")...) }

// TestServerAnswersWhenServed: each answer leaves when its last event is served, also
// between messages that were sent together, over TCP, WebSocket and HTTP.
func TestServerAnswersWhenServed(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	t.Run("TCP", func(t *testing.T) {
		s := start(t, Options{Capacity: standintest.Limited(10, 10_000)})
		p := dial(t, s.Addr())
		begin := time.Now()
		p.send(events(1), events(5), events(1000))
		for i, want := range []time.Duration{100 * time.Millisecond, 600 * time.Millisecond} {
			m := p.answer()
			assert.Must(t, m.OK, "answer %d is %+v", i, m)
			got := time.Since(begin)
			assert.True(t, got >= want, "answer %d came after %v, want %v at least", i, got, want)
		}
		// The third would come after 100 s; the connection's deadline is earlier.
	})
	t.Run("WebSocket", func(t *testing.T) {
		s := start(t, Options{Capacity: standintest.Limited(1, 100), Web: "127.0.0.1:0"})
		ctx := testkit.Minute(t)
		c, _, err := websocket.Dial(ctx, "ws://"+s.AddrOf("ws")+"/events", nil) //nolint:bodyclose // there is none
		assert.OK(t, err)
		defer c.CloseNow()
		begin := time.Now()
		for range 100 { // the last is served after 100 s
			assert.OK(t, c.Write(ctx, websocket.MessageText, []byte(`{"service":"c"}`)))
		}
		_, answer, err := c.Read(ctx)
		assert.Must(t, err == nil && string(answer) == "{}", "got %s, %v", answer, err)
		got := time.Since(begin)
		assert.True(t, got >= time.Second, "answered after %v, want 1 s at least", got)
	})
	t.Run("HTTP", func(t *testing.T) {
		s := start(t, Options{Capacity: standintest.Limited(10, 10), Web: "127.0.0.1:0"})
		for _, last := range []bool{false, false, true} {
			begin := time.Now()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.AddrOf("ws")+"/events", strings.NewReader(strings.Repeat("{\"service\":\"c\"}\n", 8)))
			assert.OK(t, err)
			r.Close = last                                    // the connection must not end before the answer left
			resp := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
			all, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			assert.True(t, err == nil && string(all) == strings.Repeat("{}\n", 8), "got %q, %v", all, err)
			got := time.Since(begin)
			assert.True(t, got >= 800*time.Millisecond, "answered after %v, want 800ms at least", got)
		}
	})
}

// TestServerRefuses: a message that finds the queue full gets an error and is not
// kept; a datagram is lost. A query waits for nothing.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Capacity: standintest.Limited(0.001, 2), UDP: "127.0.0.1:0", Interval: time.Hour})
	p := dial(t, s.Addr())
	p.send(events(10))
	if m := p.answer(); m.OK || m.Error != "queue is full" {
		t.Errorf("got %+v, want that the queue is full", m)
	}
	kept, _ := p.find("true")
	assert.True(t, len(kept) == 0, "kept %q", kept)
	nc := assert.Value(net.Dial("udp", s.AddrOf("udp")))(t)
	defer nc.Close()
	m := events(5)
	assert.Value(nc.Write(wire.AppendMsg(nil, &m)))(t)
	waitMessages(t, s, 3)
	got := s.Counts()
	assert.True(t, got.Refused == 15 && got.Events == 0, "counted %+v, want 15 refused", got)
}

// TestServerEnds: an answer that is due in a quarter of an hour does not delay the end of the stand-in.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Capacity: standintest.Limited(0.001, 2), Web: "127.0.0.1:0"})
	nc := dial(t, s.AddrOf("ws"))
	assert.Value(io.WriteString(nc, "PUT /events HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 16\r\n\r\n{\"service\":\"c\"}\n"))(t)
	waitMessages(t, s, 1)
	assert.OK(t, s.Close())
	line, err := bufio.NewReader(nc).ReadString('\n')
	assert.True(t, err != nil, "got %q, want no answer", line)
}

// TestRecord: the record contains messages over TCP and WebSocket, with the times of their answers.
func TestRecord(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		path := filepath.Join(t.TempDir(), "record.csv")
		opts.Record, opts.Web = path, "127.0.0.1:0"
		s := start(t, opts)
		p := dial(t, s.Addr())
		var frames []byte
		for range 3 {
			frames = wire.AppendFramed(frames, &wire.Msg{Events: []wire.Event{{Service: "a"}, {Service: "b"}}})
		}
		assert.Value(p.Write(frames))(t)
		assert.Value(io.ReadFull(p, make([]byte, 3*wire.AckSize)))(t)
		c, _, err := websocket.Dial(context.Background(), "ws://"+s.AddrOf("ws")+"/events", nil) //nolint:bodyclose // there is none
		assert.OK(t, err)
		defer c.CloseNow()
		assert.OK(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"service":"c"}`)))
		_, _, err = c.Read(t.Context())
		assert.OK(t, err)
		assert.OK(t, s.Close())
		rows := testkit.CSV(t, path)
		each := "2"
		if opts.Discard {
			each = "" // it does not decode them
		}
		got := map[string]int{}
		for _, r := range rows[1:] {
			got[r[2]+" of "+r[6]]++
			assert.True(t, r[7] != "" && r[8] != "" && r[9] != "", "%q is not answered", r)
		}
		assert.True(t, len(rows) == 5 && got["message of "+each] == 3 && got["message of 1"] == 1,
			"got %q, want 3 messages of %q events and one of 1", rows, each)
	})
}
