package ledger

import (
	"slices"

	"carronade/load"
)

// fired records the outcome of a batch.
func (g *log) fired(o *load.Outcome) {
	p := piece{first: o.First, sum: o.Sum, n: o.Events, stream: o.Stream}
	g.acked += uint64(o.Acked)
	whole := o.Acked == o.Events
	if g.ledger.cfg.Keys != nil && whole {
		g.ackedKeys(o)
	}
	if o.Sum == 0 && (whole && o.Place >= 0 || g.seen != nil && (whole || o.Unknown > 0 && o.Sent >= 0)) {
		g.setBare()
	}
	switch {
	case whole && g.closed:
		g.uncheckedAcked += uint64(p.n)
	case whole && g.bare && g.seen != nil:
		g.answer(p.stream, p.first, p.first+uint64(p.n))
	case whole && g.bare && o.Place >= 0:
		g.coverAcked(o.Place, p)
	case whole && o.Place >= 0:
		g.takeAcked(o.Place, p)
	case whole && o.Sum != 0:
		p.unplaced = true
		g.keepUnknown(p)
	case o.Acked > 0:
		// Part of a batch, or its place is unknown: no piece can be looked up,
		// and events found of it cannot be recognized.
		g.uncheckedAcked += uint64(o.Acked)
		if g.seen != nil {
			g.put(g.partly, p.stream, p.first, p.first+uint64(p.n))
		} else {
			g.droppedUnknown = true
		}
	default:
		p.refused = o.Unknown == 0
		if p.refused && o.Sent < 0 {
			return // never written, so nothing can be found
		}
		if g.closed {
			return
		}
		if g.bare && g.seen != nil {
			// It is enough to know that events were found and not acked.
			if p.refused {
				g.put(g.denied, p.stream, p.first, p.first+uint64(p.n))
			}
			return
		}
		g.keepUnknown(p)
	}
}

// keepUnknown records a piece of which only its identity is known, if it has one.
func (g *log) keepUnknown(p piece) {
	full := g.ledger.full()
	if p.sum == 0 && g.seen == nil || full {
		g.droppedUnknown = true
		if full && g.seen == nil {
			if g.dropped == nil {
				g.dropped = map[int32]uint64{}
			}
			g.dropped[p.stream] = max(g.dropped[p.stream], p.first+uint64(p.n))
		}
		if p.unplaced {
			g.uncheckedAcked += uint64(p.n)
		}
		return
	}
	before := cap(g.unknown)
	g.unknown = append(g.unknown, p)
	g.grow(int64(cap(g.unknown)-before) * pieceBytes)
}

// takeAcked records a piece whose answer names the place base.
func (g *log) takeAcked(base int64, p piece) {
	w := g.at(base, &g.ackAt)
	if w == nil {
		g.uncheckedAcked += uint64(p.n)
		return
	}
	off := uint16(base) & (windowSize - 1)
	if w.sums != nil {
		g.sumAcked(w, entry{first: p.first, sum: p.sum, n: p.n, stream: p.stream, off: off})
		return
	}
	live := w.entries()
	i := w.find(off)
	for ; i < len(live) && live[i].off == off; i++ {
		e := &live[i]
		if e.state != arrived || !e.fits(p.sum, p.n, p.stream, p.first) {
			continue
		}
		e.state, e.stream, e.first = matched, p.stream, p.first
		g.orphans--
		g.match(w, i, base)
		return
	}
	g.insert(w, i, entry{first: p.first, sum: p.sum, n: p.n, stream: p.stream, off: off, state: acked})
}

// fits reports whether e, an arrival or an acked piece, may be the counterpart of the
// piece.
func (e *entry) fits(sum uint32, n, stream int32, first uint64) bool {
	if e.n != n || e.sum != sum && e.sum != 0 && sum != 0 {
		return false
	}
	if e.stream == unknownStream || stream == unknownStream {
		return true
	}
	return e.stream == stream && e.first == first
}

