package live

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/door"
	"carronade/test/testkit/assert"
)

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
	assert.Must(t, w.Code == http.StatusNoContent && len(cookies) == 1,
		"got %d and %d cookies, want 204 and one", w.Code, len(cookies))
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
	t.Parallel()
	a, b := newToken(), newToken()
	assert.True(t, len(a) == 32 && a != b, "got %s and %s, want two of 128 bits", a, b)
}
