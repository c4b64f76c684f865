package ledger

import (
	"maps"
	"slices"

	"carronade/measure"
)

// A balance computes the result of one log. It does not change the log, so that a
// verdict may be requested while a run continues.
type balance struct {
	g   *log
	end int64 // the end of what was read
	v   measure.LedgerCounts

	foreign, refused uint64
	unidentified     uint64 // read events that cannot be identified
	removed          uint64 // number of unread events that were removed

	committed, committedRead, aborted uint64

	places Places

	// With stamps, by stream.
	seen     map[int32]*ranges // found and counted
	denied   map[int32]*ranges // certainly refused
	waiting  map[int32]*ranges // acked, but not where they should be
	unplaced map[int32]*ranges // acked, but the answer does not name the place
	unproven map[int32]*ranges // may have been acked: in windows whose sums differ, or of batches acked in part

	// Without stamps.
	known   map[key]bool       // keys of matched pieces that unidentified ones share
	open    map[key][]piece    // unknown pieces, the oldest first
	missing map[key][]entryRef // acked pieces that are not where they should be

	// The order of what lies before this offset is certain; see log.doubtfulFrom.
	doubtfulFrom int64

	// For each stream, the largest index plus one of pieces that may lie before the
	// current offset without a place: it cannot be known whether an event below it is
	// late.
	lateBelow      map[int32]uint64
	mayHideDropped map[*window]bool  // windows with offsets that were read but not acked: a dropped piece may be there
	unnamed        map[entryRef]bool // arrivals that may be dropped pieces

	gone      map[entryRef]bool  // acked entries that are accounted for
	rest      map[entryRef]int32 // acked entries that were removed in part: number of events found
	ownPieces map[entryRef]piece // arrivals that are events of this run, for the order
}

// verdict computes the result.
func (g *log) verdict(end int64) *balance {
	j := balance{
		g: g, end: end,
		v: measure.LedgerCounts{
			Acked: g.acked, Read: g.read, Duplicated: g.duplicated, Corrupted: g.corrupted,
			Recovered: g.recovered, Inexact: max(g.uncheckedAcked, g.uncheckedRead) + g.unordered, Reordered: g.reordered,
		},
		foreign: g.foreign, refused: g.refused, unidentified: g.uncheckedRead,
		doubtfulFrom: g.doubtfulFrom, gone: map[entryRef]bool{}, rest: map[entryRef]int32{}, ownPieces: map[entryRef]piece{},
		places:    Places{Duplicated: slices.Clone(g.places.Duplicated), Reordered: slices.Clone(g.places.Reordered)},
		lateBelow: map[int32]uint64{}, mayHideDropped: map[*window]bool{}, unnamed: map[entryRef]bool{},
	}
	proven := j.sums()
	if g.seen != nil {
		j.stamped(proven)
	} else {
		j.unstamped()
	}
	j.lost()
	// Events that are not where they should be may be among those that cannot be
	// identified.
	unsure := min(j.v.Lost, j.unidentified)
	j.v.Lost -= unsure
	j.v.Inexact += unsure
	if unsure > 0 {
		j.places.Lost = nil // it is not known which of them
	}
	j.order(proven)
	return &j
}

// each calls f with every entry of a state, in the order of the log.
func (g *log) each(state uint8, f func(p entryRef, base int64, e *entry)) {
	for _, w := range g.windows {
		live := w.entries()
		for i := range live {
			if live[i].state == state {
				f(entryRef{w: w, i: i}, w.number<<windowBits+int64(live[i].off), &live[i])
			}
		}
	}
}

