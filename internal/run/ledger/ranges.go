package ledger

import "sort"

// A span is the numbers from lo up to hi, excluding hi.
type span struct{ lo, hi uint64 }

// ranges is a set of numbers, as sorted spans that do not touch.
type ranges struct{ spans []span }

// add adds [lo, hi) to the set.
func (r *ranges) add(lo, hi uint64) {
	if lo >= hi {
		return
	}
	n := len(r.spans)
	if n == 0 || r.spans[n-1].hi < lo {
		r.spans = append(r.spans, span{lo, hi})
		return
	}
	if last := &r.spans[n-1]; last.lo <= lo {
		last.hi = max(last.hi, hi)
		return
	}
	// Those from i up to j touch the new span.
	i := sort.Search(n, func(i int) bool { return r.spans[i].hi >= lo })
	j := sort.Search(n, func(j int) bool { return r.spans[j].lo > hi })
	if i == j {
		r.spans = append(r.spans, span{})
		copy(r.spans[i+1:], r.spans[i:])
		r.spans[i] = span{lo, hi}
		return
	}
	r.spans[i] = span{min(lo, r.spans[i].lo), max(hi, r.spans[j-1].hi)}
	r.spans = append(r.spans[:i+1], r.spans[j:]...)
}

// both returns the parts of [lo, hi) in the set.
func (r *ranges) both(lo, hi uint64) (in []span) {
	in, _ = r.cut(lo, hi)
	return in
}

// cut returns the parts of [lo, hi) in the set, and the parts that are not in it.
func (r *ranges) cut(lo, hi uint64) (in, out []span) {
	if r == nil {
		return nil, []span{{lo, hi}}
	}
	i := sort.Search(len(r.spans), func(i int) bool { return r.spans[i].hi > lo })
	for ; i < len(r.spans) && r.spans[i].lo < hi; i++ {
		s := r.spans[i]
		if s.lo > lo {
			out = append(out, span{lo, s.lo})
			lo = s.lo
		}
		in = append(in, span{lo, min(hi, s.hi)})
		lo = min(hi, s.hi)
	}
	if lo < hi {
		out = append(out, span{lo, hi})
	}
	return in, out
}

// count returns how many numbers of [lo, hi) are in the set.
func (r *ranges) count(lo, hi uint64) uint64 { return length(r.both(lo, hi)) }

func length(s []span) (sum uint64) {
	for _, x := range s {
		sum += x.hi - x.lo
	}
	return sum
}

// beyond reports whether the set contains a number of at least lo.
func (r *ranges) beyond(lo uint64) bool {
	n := len(r.spans)
	return n > 0 && r.spans[n-1].hi > lo
}
