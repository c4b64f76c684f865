package profile

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The families of keys.
const (
	NoKeys      = "none"
	UniqueKeys  = "unique"
	UniformKeys = "uniform"
	ZipfKeys    = "zipf"
)

// A KeyFit is a distribution of keys that fits a sample.
type KeyFit struct {
	Family  string  `json:"family"`
	Keys    uint64  `json:"keys,omitempty"`          // of the fitted distribution: as many as give the distinct keys that were found
	Zipf    float64 `json:"exponent,omitempty"`      // of zipf
	ZipfLow float64 `json:"exponent_low,omitempty"`  // 95 % interval
	ZipfTop float64 `json:"exponent_high,omitempty"` // likewise
	Error   float64 `json:"error"`                   // Kolmogorov-Smirnov distance of the shares by rank

	Records  uint64  `json:"records"`  // with a key
	Share    float64 `json:"share"`    // of all records
	Distinct uint64  `json:"distinct"` // found
	Exact    bool    `json:"exact"`    // all distinct keys were counted
	// Everything was read: Distinct and the shares are those of the source. Otherwise they are
	// lower bounds.
	Whole        bool    `json:"whole"`
	DistinctLow  uint64  `json:"distinct_low"`          // 95 % interval of the source's distinct keys
	DistinctHigh uint64  `json:"distinct_high"`         // likewise; from a sample it is an estimate
	TopShare     float64 `json:"top_share"`             // of the records with a key, those of the most frequent one
	Top1Percent  float64 `json:"top_one_percent_share"` // of the most frequent 1 % of the keys
	OneLog       float64 `json:"one_partition_share"`   // of the keys with several records, those that are in one partition
}

// uniqueShare is the share of distinct keys among records above which keys count as unique.
const uniqueShare = 0.99

// Fit finds the distribution of keys. whole says that the sample is everything that the source
// has.
func (k *Keys) Fit(whole bool) KeyFit {
	ranks := k.ranks()
	distinct, relative := k.Distinct()
	f := KeyFit{Family: NoKeys, Records: k.n, Distinct: uint64(math.Round(distinct)), Exact: k.Exact(), Whole: whole, OneLog: k.Single()}
	if k.n == 0 {
		f.Exact, f.Whole = true, whole
		return f
	}
	f.shares(ranks, float64(k.n), distinct)
	f.interval(ranks, distinct, relative, whole)
	n := float64(k.n)
	if distinct/n > uniqueShare && k.n > 1 {
		f.Family, f.Keys = UniqueKeys, f.Distinct
		return f
	}
	pairs, deviation := collisions(ranks, n)
	keys := population(0, n, distinct)
	if pairs <= 1/keys*(1+1e-9)+3*deviation || distinct < 2 {
		f.Family, f.Keys = UniformKeys, uint64(math.Round(keys))
		f.Error = curveDistance(curve(ranks), simulated(keys, 0, n))
		// Keys in turn share a record even more rarely than keys at random.
		if f.Error <= familyError || distinct < 2 || pairs <= 1/keys {
			return f
		}
	}
	s := exponent(pairs, n, distinct)
	keys = population(s, n, distinct)
	best := curveDistance(curve(ranks), simulated(keys, s, n))
	if best > familyError && keys <= refineKeys {
		s, best = refine(ranks, s, best, n, distinct)
		keys = population(s, n, distinct)
	}
	if f.Family == UniformKeys && f.Error <= best {
		return f
	}
	f.Family, f.Keys, f.Zipf, f.Error = ZipfKeys, uint64(math.Round(keys)), s, best
	low := exponent(max(pairs-1.96*deviation, 0), n, distinct)
	high := exponent(pairs+1.96*deviation, n, distinct)
	f.ZipfLow, f.ZipfTop = min(low, s), max(high, s)
	return f
}

// shares fills in how concentrated the records are.
func (f *KeyFit) shares(ranks []rank, n, distinct float64) {
	f.TopShare = float64(ranks[0].count) / n
	left := max(1, math.Ceil(distinct/100))
	for _, r := range ranks {
		take := min(r.weight, left)
		f.Top1Percent += float64(r.count) * take / n
		if left -= take; left <= 0 {
			break
		}
	}
}

// interval fills in the interval of the number of distinct keys. For a sample it is that of
// Chao's estimate (Chao, Scandinavian Journal of Statistics 11, 1984; the interval by Chao,
// Biometrics 43, 1987), which is itself a lower bound: keys that are much rarer than those
// found once leave no trace in a sample.
func (f *KeyFit) interval(ranks []rank, distinct, relative float64, whole bool) {
	low, high := distinct*(1-1.96*relative), distinct*(1+1.96*relative)
	if !whole {
		once, twice := 0.0, 0.0
		for _, r := range ranks {
			switch r.count {
			case 1:
				once += r.weight
			case 2:
				twice += r.weight
			}
		}
		unseen, variance := once*(once-1)/2, once*(once-1)/2+once*(2*once-1)*(2*once-1)/4
		if twice > 0 {
			q := once / twice
			unseen, variance = once*q/2, twice*(q*q/2+q*q*q+q*q*q*q/4)
		}
		if unseen > 0 {
			c := math.Exp(1.96 * math.Sqrt(math.Log(1+variance/(unseen*unseen))))
			low, high = max(low, distinct+unseen/c), max(high, distinct+unseen*c)
		}
	}
	f.DistinctLow, f.DistinctHigh = uint64(math.Round(low)), uint64(math.Round(high))
}

