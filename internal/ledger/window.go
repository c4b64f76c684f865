package ledger

import "sort"

// A log is kept in windows of this many offsets: pieces come nearly in order
// on both sides, so that almost all work is done at a window's two ends, and
// memory comes and goes by the window.
const (
	windowBits = 15
	windowSize = 1 << windowBits
)

// What an entry stands for.
const (
	acked   uint8 = iota // taken by the system, not read yet
	arrived              // read, not known
	matched              // both; several ones of a stream may be one entry
	summed               // acked, in a window that only keeps sums; several ones may be one entry
)

// An entry is a piece with its place.
type entry struct {
	first   uint64 // index in the stream of its first event
	sum     uint32
	n       int32
	stream  int32 // unknownStream: not known
	off     uint16
	state   uint8
	corrupt bool
}

// woven marks, in sum, a matched entry that stands for pieces with those of
// other streams between them. (A matched entry's checksum is of no more use.)
const woven = 1

const (
	entryBytes    = 24
	windowBytes   = 160
	unknownStream = -1
)

// A window is the entries whose base lies in it, sorted by base. Entries leave
// at the front and join at the back: buf[head:] are those that are left.
type window struct {
	number int64
	buf    []entry
	head   int
	sums   *sums // not nil: acked and arrived pieces are only summed up
}

func (w *window) entries() []entry { return w.buf[w.head:] }

// find returns the first entry at off or beyond.
func (w *window) find(off uint16) int {
	e := w.entries()
	n := len(e)
	if n == 0 || e[n-1].off < off {
		return n
	}
	if e[0].off >= off {
		return 0
	}
	return sort.Search(n, func(i int) bool { return e[i].off >= off })
}

// window returns the window of a number, nil when there is none, and where it
// is or would be.
func (g *log) window(number int64) (*window, int) {
	n := len(g.windows)
	if n == 0 || g.windows[n-1].number < number {
		return nil, n
	}
	if w := g.windows[n-1]; w.number == number {
		return w, n - 1
	}
	i := sort.Search(n, func(i int) bool { return g.windows[i].number >= number })
	if w := g.windows[i]; w.number == number {
		return w, i
	}
	return nil, i
}

// at returns the window of a base, made when there is none; nil at the
// ceiling.
func (g *log) at(base int64, last **window) *window {
	number := base >> windowBits
	if w := *last; w != nil && w.number == number {
		return w
	}
	w, i := g.window(number)
	if w == nil {
		if number >= g.ceiling {
			return nil
		}
		w = &window{number: number}
		g.windows = append(g.windows, nil)
		copy(g.windows[i+1:], g.windows[i:])
		g.windows[i] = w
		g.grow(windowBytes)
	}
	*last = w
	return w
}

// forget gives back what a window took.
func (g *log) forget(w *window) {
	g.grow(-windowBytes - int64(cap(w.buf))*entryBytes)
	if g.ackAt == w {
		g.ackAt = nil
	}
	if g.readAt == w {
		g.readAt = nil
	}
}

// drop removes an empty window.
func (g *log) drop(i int) {
	g.forget(g.windows[i])
	if i == 0 {
		g.windows[0] = nil
		g.windows = g.windows[1:]
		return
	}
	copy(g.windows[i:], g.windows[i+1:])
	g.windows[len(g.windows)-1] = nil
	g.windows = g.windows[:len(g.windows)-1]
}

// insert puts an entry before place i.
func (g *log) insert(w *window, i int, e entry) {
	if len(w.buf) == cap(w.buf) {
		if w.head > len(w.buf)/2 {
			// Sliding what is left costs less than growing, and no memory.
			w.buf = w.buf[:copy(w.buf, w.buf[w.head:])]
			w.head = 0
		} else {
			before := cap(w.buf)
			w.buf = append(w.buf, entry{})[:len(w.buf)]
			g.grow(int64(cap(w.buf)-before) * entryBytes)
		}
	}
	w.buf = append(w.buf, e)
	g.entries++
	live := w.entries()
	if i < len(live)-1 {
		copy(live[i+1:], live[i:])
		live[i] = e
	}
}

// remove takes out the entry at place i.
func (g *log) remove(w *window, i int) {
	g.entries--
	if i == 0 {
		if w.head++; w.head == len(w.buf) {
			w.buf, w.head = w.buf[:0], 0
		}
		return
	}
	live := w.entries()
	copy(live[i:], live[i+1:])
	w.buf = w.buf[:len(w.buf)-1]
}

func (g *log) grow(bytes int64) {
	g.bytes += bytes
	g.ledger.used.Add(bytes)
}
