package live

import (
	"errors"
	"io"
	"slices"
	"sync"
)

// mostRuns is how many runs a Hub keeps. Then the oldest one that ended is removed.
const mostRuns = 50

// mostViewers is how many streams a Hub serves at once.
const mostViewers = 32

// A Hub has the runs that can be viewed. It is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	runs    []*viewedRun // in order of their beginning
	viewers int
	closed  bool
	changed chan struct{} // closed and replaced when a run begins, has a frame or ends
}

// A viewedRun is one run with its frames. The hub's lock guards it.
type viewedRun struct {
	id     string
	about  Run
	series Series
	done   *Done
}

// NewHub returns a hub without runs.
func NewHub() *Hub { return &Hub{changed: make(chan struct{})} }

// errNoRun: the first event of a run is its beginning.
var errNoRun = errors.New("an event of a run that has not begun, or has ended")

// Take takes an event of a run. An error is one of the event, which is ignored.
func (h *Hub) Take(e Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.run(e.ID)
	switch {
	case e.Run != nil:
		h.add(&viewedRun{id: e.ID, about: *e.Run})
	case r == nil || r.done != nil:
		return errNoRun
	case e.Frame != nil:
		if err := r.series.Add(e.Frame); err != nil {
			return err
		}
	case e.Done != nil:
		r.done = e.Done
	}
	if !h.closed {
		close(h.changed)
		h.changed = make(chan struct{})
	}
	return nil
}

// Read takes the events of another process until r ends. Runs of it that have not ended then never
// will: the process was killed. They are marked as ended.
func (h *Hub) Read(r io.Reader) {
	open := map[string]bool{}
	_ = ReadFrames(r, func(e Event) error { // a run without a picture is a run
		switch {
		case e.Run != nil:
			open[e.ID] = true
		case e.Done != nil:
			delete(open, e.ID)
		}
		return h.Take(e)
	})
	for id := range open {
		_ = h.Take(Event{ID: id, Done: &Done{Error: "the process of the run ended before it"}}) // unless it was replaced
	}
}

// add adds a run, and removes the oldest that ended if there are too many. A run with the
// same id is replaced.
func (h *Hub) add(r *viewedRun) {
	h.runs = slices.DeleteFunc(h.runs, func(o *viewedRun) bool { return o.id == r.id })
	if len(h.runs) >= mostRuns {
		if i := slices.IndexFunc(h.runs, func(o *viewedRun) bool { return o.done != nil }); i >= 0 {
			h.runs = slices.Delete(h.runs, i, i+1)
		}
	}
	h.runs = append(h.runs, r)
}

// Close ends all streams. Runs may still be read.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.changed)
	}
}

// run returns a run by its id; nil if there is none.
func (h *Hub) run(id string) *viewedRun {
	i := slices.IndexFunc(h.runs, func(r *viewedRun) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return h.runs[i]
}

// enter counts a viewer; false if there are too many.
func (h *Hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers == mostViewers {
		return false
	}
	h.viewers++
	return true
}

func (h *Hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.viewers--
}

// An unseen is what a viewer of a run has not seen.
type unseen struct {
	frames  []Frame
	done    *Done
	next    string // the run that began after this one, ""
	gone    bool   // the run was removed
	closed  bool   // the hub ends its streams
	changed <-chan struct{}
}

// after returns what a viewer that has seen the frames up to number n has not seen.
func (h *Hub) after(r *viewedRun, n int64) unseen {
	h.mu.Lock()
	now := r.series.View()
	out := unseen{done: r.done, closed: h.closed, changed: h.changed}
	i := slices.Index(h.runs, r)
	if out.gone = i < 0; !out.gone && i < len(h.runs)-1 {
		out.next = h.runs[len(h.runs)-1].id
	}
	h.mu.Unlock()
	out.frames = now.After(n) // without the lock: hours of frames must not delay a run
	return out
}
