package load

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Burst returns the schedule of n events due at once, in intervals of the given length,
// the first at 0. It never ends. It panics if n is 0 or the interval is not positive or
// above MaxSpan.
//
// Due(k) = floor(k/n)*every, Count(t) = ceil(t/every)*n.
func Burst(n uint64, every time.Duration) Schedule {
	must(checkBurst(n, every))
	return burst{n, uint64(every)}
}

func checkBurst(n uint64, every time.Duration) error {
	if n == 0 {
		return fmt.Errorf("burst: a burst of 0 events: nothing would ever be due")
	}
	if err := checkSpan(every); err != nil {
		return fmt.Errorf("burst: %w", err)
	}
	if rate := float64(n) / every.Seconds(); rate > MaxRate {
		return fmt.Errorf("burst: %d events every %v is too much: at most %v/s", n, every, float64(MaxRate))
	}
	return nil
}

type burst struct{ n, every uint64 }

func (b burst) Due(k uint64) time.Duration {
	hi, lo := bits.Mul64(k/b.n, b.every)
	if hi > 0 || lo >= uint64(Never) {
		return Never
	}
	return time.Duration(lo)
}

func (b burst) Count(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	hi, lo := bits.Mul64((uint64(t)-1)/b.every+1, b.n)
	if hi > 0 {
		return math.MaxUint64
	}
	return lo
}

// Rate returns the mean over a burst and the quiet time after it.
func (b burst) Rate(time.Duration) float64 {
	return float64(b.n) / (float64(b.every) / 1e9)
}

func (b burst) End() time.Duration { return Never }

func (b burst) String() string { return fmt.Sprintf("burst(%d,%v)", b.n, time.Duration(b.every)) }
