package load

import (
	"testing"
	"time"
)

var sinkDuration time.Duration

func BenchmarkSchedule(b *testing.B) {
	steps := make([]Step, 20)
	for i := range steps {
		steps[i] = Step{Rate: float64(i+1) * 1e5, End: time.Minute}
	}
	for _, s := range []struct {
		name string
		s    Schedule
	}{
		{"constant", Constant(1e6)},
		{"constant fraction", Constant(33.333)},
		{"ramp", Ramp(1e3, 1e6, time.Hour)},
		{"steps", Steps(steps)},
		{"sine", Sine(1e6, 5e5, time.Minute)},
		{"burst", Burst(1000, time.Millisecond)},
		{"poisson", Poisson(1e6, 1)},
		{"joined", Joined(Until(Constant(1e6), time.Minute), Constant(2e6))},
	} {
		b.Run("due/"+s.name, func(b *testing.B) {
			b.ReportAllocs()
			var n uint64
			for b.Loop() {
				n = (n + 1) % 10_000_000
				sinkDuration += s.s.Due(n)
			}
		})
		b.Run("count/"+s.name, func(b *testing.B) {
			b.ReportAllocs()
			var t time.Duration
			for b.Loop() {
				t = (t + 977) % (10 * time.Second)
				sinkDuration += time.Duration(s.s.Count(t))
			}
		})
	}
}
