package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"carronade/protocol"
)

// How often a system is asked whether it is ready, and the timeout of each
// request.
const (
	readyInterval = 50 * time.Millisecond
	tryTimeout    = 2 * time.Second
)

// A readiness is the condition under which a system is ready for load. Exactly
// one field is set.
type readiness struct {
	url   string
	addrs []string
	log   string
}

// parseReady parses the value of --system-ready; "" means that all addresses of
// listen accept connections.
func parseReady(s string, listen []string) (readiness, error) {
	switch {
	case s == "":
		return readiness{addrs: listen}, nil
	case strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://"):
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return readiness{}, errors.New("it is not a URL with a host")
		}
		return readiness{url: s}, nil
	case strings.HasPrefix(s, "log:"):
		text := strings.TrimPrefix(s, "log:")
		if text == "" {
			return readiness{}, errors.New("log: is followed by no text")
		}
		return readiness{log: text}, nil
	}
	addr, isPort := strings.CutPrefix(s, "port:")
	if isPort || strings.HasPrefix(s, ":") {
		addr = net.JoinHostPort("127.0.0.1", strings.TrimPrefix(addr, ":"))
	}
	_, port, err := net.SplitHostPort(addr)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 {
		return readiness{}, errors.New("it is neither http://..., port:N, HOST:PORT nor log:TEXT")
	}
	return readiness{addrs: []string{addr}}, nil
}

func (r *readiness) String() string {
	switch {
	case r.url != "":
		return r.url + " to answer"
	case r.log != "":
		return fmt.Sprintf("%q in its output", r.log)
	}
	return strings.Join(r.addrs, ", ") + " to accept connections"
}

// try asks once; nil means ready.
func (s *System) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	switch {
	case s.ready.log != "":
		select {
		case <-s.tail.found:
			return nil
		default:
			return errors.New("its output does not contain it")
		}
	case s.ready.url != "":
		return s.answers(ctx)
	}
	for _, addr := range s.ready.addrs {
		if err := s.spec.accept(ctx, addr); err != nil {
			return err
		}
	}
	return nil
}

func accepts(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (s *System) answers(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.ready.url, nil)
	if err != nil {
		return err
	}
	res, err := s.web.Do(req)
	if err != nil {
		return cause(err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	if res.StatusCode >= 400 {
		return fmt.Errorf("it answered %s", res.Status)
	}
	return nil
}

// refuseOther fails if something already answers where the system is to answer:
// the run would send to that.
func (s *System) refuseOther(ctx context.Context) error {
	if s.ready.log != "" || s.ready.url == "" && len(s.ready.addrs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	if s.ready.url != "" {
		u, err := url.Parse(s.ready.url)
		if err != nil {
			return nil // parseReady has checked it
		}
		host := u.Host
		if u.Port() == "" {
			host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		}
		if s.spec.accept(ctx, host) == nil {
			return s.taken(host)
		}
		return nil
	}
	for _, addr := range s.ready.addrs {
		if s.spec.accept(ctx, addr) == nil {
			return s.taken(addr)
		}
	}
	return nil
}

func (s *System) taken(addr string) error {
	return &protocol.Error{
		Doing: "start the system", Err: fmt.Errorf("something already answers on %s before it was started", addr),
		Hint: "stop that first, or watch it with --system-pid instead",
	}
}

// await waits until the system is ready, died or took too long.
func (s *System) await(ctx context.Context) error {
	if s.ready.log == "" && s.ready.url == "" && len(s.ready.addrs) == 0 {
		return nil
	}
	within := s.spec.ReadyWithin
	s.spec.Logf("waiting for %s", s.mask.Text(s.ready.String()))
	start := time.Now()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	var last error
	for {
		err := s.try(ctx)
		if err == nil {
			select {
			case <-s.died: // another program answers instead
			default:
				s.readyAfter = time.Since(start)
				return nil
			}
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-s.died:
			return &protocol.Error{Doing: "start the system", Err: s.withLastOutput(fmt.Errorf("it ended before it was ready: %s", s.Exit().Status)), Hint: "try the command manually: " + s.shown}
		case <-ctx.Done():
			return fmt.Errorf("wait for the system to be ready: %w", context.Cause(ctx))
		case <-deadline.C:
			err := fmt.Errorf("waited %v for %s", within, s.mask.Text(s.ready.String()))
			if last != nil {
				err = fmt.Errorf("%w: %s", err, s.mask.Text(last.Error()))
			}
			return &protocol.Error{Doing: "wait for the system to be ready", Err: s.withLastOutput(err), Hint: "say what to wait for with --system-ready URL, port:N or log:TEXT, and how long with --system-ready-within"}
		case <-ticker.C:
		}
	}
}

// withLastOutput adds the system's last output to an error.
func (s *System) withLastOutput(err error) error {
	lines := s.LastLines()
	if len(lines) == 0 {
		return fmt.Errorf("%w; it printed nothing", err)
	}
	return fmt.Errorf("%w; its last output: %s", err, strings.Join(lines[max(0, len(lines)-5):], " | "))
}
