package live

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// A viewer is a connection with little room: what it does not read waits, until the deadline of the write.
type viewer struct {
	mu       sync.Mutex
	cond     *sync.Cond
	head     http.Header
	code     int
	room     int // bytes that may be written before it reads; negative: any number
	got      bytes.Buffer
	deadline time.Time
}

func newViewer(room int) *viewer {
	v := &viewer{head: http.Header{}, room: room}
	v.cond = sync.NewCond(&v.mu)
	return v
}

func (v *viewer) Header() http.Header  { return v.head }
func (v *viewer) WriteHeader(code int) { v.code = code }
func (v *viewer) FlushError() error    { return nil }

func (v *viewer) SetWriteDeadline(d time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deadline = d
	time.AfterFunc(time.Until(d), v.cond.Broadcast)
	return nil
}

func (v *viewer) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.room >= 0 && v.room < len(b) {
		if !time.Now().Before(v.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		v.cond.Wait()
	}
	if v.room >= 0 {
		v.room -= len(b)
	}
	return v.got.Write(b)
}

// allow makes room.
func (v *viewer) allow(room int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.room = room
	v.cond.Broadcast()
}

// text returns what was written so far, and forgets it.
func (v *viewer) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.got.Reset()
	return v.got.String()
}

// view opens a stream, and returns a channel that is closed when it ends.
func (v *viewer) view(ctx context.Context, h *Hub, path, lastID string) <-chan struct{} {
	r := httptest.NewRequestWithContext(ctx, "GET", path, nil)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); h.handler().ServeHTTP(v, r) }()
	return ended
}

// ids are the events of a stream: the number of a frame, or the name.
func ids(text string) string {
	var out []string
	id := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n, ok := strings.CutPrefix(line, "id: "); ok {
			id = n
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			if name == "frame" {
				name = id
			}
			out = append(out, name)
		}
		if line == ": " {
			out = append(out, "idle")
		}
	}
	return strings.Join(out, " ")
}

func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		r := example(t, hub, "a", 0, 3)
		v := newViewer(-1)
		ended := v.view(t.Context(), hub, "/runs/a/events", "")
		want := func(want string) {
			t.Helper()
			synctest.Wait()
			assert.Equal(t, ids(v.text()), want)
		}
		want("1 2 3") // all from the beginning
		seconds(r, 3, 4)
		want("4")
		time.Sleep(16 * time.Second)
		want("idle")
		r.End(Done{Error: "broken"})
		want("done")
		example(t, hub, "b", 0, 1)
		want("next")
		hub.Close()
		want("end")
		<-ended
		assert.Equal(t, v.head.Get("X-Accel-Buffering")+v.head.Get("Content-Type"), "notext/event-stream", "headers")
	})
}

// A browser that connects again gets what it missed, and after a long time the newest.
func TestResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		example(t, hub, "a", 0, 100)
		for _, tt := range []struct{ path, last, want string }{
			{"/runs/a/events", "97", "98 99 100"},
			{"/runs/a/events?from=1", "97", "98 99 100"}, // a browser repeats the address
			{"/runs/a/events?from=99", "", "99 100"},
			{"/runs/a/events", "100", ""},
			{"/runs/a/events", "500", ""},
			{"/runs/a/events", "3", "100"},
		} {
			v := newViewer(-1)
			ctx, cancel := context.WithCancel(t.Context())
			ended := v.view(ctx, hub, tt.path, tt.last)
			synctest.Wait()
			got := ids(v.text())
			cancel()
			<-ended
			assert.Equal(t, got, tt.want, "%s after %s", tt.path, tt.last)
		}
	})
}

// It delays no other viewer, gets the newest frame when it reads again, and is cut after ten seconds.
func TestSlowViewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		r := example(t, hub, "a", 0, 1)
		slow, quick := newViewer(1<<20), newViewer(-1)
		ended := slow.view(t.Context(), hub, "/runs/a/events", "")
		quick.view(t.Context(), hub, "/runs/a/events", "")
		synctest.Wait()
		slow.text()
		quick.text()
		slow.allow(0)
		for i := 1; i < 9; i++ {
			seconds(r, i, i+1)
			time.Sleep(time.Second)
		}
		slow.allow(1 << 20)
		synctest.Wait()
		assert.Equal(t, ids(slow.text()), "2 3 4 5 6 7 8 9", "the slow one") // nothing is lost within a minute
		assert.Equal(t, ids(quick.text()), "2 3 4 5 6 7 8 9", "the quick one")
		slow.allow(0)
		began := time.Now()
		seconds(r, 9, 10)
		<-ended
		assert.Equal(t, time.Since(began), writeTimeout, "time until it was cut")
		hub.Close()
		synctest.Wait()
	})
}

