package live

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/door"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestMarks: a run is marked by requests with the token, while it takes marks.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := assert.Value(OpenPage("127.0.0.1:0", NewHub()))(t)
	defer s.Close()
	base, token, _ := strings.Cut(s.URL(), "/#token=")
	var got []string
	end := s.TakeMarks("run1", func(kind, name string, from, to time.Time) (float64, float64, error) {
		waited := time.Duration(0)
		if kind == "heal" {
			waited = mostWaited
		}
		// The bound is the round trip alone: what the sender waited is known.
		length := to.Sub(from)
		assert.True(t, length >= 0 && length <= time.Minute, "it was between %v and %v", from, to)
		ago := time.Since(to)
		assert.True(t, ago >= waited && ago <= waited+time.Minute, "it was at %v, %v ago, want %v", to, ago, waited)
		if kind == "broken" {
			return 0, 0, errors.New("not a kind")
		}
		got = append(got, kind+" "+name)
		return 12.5, 0.25, nil
	})
	post := func(run, token, kind, origin, body string) (int, string) {
		t.Helper()
		r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/runs/"+run+"/marks", strings.NewReader(body)))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", kind)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		res := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
		defer res.Body.Close()
		text := assert.Value(io.ReadAll(res.Body))(t)
		return res.StatusCode, string(text)
	}
	const json, fault = "application/json", `{"kind": "fault", "name": " the plug "}`
	for _, tt := range []struct {
		name, run, token, kind, origin, body string
		code                                 int
		want                                 string
	}{
		{"a fault", "run1", token, json, "", fault, 200, `{"at_s":12.5,"bound_s":0.25,"round_trip_s":`},
		{"of the page itself", "run1", token, json, base, fault, 200, `{"at_s":12.5,"bound_s":0.25,"round_trip_s":`},
		{"that waited", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": 3600}`, 200, `{"at_s":12.5,"bound_s":0.25`},
		{"to come", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": -1}`, 400, "waited_s is from 0 to 3600 s"},
		{"long ago", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": 3601}`, 400, "waited_s is from 0 to 3600 s"},
		{"no token", "run1", "", json, "", fault, 401, "the token is missing or wrong"},
		{"another token", "run1", "0" + token, json, "", fault, 401, "the token is missing or wrong"},
		{"another page", "run1", token, json, "http://elsewhere.invalid", fault, 403, "another page may not do this"},
		{"another run", "run2", token, json, "", fault, 404, "start it with --marks"},
		{"no JSON", "run1", token, json, "", "the plug", 400, "the request must be JSON"},
		{"another type", "run1", token, "text/plain", "", fault, 400, "the request must be JSON"},
		{"much", "run1", token, json, "", `{"name": "` + strings.Repeat("x", mostMark) + `"}`, 400, "the request must be JSON"},
		{"no kind", "run1", token, json, "", `{"kind": "broken", "name": "x"}`, 400, "not a kind"},
	} {
		code, text := post(tt.run, tt.token, tt.kind, tt.origin, tt.body)
		assert.True(t, code == tt.code && strings.Contains(text, tt.want), "%s: got %d %q, want %d %q", tt.name, code, text, tt.code, tt.want)
	}
	want := "fault the plug, fault the plug, heal the plug"
	assert.True(t, strings.Join(got, ", ") == want, "the marks are %q, want %q", got, want)
	for i := len(got); i < mostAddress; i++ {
		code, text := post("run1", token, json, "", fault)
		assert.Must(t, code == 200, "mark %d: got %d %q", i+1, code, text)
		post("run1", token, json, "", `{"kind": "broken", "name": "x"}`) // is none, so it does not count
	}
	if code, text := post("run1", token, json, "", fault); code != 429 || !strings.Contains(text, "the run takes at most 16 marks over HTTP from one address, which it has from 127.0.0.1") {
		t.Errorf("more marks than one address may make: got %d %q", code, text)
	}
	end()
	code, _ := post("run1", token, json, "", fault)
	assert.Equal(t, code, 404, "a run that has ended")
	(*Page)(nil).TakeMarks("x", nil)()
}

// TestMarksOfAll: all addresses together have a limit, so that the owner of the run has room.
func TestMarksOfAll(t *testing.T) {
	t.Parallel()
	m, r := new(marks), &marked{from: map[string]int{}}
	for i := range mostRemote {
		assert.OK(t, m.reserve(r, string(rune('a'+i%4))))
	}
	assert.ErrorHas(t, m.reserve(r, "x"), "takes at most 32 marks over HTTP")
	m.release(r, "a")
	assert.OK(t, m.reserve(r, "x"))
}

// TestDayOfThePage: a day of frames, one run after the other, with viewers that come and go, leaves a page with the
// memory that it had after as many runs as it keeps.
func TestDayOfThePage(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 86,400 frames, each with three histograms")
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		var before int64
		const hours, runs = 24, 10 // an hour has ten runs of six minutes
		for hour := range hours {
			for i := range runs {
				id := time.Duration(hour*runs + i).String()
				r := example(t, hub, id, 0, 1)
				v := newViewer(-1)
				ctx, cancel := context.WithCancel(t.Context())
				ended := v.view(ctx, hub, "/runs/"+id+"/events", "")
				for second := 1; second < 360; second++ {
					seconds(r, second, second+1)
					time.Sleep(time.Second)
					v.text()
				}
				if i%2 == 0 {
					r.End(Done{})
				} else {
					r.End(Done{Error: "broken"})
				}
				synctest.Wait()
				cancel()
				<-ended
			}
			if hour == 5 { // 60 runs: it keeps 50
				before = testkit.Heap()
			}
		}
		grown := testkit.Heap() - before
		assert.True(t, grown < 2<<20, "the page has grown by %d KiB in 18 hours", grown>>10)
		hub.Close()
		synctest.Wait()
	})
}

