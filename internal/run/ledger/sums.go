package ledger

import (
	"math/bits"
	"slices"
)

// A summary is what a window keeps if memory is short: for each side the counts, a digest
// that does not depend on order, and which offsets were covered. Equal sides prove that
// every piece is where it should be, with its checksum; offsets that only one side
// covers are still known exactly.
type summary struct {
	acked, arrived side
}

type side struct {
	pieces, events uint64
	digest         uint64
	cover          cover
}

const sumsBytes = 112

func (s *side) add(off uint16, n int32, sum uint32) {
	s.pieces++
	s.events += uint64(n)
	s.digest += mix(uint64(off)<<48 ^ uint64(uint32(n))<<32>>1 ^ uint64(sum)*0x9e3779b97f4a7c15)
	s.cover.add(int32(off), int32(off)+n)
}

// mix is the finalizer of splitmix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// A cover is a set of offsets within a window: a span while it has no holes, then a
// bitmap. Offsets of the last piece beyond the window are always a span.
type cover struct {
	lo, hi int32
	over   int32 // the end of the covered range beyond the window, if bits is set
	bits   *[windowSize / 64]uint64
}

func (c *cover) add(lo, hi int32) {
	if c.bits == nil {
		switch {
		case c.lo == c.hi:
			c.lo, c.hi = lo, hi
			return
		case lo <= c.hi && hi >= c.lo:
			c.lo, c.hi = min(c.lo, lo), max(c.hi, hi)
			return
		}
		c.bits = new([windowSize / 64]uint64)
		c.set(c.lo, c.hi)
	}
	c.set(lo, hi)
}

func (c *cover) set(lo, hi int32) {
	c.over = max(c.over, hi)
	for hi = min(hi, windowSize); lo < hi; {
		i := lo / 64
		end := min(hi, (i+1)*64)
		c.bits[i] |= (^uint64(0) >> (64 - (end - lo))) << (lo % 64)
		lo = end
	}
}

// word returns the 64 offsets that begin at 64*i.
func (c *cover) word(i int32) uint64 {
	if c.bits != nil {
		return c.bits[i]
	}
	lo, hi := max(c.lo-64*i, 0), min(c.hi-64*i, 64)
	if lo >= hi {
		return 0
	}
	return (^uint64(0) >> (64 - (hi - lo))) << lo
}

// spans returns the covered parts of [lo, hi).
func (c *cover) spans(lo, hi int32) (out []span) {
	in := func(at int32) bool {
		if c.bits == nil {
			return at >= c.lo && at < c.hi
		}
		return at < windowSize && c.bits[at/64]>>(at%64)&1 != 0
	}
	for ; lo < hi; lo++ {
		if !in(lo) {
			continue
		}
		from := lo
		for lo < hi && in(lo) {
			lo++
		}
		out = append(out, span{uint64(from), uint64(lo)})
	}
	return out
}

// end returns the end of the covered range beyond the window.
func (c *cover) end() int32 {
	if c.bits != nil {
		return max(c.over, windowSize)
	}
	return max(c.hi, windowSize)
}

// compare returns how many offsets below limit only a covers, only b covers, and both
// cover, and how many a covers from limit on.
func compare(a, b *cover, limit int64) (onlyA, onlyB, both, beyond uint64) {
	for i := range int32(windowSize / 64) {
		x, y := a.word(i), b.word(i)
		in := ^uint64(0)
		if left := limit - int64(i)*64; left <= 0 {
			in = 0
		} else if left < 64 {
			in >>= 64 - left
		}
		onlyA += uint64(bits.OnesCount64(x &^ y & in))
		onlyB += uint64(bits.OnesCount64(y &^ x & in))
		both += uint64(bits.OnesCount64(x & y & in))
		beyond += uint64(bits.OnesCount64(x &^ in))
	}
	ea, eb := int64(a.end())-windowSize, int64(b.end())-windowSize
	if limit <= windowSize {
		return onlyA, onlyB, both, beyond + uint64(ea)
	}
	return onlyA + uint64(max(ea-eb, 0)), onlyB + uint64(max(eb-ea, 0)), both + uint64(min(ea, eb)), beyond
}

// fold reduces a window to sums. Acked entries stay as runs of indices, for the order;
// matched ones stay.
func (g *log) fold(w *window) {
	if w.sums == nil {
		w.sums = &summary{}
		g.grow(sumsBytes)
	}
	g.folded = true
	before := g.coverBytes(w)
	var again []entry
	live := w.entries()
	kept := live[:0]
	for _, e := range live {
		switch e.state {
		case acked:
			if g.bare {
				again = append(again, e)
				continue
			}
			w.sums.acked.add(e.off, e.n, e.sum)
			e.state, e.sum = summed, 0
		case arrived:
			if e.corrupt {
				e.sum = ^e.sum // so that it cannot prove anything
			}
			g.orphans--
			if g.bare {
				again = append(again, e)
				continue
			}
			w.sums.arrived.add(e.off, e.n, e.sum)
			delete(g.bad, w.number<<windowBits+int64(e.off))
			continue
		}
		kept = append(kept, e)
	}
	w.buf = w.buf[:w.head+len(kept)]
	m := merger{last: map[int32]entryRef{}}
	m.merge(w)
	if len(w.entries()) < cap(w.buf)/2 {
		g.shrink(w)
	}
	g.grow(g.coverBytes(w) - before)
	for _, e := range again {
		base := w.number<<windowBits + int64(e.off)
		if e.state == acked {
			g.coverAcked(base, piece{first: e.first, n: e.n, stream: e.stream})
		} else {
			g.coverRead(base, e.n)
		}
	}
}

func (g *log) coverBytes(w *window) (n int64) {
	for _, s := range []*side{&w.sums.acked, &w.sums.arrived} {
		if s.cover.bits != nil {
			n += windowSize / 8
		}
	}
	return n
}