// TestNewestWins: after more than a minute a viewer gets only the newest frame.
func TestNewestWins(t *testing.T) {
	t.Parallel()
	hub := NewHub()
	example(t, hub, "a", 0, 200)
	s := stream{}
	n := hub.after(hub.run("a"), 10)
	text, last := s.text(&n)
	assert.True(t, ids(text) == "200" && last == 200, "got %q, want the newest", ids(text))
}

func TestViewersAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		example(t, hub, "a", 0, 1)
		ctx, cancel := context.WithCancel(t.Context())
		for range mostViewers {
			newViewer(-1).view(ctx, hub, "/runs/a/events", "")
		}
		synctest.Wait()
		v := newViewer(-1)
		<-v.view(ctx, hub, "/runs/a/events", "")
		assert.Equal(t, v.code, http.StatusServiceUnavailable, "answer to one too many")
		cancel()
		synctest.Wait()
		v = newViewer(-1)
		ended := v.view(t.Context(), hub, "/runs/a/events", "")
		synctest.Wait()
		assert.Equal(t, ids(v.text()), "1", "answer to a viewer after the others left")
		hub.Close()
		<-ended
	})
}

// TestRunsAreLimited: the oldest that ended is removed.
func TestRunsAreLimited(t *testing.T) {
	t.Parallel()
	hub := NewHub()
	example(t, hub, "going", 0, 1)
	for i := range mostRuns + 5 {
		example(t, hub, fmt.Sprint(i), 0, 1).End(Done{})
	}
	assert.True(t, len(hub.runs) == mostRuns && hub.run("going") != nil && hub.run("0") == nil && hub.run(fmt.Sprint(mostRuns+4)) != nil,
		"%d runs are kept, want %d, with those that go on and the newest", len(hub.runs), mostRuns)
	assert.True(t, hub.Take(Event{ID: "unknown", Frame: &Frame{Number: 1, Span: 1}}) != nil, "a frame without a run was accepted")
	assert.True(t, hub.Take(Event{ID: "7", Frame: &Frame{Number: 2, Span: 1}}) != nil, "a frame after the end was accepted")
}

// TestPage: the page, its session, and the series over a real connection.
func TestPage(t *testing.T) {
	t.Parallel()
	hub := NewHub()
	s := assert.Value(OpenPage("0", hub))(t)
	r := example(t, hub, "a", 0, 30)
	base, token, _ := strings.Cut(s.URL(), "#token=")
	assert.Must(t, strings.HasPrefix(base, "http://127.0.0.1:") && len(token) == 32 && !s.IsPublic(), "got %s", s.URL())
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	type answer struct {
		StatusCode int
		Header     http.Header
	}
	get := func(path string, change func(*http.Request)) (answer, string) {
		t.Helper()
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(base, "/")+path, nil)
		q.Header.Set("Authorization", "Bearer "+token)
		if change != nil {
			change(q)
		}
		a := assert.Value(client.Do(q))(t) //nolint:bodyclose // it is closed below
		defer a.Body.Close()
		b := assert.Value(io.ReadAll(a.Body))(t)
		return answer{a.StatusCode, a.Header}, string(b)
	}
	for path, kind := range map[string]string{"/": "text/html", "/app.js": "text/javascript", "/style.css": "text/css", "/uplot.js": "text/javascript", "/api/runs": "application/json"} {
		if a, _ := get(path, nil); a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: got %d, %s", path, a.StatusCode, a.Header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/README.md", "/UPLOT-LICENSE", "/assets/app.js", "/../hub.go", "/api/runs/none/series", "/api/other"} {
		a, _ := get(path, nil)
		assert.True(t, a.StatusCode == http.StatusNotFound, "%s: got %d, want 404", path, a.StatusCode)
	}
	for _, path := range []string{"/api/runs", "/api/runs/a/series", "/api/runs/a/events", "/api/v1/status", "/api/other"} {
		a, _ := get(path, func(q *http.Request) { q.Header.Del("Authorization") })
		assert.True(t, a.StatusCode == http.StatusUnauthorized, "%s without the token: got %d, want 401", path, a.StatusCode)
		a, _ = get(path, func(q *http.Request) { q.Host = "evil.example" })
		assert.True(t, a.StatusCode == http.StatusMisdirectedRequest, "%s by another name: got %d, want 421", path, a.StatusCode)
	}
	if a, _ := get("/", func(q *http.Request) { q.Method = http.MethodPost }); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a write to the page: got %d, want 405", a.StatusCode)
	}
	if a, _ := get("/api/runs/a/series?from=x", nil); a.StatusCode != http.StatusBadRequest {
		t.Errorf("from=x: got %d, want 400", a.StatusCode)
	}
	a, _ := get("/app.js", nil)
	b, _ := get("/app.js", func(q *http.Request) { q.Header.Set("If-None-Match", a.Header.Get("ETag")) })
	assert.True(t, b.StatusCode == http.StatusNotModified, "an unchanged file: got %d, want 304", b.StatusCode)
	_, text := get("/api/runs/a/series?from=11", func(q *http.Request) { q.Header.Set("Accept-Encoding", "gzip") })
	z := assert.Value(gzip.NewReader(strings.NewReader(text)))(t)
	var got seriesAnswer
	err := json.NewDecoder(z).Decode(&got)
	assert.True(t, err == nil && len(got.Frames) == 20 && got.Frames[0].Number == 11 && got.Done == nil, "the series from 11: got %d frames, %v", len(got.Frames), err)
	r.End(Done{Error: "x"})
	if _, text := get("/api/runs/a/series", nil); !strings.Contains(text, `"done":{"error":"x"`) {
		t.Errorf("the end is missing: %.200s", text[len(text)-200:])
	}
	s.Close()
}

