package live

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"carronade/internal/door"
)

// policy allows a page only its own scripts, styles and requests.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A Guard checks the requests to one server. It is safe for concurrent use.
type Guard struct {
	// Refuse answers a request that is refused. New sets it to http.Error; it may be replaced before
	// the first request.
	Refuse func(w http.ResponseWriter, r *http.Request, text string, status int)

	user   func(token string) (string, bool)
	cookie string
	names  map[string]bool
}

// bodyTimeout is how long the body of a request may take that has not shown a token.
const bodyTimeout = door.FirstExchange

// newToken returns a random token of 128 bits.
func newToken() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// onlyToken returns a check that accepts one token, in constant time, whatever its length.
func onlyToken(token string) func(token string) (user string, ok bool) {
	want := sha256.Sum256([]byte(token))
	return func(token string) (string, bool) {
		sum := sha256.Sum256([]byte(token))
		return "", subtle.ConstantTimeCompare(sum[:], want[:]) == 1
	}
}

// NewGuard returns a guard. user returns whose token it is, and false for one that is not
// valid; it must take the same time for each. names are names of the server besides those
// of loopback, without ports; also the host that it listens on, as it was given. The address
// of all interfaces, such as 0.0.0.0, is not accepted: a browser sends requests of any page for it to this machine.
func NewGuard(user func(token string) (string, bool), names ...string) *Guard {
	g := &Guard{user: user, names: map[string]bool{"localhost": true}}
	g.Refuse = func(w http.ResponseWriter, _ *http.Request, text string, status int) { http.Error(w, text, status) }
	// Browsers do not separate the cookies of a host's ports. So that several servers can
	// run at once, each has a name of its own.
	g.cookie = "carronade-" + newToken()[:12]
	for _, n := range names {
		if addr, err := netip.ParseAddr(n); n == "" || err == nil && addr.Unmap().IsUnspecified() {
			continue
		}
		g.names[strings.ToLower(strings.TrimSuffix(n, "."))] = true
	}
	return g
}

// userKey is the key of the user in the context of a request.
type userKey struct{}

// UserOf is whose request it is, behind Handler.
func UserOf(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}

// Protect refuses requests that came to another name (421) or from another page (403),
// and sets the headers of all answers. Another page that makes its name point to this
// machine (DNS rebinding) is recognized by that name.
func (g *Guard) Protect(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		// Also of a request that is refused: the server reads what is left of it before it answers.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // unless the writer has none
		if !g.isOwn(r) {
			g.Refuse(w, r, "this server does not have that name; use the address that carronade printed", http.StatusMisdirectedRequest)
			return
		}
		if err := origins.Check(r); err != nil {
			g.Refuse(w, r, "another page may not do this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Handler serves the page, and the runs of a hub behind the token. Other requests below /api/ go to
// api, behind the token too. It includes Protect.
func (g *Guard) Handler(hub *Hub, api http.Handler) http.Handler {
	runs := g.require(http.StripPrefix("/api", hub.handler()))
	mux := http.NewServeMux()
	mux.Handle("POST /api/session", g.session())
	mux.Handle("GET /api/runs", runs)
	mux.Handle("GET /api/runs/", runs)
	mux.Handle("/api/", g.require(api))
	mux.Handle("/", Assets())
	return g.Protect(mux)
}

// isOwn reports whether the Host of a request is one of the server: a name of it, an
// address of loopback, or the address that the connection came to. A page that rebinds
// its name cannot send an address as its Host.
func (g *Guard) isOwn(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if g.names[host] {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if addr = addr.Unmap(); addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || addr == netip.IPv6Loopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	came, err := netip.ParseAddrPort(local.String())
	return err == nil && came.Addr().Unmap().WithZone("") == addr.WithZone("")
}

// require refuses requests without the token (401): in the session's cookie, or as
// "Authorization: Bearer TOKEN". A write with the cookie needs an Origin, which every
// browser sends.
func (g *Guard) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		pass := func(user string) {
			if !welcome(r.Context()) {
				w.Header().Set("Connection", "close")
				g.Refuse(w, r, "too many connections are busy; end some of them", http.StatusServiceUnavailable)
				return
			}
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // likewise
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
		}
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			if user, ok := g.user(bearer); ok {
				pass(user)
				return
			}
		}
		token := ""
		if c, err := r.Cookie(g.cookie); err == nil {
			token = c.Value
		}
		user, ok := g.user(token)
		if !ok {
			g.Refuse(w, r, "the token is missing or wrong; open the address that carronade printed", http.StatusUnauthorized)
			return
		}
		if !isRead(r.Method) && r.Header.Get("Origin") == "" {
			g.Refuse(w, r, "a request of a page has an Origin", http.StatusForbidden)
			return
		}
		if from := r.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" {
			g.Refuse(w, r, "another page may not do this", http.StatusForbidden)
			return
		}
		pass(user)
	})
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// session exchanges the token, the JSON object {"token": "..."} of a POST, for a cookie
// that scripts cannot read.
func (g *Guard) session() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		var in struct {
			Token string `json:"token"`
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1024))
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		if err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			g.Refuse(w, r, `the request must be JSON: {"token": "..."}`, http.StatusBadRequest)
			return
		}
		if _, ok := g.user(in.Token); !ok {
			g.Refuse(w, r, "the token is wrong; open the address that carronade printed", http.StatusUnauthorized)
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: g.cookie, Value: in.Token, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
		})
		w.WriteHeader(http.StatusNoContent)
	})
}
