package load

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"carronade/internal/splitmix"
)

// Poisson returns a schedule of independent events with a mean rate of rate events/s,
// which never ends: the gaps are exponential. It depends only on rate and seed. It
// panics if CheckRate refuses the rate, and above 1e9 events/s.
//
// Any event is found without those before it. Time is halved again and again: if a span
// contains n events, its first half contains Binomial(n, 1/2) of them, drawn from the
// seed and the span alone, down to leaves of about 50 events, which lie uniformly in
// the leaf. The numbers of events in [0, 2^k), for every k, are Poisson numbers drawn
// once. Binomials of more than 1024 events are drawn as rounded normals, which differ
// by less than one part in a thousand anywhere in their distribution.
func Poisson(rate float64, seed uint64) Schedule {
	must(checkPoisson(rate))
	return newPoisson(rate, seed)
}

func checkPoisson(rate float64) error {
	if err := CheckRate(rate); err != nil {
		return fmt.Errorf("poisson: %w", err)
	}
	if rate > 1e9 {
		return fmt.Errorf("poisson: the rate %v/s is too high: at most 1e9/s", rate)
	}
	return nil
}

type poisson struct {
	rate  float64
	seed  uint64
	width uint // a leaf is 2^width nanoseconds

	// firsts[j] events come before span j: span 0 is the first leaf, span j begins at
	// 2^(width+j-1) and has the same length.
	firsts []uint64

	// The most recently used leaves, by leaf number and by event number: callers ask
	// for neighbouring events, and a leaf takes a microsecond to make.
	byTime, byEvent [64]atomic.Pointer[leaf]
}

// A leaf is a span of time with its events.
type leaf struct {
	number uint64   // the leaf begins at number << width
	first  uint64   // events before it
	at     []uint64 // offsets of the events from the leaf's beginning, sorted
}

func newPoisson(rate float64, seed uint64) *poisson {
	p := &poisson{rate: rate, seed: seed}
	perNano := rate / 1e9
	for p.width < 62 && math.Ldexp(perNano, int(p.width)+1) <= 64 {
		p.width++
	}
	var sum uint64
	for j := uint(0); p.width+max(j, 1)-1 < 63; j++ {
		p.firsts = append(p.firsts, sum)
		exp := int(p.width + max(j, 1) - 1)
		r := random(mix(seed ^ mix(uint64(j)+1)))
		sum += r.poisson(math.Ldexp(perNano, exp))
	}
	p.firsts = append(p.firsts, sum)
	return p
}

// find descends from span j to a leaf. left decides whether to take the left half,
// given where the right half begins and how many events come before it.
func (p *poisson) find(j int, left func(middle, n uint64) bool) *leaf {
	first := p.firsts[j]
	n := p.firsts[j+1] - first
	var start uint64
	exp := p.width
	if j > 0 {
		exp += uint(j) - 1
		start = 1 << exp
	}
	for exp > p.width {
		exp--
		middle := start + 1<<exp
		r := random(mix(p.seed ^ mix(middle)))
		half := r.half(n)
		if left(middle, first+half) {
			n = half
		} else {
			start, first, n = middle, first+half, n-half
		}
	}
	l := &leaf{number: start >> p.width, first: first, at: make([]uint64, n)}
	r := random(mix(p.seed ^ mix(start|1<<63)))
	for i := range l.at {
		l.at[i] = r.next() >> (64 - p.width)
	}
	slices.Sort(l.at)
	return l
}

func (p *poisson) Due(n uint64) time.Duration {
	if n >= p.firsts[len(p.firsts)-1] {
		return Never
	}
	slot := &p.byEvent[n/32%64]
	l := slot.Load()
	if l == nil || n < l.first || n-l.first >= uint64(len(l.at)) {
		j := sort.Search(len(p.firsts), func(j int) bool { return p.firsts[j] > n }) - 1
		l = p.find(j, func(_, before uint64) bool { return n < before })
		slot.Store(l)
	}
	return time.Duration(l.number<<p.width + l.at[n-l.first])
}

func (p *poisson) Count(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	number := uint64(t) >> p.width
	slot := &p.byTime[number%64]
	l := slot.Load()
	if l == nil || l.number != number {
		l = p.find(bits.Len64(number), func(middle, _ uint64) bool { return uint64(t) < middle })
		slot.Store(l)
	}
	x := uint64(t) - number<<p.width
	return l.first + uint64(sort.Search(len(l.at), func(i int) bool { return l.at[i] >= x }))
}

func (p *poisson) Rate(time.Duration) float64 { return p.rate }

func (p *poisson) End() time.Duration { return Never }

func (p *poisson) String() string { return fmt.Sprintf("poisson(%s,%d)", rateText(p.rate), p.seed) }

// A random is a splitmix64 sequence: a counter whose every value is mixed, so that any
// position of the schedule can have its own generator at no cost.
type random uint64

func (r *random) next() uint64 {
	*r += splitmix.Golden
	return mix(uint64(*r))
}

// mix mixes a number, as the next one of a counter.
func mix(z uint64) uint64 { return splitmix.Mix(z + splitmix.Golden) }

// open returns a number in (0, 1).
func (r *random) open() float64 { return (float64(r.next()>>12) + 0.5) / (1 << 52) }

// half draws Binomial(n, 1/2).
func (r *random) half(n uint64) uint64 {
	if n <= 1024 {
		// Exact: the number of ones among n random bits.
		var ones int
		for ; n >= 64; n -= 64 {
			ones += bits.OnesCount64(r.next())
		}
		if n > 0 {
			ones += bits.OnesCount64(r.next() >> (64 - n))
		}
		return uint64(ones)
	}
	z := math.Sqrt2 * math.Erfinv(2*r.open()-1)
	d := math.Round(float64(n&1)/2 + z*math.Sqrt(float64(n))/2)
	return min(n/2+uint64(int64(d)), n)
}

// poisson draws a Poisson number: below 10 by multiplication (Knuth), otherwise by
// transformed rejection (PTRS of Hormann 1993), exact apart from rounding.
func (r *random) poisson(mu float64) uint64 {
	if mu < 10 {
		limit, k := math.Exp(-mu), uint64(0)
		for product := r.open(); product > limit; product *= r.open() {
			k++
		}
		return k
	}
	root := math.Sqrt(mu)
	b := 0.931 + 2.53*root
	a := -0.059 + 0.02483*b
	inv := 1.1239 + 1.1328/(b-3.4)
	vr := 0.9277 - 3.6224/(b-2)
	for {
		u := r.open() - 0.5
		v := r.open()
		us := 0.5 - math.Abs(u)
		k := math.Floor((2*a/us+b)*u + mu + 0.43)
		if us >= 0.07 && v <= vr {
			return uint64(k)
		}
		if k < 0 || us < 0.013 && v > us {
			continue
		}
		lg, _ := math.Lgamma(k + 1)
		if math.Log(v)+math.Log(inv)-math.Log(a/(us*us)+b) <= k*math.Log(mu)-mu-lg {
			return uint64(k)
		}
	}
}