// arrived records a piece that was read.
func (g *log) arrived(a *load.Arrival) {
	if g.ledger.cfg.Keys != nil {
		g.readKeys(a)
	}
	if g.ledger.cfg.Stamped && len(a.Stamps) > 0 {
		g.arrivedStamped(a)
		return
	}
	g.takeRead(a.Base, entry{sum: a.Sum, n: a.Events, stream: unknownStream, corrupt: a.Corrupt}, a.Events)
}

// takeRead records a piece that was read at base, with bad damaged events if it is
// corrupt.
func (g *log) takeRead(base int64, p entry, bad int32) {
	w := g.readAt
	if w == nil || w.number != base>>windowBits {
		w, _ = g.window(base >> windowBits)
	}
	off := uint16(base) & (windowSize - 1)
	if base < g.start {
		// From before the run, unless the log was recreated and an answer names this
		// place for one of our pieces.
		if w == nil || w.sums != nil || !g.ackWaiting(w, off, p) {
			return
		}
	}
	g.reach(base, p.n)
	if g.closed {
		g.uncheckedRead += uint64(p.n)
		return
	}
	if g.bare && g.seen == nil {
		if p.corrupt {
			g.corrupted += uint64(bad)
		}
		g.coverRead(base, p.n)
		return
	}
	if g.bare && p.stream != unknownStream {
		if !p.corrupt {
			bad = 0
		}
		g.takeStamped(base, p.stream, p.first, p.n, uint64(bad))
		return
	}
	if w == nil {
		if w = g.at(base, &g.readAt); w == nil {
			g.uncheckedRead += uint64(p.n)
			return
		}
	}
	g.readAt = w
	if w.sums != nil {
		if p.corrupt {
			g.corrupted += uint64(bad)
		}
		p.off = off
		g.sumArrived(w, p)
		return
	}
	live := w.entries()
	i := w.find(off)
	for ; i < len(live) && live[i].off == off; i++ {
		e := &live[i]
		if e.state != acked || !e.fits(p.sum, p.n, p.stream, p.first) {
			continue
		}
		e.state, e.corrupt = matched, p.corrupt
		if p.corrupt {
			g.noteBad(base, bad, p.n)
		}
		g.match(w, i, base)
		return
	}
	if p.corrupt {
		g.noteBad(base, bad, p.n)
	}
	p.off, p.state = off, arrived
	g.insert(w, i, p)
	g.orphans++
}

// reach counts what was read.
func (g *log) reach(base int64, n int32) {
	g.read += uint64(n)
	if base < g.readEnd {
		g.inOrder = false
		return
	}
	g.readBase = base
	g.readEnd = base + int64(n)
}

// ackWaiting reports whether the ack of such an arrival is known.
func (g *log) ackWaiting(w *window, off uint16, p entry) bool {
	live := w.entries()
	for i := w.find(off); i < len(live) && live[i].off == off; i++ {
		if live[i].state == acked && live[i].fits(p.sum, p.n, p.stream, p.first) {
			return true
		}
	}
	return false
}

// noteBad records the number of damaged events of a corrupt piece if it is not all of
// them.
func (g *log) noteBad(base int64, bad, n int32) {
	if bad < n {
		if g.bad == nil {
			g.bad = map[int64]int32{}
		}
		g.bad[base] = bad
	}
}

// badOf returns how many events of a corrupt piece are damaged.
func (g *log) badOf(base int64, n int32) uint64 {
	if bad, ok := g.bad[base]; ok {
		return uint64(bad)
	}
	return uint64(n)
}

// match is called when both sides of the entry at index i are known.
func (g *log) match(w *window, i int, base int64) {
	e := &w.entries()[i]
	if e.corrupt {
		g.corrupted += g.badOf(base, e.n)
		delete(g.bad, base)
	}
	if g.seen != nil {
		g.markFound(e.stream, e.first, e.n)
	} else {
		g.remember(key{e.sum, e.n})
	}
	e.sum = 0 // not interleaved
	if base == g.next {
		g.advance(w, i)
		return
	}
	if base < g.next {
		g.takeLate(e, base)
		g.remove(w, i)
		return
	}
	if g.matched++; g.matched >= g.compressAt {
		g.compress()
	}
}