// sumAcked adds an acked piece to a window that keeps only sums.
func (g *log) sumAcked(w *window, e entry) {
	s := w.sums
	bits := s.acked.cover.bits
	s.acked.add(e.off, e.n, e.sum)
	if bits == nil && s.acked.cover.bits != nil {
		g.grow(windowSize / 8)
	}
	e.state, e.sum = summed, 0
	i := w.find(e.off)
	if i > 0 {
		// Join only adjacent entries: nothing can come between them.
		p := &w.entries()[i-1]
		if p.state == summed && p.sum != interleaved && p.stream == e.stream && p.first+uint64(p.n) == e.first && int32(p.off)+p.n == int32(e.off) {
			p.n += e.n
			return
		}
	}
	g.insert(w, i, e)
}

// sumArrived adds a piece that was read to a window that keeps only sums.
func (g *log) sumArrived(w *window, e entry) {
	bits := w.sums.arrived.cover.bits
	w.sums.arrived.add(e.off, e.n, e.sum)
	if bits == nil && w.sums.arrived.cover.bits != nil {
		g.grow(windowSize / 8)
	}
}

// full reports whether memory has reached its limit.
func (l *Ledger) full() bool { return l.used.Load() > l.limit+l.limit/8 }

// freeMemory frees memory when it is short: first it decides what can be decided, then
// it reduces windows to sums, and finally it stops recording.
func (l *Ledger) freeMemory() {
	if used := l.used.Load(); used <= l.limit || used <= l.freeAbove.Load() || !l.freeing.CompareAndSwap(false, true) {
		return
	}
	// If nothing helps, do not try again before memory use has grown.
	defer func() {
		l.freeAbove.Store(l.used.Load() + l.limit/32)
		l.freeing.Store(false)
	}()
	for _, step := range []func(*log){
		func(g *log) { g.pairUnknown(); g.compress() },
		func(g *log) { g.foldAll(max(len(g.windows)-1, 0)) },
		func(g *log) { g.foldAll(len(g.windows)) },
		func(g *log) {
			// Sets of indices do not depend on windows.
			g.closed = g.closed || g.bare && g.seen != nil && l.full()
			if n := len(g.windows); n > 0 {
				g.ceiling = min(g.ceiling, g.windows[n-1].number+1)
			}
		},
	} {
		for i := range l.logs {
			g := &l.logs[i]
			g.mu.Lock()
			// Only logs that use a considerable share.
			if g.bytes >= l.limit/int64(2*len(l.logs)) {
				step(g)
			}
			g.mu.Unlock()
		}
		// Enough is free.
		if l.used.Load() <= l.limit*7/8 {
			return
		}
	}
}

// pairUnknown decides arrivals of pieces without an answer early, when memory is short:
// if nothing is ever acked, they would all wait for the verdict.
func (g *log) pairUnknown() {
	if g.orphans == 0 || len(g.unknown) == 0 {
		return
	}
	open := map[key][]int{}
	for i, p := range g.unknown {
		k := key{p.sum, p.n}
		if g.seen != nil {
			k = key{uint32(p.first), p.stream} // checked more precisely below
		}
		open[k] = append(open[k], i)
	}
	done := make([]bool, len(g.unknown))
	g.each(arrived, func(_ entryRef, base int64, e *entry) {
		if e.corrupt || g.seen == nil && e.sum == 0 {
			return
		}
		k := key{e.sum, e.n}
		if g.seen != nil {
			k = key{uint32(e.first), e.stream}
		}
		for _, i := range open[k] {
			p := g.unknown[i]
			if done[i] || g.seen != nil && (p.first != e.first || p.n != e.n || g.seen[e.stream].count(e.first, e.first+uint64(e.n)) > 0) {
				continue
			}
			done[i] = true
			open[k] = open[k][1:]
			g.recovered += uint64(p.n)
			if p.refused {
				g.refused += uint64(p.n)
			}
			if g.seen != nil {
				g.markFound(p.stream, p.first, p.n)
			} else {
				g.remember(key{e.sum, e.n})
			}
			e.state, e.stream, e.first, e.sum = matched, p.stream, p.first, 0
			g.orphans--
			break
		}
	})
	before := cap(g.unknown)
	var left []piece
	for i, p := range g.unknown {
		if !done[i] {
			left = append(left, p)
		}
	}
	g.unknown = left
	g.grow(int64(cap(left)-before) * pieceBytes)
}

// foldAll folds the first n windows if that saves memory.
func (g *log) foldAll(n int) {
	// Folding may create windows.
	for _, w := range slices.Clone(g.windows[:n]) {
		if w.sums != nil || g.bare || g.worthFolding(w) {
			g.fold(w)
		}
	}
	g.recount()
}

// worthFolding reports whether sums take less memory than the entries that they
// replace. Bitmaps, for sides with holes, take as much as 170 entries each.
func (g *log) worthFolding(w *window) bool {
	cost, gain := sumsBytes+2*entryBytes, 0
	var ends [arrived + 1]int32
	var holes [arrived + 1]bool
	for _, e := range w.entries() {
		if e.state > arrived {
			continue
		}
		gain += entryBytes
		if end := ends[e.state]; end > 0 && end != int32(e.off) && !holes[e.state] {
			holes[e.state] = true
			cost += windowSize / 8
		}
		ends[e.state] = int32(e.off) + e.n
	}
	return gain > cost
}

func (g *log) recount() {
	g.entries, g.matched = 0, 0
	for _, w := range g.windows {
		for _, e := range w.entries() {
			g.entries++
			if e.state == matched {
				g.matched++
			}
		}
	}
	g.compressAt = max(g.compressMin, 2*g.matched, g.entries/8)
}
