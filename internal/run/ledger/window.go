package ledger

import "sort"

// A log is divided into windows of this many offsets: both sides report pieces nearly
// in order, so that almost all work happens at the two ends of a window, and memory is
// allocated and freed by the window.
const (
	windowBits = 15
	windowSize = 1 << windowBits
)

// What an entry represents.
const (
	acked   uint8 = iota // acked, not yet read
	arrived              // read, not yet identified
	matched              // acked and read; one entry may represent several of a stream
	summed               // acked, in a window that keeps only sums; one entry may represent several
)

// An entry is a piece with its offset.
type entry struct {
	first   uint64 // index in the stream of its first event
	sum     uint32
	n       int32
	stream  int32 // unknownStream: not known
	off     uint16
	state   uint8
	corrupt bool
}

// interleaved marks, in sum, a matched entry that represents pieces with those of other
// streams between them. (A matched entry does not need its checksum.)
const interleaved = 1

const (
	entryBytes    = 24
	windowBytes   = 160
	unknownStream = -1
)

// A window contains the entries whose base lies in it, sorted by base. Entries leave at
// the front and join at the back: buf[head:] are those that are left.
type window struct {
	number int64
	buf    []entry
	head   int
	sums   *summary // not nil: only sums of acked and arrived pieces are kept
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

// window returns the window of a number, nil if it does not exist, and the index where
// it is or belongs.
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

// at returns the window of a base, creating it if necessary; nil at or above the
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

// forget subtracts the memory of a window.
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

// insert inserts an entry before index i.
func (g *log) insert(w *window, i int, e entry) {
	if len(w.buf) == cap(w.buf) {
		if w.head > len(w.buf)/2 {
			// Moving the remaining entries costs less than growing, and needs no
			// memory.
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

// remove removes the entry at index i.
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