// Open streams, and connections of browsers that send nothing, delay the end by a moment only.
func TestCloseWithOpenPages(t *testing.T) {
	t.Parallel()
	hub := NewHub()
	s := assert.Value(OpenPage("127.0.0.1:0", hub))(t)
	r := example(t, hub, "a", 0, 1)
	base, token, _ := strings.Cut(s.URL(), "#token=")
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"api/runs/a/events", nil)
	q.Header.Set("Authorization", "Bearer "+token)
	a := assert.Value(http.DefaultClient.Do(q))(t) //nolint:bodyclose // it is closed below
	defer a.Body.Close()
	lines := bufio.NewReader(a.Body)
	for {
		line := assert.Value(lines.ReadString('\n'))(t)
		if strings.HasPrefix(line, "data:") {
			break
		}
	}
	r.End(Done{Report: "a"})
	s.Close()
	rest, err := io.ReadAll(lines)
	got := ids(string(rest))
	assert.True(t, err == nil && strings.HasSuffix(got, "done end"), "at the end: got %q, %v, want its totals", got, err)
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{"nowhere:none": `"none" is not a port`, "99999": "not a port", "a:b:c": "too many colons"} {
		_, err := OpenPage(addr, NewHub())
		assert.ErrorHas(t, err, want, "%s", addr)
	}
	s := assert.Value(OpenPage("0.0.0.0:0", NewHub()))(t)
	defer s.Close()
	assert.True(t, s.IsPublic() && strings.HasPrefix(s.URL(), "http://127.0.0.1:"),
		"all addresses: got %s, public %t", s.URL(), s.IsPublic())
	_, err := OpenPage(s.http.Addr, NewHub())
	assert.True(t, err != nil, "an empty address was accepted")
}

// TestPageIsSmall: all files together, as they are sent.
func TestPageIsSmall(t *testing.T) {
	n := 0
	for name, a := range assets() {
		if name != "/" {
			n += len(a.gzip)
		}
	}
	assert.True(t, n <= 60<<10, "the page has %d bytes, want 60 KB at most", n)
	t.Logf("the page has %d bytes", n)
}

// The runs of a process that was killed end on the page, and those that had ended keep their result.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for _, e := range []Event{
		{ID: "a", Run: &Run{Target: "null://"}}, {ID: "a", Done: &Done{Headline: "fine"}}, {ID: "b", Run: &Run{Target: "null://"}},
	} {
		line := assert.Value(json.Marshal(e))(t)
		lines.Write(append(line, '\n'))
	}
	hub := NewHub()
	hub.Read(strings.NewReader(lines.String()))
	for id, want := range map[string]string{"a": "", "b": "the process of the run ended before it"} {
		done := hub.run(id).done
		assert.True(t, done != nil && done.Error == want, "run %s: %+v", id, done)
	}
}