// TestLongRunOfThePage: a run of a day keeps no more of its frames than one of some hours.
func TestLongRunOfThePage(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 86,400 frames, each with three histograms")
	hub := NewHub()
	r := example(t, hub, "day", 0, 1)
	var before int64
	for second := 1; second < 86_400; second++ {
		seconds(r, second, second+1)
		if second == 6*3600 {
			before = testkit.Heap()
		}
	}
	grown := testkit.Heap() - before
	assert.True(t, grown < 2<<20, "a run's frames have grown by %d KiB in 18 hours", grown>>10)
	r.End(Done{})
}

// TestUnreadIsShown: while a run goes on, events that were not read are in the end-to-end times at their age: in the
// terminal, on the page, and in what is exported.
func TestUnreadIsShown(t *testing.T) {
	for _, read := range []uint64{0, 80} {
		times, ages := measure.NewHistogram(), measure.NewHistogram()
		times.RecordN(5*time.Millisecond, read)
		ages.RecordN(4*time.Second, 20)
		s := load.Snapshot{At: time.Second, Phase: measure.Measurement, Left: load.Never}
		s.Interval = measure.Interval{Phase: measure.Measurement, End: time.Second, LagEvents: -1, Counts: measure.Counts{Sent: 100, Acked: 100, Answered: 100, Consumed: read, Unread: 20}}
		s.Interval.EndToEnd, s.Interval.UnreadAges = times, ages
		s.Total = s.Interval.Counts
		st := statusOf(&s, nil)
		line := st.line()
		assert.True(t, strings.Contains(line, "p99 >= 4 s") && strings.Contains(line, "max >= 4 s") && strings.Contains(line, "20 unread"), "the terminal says %q", line)
		var frames []Frame
		r := NewRecorder("x", Run{}, func(e Event) {
			if e.Frame != nil {
				frames = append(frames, *e.Frame)
			}
		})
		r.Show(s)
		r.End(Done{Totals: measure.Signed(s.Total), Report: "x"})
		f := frames[0]
		assert.True(t, f.EndToEnd.AtLeast > 0 && f.EndToEnd.P99 >= Micros(3990*time.Millisecond) && f.Counts.Unread == 20, "the frame has %+v, %d unread", f.EndToEnd, f.Counts.Unread)
		var all state
		all.add(&s)
		p := all.point(&s)
		found := false
		for _, q := range p.p99 {
			found = found || q.name == "end_to_end" && q.d >= 3990*time.Millisecond
		}
		assert.True(t, found, "the exported p99 are %v", p.p99)
	}
}

// example sends a run of n seconds to a hub.
func example(t testing.TB, hub *Hub, id string, from, to int) *Recorder {
	r := NewRecorder(id, Run{
		Target: "null://example", Op: "produce", Version: "test", StartedAt: "2026-01-02T03:04:05Z", Interval: Seconds(time.Second), Schedule: true, Processors: 2,
		Limits: []report.LimitLine{{Text: "p99 < 20 ms", Time: "response", Percentile: 99, Name: "p99", Upper: true, Value: 0.02}, {Text: "throughput >= 900/s", Name: "throughput", Value: 900}},
		Labels: map[string]string{"team": "ingest"},
	}, func(e Event) { err := hub.Take(e); assert.True(t, err == nil, "%v", err) })
	seconds(r, from, to)
	return r
}

