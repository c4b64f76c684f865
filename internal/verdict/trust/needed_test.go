package trust

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// noisy returns a series of n values around 100, whose deviations depend on their neighbours, and
// that climbs by a share over its length.
func noisy(dice *rand.Rand, n int, spread, lag, climb float64) *series {
	s := new(series)
	e := spread * dice.NormFloat64()
	for i := range n {
		e = lag*e + spread*math.Sqrt(1-lag*lag)*dice.NormFloat64()
		s.add(time.Duration(i)*time.Second, time.Second, 100*(1+climb*(float64(i)/float64(n)-0.5)+e))
	}
	return s
}

// TestNeeded: the length follows from the spread and the dependence of the values.
func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		name        string
		spread, lag float64
		want        float64 // intervals: the closed form
	}{
		{"hardly any", 0.001, 0, LeastSeries},
		{"independent", 0.05, 0, 19.4},
		{"independent and large", 0.2, 0, 311},
		{"dependent", 0.1, 0.6, 311},
	} {
		t.Run(c.name, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(3, 3))
			sum := 0.0
			const runs = 40
			for range runs {
				sum += noisy(dice, 400, c.spread, c.lag, 0).needed().Seconds() / runs
			}
			assert.True(t, math.Abs(sum-c.want) <= 0.15*c.want, "got %.1f s, want about %.1f s", sum, c.want)
		})
	}
}

// TestNeededTells: in a measurement of the needed length, a climb of a tenth is found in about
// four of five cases.
func TestNeededTells(t *testing.T) {
	const runs = 400
	dice := rand.New(rand.NewPCG(4, 4))
	for _, spread := range []float64{0.05, 0.1} {
		n := int(noisy(dice, 2000, spread, 0, 0).needed().Seconds())
		found := 0
		for range runs {
			s := noisy(dice, n, spread, 0, MostRise)
			if x := s.trend(time.Duration(n) * time.Second); x.rise > 0 && x.chance < mostChance {
				found++
			}
		}
		if share := float64(found) / runs; math.Abs(share-0.8) > 0.08 {
			t.Errorf("with %d intervals and a spread of %g: found in %.2f, want about 0.8", n, spread, share)
		}
	}
}

func TestNeededOfLittle(t *testing.T) {
	for name, s := range map[string]*series{
		"nothing": {}, "two values": noisy(rand.New(rand.NewPCG(1, 1)), 2, 0.1, 0, 0),
		"zeros": {at: []float64{1, 2, 3}, weight: []float64{1, 1, 1}, value: []float64{0, 0, 0}},
	} {
		assert.Equal(t, s.needed(), 0, "%s", name)
	}
	constant := &series{at: []float64{1, 2, 3}, weight: []float64{1, 1, 1}, value: []float64{7, 7, 7}}
	assert.Equal(t, constant.needed(), LeastSeries*time.Second, "constant values")
}