// markFound adds to the indices found where they should be.
func (g *log) markFound(stream int32, first uint64, n int32) {
	g.put(g.seen, stream, first, first+uint64(n))
}

// arrivedStamped records a piece whose events identify themselves.
func (g *log) arrivedStamped(a *load.Arrival) {
	if first, stream, bad, ok := g.whole(a); ok {
		g.takeRead(a.Base, entry{first: first, sum: a.Sum, n: a.Events, stream: stream, corrupt: a.Corrupt || bad > 0}, damaged(bad, a.Events))
		return
	}
	// A piece composed of several: each run of consecutive events is a separate piece
	// without a checksum. If it is corrupt and every stamp is intact, the damage lies
	// outside the stamps of each of them.
	elsewhere := a.Corrupt && !slices.ContainsFunc(a.Stamps, func(s load.Stamp) bool { return s.Bad })
	for s := a.Stamps; len(s) > 0; {
		k, bad := g.run(s)
		switch {
		case s[0].Bad:
			g.takeRead(s[0].Offset, entry{n: int32(k), stream: unknownStream, corrupt: true}, int32(k))
		case s[0].Run != g.ledger.cfg.RunID:
			g.takeForeign(s[0].Offset, int32(k))
		default:
			switch {
			case elsewhere:
				bad = int32(k)
			case g.bare && bad > 0:
				g.put(g.inferred, s[0].Stream, s[0].Index, s[0].Index+uint64(k))
			}
			g.takeRead(s[0].Offset, entry{first: s[0].Index, n: int32(k), stream: s[0].Stream, corrupt: bad > 0}, bad)
		}
		s = s[k:]
	}
}

// run returns how many events from the first on are consecutive, and how many of these
// are damaged: those between intact neighbours which leave exactly that gap. Damaged
// events without such neighbours are a separate run.
func (g *log) run(s []load.Stamp) (k int, bad int32) {
	k = 1
	for i := 1; i < len(s) && s[i].Offset == s[0].Offset+int64(i); i++ {
		switch {
		case s[0].Bad:
			if !s[i].Bad {
				return k, 0
			}
			k++
		case s[i].Bad:
		case s[i].Run != s[0].Run || s[i].Stream != s[0].Stream || s[i].Index != s[0].Index+uint64(i):
			return k, bad
		default:
			bad += int32(i - k)
			k = i + 1
		}
	}
	return k, bad
}

// damaged returns the number of damaged events of a corrupt piece: if every stamp is
// intact, the damage lies elsewhere, and its extent is not known, so all events count.
func damaged(bad, n int32) int32 {
	if bad > 0 {
		return bad
	}
	return n
}

// takeForeign records events of another run.
func (g *log) takeForeign(base int64, n int32) {
	if base < g.start {
		return
	}
	g.reach(base, n)
	g.foreign += uint64(n)
	g.markAccounted(base, n)
}

// whole reports whether a piece consists of consecutive events of this run, apart from
// damaged ones, and returns which.
func (g *log) whole(a *load.Arrival) (first uint64, stream, bad int32, ok bool) {
	stream = unknownStream
	if g.bare || int(a.Events) != len(a.Stamps) {
		return 0, stream, 0, false
	}
	run := g.ledger.cfg.RunID
	for i := range a.Stamps {
		s := &a.Stamps[i]
		if s.Bad {
			bad++
			continue
		}
		if s.Run != run || s.Offset != a.Base+int64(i) {
			return 0, stream, 0, false
		}
		if stream == unknownStream {
			if s.Index < uint64(i) {
				return 0, stream, 0, false
			}
			stream, first = s.Stream, s.Index-uint64(i)
		}
		if s.Stream != stream || s.Index != first+uint64(i) {
			return 0, stream, 0, false
		}
	}
	return first, stream, bad, true
}
