package wire

// Murmur2 returns the hash by which Java clients choose the partition of a key
// (org.apache.kafka.common.utils.Utils.murmur2, seed 0x9747b28c).
func Murmur2(key []byte) uint32 {
	const (
		m    = 0x5bd1e995
		r    = 24
		seed = 0x9747b28c
	)
	h := uint32(seed) ^ uint32(len(key))
	for len(key) >= 4 {
		k := uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h *= m
		h ^= k
		key = key[4:]
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(key[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// PartitionOf returns the partition that a Java client sends a key to.
func PartitionOf(key []byte, partitions int) int32 {
	return int32(Murmur2(key)&0x7fffffff) % int32(partitions)
}
