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

// A Terminal says what a watcher writes to.
type Terminal struct {
	Rewrite bool       // lines can be rewritten in place; else a plain line an interval
	Color   bool       // ANSI colors are wanted
	ASCII   bool       // block characters may not be shown
	Columns func() int // its width now; nil or 0: 80
}

// redraw is how often the status is rewritten at most: intervals may be
// shorter than an eye is fast.
const redraw = 100 * time.Millisecond

// A Watcher shows the snapshots of one run. Its methods may be called from
// several goroutines. A nil Watcher is quiet. Errors of writing are dropped:
// a run does not end because nobody watches.
type Watcher struct {
	mu     sync.Mutex
	w      io.Writer
	t      Terminal
	rates  []float64
	shown  []string // lines that stand on the terminal now
	drawn  bool
	at     time.Duration // of the newest status drawn
	closed bool
}

// New returns a watcher that writes to w, which is stderr by convention.
func New(w io.Writer, t Terminal) *Watcher { return &Watcher{w: w, t: t} }

// Show shows the newest snapshot. It returns at once but for the writing, and
// keeps nothing of the snapshot.
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
	w.rates = remember(w.rates, perSecond(n, s.Interval.Length()))
	st := read(&s, w.rates)
	if !w.t.Rewrite {
		fmt.Fprintln(w.w, st.line())
		return
	}
	if w.drawn && s.At-w.at < redraw && s.At >= w.at {
		return
	}
	w.drawn, w.at = true, s.At
	w.draw(st.lines(w.columns(), layout.Style{Color: w.t.Color, ASCII: w.t.ASCII}))
}

// Phase shows what is being done while there are no intervals: connecting,
// reading back.
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

// Say writes a line of words above the status.
func (w *Watcher) Say(text string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.t.Rewrite || w.closed {
		fmt.Fprintln(w.w, text)
		return
	}
	shown := w.shown
	io.WriteString(w.w, w.erase()+text+"\n") //nolint:errcheck // nobody watches
	w.shown = nil
	w.draw(shown)
}

// Close takes the status off the terminal. What is shown or said after it does
// not come back in place.
func (w *Watcher) Close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.shown) > 0 {
		io.WriteString(w.w, w.erase()) //nolint:errcheck // nobody watches
		w.shown = nil
	}
	w.closed = true
}

// draw replaces what is shown, in one write: up to the first line, each line
// over the old one and erased from its end on, and whatever is left below. No
// place is ever blank in between, so nothing flickers.
func (w *Watcher) draw(lines []string) {
	var b strings.Builder
	b.WriteString(w.up())
	for _, l := range lines {
		b.WriteString(l)
		b.WriteString("\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	io.WriteString(w.w, b.String()) //nolint:errcheck // nobody watches
	w.shown = append(w.shown[:0], lines...)
}

// erase is what takes the shown lines away.
func (w *Watcher) erase() string { return w.up() + "\x1b[J" }

// up moves to the start of the first line shown. A terminal that was made
// narrower has broken long lines in two, which count as what they take now.
func (w *Watcher) up() string {
	columns := w.columns()
	rows := 0
	for _, l := range w.shown {
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
