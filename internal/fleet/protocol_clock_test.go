package fleet

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestClock: whatever the delays of the two ways, and with clocks that are an hour
// apart and too fast or too slow, the true offset is within the bound.
func TestClock(t *testing.T) {
	for seed := range uint64(testkit.Cases(400, 60)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		up, down := time.Duration(rnd.Int64N(int64(30*time.Millisecond))), time.Duration(rnd.Int64N(int64(30*time.Millisecond)))
		if seed%3 == 0 {
			up = 0 // as asymmetric as can be
		}
		jitter := time.Duration(rnd.Int64N(int64(50*time.Millisecond))) + 1
		offset := time.Duration(rnd.Int64N(int64(2*time.Hour))) - time.Hour
		drift, waves := (rnd.Float64()*2-1)*100e-6, 0.0
		if seed%2 == 0 {
			waves = 10e-6 // the temperature changes
		}
		other := func(at time.Duration) time.Duration {
			x := float64(at)
			const period = 300e9 / (2 * math.Pi)
			return at + offset + time.Duration(drift*x+waves*period*math.Sin(x/period))
		}
		var c remoteClock
		now := 5 * time.Second
		exchange := func() {
			sent := now
			received := sent + up + time.Duration(rnd.Int64N(int64(jitter)))
			answered := received + time.Duration(rnd.Int64N(int64(time.Millisecond)))
			now = answered + down + time.Duration(rnd.Int64N(int64(jitter)))
			assert.Must(t, c.Add(sent, other(received), other(answered), now), "seed %d: an exchange was refused", seed)
		}
		check := func(at time.Duration) {
			got, bound := c.At(at)
			if truth := other(at) - at; (truth - got).Abs() > bound {
				t.Fatalf("seed %d: at %v the offset is %v, estimated %v, at most %v wrong", seed, at, truth, got, bound)
			}
			shortest, _ := c.RTT()
			if most := shortest/2 + 20*time.Millisecond + time.Duration(maxSlope*2*math.Abs(float64(now-at))); bound > most {
				t.Fatalf("seed %d: the bound at %v is %v, with a round trip of %v: more than %v", seed, at-now, bound, shortest, most)
			}
		}
		for range firstExchanges {
			exchange()
		}
		for range 60 {
			for _, ahead := range []time.Duration{-3 * time.Second, 0, time.Second, 4 * time.Second, 10 * time.Second} {
				check(now + ahead)
			}
			now += exchangesEvery
			for range laterExchanges {
				exchange()
			}
		}
		assert.Equal(t, c.Steps(), 0, "seed %d: steps of clocks that nobody set", seed)
	}
}

// TestClockDrift: after a minute of exchanges the drift is known, and the bound grows
// by the time as it should.
func TestClockDrift(t *testing.T) {
	var c remoteClock
	for at := time.Duration(0); at < time.Minute; at += time.Second {
		theirs := at + 250*time.Microsecond + time.Duration(80e-6*float64(at))
		c.Add(at, theirs, theirs, at+500*time.Microsecond)
	}
	c.fit()
	assert.True(t, math.Abs(c.slope-80e-6) <= 2e-6 && c.rate <= 70e-6, "the slope is %v ± %v, want 80e-6", c.slope, c.rate)
	_, near := c.At(time.Minute)
	_, far := c.At(2 * time.Minute)
	assert.True(t, near <= 400*time.Microsecond && far-near >= 3*time.Millisecond && far-near <= 5*time.Millisecond,
		"the bound is %v, a minute later %v", near, far)
}

// TestClockStep: a virtual machine was suspended. The older exchanges are worth nothing.
func TestClockStep(t *testing.T) {
	var c remoteClock
	_, bound := c.At(0)
	assert.Equal(t, bound, unknownBound, "the bound without exchanges")
	for i := range 20 {
		at := time.Duration(i) * time.Second
		theirs := at + time.Millisecond/2
		if i >= 10 {
			theirs -= time.Minute
		}
		c.Add(at, theirs, theirs, at+time.Millisecond)
	}
	if offset, bound := c.At(20 * time.Second); (offset+time.Minute).Abs() > bound || bound > 2*time.Millisecond || c.Steps() != 1 {
		t.Errorf("offset %v ± %v after %d steps; want a minute, once", offset, bound, c.Steps())
	}
	for _, bad := range [][4]time.Duration{{5, 0, 0, 4}, {0, 5, 4, 10}, {0, 0, 20, 10}, {0, 0, 0, 2 * time.Hour}, {math.MinInt64, 0, 0, math.MaxInt64}} {
		n := c.Len()
		assert.True(t, !c.Add(bad[0], bad[1], bad[2], bad[3]) && c.Len() == n,
			"the exchange %v was taken", bad)
	}
}
