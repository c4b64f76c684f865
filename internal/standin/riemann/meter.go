package riemann

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A meter counts and times what one transport, or the stream, takes: what
// interval-metrics' rate+latency does in the real server. It is safe for
// concurrent use, and it is updated once for everything that a read brought.
type meter struct {
	conns atomic.Int64

	n     atomic.Uint64
	times [64 * 16]atomic.Uint64 // by bucket

	_ [64]byte
}

// took records n things that took d each.
func (m *meter) took(n int, d time.Duration) {
	m.n.Add(uint64(n))
	m.times[bucket(d)].Add(uint64(n))
}

// bucket parts times so that each is at most a sixteenth wider than the one
// before.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 16 {
		return int(v)
	}
	shift := bits.Len64(v) - 5
	return (shift+1)*16 + int(v>>shift)&15
}

// least is the smallest time of a bucket.
func least(bucket int) time.Duration {
	if bucket < 32 {
		return time.Duration(bucket)
	}
	shift := bucket/16 - 1
	return time.Duration(uint64(16+bucket%16) << shift)
}

// A reading is a meter's since the one before.
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

// quantile is the value nearest to q of all, as interval-metrics takes it;
// false when there is none.
func (r reading) quantile(q float64) (time.Duration, bool) {
	if r.sum == 0 {
		return 0, false
	}
	at := min(uint64(float64(r.sum)*q), r.sum-1)
	for i, n := range r.times {
		if at < n {
			return least(i), true
		}
		at -= n
	}
	return 0, false
}