// collisions returns the probability that two records have the same key, estimated without
// bias from the counts, and its standard error.
func collisions(ranks []rank, n float64) (pairs, deviation float64) {
	if n < 2 {
		return 1, 1
	}
	cubes := 0.0
	for _, r := range ranks {
		c := float64(r.count)
		pairs += r.weight * c * (c - 1) / (n * (n - 1))
		cubes += r.weight * c / n * (c - 1) / n * max(0, c-2) / n
	}
	return pairs, math.Sqrt(max(0, 4*(cubes-pairs*pairs)/n) + 2*pairs/(n*n))
}

// blockStart is the rank above which ranks are summed in blocks, and blockGrowth the ratio of
// one block's ranks to those of the one before.
const (
	blockStart  = 256
	blockGrowth = 1.02
)

// sumRanks adds f(k) for the ranks 1 to keys, nearly exactly for a smooth f.
func sumRanks(keys float64, f func(k float64) float64) float64 {
	sum, k := 0.0, 1.0
	for ; k <= min(keys, blockStart); k++ {
		sum += f(k)
	}
	for k <= keys {
		end := min(math.Floor(k*blockGrowth), keys)
		sum += f((k+end)/2) * (end - k + 1)
		k = end + 1
	}
	return sum
}

// maxPopulation limits the number of keys of a fit.
const maxPopulation = 1e9

// population returns how many keys a zipf distribution needs so that n draws are expected to
// give that many distinct ones. Exponent 0 is the uniform distribution.
func population(s, n, distinct float64) float64 {
	expected := func(keys float64) float64 {
		h := sumRanks(keys, func(k float64) float64 { return math.Pow(k, -s) })
		return sumRanks(keys, func(k float64) float64 { return -math.Expm1(-n * math.Pow(k, -s) / h) })
	}
	low, high := distinct, distinct
	if expected(low) >= distinct-0.5 {
		return low
	}
	for expected(high) < distinct {
		if high *= 2; high > maxPopulation {
			return maxPopulation
		}
	}
	for range 40 {
		if high-low < 0.5 {
			break
		}
		if mid := (low + high) / 2; expected(mid) < distinct {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Round((low + high) / 2)
}

// maxExponent is the largest exponent that keys of a workload can have.
const maxExponent = 10

// exponent returns the exponent of the zipf distribution whose records have the same key with
// that probability, and whose n draws give that many distinct keys.
func exponent(pairs, n, distinct float64) float64 {
	low, high := 0.001, float64(maxExponent)
	for range 24 {
		s := (low + high) / 2
		keys := population(s, n, distinct)
		h := sumRanks(keys, func(k float64) float64 { return math.Pow(k, -s) })
		square := sumRanks(keys, func(k float64) float64 { return math.Pow(k, -2*s) })
		if square/h/h < pairs {
			low = s
		} else {
			high = s
		}
	}
	return (low + high) / 2
}

const (
	// refineKeys is up to how many keys other exponents are tried if the first does not fit.
	refineKeys = 50_000
	// simulatedKeys limits the keys that are simulated one by one.
	simulatedKeys = 2_000_000
)

// refine looks for an exponent near s with a smaller distance.
func refine(ranks []rank, s, best, n, distinct float64) (exponent, distance float64) {
	of := curve(ranks)
	for width := 0.4; width > 0.01; width /= 2 {
		for _, try := range []float64{s - width, s + width} {
			if try < 0.001 || try > maxExponent {
				continue
			}
			if d := curveDistance(of, simulated(population(try, n, distinct), try, n)); d < best {
				s, best = try, d
			}
		}
	}
	return s, best
}

// simulated returns the rank curve of n draws from a zipf distribution. Sorted counts of a
// sample are more uneven than their expectations, so it draws the counts.
func simulated(keys, s, n float64) []point {
	if keys > simulatedKeys {
		h := sumRanks(keys, func(k float64) float64 { return math.Pow(k, -s) })
		out, at := []point{{}}, point{}
		for k := 1.0; k <= keys; {
			end := min(max(k, math.Floor(k*blockGrowth)), keys)
			at.share += math.Pow((k+end)/2, -s) * (end - k + 1) / h
			at.keys = end
			out = append(out, at)
			k = end + 1
		}
		return out
	}
	rng := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- a simulation
	h := 0.0
	weights := make([]float64, int(keys))
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -s)
		h += weights[i]
	}
	var ranks []rank
	for _, w := range weights {
		if c := poisson(rng, n*w/h); c > 0 {
			ranks = append(ranks, rank{c, 1})
		}
	}
	slices.SortFunc(ranks, func(a, b rank) int { return int(int64(b.count) - int64(a.count)) })
	return curve(ranks)
}

// poisson draws from a Poisson distribution; above a mean of 50 from the normal distribution.
func poisson(rng *rand.Rand, mean float64) uint64 {
	if mean > 50 {
		return uint64(max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64())))
	}
	limit, p, c := math.Exp(-mean), 1.0, uint64(0)
	for {
		if p *= rng.Float64(); p <= limit {
			return c
		}
		c++
	}
}
