package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"carronade/internal/door"
)

// marks are the runs that take marks. Safe for concurrent use.
type marks struct {
	mu sync.Mutex
	of map[string]*marked
}

// A marked run takes marks. A run has room for a number of marks, and who else has the token must
// not use up that of its owner.
type marked struct {
	mark MarkFunc
	all  int
	from map[string]int // by the address that they came from
}

const (
	mostRemote  = 32 // marks of a run over HTTP
	mostAddress = 16 // of them, from one address
)

// reserve notes a mark from an address, unless there are too many.
func (m *marks) reserve(r *marked, address string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.all >= mostRemote:
		return fmt.Errorf("the run takes at most %d marks over HTTP, which it has", mostRemote)
	case r.from[address] >= mostAddress:
		return fmt.Errorf("the run takes at most %d marks over HTTP from one address, which it has from %s", mostAddress, address)
	}
	r.all++
	r.from[address]++
	return nil
}

// release gives back what reserve noted: the mark was not made.
func (m *marks) release(r *marked, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.all--
	r.from[address]--
}

// TakeMarks lets requests over HTTP mark a run, until end is called. A nil page takes none.
func (p *Page) TakeMarks(id string, mark MarkFunc) (end func()) {
	if p == nil {
		return func() {}
	}
	m := p.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]*marked{}
	}
	m.of[id] = &marked{mark: mark, from: map[string]int{}}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.of, id)
	}
}

// Bounds of a request over HTTP.
const (
	mostMark    = 4 << 10
	markTimeout = 10 * time.Second
	mostWaited  = time.Hour
)

// A pageReply is the answer to a mark.
type pageReply struct {
	AtS    float64 `json:"at_s"`
	BoundS float64 `json:"bound_s"`
	// RoundTripS is the round trip between the other end of the connection and this machine, as far as
	// the system measured it, null if it does not: the bound has it in it.
	RoundTripS *float64 `json:"round_trip_s"`
}

// ServeHTTP marks the run of the path. The body is the JSON object {"kind": "fault", "name": "...",
// "waited_s": 0.2}: what it stands for was done that long before the request was sent, by the clock
// of its sender. So it happened that long before the request arrived, less the network delay. Of the
// delay a round trip is known, which is at least as long, unless a part of the request was lost and
// sent again, or a proxy is between.
func (m *marks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	m.mu.Lock()
	run := m.of[r.PathValue("id")]
	m.mu.Unlock()
	if run == nil {
		http.Error(w, "no run in progress with this id takes marks: start it with --marks", http.StatusNotFound)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(arrived.Add(markTimeout)) // unless the server has none
	var in struct {
		Kind    string  `json:"kind"`
		Name    string  `json:"name"`
		WaitedS float64 `json:"waited_s"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostMark))
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err == nil && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		err = errors.New("its content type is different")
	}
	if err != nil {
		http.Error(w, `the request must be JSON: {"kind": "fault", "name": "..."}`, http.StatusBadRequest)
		return
	}
	if !(in.WaitedS >= 0 && in.WaitedS <= mostWaited.Seconds()) {
		http.Error(w, fmt.Sprintf("waited_s is from 0 to %.0f s: how long before the request it was done", mostWaited.Seconds()), http.StatusBadRequest)
		return
	}
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	if err := m.reserve(run, address); err != nil {
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	}
	to, reply := arrived.Add(-time.Duration(in.WaitedS*float64(time.Second))), pageReply{}
	from := to
	if delay, ok := roundTrip(connOf(r.Context())); ok {
		from = to.Add(-delay)
		s := delay.Seconds()
		reply.RoundTripS = &s
	}
	if reply.AtS, reply.BoundS, err = run.mark(in.Kind, strings.TrimSpace(in.Name), from, to); err != nil {
		m.release(run, address)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	writeJSON(w, r, reply)
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request, nil if it is not known.
func connOf(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	if g := door.Of(c); g != nil {
		return g.Conn
	}
	return c
}
