package live

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"carronade/internal/layout"
	"carronade/load"
)

// A Terminal describes the output of a watcher.
type Terminal struct {
	Rewrite bool       // lines can be rewritten in place; otherwise a plain line per interval, at most one a second
	Color   bool       // ANSI colors are wanted
	ASCII   bool       // block characters may not be shown
	Columns func() int // current width; nil or 0: 80
}

// The minimum time between updates of the status: intervals may be too short to be readable.
const (
	redraw    = 100 * time.Millisecond
	plainLine = time.Second // where lines cannot be rewritten; a short last interval has none
)

// A Watcher shows the snapshots of one run. It is safe for concurrent use. A nil
// Watcher shows nothing. Write errors are ignored: a run does not end because its
// output is closed.
type Watcher struct {
	mu     sync.Mutex
	w      io.Writer
	t      Terminal
	rates  []float64
	lines  []string // lines currently on the terminal
	drawn  bool
	at     time.Duration // of the last status drawn
	closed bool
}

// NewWatcher returns a watcher that writes to w, which is stderr by convention.
func NewWatcher(w io.Writer, t Terminal) *Watcher { return &Watcher{w: w, t: t} }

// Show shows the newest snapshot. It blocks only for writing, and does not retain
// the snapshot.
func (w *Watcher) Show(s load.Snapshot) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	_, n := rateOf(&s)
	w.rates = appendRate(w.rates, perSecond(n, s.Interval.Length()))
	least := redraw
	if !w.t.Rewrite {
		least = plainLine
	}
	if w.drawn && s.At-w.at < least && s.At >= w.at {
		return
	}
	w.drawn, w.at = true, s.At
	st := statusOf(&s, w.rates)
	if !w.t.Rewrite {
		fmt.Fprintln(w.w, st.line())
		return
	}
	w.draw(st.lines(w.columns(), layout.Style{Color: w.t.Color, ASCII: w.t.ASCII}))
}

// Phase shows the current activity before the first interval, such as connecting
// or reading back.
func (w *Watcher) Phase(text string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
	case w.t.Rewrite:
		w.drawn = false
		w.draw([]string{layout.Style{Color: w.t.Color}.Paint(layout.Bold, fit([]string{text}, max(w.columns()-1, 10)))})
	default:
		fmt.Fprintln(w.w, text)
	}
}

// Message writes a line above the status.
func (w *Watcher) Message(text string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.t.Rewrite || w.closed {
		fmt.Fprintln(w.w, text)
		return
	}
	shown := w.lines
	io.WriteString(w.w, w.erase()+text+"\n") //nolint:errcheck // output is closed
	w.lines = nil
	w.draw(shown)
}

// Close removes the status from the terminal. Later snapshots and phases are not
// shown, and later messages are plain lines.
func (w *Watcher) Close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) > 0 {
		io.WriteString(w.w, w.erase()) //nolint:errcheck // output is closed
		w.lines = nil
	}
	w.closed = true
}

// draw replaces the status in one write: it moves up to the first line, overwrites
// each line and erases its rest, then erases everything below. Nothing is blank in
// between, so nothing flickers.
func (w *Watcher) draw(lines []string) {
	var b strings.Builder
	b.WriteString(w.up())
	for _, l := range lines {
		b.WriteString(l)
		b.WriteString("\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	io.WriteString(w.w, b.String()) //nolint:errcheck // output is closed
	w.lines = append(w.lines[:0], lines...)
}

// erase is the sequence that removes the status.
func (w *Watcher) erase() string { return w.up() + "\x1b[J" }

// up is the sequence that moves to the start of the status. If the terminal has
// become narrower, long lines take several rows.
func (w *Watcher) up() string {
	columns := w.columns()
	rows := 0
	for _, l := range w.lines {
		rows += max((layout.Width(stripped(l))+columns-1)/columns, 1)
	}
	if rows == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", rows)
}

func (w *Watcher) columns() int {
	if w.t.Columns != nil {
		if n := w.t.Columns(); n > 0 {
			return n
		}
	}
	return layout.Columns
}

var unpainted = strings.NewReplacer(layout.Bold, "", layout.Dim, "", layout.Red, "", layout.Plain, "")

func stripped(s string) string { return unpainted.Replace(s) }