// seconds adds the intervals from one second to another.
func seconds(r *Recorder, from, to int) {
	for i := from; i < to; i++ {
		h, s, d := measure.NewHistogram(), measure.NewHistogram(), measure.NewHistogram()
		for k := range 100 {
			h.Record(time.Duration(2+k%7+i%5) * time.Millisecond)
			s.Record(time.Duration(1+k%3) * time.Millisecond)
			d.Record(time.Duration(50+k) * time.Microsecond)
		}
		iv := measure.Interval{
			Phase: measure.Measurement, Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second,
			Counts:   measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000 - uint64(i%3), Failed: uint64(i % 3), Bytes: 100000},
			Set:      measure.Set{Response: h, Service: s, SendDelay: d},
			InFlight: uint64(5 + i%4), LagEvents: -1,
			Generator: measure.Usage{CPU: 200 * time.Millisecond, RSS: 40 << 20},
		}
		if i%20 == 7 { // the system did not answer
			iv.Counts.Acked, iv.Counts.Failed, iv.Response, iv.Service = 0, 0, nil, nil
		}
		if i < 5 {
			iv.Phase = measure.WarmUp
		}
		snap := load.Snapshot{At: iv.End, Phase: iv.Phase, Interval: iv, Rows: []measure.Interval{iv}}
		if i%30 == 25 {
			snap.Freezes, snap.Frozen = 1, 30*time.Millisecond
		}
		r.Figures("system", []measure.Figure{{Name: "CPU", Unit: "cores", Value: 0.5 + float64(i%10)/20}, {Name: "memory", Unit: "bytes", Value: 100e6 + 1e6*float64(i)}, {Name: "GC pause", Unit: "ms", Value: float64(i % 6)}})
		r.Figures("host", []measure.Figure{{Name: "CPU", Unit: "cores", Value: 1.2}})
		r.Show(snap)
	}
}

const token = "0123456789abcdef0123456789abcdef"

// server is a guarded server on the address 192.0.2.7:80.
func server(names ...string) http.Handler {
	g := NewGuard(onlyToken(token), names...)
	mux := http.NewServeMux()
	mux.Handle("POST /session", g.session())
	mux.Handle("/data", g.require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })))
	return g.Protect(mux)
}

func do(h http.Handler, method, path, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 80}))
	r.Host = "localhost:80"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// login returns the cookie of a session.
func login(t *testing.T, h http.Handler) *http.Cookie {
	t.Helper()
	w := do(h, "POST", "/session", `{"token":"`+token+`"}`, nil)
	cookies := w.Result().Cookies()
	assert.Must(t, w.Code == http.StatusNoContent && len(cookies) == 1, "got %d and %d cookies, want 204 and one", w.Code, len(cookies))
	return cookies[0]
}

func TestHosts(t *testing.T) {
	t.Parallel()
	h := server("load.example", "0.0.0.0", "::", "")
	for host, want := range map[string]int{
		"localhost": 200, "localhost:41873": 200, "LOCALHOST.:80": 200, "127.0.0.1:80": 200, "[::1]:80": 200, "[::1]": 200,
		"192.0.2.7": 200, "192.0.2.7:99": 200, "load.example:80": 200, "Load.Example": 200,
		"evil.example": 421, "evil.example:80": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
		"192.0.2.8": 421, "127.0.0.2": 421, "": 421, "[::2]:80": 421, "127.1": 421, "2130706433": 421,
		"0.0.0.0": 421, "0.0.0.0:80": 421, "[::]:80": 421,
	} {
		w := do(h, "GET", "/data", "", func(r *http.Request) { r.Host = host; r.Header.Set("Authorization", "Bearer "+token) })
		assert.Equal(t, w.Code, want, "host %q", host)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	h := server()
	cookie := login(t, h)
	assert.True(t, cookie.HttpOnly && cookie.SameSite == http.SameSiteStrictMode && cookie.Path == "/" &&
		cookie.MaxAge == 0, "the cookie is %+v, want HttpOnly, SameSite=Strict, of the session", cookie)
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"none", nil, 401},
		{"bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }, 200},
		{"wrong bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[1:]) }, 401},
		{"empty bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		{"cookie", func(r *http.Request) { r.AddCookie(cookie) }, 200},
		{"wrong cookie", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: "0"}) }, 401},
		{"cookie of another server", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "carronade-000000000000", Value: token}) }, 401},
		{"in the query", func(r *http.Request) { r.URL.RawQuery = "token=" + token }, 401},
		{"cookie, another page of this machine", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		{"cookie, own page", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set("Sec-Fetch-Site", "same-origin") }, 200},
		{"cookie, typed address", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set("Sec-Fetch-Site", "none") }, 200},
	} {
		if w := do(h, "GET", "/data", "", tt.change); w.Code != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, w.Code, tt.want)
		} else if strings.Contains(w.Body.String(), token) {
			t.Errorf("%s: the answer has the token", tt.name)
		}
	}
}

