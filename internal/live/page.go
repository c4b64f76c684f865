package live

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"carronade/internal/conn"
	"carronade/internal/door"
	"carronade/protocol"
)

// pageCloseTimeout is how long a page waits at its end until viewers have read that of the runs.
const pageCloseTimeout = 200 * time.Millisecond

// A Page serves the live page of a hub's runs.
type Page struct {
	hub    *Hub
	http   *http.Server
	url    string
	public bool
	marks  *marks
}

// OpenPage serves the page at addr: HOST:PORT, or PORT for this machine alone. Errors are
// *protocol.Error.
func OpenPage(addr string, hub *Hub) (*Page, error) {
	host, port, err := conn.ListenAddress(addr)
	if err != nil {
		return nil, &protocol.Error{Doing: "read --web", Err: fmt.Errorf("%s: %w", addr, err), Hint: "give HOST:PORT, or only a port, such as 8080, for this machine alone; --web without an address picks a free port"}
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &protocol.Error{Doing: "listen for the live page", Err: err, Hint: "give --web another port; without an address it picks a free one"}
	}
	token := newToken()
	p := &Page{hub: hub, marks: new(marks)}
	at := ln.Addr().(*net.TCPAddr)
	shown := host
	if at.IP.IsUnspecified() {
		shown = "127.0.0.1"
	}
	p.public = !at.IP.IsLoopback()
	p.url = "http://" + net.JoinHostPort(shown, strconv.Itoa(at.Port)) + "/#token=" + token
	p.http = &http.Server{Handler: pageHandler(hub, p.marks, token, host), ReadHeaderTimeout: door.FirstExchange}
	behind := Behind(ln, p.http)
	go p.http.Serve(behind) //nolint:errcheck // it ends with an error when it is closed
	return p, nil
}

// pageHandler joins the page of one process, its runs and their marks.
func pageHandler(hub *Hub, marks http.Handler, token, host string) http.Handler {
	api := http.NewServeMux()
	api.Handle("POST /api/runs/{id}/marks", marks)
	// The page asks whether the server has a queue, as that of a team. This one has none.
	api.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return NewGuard(onlyToken(token), host).Handler(hub, api)
}

// URL is the address of the page, with the token. A browser does not send the part with
// the token; the page does once.
func (p *Page) URL() string { return p.url }

// IsPublic reports whether other machines can reach the page.
func (p *Page) IsPublic() bool { return p.public }

// Close ends the hub's streams and the page. It waits 200 ms at most for viewers.
func (p *Page) Close() {
	if p == nil {
		return
	}
	p.hub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), pageCloseTimeout)
	defer cancel()
	if p.http.Shutdown(ctx) != nil {
		_ = p.http.Close()
	}
}
