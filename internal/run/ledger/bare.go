package ledger

// Some answers come without a checksum, for batches that do not lie in the log as they
// were sent: the client packs its own batches. Then pieces cannot be compared. With
// stamps every event that was read identifies itself, and the two sides are sets of
// indices for each stream; without stamps they are sets of offsets.

// setBare is called at the first such answer.
func (g *log) setBare() {
	if g.bare {
		return
	}
	g.bare = true
	if g.seen == nil {
		g.foldAll(len(g.windows))
		return
	}
	g.answered, g.inferred = map[int32]*ranges{}, map[int32]*ranges{}
	for s, r := range g.seen {
		for _, x := range r.spans {
			g.answer(s, x.lo, x.hi)
		}
	}
	type found struct {
		base int64
		e    entry
	}
	var early []found
	for _, w := range g.windows {
		live := w.entries()
		kept := live[:0]
		for _, e := range live {
			switch {
			case e.state == acked:
				g.answer(e.stream, e.first, e.first+uint64(e.n))
			case e.state == arrived && e.stream != unknownStream:
				early = append(early, found{w.number<<windowBits + int64(e.off), e})
				g.orphans--
			default:
				kept = append(kept, e)
			}
		}
		w.buf = w.buf[:w.head+len(kept)]
	}
	g.recount()
	ordered := g.inOrder
	g.inOrder = false // not all accounted offsets are in their place yet
	for _, f := range early {
		bad := uint64(0)
		if f.e.corrupt {
			bad = g.badOf(f.base, f.e.n)
			delete(g.bad, f.base)
			g.put(g.inferred, f.e.stream, f.e.first, f.e.first+uint64(f.e.n))
		}
		g.takeStamped(f.base, f.e.stream, f.e.first, f.e.n, bad)
	}
	g.inOrder = ordered
}

// answer adds to the indices that the system acknowledged.
func (g *log) answer(stream int32, lo, hi uint64) { g.put(g.answered, stream, lo, hi) }

func (g *log) put(m map[int32]*ranges, stream int32, lo, hi uint64) {
	r := m[stream]
	if r == nil {
		r = &ranges{}
		m[stream] = r
		g.grow(64)
	}
	before := cap(r.spans)
	r.add(lo, hi)
	if c := cap(r.spans); c != before {
		g.grow(int64(c-before) * 16)
	}
}

// takeStamped records consecutive events that identify themselves: those found before
// are copies, the rest is newly found.
func (g *log) takeStamped(base int64, stream int32, first uint64, n int32, bad uint64) {
	g.corrupted += bad
	end := first + uint64(n)
	var copies, fresh []span
	if r := g.seen[stream]; r != nil {
		copies, fresh = r.cut(first, end)
	} else {
		fresh = []span{{first, end}}
	}
	for _, c := range copies {
		g.duplicated += c.hi - c.lo
		g.noteNow(&g.places.Duplicated, stream, c.lo, c.hi)
		g.unordered += g.inferred[stream].count(c.lo, c.hi)
		g.markAccounted(base+int64(c.lo-first), int32(c.hi-c.lo))
	}
	for _, f := range fresh {
		g.markFound(stream, f.lo, int32(f.hi-f.lo))
		g.putMatched(base+int64(f.lo-first), entry{first: f.lo, n: int32(f.hi - f.lo), stream: stream, state: matched})
	}
}

// noStream is the stream of entries that occupy offsets, but have no place in any
// order.
const noStream = -2

// markAccounted records offsets whose events are accounted for.
func (g *log) markAccounted(base int64, n int32) {
	g.putMatched(base, entry{first: uint64(base), n: n, stream: noStream, state: matched})
}

