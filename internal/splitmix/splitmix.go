// Package splitmix has the finalizer of SplitMix64, by which numbers that look random are made from a counter: any
// position of a sequence at no cost, and the same for the same seed.
package splitmix

// Golden is 2^64 over the golden ratio, odd: the step of SplitMix64's counter.
const Golden = 0x9e3779b97f4a7c15

// Mix is the finalizer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014; Stafford's
// variant 13). It is a bijection, so different numbers stay different, and each bit of the result depends on each
// bit of z.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
