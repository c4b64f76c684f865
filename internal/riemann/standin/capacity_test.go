package standin

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin/standintest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
			r.Close = last // the connection must not end before the answer left
			resp, err := http.DefaultClient.Do(r)
			assert.OK(t, err)
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

// TestServerEnds: an answer that is due in a quarter of an hour does not delay the
// end of the stand-in.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Capacity: standintest.Limited(0.001, 2), Web: "127.0.0.1:0"})
	nc := dial(t, s.AddrOf("ws"))
	_, err := io.WriteString(nc, "PUT /events HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 16\r\n\r\n{\"service\":\"c\"}\n")
	assert.OK(t, err)
	waitMessages(t, s, 1)
	assert.OK(t, s.Close())
	line, err := bufio.NewReader(nc).ReadString('\n')
	assert.True(t, err != nil, "got %q, want no answer", line)
}

// TestRecord: the record contains messages over TCP and WebSocket, with the times
// of their answers.
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
		if _, err := p.Write(frames); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p, make([]byte, 3*wire.AckSize)); err != nil {
			t.Fatal(err)
		}
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