// putMatched inserts a matched entry.
func (g *log) putMatched(base int64, e entry) {
	if base == g.next && e.stream == noStream {
		// Nothing to record; entries that follow may have waited for it.
		g.next += int64(e.n)
		if w, _ := g.window(g.next >> windowBits); w != nil && w.sums == nil {
			g.decideNext(w)
		}
		return
	}
	w := g.at(base, &g.readAt)
	if w == nil || w.sums != nil && e.stream == noStream {
		if e.stream != noStream {
			g.unordered += uint64(e.n)
		}
		return
	}
	e.off = uint16(base) & (windowSize - 1)
	if base < g.next {
		g.takeLate(&e, base)
		return
	}
	i := w.find(e.off)
	g.insert(w, i, e)
	if base == g.next && w.sums == nil {
		g.advance(w, i)
		return
	}
	if g.matched++; g.matched >= g.compressAt {
		g.compress()
	}
}

// decideNext decides the entry that begins at next, if it is already there.
func (g *log) decideNext(w *window) {
	off := uint16(g.next) & (windowSize - 1)
	live := w.entries()
	for i := w.find(off); i < len(live) && live[i].off == off; i++ {
		if live[i].state == matched && live[i].sum != interleaved {
			g.matched--
			g.advance(w, i)
			return
		}
	}
}

// coverAcked and coverRead add a piece to the offsets of their side, divided at the
// ends of windows: the pieces of the two sides do not begin and end together.
func (g *log) coverAcked(base int64, p piece) {
	cut(base, p.n, func(base int64, n int32) {
		w := g.at(base, &g.ackAt)
		if w == nil {
			g.uncheckedAcked += uint64(n)
			return
		}
		if w.sums == nil {
			g.fold(w)
		}
		g.sumAcked(w, entry{first: p.first, n: n, stream: p.stream, off: uint16(base) & (windowSize - 1)})
		p.first += uint64(n)
	})
}

func (g *log) coverRead(base int64, n int32) {
	cut(base, n, func(base int64, n int32) {
		w := g.at(base, &g.readAt)
		if w == nil {
			g.uncheckedRead += uint64(n)
			return
		}
		if w.sums == nil {
			g.fold(w)
		}
		g.sumArrived(w, entry{n: n, off: uint16(base) & (windowSize - 1)})
	})
}

func cut(base int64, n int32, f func(base int64, n int32)) {
	for n > 0 {
		k := min(int64(n), windowSize-base&(windowSize-1))
		f(base, int32(k))
		base += k
		n -= int32(k)
	}
}

// bareStamped compares the indices that were acked with those that were found.
func (j *balance) bareStamped() {
	g := j.g
	for s, r := range j.seen {
		for _, x := range r.spans {
			_, extra := g.answered[s].cut(x.lo, x.hi)
			for _, e := range extra {
				unsure := j.unproven[s].count(e.lo, e.hi)
				if g.closed {
					unsure = e.hi - e.lo // their answers may not have been recorded
				}
				j.v.Inexact += unsure
				j.v.Recovered += e.hi - e.lo - unsure
				j.refused += j.denied[s].count(e.lo, e.hi)
			}
		}
	}
	missing := uint64(0)
	var absentees []Span
	for s, r := range g.answered {
		for _, x := range r.spans {
			_, absent := j.seen[s].cut(x.lo, x.hi)
			for _, a := range absent {
				due, unsure := g.transactions.mustBeFound(s, a)
				missing += length(due)
				j.v.Inexact += unsure
				for _, d := range due {
					absentees = append(absentees, Span{s, d.lo, d.hi})
				}
			}
		}
	}
	exact := true
	if g.closed {
		unsure := min(missing, j.unidentified) // they may be among the events that were not recorded
		j.v.Inexact += unsure
		j.unidentified -= unsure
		missing -= unsure
		exact = unsure == 0
	}
	switch {
	case g.ledger.cfg.Keys != nil:
		j.compacted(missing)
	case exact:
		j.miss(absentees)
	default:
		j.countMissing(missing)
	}
	if g.ledger.visibleDone {
		j.visible()
	}
}
