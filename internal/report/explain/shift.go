package explain

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A pair is a signal compared with the incidents of a group, at all shifts.
type pair struct {
	cause  int
	change string
	of     int // incidents that were compared
	within time.Duration
	index  []int     // of those incidents in the group
	hit    []bool    // of those incidents, without a shift
	score  []float64 // at each shift, the first without; see compare

	chance, corrected float64
}

// count is the number of incidents that coincide.
func (p *pair) count() (n int) {
	for _, h := range p.hit {
		if h {
			n++
		}
	}
	return n
}

// compare shifts the incidents against a signal, by amounts in ascending order of which the first
// is none. The score of a shift is the negative logarithm of the probability that at least as many
// incidents coincide if each does as often as over all shifts: signals that are rarely and often
// active become comparable. Of several distances the best score counts, at every shift. A signal
// that coincides with nothing is compared, too: it might have by chance. It returns false if there
// are no incidents.
func compare(g *group, s signal, tau []time.Duration) (pair, bool) {
	p := pair{change: s.change, score: make([]float64, len(tau))}
	var spans []span // of the incidents
	for i := range g.Incidents {
		in := &g.Incidents[i]
		if in.Scheduled {
			continue
		}
		p.index = append(p.index, i)
		if s.exact {
			spans = append(spans, in.near)
		} else {
			spans = append(spans, in.over)
		}
	}
	if p.of = len(spans); p.of == 0 {
		return p, false
	}
	start, length := g.among.Start, g.among.End-g.among.Start
	hits := make([]int, len(tau))
	best := 0.0
	for _, scale := range s.scales {
		parts := s.spans
		if scale.begins { // what began before has its beginning elsewhere
			parts = slices.DeleteFunc(slices.Clone(parts), func(x span) bool { return x.Start <= start })
		}
		active := widened(parts, scale, length)
		clear(hits)
		share := 0.0
		for _, in := range spans {
			share += covered(active, in, start, length) / float64(p.of)
			sweep(active, in, start, length, tau, hits)
		}
		tails := tails(p.of, share)
		for k := range tau {
			p.score[k] = max(p.score[k], tails[hits[k]])
		}
		if x := tails[hits[0]]; hits[0] > 0 && x > best {
			best, p.within = x, scale.by
			p.hit = make([]bool, p.of)
			for i, in := range spans {
				p.hit[i] = overlaps(active, in, start, length, 0)
			}
		}
	}
	if s.timed {
		off := time.Duration(0)
		for i, hit := range p.hit {
			if hit {
				off = max(off, g.Incidents[p.index[i]].off)
			}
		}
		p.within += off + s.off
	}
	return p, true
}

// sweep counts at which shifts an incident meets any of the spans: in ascending order of the
// shifts, it passes them once, and begins again where it comes around the end.
func sweep(active []span, in span, start, length time.Duration, tau []time.Duration, hits []int) {
	i, last := 0, time.Duration(math.MinInt64)
	for k, shift := range tau {
		at := in.Start
		if shift != 0 {
			at = start + (in.Start-start+shift)%length
		}
		if at < last {
			i = 0
		}
		last = at
		for i < len(active) && active[i].End < at {
			i++
		}
		if i < len(active) && active[i].Start <= at+in.End-in.Start {
			hits[k]++
		}
	}
}

// covered is the share of all shifts at which an incident meets any of the spans.
func covered(active []span, in span, start, length time.Duration) float64 {
	var sum time.Duration
	end := start
	for _, s := range active {
		lo, hi := max(end, s.Start-(in.End-in.Start)), min(s.End, start+length)
		if hi > lo {
			sum, end = sum+hi-lo, hi
		}
	}
	return float64(sum) / float64(length)
}

// widened adds a distance on both sides of spans and joins those that overlap. The result
// continues beyond the end of the measurement, for incidents that are shifted over it.
func widened(spans []span, at scale, length time.Duration) []span {
	var out []span
	add := func(s span) {
		if n := len(out); n > 0 && s.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, s.End)
			return
		}
		out = append(out, s)
	}
	for _, turn := range []time.Duration{-length, 0, length} {
		for _, s := range spans {
			if at.begins {
				s.End = s.Start
			}
			add(span{s.Start - at.by + turn, s.End + at.by + turn})
		}
	}
	return out
}

// overlaps reports whether an incident, shifted around the ends of the measurement, meets any
// of the spans.
func overlaps(active []span, in span, start, length, shift time.Duration) bool {
	if shift != 0 {
		at := start + (in.Start-start+shift)%length
		in = span{at, at + in.End - in.Start}
	}
	i, _ := slices.BinarySearchFunc(active, in.Start, func(s span, t time.Duration) int { return cmp.Compare(s.End, t) })
	return i < len(active) && active[i].Start <= in.End
}

// tails returns the negative logarithms of the probabilities of at least 0, 1, ... n hits, each
// with the probability q.
func tails(n int, q float64) []float64 {
	out := make([]float64, n+1)
	if q >= 1 {
		return out
	}
	lgamma := func(x int) float64 { y, _ := math.Lgamma(float64(x + 1)); return y }
	sum := 0.0
	for k := n; k > 0; k-- {
		sum += math.Exp(lgamma(n) - lgamma(k) - lgamma(n-k) + float64(k)*math.Log(q) + float64(n-k)*math.Log1p(-q))
		out[k] = -math.Log(min(1, max(sum, math.SmallestNonzeroFloat64)))
	}
	return out
}

const same = 1e-9 // scores that differ by rounding

// correct computes the chances of the pairs of a kind, the clearest first, alone and corrected for
// all others (the step-down maximum), and for the number of kinds. It returns the best score at
// each shift.
func correct(pairs []pair, kinds int) (most []float64) {
	if len(pairs) == 0 {
		return nil
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.score[0], a.score[0]) })
	n := len(pairs[0].score)
	most = make([]float64, n)
	for i := len(pairs) - 1; i >= 0; i-- {
		p := &pairs[i]
		alone, all := 0, 0
		for k, x := range p.score {
			most[k] = max(most[k], x)
			if x >= p.score[0]-same {
				alone++
			}
			if most[k] >= p.score[0]-same {
				all++
			}
		}
		p.chance, p.corrected = float64(alone)/float64(n), min(1, float64(kinds*all)/float64(n))
	}
	for i := 1; i < len(pairs); i++ {
		pairs[i].corrected = max(pairs[i].corrected, pairs[i-1].corrected)
	}
	return most
}
