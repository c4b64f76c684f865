package live

import (
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// example sends a run of n seconds to a hub.
func example(t testing.TB, hub *Hub, id string, from, to int) *Recorder {
	r := NewRecorder(id, Run{
		Target: "null://example", Op: "produce", Version: "test", StartedAt: "2026-01-02T03:04:05Z", Interval: Seconds(time.Second), Schedule: true, Processors: 2,
		Limits: []report.LimitLine{{Text: "p99 < 20 ms", Time: "response", Percentile: 99, Name: "p99", Upper: true, Value: 0.02}, {Text: "throughput >= 900/s", Name: "throughput", Value: 900}},
		Labels: map[string]string{"team": "ingest"},
	}, func(e Event) {
		err := hub.Take(e)
		assert.True(t, err == nil, "%v", err)
	})
	seconds(r, from, to)
	return r
}

// seconds adds the intervals from one second to another.
func seconds(r *Recorder, from, to int) {
	for i := from; i < to; i++ {
		h, s, d := measure.NewHistogram(), measure.NewHistogram(), measure.NewHistogram()
		for k := range 100 {
			h.Record(time.Duration(2+k%7+i%5) * time.Millisecond)
			s.Record(time.Duration(1+k%3) * time.Millisecond)
			d.Record(time.Duration(50+k) * time.Microsecond)
		}
		iv := measure.Interval{
			Phase: measure.Measurement, Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second,
			Counts:   measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000 - uint64(i%3), Failed: uint64(i % 3), Bytes: 100000},
			Set:      measure.Set{Response: h, Service: s, SendDelay: d},
			InFlight: uint64(5 + i%4), LagEvents: -1,
			Generator: measure.Usage{CPU: 200 * time.Millisecond, RSS: 40 << 20},
		}
		if i%20 == 7 { // the system did not answer
			iv.Counts.Acked, iv.Counts.Failed, iv.Response, iv.Service = 0, 0, nil, nil
		}
		if i < 5 {
			iv.Phase = measure.WarmUp
		}
		snap := load.Snapshot{At: iv.End, Phase: iv.Phase, Interval: iv, Rows: []measure.Interval{iv}}
		if i%30 == 25 {
			snap.Freezes, snap.Frozen = 1, 30*time.Millisecond
		}
		r.Figures("system", []measure.Figure{{Name: "CPU", Unit: "cores", Value: 0.5 + float64(i%10)/20}, {Name: "memory", Unit: "bytes", Value: 100e6 + 1e6*float64(i)}, {Name: "GC pause", Unit: "ms", Value: float64(i % 6)}})
		r.Figures("host", []measure.Figure{{Name: "CPU", Unit: "cores", Value: 1.2}})
		r.Show(snap)
	}
}