// sums checks the windows that keep only sums, and returns those which prove that
// nothing is wrong.
func (j *balance) sums() map[*window]bool {
	proven := map[*window]bool{}
	for _, w := range j.g.windows {
		s := w.sums
		if s == nil {
			continue
		}
		base := w.number << windowBits
		bare := j.g.bare && j.g.seen == nil
		onlyAcked, onlyRead, both, beyond := compare(&s.acked.cover, &s.arrived.cover, j.end-base)
		j.v.Unread += beyond
		j.removed += min(beyond, j.removedOf(max(base, j.end), base+windowSize))
		if bare {
			both = 0 // nothing else can be checked
			proven[w] = onlyAcked == 0
		} else if s.acked.pieces == s.arrived.pieces && s.acked.events == s.arrived.events && s.acked.digest == s.arrived.digest && onlyAcked == 0 && onlyRead == 0 {
			proven[w] = true
			continue
		}
		// Offsets that both sides cover, and those that only reading covers, may be
		// anything: a copy, an altered piece, a foreign one.
		j.v.Inexact += both + onlyRead
		j.unidentified += onlyRead
		j.mayHideDropped[w] = onlyRead > 0
		unread := uint64(0)
		for _, r := range j.g.removed.both(uint64(base), uint64(base+int64(s.acked.cover.end()))) {
			upTo := func(at uint64) uint64 {
				n, _, _, _ := compare(&s.acked.cover, &s.arrived.cover, min(int64(at), j.end)-base)
				return n
			}
			unread += upTo(r.hi) - upTo(r.lo)
		}
		unread = min(unread, onlyAcked)
		j.v.Unread += unread
		j.removed += unread
		j.v.Lost += onlyAcked - unread
	}
	return proven
}

// unstamped identifies the arrivals that no answer names, by checksum and number of
// events.
func (j *balance) unstamped() {
	g := j.g
	j.known = g.known()
	j.open = map[key][]piece{}
	j.missing = map[key][]entryRef{}
	for _, p := range g.unknown {
		if k := (key{p.sum, p.n}); p.sum != 0 {
			j.open[k] = append(j.open[k], p)
		}
	}
	wanted := g.openKeys()
	var cut []cutPiece
	g.each(acked, func(p entryRef, base int64, e *entry) {
		if n := j.removedOf(base, base+int64(e.n)); n > 0 && n < uint64(e.n) {
			cut = append(cut, cutPiece{p, base})
		}
		if k := (key{e.sum, e.n}); wanted[k] {
			j.missing[k] = append(j.missing[k], p)
		}
	})
	defer func() {
		for _, pieces := range j.open {
			for _, p := range pieces {
				if p.unplaced {
					j.miss([]Span{{p.stream, p.first, p.first + uint64(p.n)}})
				}
			}
		}
	}()
	g.each(arrived, func(p entryRef, base int64, e *entry) {
		k, n := key{e.sum, e.n}, uint64(e.n)
		named := !e.corrupt && e.sum != 0
		switch {
		case named && len(j.open[k]) > 0:
			u := j.open[k][0]
			j.open[k] = j.open[k][1:]
			j.recover(u, n)
			j.ownPieces[p] = u
			j.known[k] = true
		case named && j.known[k]:
			j.v.Duplicated += n
		case named && j.moved(k, p):
			j.known[k] = true
		case j.altered(p, base):
		case j.remainder(p, base, e, cut):
		case e.corrupt && j.damagedUnknown(p, base, e):
		case g.history.evicted || g.folded || g.droppedUnknown:
			j.v.Inexact += n
			j.unidentified += n
			j.unnamed[p] = true
		default:
			j.foreign += n
		}
	})
}

func (j *balance) recover(u piece, n uint64) {
	if u.unplaced {
		return // acked and found
	}
	j.v.Recovered += n
	if u.refused {
		j.refused += n
	}
}

// moved finds an acked piece that is here instead of where it should be.
func (j *balance) moved(k key, here entryRef) bool {
	for _, p := range j.missing[k] {
		if j.gone[p] {
			continue
		}
		j.gone[p] = true
		e := p.w.entries()[p.i]
		j.ownPieces[here] = piece{first: e.first, n: e.n, stream: e.stream}
		return true
	}
	return false
}

// altered looks for an acked piece that should be where this one is.
func (j *balance) altered(here entryRef, base int64) bool {
	live := here.w.entries()
	off := live[here.i].off
	for i := here.w.find(off); i < len(live) && live[i].off == off; i++ {
		p := entryRef{w: here.w, i: i}
		if live[i].state != acked || j.gone[p] {
			continue
		}
		j.gone[p] = true
		bad := uint64(live[i].n)
		if live[here.i].corrupt {
			bad = min(bad, j.g.badOf(base, live[i].n))
		}
		j.v.Corrupted += bad
		j.ownPieces[here] = piece{first: live[i].first, n: live[i].n, stream: live[i].stream}
		return true
	}
	return false
}

