package live

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// idleComment is how often a stream writes something, so that no one in between takes
	// it for dead.
	idleComment = 15 * time.Second
	// writeTimeout cuts a viewer that reads nothing.
	writeTimeout = 10 * time.Second
	// mostBehind is how many frames a viewer is sent that it has not seen. If it lacks more,
	// it gets the newest one, and can read the others from the series.
	mostBehind = 60
)

// A summary is a run in the list of runs.
type summary struct {
	ID string `json:"id"`
	Run
	Done bool `json:"done"`
}

// A seriesAnswer is what was measured so far.
type seriesAnswer struct {
	ID     string  `json:"id"`
	Run    Run     `json:"run"`
	Frames []Frame `json:"frames"`
	Done   *Done   `json:"done"`
}

// handler serves the runs, read-only: GET /runs, GET /runs/ID/series?from=N and the
// stream GET /runs/ID/events. It checks nothing; see Guard.Handler.
func (h *Hub) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /runs", h.list)
	mux.HandleFunc("GET /runs/{id}/series", h.serveSeries)
	mux.HandleFunc("GET /runs/{id}/events", h.serveEvents)
	return mux
}

func (h *Hub) list(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	out := make([]summary, 0, len(h.runs))
	for _, run := range h.runs {
		out = append(out, summary{run.id, run.about, run.done != nil})
	}
	h.mu.Unlock()
	writeJSON(w, r, out)
}

// find returns the run of a request, and the number from which it asks for frames, in a
// query or as the browser does when it connects again. It answers if either is wrong.
func (h *Hub) find(w http.ResponseWriter, r *http.Request) (found *viewedRun, from int64, ok bool) {
	h.mu.Lock()
	found = h.run(r.PathValue("id"))
	h.mu.Unlock()
	if found == nil {
		http.Error(w, "no run with this id", http.StatusNotFound)
		return nil, 0, false
	}
	text := r.Header.Get("Last-Event-ID")
	if text != "" {
		from++ // the one after it
	} else if text = r.URL.Query().Get("from"); text == "" {
		return found, 0, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		http.Error(w, "from must be the number of a frame", http.StatusBadRequest)
		return nil, 0, false
	}
	return found, n + from, true
}

func (h *Hub) serveSeries(w http.ResponseWriter, r *http.Request) {
	found, from, ok := h.find(w, r)
	if !ok {
		return
	}
	all := h.after(found, max(from-1, 0))
	if all.frames == nil {
		all.frames = []Frame{} // in JSON a list
	}
	writeJSON(w, r, seriesAnswer{found.id, found.about, all.frames, all.done})
}

// writeJSON writes a value, compressed if that is accepted.
func writeJSON(w http.ResponseWriter, r *http.Request, v any) {
	w.Header().Set("Content-Type", "application/json")
	var to io.Writer = w
	if acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		to = z
	}
	_ = json.NewEncoder(to).Encode(v) // the viewer has gone
}

func acceptsGzip(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

// serveEvents streams frames as they come. The id of an event is the number of its frame,
// so a browser that connects again misses nothing. The event "done" has the totals,
// "next" the id of the run that began after this one, and "end" says that no more comes.
func (h *Hub) serveEvents(w http.ResponseWriter, r *http.Request) {
	found, from, ok := h.find(w, r)
	if !ok {
		return
	}
	if !h.enter() {
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("%d others view this already", mostViewers), http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Accel-Buffering", "no") // a proxy must not wait for more
	s := stream{w: w, c: http.NewResponseController(w)}
	if s.write("retry: 1000\n\n") != nil {
		return
	}
	s.follow(r, h, found, from-1)
}

// A stream writes to one viewer.
type stream struct {
	w    http.ResponseWriter
	c    *http.ResponseController
	done bool // the end of the run was written
	next string
}

// follow writes what is new until the viewer or the hub ends.
func (s *stream) follow(r *http.Request, h *Hub, of *viewedRun, seen int64) {
	idle := time.NewTicker(idleComment)
	defer idle.Stop()
	for {
		n := h.after(of, max(seen, 0))
		text, last := s.text(&n)
		if text != "" {
			if s.write(text) != nil {
				return
			}
			seen = max(seen, last)
		}
		if n.closed || n.gone {
			_ = s.write("event: end\ndata: {}\n\n")
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-n.changed:
		case <-idle.C:
			if s.write(": \n\n") != nil {
				return
			}
		}
	}
}

// text is what is new, as events, and the number of the newest frame.
func (s *stream) text(n *unseen) (text string, last int64) {
	var b strings.Builder
	if len(n.frames) > mostBehind {
		n.frames = n.frames[len(n.frames)-1:]
	}
	for i := range n.frames {
		last = n.frames[i].Number
		event(&b, "frame", last, &n.frames[i])
	}
	if n.done != nil && !s.done {
		s.done = true
		event(&b, "done", 0, n.done)
	}
	if n.next != s.next {
		s.next = n.next
		event(&b, "next", 0, n.next)
	}
	return b.String(), last
}

func event(b *strings.Builder, name string, id int64, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return // a gauge of another process that JSON cannot encode
	}
	if id > 0 {
		fmt.Fprintf(b, "id: %d\n", id)
	}
	fmt.Fprintf(b, "event: %s\ndata: %s\n\n", name, data)
}

// write sends a text at once, or fails after the timeout.
func (s *stream) write(text string) error {
	if err := s.c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.c.Flush()
}
