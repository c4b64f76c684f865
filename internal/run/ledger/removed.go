package ledger

// Events that were removed before they were read are unread: it is not known whether
// they were there.

// removedOf returns how many offsets of [lo, hi) were removed before they were read.
func (j *balance) removedOf(lo, hi int64) uint64 {
	if hi <= lo {
		return 0
	}
	return j.g.removed.count(uint64(lo), uint64(hi))
}

// countMissing counts acked events that were not found and whose place is not known: at
// most as many of them as offsets were removed can have been removed.
func (j *balance) countMissing(n uint64) {
	all := length(j.g.removed.spans)
	removed := min(n, all-min(all, j.removed))
	j.removed += removed
	if j.end != everything {
		j.v.Unread += n
		return
	}
	j.v.Unread += removed
	j.v.Lost += n - removed
}

// remainder finds the rest of an acked piece whose beginning was removed.
func (j *balance) remainder(here entryRef, base int64, e *entry, cut []cutPiece) bool {
	if e.sum != 0 || e.corrupt {
		return false
	}
	for _, c := range cut {
		a := c.p.w.entries()[c.p.i]
		from := base - c.base
		if from <= 0 || from+int64(e.n) > int64(a.n) || j.gone[c.p] {
			continue
		}
		j.rest[c.p] += e.n
		j.ownPieces[here] = piece{first: a.first + uint64(from), n: e.n, stream: a.stream}
		return true
	}
	return false
}

// A cutPiece is an acked piece of which a part was removed.
type cutPiece struct {
	p    entryRef
	base int64
}
