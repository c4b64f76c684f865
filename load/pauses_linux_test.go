package load

import (
	"math"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkCollectorPauses is how long the collector stops the world while threads wait as
// sending threads do, in system calls that keep their processor: it has to interrupt them
// by signals. An iteration is a collection, with garbage made meanwhile.
func BenchmarkCollectorPauses(b *testing.B) {
	for _, length := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		for _, threads := range []int{1, 4} {
			if length == 0 && threads > 1 {
				continue
			}
			name := "no waits"
			if length > 0 {
				name = strconv.Itoa(threads) + " threads in waits of " + length.String()
			}
			b.Run(name, func(b *testing.B) {
				var stop atomic.Bool
				var waiting sync.WaitGroup
				start := time.Now()
				if length > 0 {
					addProcs(threads)
					defer addProcs(-threads)
					for range threads {
						waiting.Go(func() {
							w := newPreciseWaiter(start)
							w.prepare()
							defer w.close()
							for !stop.Load() {
								w.wait(time.Since(start)+length, true, false)
							}
						})
					}
				}
				before := pauses()
				var kept [][]byte
				for b.Loop() {
					kept = kept[:0]
					for range 1000 {
						kept = append(kept, make([]byte, 4<<10))
					}
					runtime.GC()
				}
				after := pauses()
				stop.Store(true)
				waiting.Wait()
				var all uint64
				for i := range after.Counts {
					after.Counts[i] -= before.Counts[i]
					all += after.Counts[i]
				}
				quantile := func(q float64) float64 {
					seen := uint64(0)
					for i, n := range after.Counts {
						if seen += n; float64(seen) >= q*float64(all) && n > 0 {
							return after.Buckets[i] * 1e6
						}
					}
					return math.NaN()
				}
				b.ReportMetric(quantile(0.5), "p50-us")
				b.ReportMetric(quantile(0.99), "p99-us")
				b.ReportMetric(quantile(1), "max-us")
			})
		}
	}
}

// pauses are those of the collector so far.
func pauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}
