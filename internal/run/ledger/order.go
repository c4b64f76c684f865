package ledger

// advance decides the entry at index i of w, whose base is next, and all that follow
// without a gap. Of what is decided it keeps only the top of each stream: everything
// that comes later lies after it.
func (g *log) advance(w *window, i int) {
	for {
		e := &w.entries()[i]
		g.late(e)
		g.next += int64(e.n)
		g.remove(w, i)
		number := g.next >> windowBits
		if number != w.number {
			if len(w.entries()) == 0 && w.sums == nil {
				_, at := g.window(w.number)
				g.drop(at)
			}
			if w, _ = g.window(number); w == nil || w.sums != nil {
				return
			}
			i = w.find(uint16(g.next) & (windowSize - 1))
		}
		live := w.entries()
		off := uint16(g.next) & (windowSize - 1)
		for ; i < len(live) && live[i].off == off && live[i].state != matched; i++ {
		}
		// The events of an interleaved entry do not all lie where it begins: the entry
		// and those after it wait for the verdict.
		if i == len(live) || live[i].off != off || live[i].sum == interleaved {
			return
		}
		g.matched--
	}
}

// countLate returns how many events of an entry lie after one with a larger index, and
// raises the top of its stream.
func (g *log) countLate(e *entry, top map[int32]uint64) uint64 {
	if e.stream == noStream {
		return 0
	}
	t, end := top[e.stream], e.first+uint64(e.n)
	if end > t {
		top[e.stream] = end
	}
	if e.first >= t {
		return 0
	}
	return min(uint64(e.n), t-e.first)
}

// takeLate checks an entry that comes after the events that follow it are decided: in a
// log that was recreated, or read out of order. It can only determine whether the entry
// comes after everything so far. If it fills a hole that was passed over, decided
// events after it may be late.
func (g *log) takeLate(e *entry, base int64) {
	if e.stream == noStream {
		return
	}
	if t := g.top[e.stream]; e.first >= t {
		if t > 0 && base >= g.hole {
			g.doubtfulFrom = min(g.doubtfulFrom, base+int64(e.n))
		}
		g.top[e.stream] = e.first + uint64(e.n)
		return
	}
	g.unordered += uint64(e.n)
}

// compress joins matched entries of a stream that are consecutive in index and offset,
// if no entry between them still has an open place in the order, and no offset between
// them is empty. Entries after a lost piece or a hole in the log cannot be decided and
// would otherwise accumulate. It removes windows that become empty.
func (g *log) compress() {
	m := merger{last: map[int32]entryRef{}}
	g.matched, g.entries = 0, 0
	kept := g.windows[:0]
	for _, w := range g.windows {
		g.matched += m.merge(w)
		left := len(w.entries())
		g.entries += left
		if left == 0 && w.sums == nil {
			g.forget(w)
			continue
		}
		if cap(w.buf) > 64 && left < cap(w.buf)/4 {
			g.shrink(w)
		}
		kept = append(kept, w)
	}
	clear(g.windows[len(kept):])
	g.windows = kept
	if g.inOrder {
		g.skip()
	}
	g.compressAt = max(g.compressMin, 2*g.matched, g.entries/8)
}

// skip decides what can be decided because a log is read in order: nothing more arrives
// before the position of reading, so holes in the log and lost pieces do not delay a
// decision. Only a piece that was read and may still be acked does.
func (g *log) skip() {
	covered := g.next
	defer func() { g.next = max(g.next, covered) }()
	kept := g.windows[:0]
	stop := false
	for _, w := range g.windows {
		if stop = stop || w.sums != nil; stop {
			kept = append(kept, w)
			continue
		}
		live := w.entries()
		out := live[:0]
		for i := range live {
			e := live[i]
			base := w.number<<windowBits + int64(e.off)
			switch {
			case stop:
			case e.state == arrived:
				stop = true
			case base > g.readBase, e.state == acked && base+int64(e.n) > g.readBase:
				stop = true // not yet passed by reading
			case e.state == acked && base < g.next:
			case base > covered || e.state == acked:
				g.hole = min(g.hole, covered)
				covered = max(covered, base+int64(e.n))
			default:
				covered += int64(e.n)
			}
			if e.state != matched || stop {
				out = append(out, e)
				continue
			}
			g.late(&e)
			g.matched--
			g.entries--
		}
		w.buf = w.buf[:w.head+len(out)]
		if len(out) == 0 {
			g.forget(w)
			continue
		}
		kept = append(kept, w)
	}
	clear(g.windows[len(kept):])
	g.windows = kept
}

// A merger joins consecutive entries of a stream, across windows.
type merger struct {
	last  map[int32]entryRef // for each stream, the entry to join with
	order int                // grows with every entry kept

	// The end of the range that the entries since the last gap cover together.
	// Interleaved entries begin before the end of others, but never span a gap: an
	// entry that begins beyond covered leaves one.
	covered int64
}

type entryRef struct {
	w     *window
	i     int
	order int
}

// merge joins what it can in a window, and returns how many matched entries are left.
func (m *merger) merge(w *window) (left int) {
	live := w.entries()
	kept := live[:0]
	for _, e := range live {
		base := w.number<<windowBits + int64(e.off)
		if open := e.state == acked || e.state == arrived; open || base > m.covered {
			clear(m.last)
			m.covered = base + int64(e.n)
			if open {
				kept = append(kept, e)
				continue
			}
		} else {
			m.covered += int64(e.n)
		}
		if p, ok := m.last[e.stream]; ok && (p.w == w || e.state == matched) {
			// It has been written already, even if it is in this window.
			run := &p.w.entries()[p.i]
			if run.state == e.state && run.first+uint64(run.n) == e.first && run.n < 1<<30 && e.n < 1<<30 {
				run.n += e.n
				if p.order != m.order || e.sum == interleaved {
					run.sum = interleaved
				}
				continue
			}
		}
		m.order++
		kept = append(kept, e)
		m.last[e.stream] = entryRef{w, len(kept) - 1, m.order}
		if e.state == matched {
			left++
		}
	}
	w.buf = w.buf[:w.head+len(kept)]
	return left
}

// shrink moves a window's entries to a smaller buffer.
func (g *log) shrink(w *window) {
	before := cap(w.buf)
	w.buf = append(make([]entry, 0, len(w.entries())+4), w.entries()...)
	w.head = 0
	g.grow(int64(cap(w.buf)-before) * entryBytes)
}
