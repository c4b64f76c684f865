package profile

import (
	"cmp"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
)

// MaxKeys limits the entries of a table of keys, which has 20 bytes an entry and is at most
// half full.
const MaxKeys = 1 << 20

// heavyShare is the share of the records above which a key stays in the table when it is
// thinned.
const heavyShare = 1e-5

// A key that the table did not keep may enter it again, with a chance at which the records of
// each doubling of the sample bring 1/lateEntries of the table's entries. So keys with more
// than 1/10,000 of the records enter it, nearly always.
const lateEntries = 16

// Keys counts how often each key occurs. Up to MaxKeys distinct keys it is exact. Beyond that
// it keeps every key whose hash begins with level zeros, a sample of the keys in which each
// is counted exactly (Gibbons: Distinct sampling, VLDB 2001), and the keys that are frequent.
type Keys struct {
	seed  maphash.Seed
	hash  []uint64 // 0: a free entry
	count []uint64
	log   []int32 // of the key's records; mixed: several
	used  int
	level int    // 0: exact
	n     uint64 // records

	most int // entries; MaxKeys, but for tests
	rng  *rand.Rand
}

const mixed = -2

// NewKeys returns an empty table.
func NewKeys() *Keys {
	return &Keys{seed: maphash.MakeSeed(), most: MaxKeys, rng: rand.New(rand.NewPCG(1, 2))} // #nosec G404 -- a sample
}

// Add counts a key of a record in a log.
func (k *Keys) Add(key []byte, log int32) { k.add(maphash.Bytes(k.seed, key)|1, log, 1) }

// AddHash counts a key that is known by its hash, n times.
func (k *Keys) AddHash(hash uint64, log int32, n uint64) { k.add(hash|1, log, n) }

// Count is the number of records.
func (k *Keys) Count() uint64 { return k.n }

// Exact reports whether every distinct key was counted.
func (k *Keys) Exact() bool { return k.level == 0 }

func (k *Keys) add(h uint64, log int32, n uint64) {
	k.n += n
	if k.hash == nil {
		k.resize(1 << 10)
	}
	i := k.find(h)
	if k.hash[i] == h {
		k.count[i] += n
		if k.log[i] != log {
			k.log[i] = mixed
		}
		return
	}
	if !k.sampled(h) {
		if n = k.admit(); n == 0 {
			return
		}
		log = mixed // not known before
	}
	k.hash[i], k.count[i], k.log[i] = h, n, log
	if k.used++; k.used > k.most {
		k.thin()
	} else if 2*k.used > len(k.hash) {
		k.resize(2 * len(k.hash))
	}
}

// sampled reports whether a key belongs to the sample: the first bits of its hash are 0.
func (k *Keys) sampled(h uint64) bool { return k.level == 0 || h>>(64-k.level) == 0 }

// admit decides at random whether a key outside the sample enters the table, so that one that
// became frequent later is counted, too (sticky sampling; Manku, Motwani, VLDB 2002). It
// returns the expected number of its records until then; 0: it does not enter.
func (k *Keys) admit() uint64 {
	every := max(1, k.n*lateEntries/uint64(k.most))
	if k.rng.Uint64N(every) != 0 {
		return 0
	}
	return every
}

func (k *Keys) find(h uint64) int {
	mask := uint64(len(k.hash) - 1)
	i := (h * 0x9e3779b97f4a7c15) >> 20 & mask
	for k.hash[i] != 0 && k.hash[i] != h {
		i = (i + 1) & mask
	}
	return int(i)
}

func (k *Keys) resize(size int) {
	hash, count, log := k.hash, k.count, k.log
	k.hash, k.count, k.log, k.used = make([]uint64, size), make([]uint64, size), make([]int32, size), 0
	for j, h := range hash {
		if h != 0 {
			i := k.find(h)
			k.hash[i], k.count[i], k.log[i] = h, count[j], log[j]
			k.used++
		}
	}
}