// damagedUnknown identifies a damaged piece that no answer names with an unknown one
// that has the same checksum and number of events.
func (j *balance) damagedUnknown(here entryRef, base int64, e *entry) bool {
	k := key{e.sum, e.n}
	if len(j.open[k]) == 0 {
		return false
	}
	j.ownPieces[here] = j.open[k][0]
	j.open[k] = j.open[k][1:]
	j.v.Corrupted += j.g.badOf(base, e.n)
	return true
}

// stamped identifies the arrivals that no answer names, by their stream and index.
func (j *balance) stamped(proven map[*window]bool) {
	g := j.g
	set := func() map[int32]*ranges { return map[int32]*ranges{} }
	j.seen, j.unplaced, j.denied, j.waiting, j.unproven = set(), set(), set(), set(), set()
	for s, r := range g.seen {
		j.seen[s] = &ranges{append([]span(nil), r.spans...)}
	}
	for s, r := range g.partly {
		for _, x := range r.spans {
			put(j.unproven, s, x.lo, x.hi)
		}
	}
	for s, r := range g.denied {
		for _, x := range r.spans {
			put(j.denied, s, x.lo, x.hi)
		}
	}
	for _, p := range g.unknown {
		switch {
		case p.unplaced:
			put(j.unplaced, p.stream, p.first, p.first+uint64(p.n))
			put(j.waiting, p.stream, p.first, p.first+uint64(p.n))
		case p.refused:
			put(j.denied, p.stream, p.first, p.first+uint64(p.n))
		}
	}
	g.each(acked, func(_ entryRef, _ int64, e *entry) { put(j.waiting, e.stream, e.first, e.first+uint64(e.n)) })
	g.each(summed, func(p entryRef, _ int64, e *entry) {
		if proven[p.w] {
			put(j.seen, e.stream, e.first, e.first+uint64(e.n))
		} else {
			put(j.unproven, e.stream, e.first, e.first+uint64(e.n))
		}
	})
	g.each(arrived, func(p entryRef, base int64, e *entry) {
		if e.stream == unknownStream {
			switch {
			case j.altered(p, base):
			case g.folded || g.droppedUnknown || g.bare:
				j.v.Inexact += uint64(e.n)
				j.unidentified += uint64(e.n)
			default:
				j.foreign += uint64(e.n)
			}
			return
		}
		lo, hi := e.first, e.first+uint64(e.n)
		old, fresh := j.seen[e.stream].cut(lo, hi)
		j.v.Duplicated += length(old)
		for _, x := range old {
			j.places.Duplicated = note(j.places.Duplicated, e.stream, x.lo, x.hi)
		}
		if len(fresh) == 0 {
			return
		}
		put(j.seen, e.stream, e.first, e.first+uint64(e.n))
		j.ownPieces[p] = piece{first: fresh[0].lo, n: int32(length(fresh)), stream: e.stream}
		bad := uint64(0)
		if e.corrupt {
			bad = j.g.badOf(base, e.n)
		}
		if g.bare {
			return // counted below
		}
		for _, f := range fresh {
			atHome := j.inPlace(p, f)
			switch {
			case atHome && bad == 0:
				// At its place with intact stamps, but not as it was sent.
				j.v.Corrupted += f.hi - f.lo
				continue
			case bad > 0:
				j.v.Corrupted += min(bad, f.hi-f.lo)
			}
			// Events that were acked for another place are found; nothing else is
			// known.
			_, rest := j.waiting[e.stream].cut(f.lo, f.hi)
			for _, r := range rest {
				unsure := j.unproven[e.stream].count(r.lo, r.hi)
				j.v.Inexact += unsure
				// Events missing from a window with only sums may be here.
				j.unidentified += unsure - g.partly[e.stream].count(r.lo, r.hi)
				j.v.Recovered += r.hi - r.lo - unsure
				j.refused += j.denied[e.stream].count(r.lo, r.hi)
			}
		}
	})
	if g.bare {
		j.bareStamped()
		return
	}
	for s, r := range j.unplaced {
		for _, x := range r.spans {
			_, absent := j.seen[s].cut(x.lo, x.hi)
			for _, a := range absent {
				j.miss([]Span{{s, a.lo, a.hi}})
			}
		}
	}
}

func put(m map[int32]*ranges, stream int32, lo, hi uint64) {
	r := m[stream]
	if r == nil {
		r = &ranges{}
		m[stream] = r
	}
	r.add(lo, hi)
}

