package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A MarkFunc marks a run in progress with a fault, a heal or a note that became known between two
// moments. It returns when that was, in seconds from the start of the run, and to what it is exact.
type MarkFunc func(kind, name string, from, to time.Time) (atS, boundS float64, err error)

// marks are the runs that take marks. Safe for concurrent use.
type marks struct {
	mu sync.Mutex
	of map[string]MarkFunc
}

// TakeMarks lets requests mark a run, until end is called. A nil server takes none.
func (s *Server) TakeMarks(id string, mark MarkFunc) (end func()) {
	if s == nil {
		return func() {}
	}
	m := s.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]MarkFunc{}
	}
	m.of[id] = mark
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.of, id)
	}
}

// Bounds of a request.
const (
	mostMark    = 4 << 10
	markTimeout = 10 * time.Second
)

// ServeHTTP marks the run of the path. The body is the JSON object {"kind": "fault", "name": "..."}.
func (m *marks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := time.Now()
	m.mu.Lock()
	mark := m.of[r.PathValue("id")]
	m.mu.Unlock()
	if mark == nil {
		http.Error(w, "no run with this id is in progress and takes marks: start it with --marks", http.StatusNotFound)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(from.Add(markTimeout)) // unless the server has none
	var in struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostMark))
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err == nil && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		err = errors.New("its content type is another")
	}
	if err != nil {
		http.Error(w, `the request must be JSON: {"kind": "fault", "name": "..."}`, http.StatusBadRequest)
		return
	}
	at, bound, err := mark(in.Kind, strings.TrimSpace(in.Name), from, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	writeJSON(w, r, struct {
		AtS    float64 `json:"at_s"`
		BoundS float64 `json:"bound_s"`
	}{at, bound})
}
