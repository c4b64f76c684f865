package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"carronade/internal/door"
	"carronade/internal/live"
)

// A Site is the HTTP port: the page, the runs in progress and the API.
type Site struct {
	hub    *live.Hub
	tls    *tls.Config
	server *http.Server
}

// SiteOptions are what a site serves, and who may use it.
type SiteOptions struct {
	API    *API
	Hub    *live.Hub
	Tokens *Tokens
	TLS    *tls.Config // nil: without
	Host   string      // the host of the address that it listens on
	Names  []string    // other names of the server
}

// NewSite returns the site.
func NewSite(o SiteOptions) *Site {
	g := live.NewGuard(o.Tokens.User, append(slices.Clone(o.Names), o.Host)...)
	g.Refuse = func(w http.ResponseWriter, r *http.Request, text string, status int) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			answerError(w, &problem{status: status, text: text})
			return
		}
		http.Error(w, text, status)
	}
	o.API.User = live.UserOf
	return &Site{hub: o.Hub, tls: o.TLS, server: &http.Server{
		// Messages about clients that do not speak TLS or HTTP are dropped: every client can cause them.
		Handler: g.Handler(o.Hub, o.API.Handler()), ReadHeaderTimeout: door.FirstExchange,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}}
}

// viewersLimit is how long the end of the site waits for viewers.
const viewersLimit = 250 * time.Millisecond

// Serve serves the site until ctx is done. It closes the listener.
func (s *Site) Serve(ctx context.Context, l net.Listener) error {
	l = live.Behind(l, s.server)
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.hub.Close()
		end, cancel := context.WithTimeout(context.Background(), viewersLimit)
		defer cancel()
		if s.server.Shutdown(end) != nil {
			s.server.Close()
		}
	})
	err := s.server.Serve(l)
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Run runs ports until ctx is done or one of them fails, and returns the first error.
func Run(ctx context.Context, ports ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(ports))
	for _, p := range ports {
		go func() {
			defer cancel()
			errs <- p(ctx)
		}()
	}
	var first error
	for range ports {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