// TestOrigins: another page cannot write, even with the cookie.
func TestOrigins(t *testing.T) {
	t.Parallel()
	h := server()
	cookie := login(t, h)
	for _, tt := range []struct {
		name, origin, site string
		bearer             bool
		want               int
	}{
		{name: "own page", origin: "http://localhost:80", want: 200},
		{name: "own page, new browser", origin: "http://localhost:80", site: "same-origin", want: 200},
		{name: "other page", origin: "http://evil.example", want: 403},
		{name: "other page, new browser", origin: "http://evil.example", site: "cross-site", want: 403},
		{name: "other port", origin: "http://localhost:81", site: "same-site", want: 403},
		{name: "file", origin: "null", want: 403},
		{name: "no origin", want: 403},
		{name: "a program", bearer: true, want: 200},
	} {
		w := do(h, "POST", "/data", "{}", func(r *http.Request) {
			if tt.bearer {
				r.Header.Set("Authorization", "Bearer "+token)
			} else {
				r.AddCookie(cookie)
			}
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.site != "" {
				r.Header.Set("Sec-Fetch-Site", tt.site)
			}
		})
		assert.Equal(t, w.Code, tt.want, "%s", tt.name)
		assert.Equal(t, w.Header().Get("Access-Control-Allow-Origin"), "", "%s: other pages are allowed", tt.name)
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	h := server()
	for body, want := range map[string]int{
		`{"token":"` + token + `"}`: 204, `{"token":"x"}`: 401, `{}`: 401, `[]`: 400, `{"token":`: 400,
		`{"token":"` + strings.Repeat("x", 2000) + `"}`: 400,
	} {
		assert.Equal(t, do(h, "POST", "/session", body, nil).Code, want, "%.40s", body)
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") } // another page can send this without asking
	assert.Equal(t, do(h, "POST", "/session", `{"token":"`+token+`"}`, form).Code, 400, "as text")
}

// TestHeaders: every answer has them, also a refusal.
func TestHeaders(t *testing.T) {
	t.Parallel()
	h := server()
	for _, host := range []string{"localhost", "evil.example"} {
		head := do(h, "GET", "/data", "", func(r *http.Request) { r.Host = host }).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer",
		} {
			got := head.Get(name)
			assert.True(t, strings.HasPrefix(got, want), "%s to %s: got %q, want %q", name, host, got, want)
		}
	}
}

// A deadlineWriter records the deadline for the rest of a request.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (w *deadlineWriter) SetReadDeadline(t time.Time) error { w.until = t; return nil }

// TestBodies: the body of a request has two seconds unless the request has shown a token, also if it is refused.
func TestBodies(t *testing.T) {
	h := server()
	for _, tt := range []struct {
		method, path, host, bearer string
		code                       int
	}{
		{"POST", "/data", "localhost", "", 401},
		{"POST", "/data", "localhost", "x", 401},
		{"POST", "/session", "localhost", token, 400},
		{"POST", "/data", "evil.example", token, 421},
		{"GET", "/none", "localhost", token, 404},
		{"POST", "/data", "localhost", token, 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, strings.NewReader("x"))
			r.Host = tt.host
			r.Header.Set("Authorization", "Bearer "+tt.bearer)
			w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder(), until: time.Unix(1, 0)}
			h.ServeHTTP(w, r)
			want := time.Now().Add(door.FirstExchange)
			if tt.code == http.StatusOK {
				want = time.Time{}
			}
			assert.True(t, w.Code == tt.code && w.until.Equal(want), "%s %s of %s: code %d, until %v, want %d until %v", tt.method, tt.path, tt.host, w.Code, w.until, tt.code, want)
		})
	}
}

// TestCookieSecure: a browser sends the cookie of a session that began over TLS over TLS alone.
func TestCookieSecure(t *testing.T) {
	for _, secure := range []bool{false, true} {
		w := do(server(), "POST", "/session", `{"token":"`+token+`"}`, func(r *http.Request) {
			if secure {
				r.TLS = &tls.ConnectionState{}
			}
		})
		c := w.Result().Cookies()
		assert.Must(t, len(c) == 1, "%d cookies", len(c))
		assert.True(t, c[0].Secure == secure && c[0].HttpOnly && c[0].SameSite == http.SameSiteStrictMode, "TLS %t: %+v", secure, c[0])
	}
}

func TestNewToken(t *testing.T) {
	a, b := newToken(), newToken()
	assert.True(t, len(a) == 32 && a != b, "got %s and %s, want two of 128 bits", a, b)
}
