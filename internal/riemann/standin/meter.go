package standin

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A meter counts and times the messages of one transport or the events of the
// stream, like rate+latency of interval-metrics in the real server. It is safe for
// concurrent use, and is updated once for all messages of a read.
type meter struct {
	conns atomic.Int64

	n     atomic.Uint64
	times [64 * 16]atomic.Uint64 // by bucket

	_ [64]byte
}

// record records n messages or events that took d each.
func (m *meter) record(n int, d time.Duration) {
	m.n.Add(uint64(n))
	m.times[bucket(d)].Add(uint64(n))
}

// bucket returns the bucket of a time. A bucket is at most a sixteenth as wide as
// its smallest time.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 16 {
		return int(v)
	}
	shift := bits.Len64(v) - 5
	return (shift+1)*16 + int(v>>shift)&15
}

// bucketStart is the smallest time of a bucket.
func bucketStart(bucket int) time.Duration {
	if bucket < 32 {
		return time.Duration(bucket)
	}
	shift := bucket/16 - 1
	return time.Duration(uint64(16+bucket%16) << shift)
}

// A reading is what a meter recorded since the reading before.
type reading struct {
	n     uint64
	times []uint64
	sum   uint64
}

func (m *meter) read() reading {
	r := reading{n: m.n.Swap(0), times: make([]uint64, len(m.times))}
	for i := range m.times {
		r.times[i] = m.times[i].Swap(0)
		r.sum += r.times[i]
	}
	return r
}

// quantile is the q-quantile as interval-metrics computes it; false if nothing was
// recorded.
func (r reading) quantile(q float64) (time.Duration, bool) {
	if r.sum == 0 {
		return 0, false
	}
	at := min(uint64(float64(r.sum)*q), r.sum-1)
	for i, n := range r.times {
		if at < n {
			return bucketStart(i), true
		}
		at -= n
	}
	return 0, false
}
