package host

import (
	"math"
	"runtime/metrics"
	"time"

	"carronade/measure"
)

// A Sampler measures the resources that the running process uses between calls.
// It belongs to one goroutine. A sample costs some 5 microseconds and, after
// the first, no memory.
type Sampler struct {
	process process
	samples []metrics.Sample
	cpu     time.Duration
	gcCPU   time.Duration
	pauses  histogramDelta
	waits   histogramDelta
}

// Scheduling is how long runnable goroutines waited for a thread.
type Scheduling struct {
	Count uint64
	P99   time.Duration // upper edge of the runtime's bucket, up to a quarter above
	Max   time.Duration // likewise
}

const (
	gcPauses = iota
	gcTotal
	gcIdle
	schedWaits
)

// NewSampler begins to sample: the first Sample covers the time from now on.
func NewSampler() *Sampler {
	s := &Sampler{samples: []metrics.Sample{
		gcPauses:   {Name: "/sched/pauses/total/gc:seconds"},
		gcTotal:    {Name: "/cpu/classes/gc/total:cpu-seconds"},
		gcIdle:     {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
		schedWaits: {Name: "/sched/latencies:seconds"},
	}}
	s.process.open()
	s.Sample()
	return s
}

// Sample returns the resources that the process used since the last call.
//
// CPU is the kernel's count of user and system time. MaxRSS is the kernel's
// high-water mark of this program; that of getrusage(2) is not used on Linux,
// because it includes that of the program that started this one. GCPauseMax is
// the upper edge of the runtime's histogram bucket, up to a quarter above the
// pause. GCCPU is the runtime's estimate, without the collector's work on idle
// processors; it changes when a collection ends.
func (s *Sampler) Sample() measure.Usage {
	u, _ := s.SampleAll()
	return u
}

// SampleAll is Sample with how goroutines were scheduled in the same time.
func (s *Sampler) SampleAll() (measure.Usage, Scheduling) {
	metrics.Read(s.samples)
	var u measure.Usage
	cpu, rss, high := s.process.read()
	u.CPU, s.cpu = cpu-s.cpu, cpu
	u.RSS, u.MaxRSS = rss, max(high, rss)
	u.GCPauses, u.GCPauseMax, _ = s.pauses.advance(histogram(s.samples[gcPauses]))
	gc := seconds(s.samples[gcTotal]) - seconds(s.samples[gcIdle])
	u.GCCPU, s.gcCPU = max(0, gc-s.gcCPU), gc
	var w Scheduling
	w.Count, w.Max, w.P99 = s.waits.advance(histogram(s.samples[schedWaits]))
	return u, w
}

func histogram(s metrics.Sample) *metrics.Float64Histogram {
	if s.Value.Kind() != metrics.KindFloat64Histogram {
		return nil // this runtime does not have it
	}
	return s.Value.Float64Histogram()
}

func seconds(s metrics.Sample) time.Duration {
	if s.Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return duration(s.Value.Float64())
}

func duration(seconds float64) time.Duration {
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// A histogramDelta keeps a cumulative histogram, to compute the difference to
// the next one.
type histogramDelta struct {
	counts []uint64
}

// advance returns the count, the largest and the 99th percentile of the values
// since the last call, both as upper edges of buckets.
func (s *histogramDelta) advance(h *metrics.Float64Histogram) (count uint64, largest, p99 time.Duration) {
	if h == nil {
		return 0, 0, 0
	}
	if len(s.counts) != len(h.Counts) {
		s.counts = make([]uint64, len(h.Counts))
	}
	for i, n := range h.Counts {
		count += n - s.counts[i]
	}
	need := count - count/100
	seen := uint64(0)
	for i, n := range h.Counts {
		d := n - s.counts[i]
		s.counts[i] = n
		if d == 0 {
			continue
		}
		edge := h.Buckets[i+1]
		if math.IsInf(edge, 1) {
			edge = h.Buckets[i]
		}
		largest = duration(edge)
		if seen < need {
			p99 = largest
		}
		seen += d
	}
	return count, largest, p99
}