// inPlace reports whether an acked piece with a checksum should be exactly where this
// arrival is, with the same events, so that only its checksum did not fit.
func (j *balance) inPlace(here entryRef, f span) bool {
	live := here.w.entries()
	a := live[here.i]
	for i := here.w.find(a.off); i < len(live) && live[i].off == a.off; i++ {
		e := live[i]
		if e.state == acked && e.stream == a.stream && e.first == f.lo && e.first+uint64(e.n) == f.hi && e.sum != a.sum && a.sum != 0 {
			return true
		}
	}
	return false
}

// lost counts the acked pieces that were not found.
func (j *balance) lost() {
	j.g.each(acked, func(p entryRef, base int64, e *entry) {
		if j.gone[p] {
			return
		}
		n := uint64(e.n) - uint64(min(j.rest[p], e.n))
		if j.seen != nil {
			n -= j.seen[e.stream].count(e.first, e.first+n)
		}
		removed := min(n, j.removedOf(base, base+int64(e.n)))
		j.removed += removed
		if base >= j.end {
			j.v.Unread += n
			return
		}
		j.v.Unread += removed
		j.v.Lost += n - removed
		if removed > 0 { // it is not known which of them
			return
		}
		end := e.first + uint64(e.n) - uint64(min(j.rest[p], e.n))
		_, absent := j.seen[e.stream].cut(e.first, end)
		for _, a := range absent {
			j.places.Lost = note(j.places.Lost, e.stream, a.lo, a.hi)
		}
	})
}

// order continues where decisions have stopped: through the log, with the largest index
// of each stream so far.
func (j *balance) order(proven map[*window]bool) {
	g := j.g
	top := make(map[int32]uint64, len(g.top))
	maps.Copy(top, g.top)
	for _, w := range g.windows {
		if j.mayHideDropped[w] {
			j.mayHide(w.number << windowBits)
		}
		for i, e := range w.entries() {
			base := w.number<<windowBits + int64(e.off)
			switch e.state {
			case matched:
				j.place(base, e, top)
			case summed:
				if proven[w] {
					j.place(base, e, top)
				} else if g.bare && g.seen == nil {
					j.placeFound(w, e, top)
				} else {
					j.lateBelow[e.stream] = max(j.lateBelow[e.stream], e.first+uint64(e.n))
				}
			case arrived:
				if j.unnamed[entryRef{w: w, i: i}] {
					j.mayHide(base + int64(e.n))
				}
				if u, ok := j.ownPieces[entryRef{w: w, i: i}]; ok {
					e.first, e.n, e.stream = u.first, u.n, u.stream
					j.place(base, e, top)
				}
			}
		}
	}
	if j.doubtfulFrom < g.next {
		j.v.Inexact += uint64(g.next - j.doubtfulFrom)
	}
}

// mayHide records that dropped pieces may lie before base. Decisions after base are in
// doubt only if that filled a hole.
func (j *balance) mayHide(base int64) {
	for s, end := range j.g.dropped {
		j.lateBelow[s] = max(j.lateBelow[s], end)
		j.doubtfulFrom = min(j.doubtfulFrom, max(base, j.g.hole))
	}
}

// place checks an entry's place in the order. If what follows it is already decided, it
// can only determine whether the entry comes after everything so far.
func (j *balance) place(base int64, e entry, top map[int32]uint64) {
	late := j.g.countLate(&e, top)
	if base < j.g.next {
		if late > 0 {
			j.v.Inexact += uint64(e.n)
			return
		}
		if base >= j.g.hole && j.g.top[e.stream] > 0 {
			j.doubtfulFrom = min(j.doubtfulFrom, base+int64(e.n))
		}
	}
	j.v.Reordered += late
	j.places.Reordered = note(j.places.Reordered, e.stream, e.first, e.first+late)
	if d := j.lateBelow[e.stream]; d > e.first {
		j.v.Inexact += max(min(uint64(e.n), d-e.first), late) - late
	}
}

// placeFound does the same for those events of a run whose presence is proven by
// offsets.
func (j *balance) placeFound(w *window, e entry, top map[int32]uint64) {
	if e.sum == interleaved {
		j.v.Inexact += uint64(e.n)
		return
	}
	for _, s := range w.sums.arrived.cover.spans(int32(e.off), int32(e.off)+e.n) {
		found := e
		found.first += s.lo - uint64(e.off)
		found.n = int32(s.hi - s.lo)
		j.place(w.number<<windowBits+int64(s.lo), found, top)
	}
}