// thin drops about half of the keys that are not frequent, until there is room.
func (k *Keys) thin() {
	heavy := max(2, uint64(heavyShare*float64(k.n)))
	for k.used > k.most*3/4 {
		k.level++
		for i, h := range k.hash {
			if h != 0 && !k.sampled(h) && k.count[i] < heavy {
				k.hash[i] = 0
			}
		}
		k.resize(len(k.hash))
		heavy *= 2 // so that it ends, also if all keys are frequent
	}
}

// A rank is a key's count. It stands for several keys if only a sample of them was kept.
type rank struct {
	count  uint64
	weight float64
}

// ranks returns the counts in descending order.
func (k *Keys) ranks() []rank {
	out := make([]rank, 0, k.used)
	// Frequent keys are all in the table, so they stand for themselves.
	heavy := uint64(heavyShare * float64(k.n))
	for i, h := range k.hash {
		switch {
		case h == 0:
		case k.level == 0 || k.count[i] >= heavy:
			out = append(out, rank{k.count[i], 1})
		case k.sampled(h):
			out = append(out, rank{k.count[i], math.Ldexp(1, k.level)})
		}
	}
	slices.SortFunc(out, func(a, b rank) int { return cmp.Compare(b.count, a.count) })
	return out
}

// Distinct returns the number of distinct keys, and its relative standard error: 0 if it is
// exact.
func (k *Keys) Distinct() (n, err float64) {
	if k.level == 0 {
		return float64(k.used), 0
	}
	kept := 0
	for _, h := range k.hash {
		if h != 0 && k.sampled(h) {
			kept++
		}
	}
	scale := math.Ldexp(1, k.level)
	return float64(kept) * scale, math.Sqrt((scale - 1) / scale / float64(max(kept, 1)))
}

// Single reports the share of the keys with several records whose records are all in one log.
// It is 0 if no key has several.
func (k *Keys) Single() float64 {
	several, single := 0, 0
	for i, h := range k.hash {
		if h != 0 && k.count[i] > 1 {
			several++
			if k.log[i] >= 0 {
				single++
			}
		}
	}
	if several == 0 {
		return 0
	}
	return float64(single) / float64(several)
}

// Distance is the largest difference of the cumulative shares of records by the rank of their
// key: a Kolmogorov-Smirnov distance. It does not depend on which key is which.
func (k *Keys) Distance(o *Keys) float64 {
	if k.n == 0 || o.n == 0 {
		return 0
	}
	return curveDistance(curve(k.ranks()), curve(o.ranks()))
}

// A point of a rank curve: the share of the records that the first keys have.
type point struct{ keys, share float64 }

func curve(ranks []rank) []point {
	total := 0.0
	for _, r := range ranks {
		total += float64(r.count) * r.weight
	}
	out := make([]point, 0, len(ranks)+1)
	at := point{}
	out = append(out, at)
	for _, r := range ranks {
		at.keys += r.weight
		at.share += float64(r.count) * r.weight / total
		out = append(out, at)
	}
	return out
}

// among is the rank curve among more records than those with a key: those without one come first.
func (k *Keys) among(records uint64) []point {
	out, keyed := curve(k.ranks()), float64(k.n)/float64(records)
	for i := range out {
		out[i].share = 1 - keyed + keyed*out[i].share
	}
	return out
}

// curveDistance is the largest difference of two rank curves, linear between points. Each has a
// point.
func curveDistance(a, b []point) float64 {
	most := 0.0
	for _, pair := range [][2][]point{{a, b}, {b, a}} {
		of, other, j := pair[0], pair[1], 0
		for _, p := range of {
			for j < len(other) && other[j].keys < p.keys {
				j++
			}
			share := 1.0
			switch {
			case j == 0:
				share = other[0].share
			case j < len(other):
				low, high := other[j-1], other[j]
				share = low.share + (high.share-low.share)*(p.keys-low.keys)/(high.keys-low.keys)
			}
			most = max(most, math.Abs(p.share-share))
		}
	}
	return most
}
