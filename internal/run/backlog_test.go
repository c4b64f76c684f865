package run

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// Runs of 100 batches of 10 events a second, with a reader that is faster, as slow, or stands still.
func TestBacklog(t *testing.T) {
	const fast, slow = 2 * time.Millisecond, 10 * time.Millisecond
	for _, tt := range []struct {
		name      string
		readEvery time.Duration
		set       []string
		interrupt time.Duration
		state     string
		stopped   load.Reason
		exit      int
		build     float64 // seconds; below 0: it did not begin
		drain     float64
		most      float64 // events
		missing   float64
		stages    []string
		took      float64
	}{
		{"events", fast, []string{"backlog=5k"}, 0, report.BacklogDrained, load.ByDrain, host.ExitOK, 5, 1.24, 5000, 0, []string{"building", "draining"}, 6.25},
		{"bytes", fast, []string{"backlog=1kB"}, 0, report.BacklogDrained, load.ByDrain, host.ExitOK, 1, 0.25, 1000, 0, []string{"building", "draining"}, 1.25},
		{"a time", fast, []string{"backlog=2s", "backlog-drained=50%"}, 0, report.BacklogDrained, load.ByDrain, host.ExitOK, 2, 0.25, 2000, 0, []string{"building", "draining"}, 2.5},
		{"to the end", fast, []string{"backlog=5k", "backlog-drained=100%"}, 0, report.BacklogDrained, load.ByDrain, host.ExitOK, 5, 1.22, 5000, 0, []string{"building", "draining"}, 6.25},
		{"a warm-up and some time after it", fast, []string{"backlog=5k", "warmup=3s", "backlog-after=4s"}, 0, report.BacklogDrained, load.ByDrain, host.ExitOK, 5, 1.24, 5000, 0, []string{"before", "building", "draining", "after"}, 13.25},
		{"a given time", fast, []string{"backlog=5k", "for=9s"}, 0, report.BacklogDrained, load.ByTime, host.ExitOK, 5, 1.24, 5000, 0, []string{"building", "draining", "after"}, 9},
		{"drained when nothing more is sent", fast, []string{"backlog=5k", "count=5500"}, 0, report.BacklogDrained, load.ByEvents, host.ExitOK, 5, 1.09, 5000, 0, []string{"building", "draining"}, 6.1},
		{"not built", fast, []string{"backlog=5k", "for=4s"}, 0, report.BacklogUnbuilt, load.ByTime, host.ExitCannotTell, 4, -1, 4000, 0, []string{"building"}, 4.8},
		{"as slow as what is sent", slow, []string{"backlog=5k", "drain-timeout=3s"}, 0, report.BacklogUndrained, load.ByBacklog, host.ExitBroken, 5, 3, 5000, 1633, []string{"building", "draining"}, 8.1},
		{"standing still", time.Hour, []string{"backlog=1k"}, 0, report.BacklogUndrained, load.ByBacklog, host.ExitBroken, 1, 10, 11000, 1089, []string{"building", "draining"}, 11.1},
		{"not drained when nothing more is sent", slow, []string{"backlog=5k", "count=5500", "drain-timeout=3s"}, 0, report.BacklogUndrained, load.ByEvents, host.ExitBroken, 5, 3, 5000, 816, []string{"building", "draining"}, 8.1},
		{"interrupted before", fast, []string{"backlog=5k", "warmup=3s"}, time.Second, report.BacklogWaiting, load.Interrupted, host.ExitInterrupted, -1, -1, 0, 0, nil, 1.1},
		{"interrupted while it is built", fast, []string{"backlog=5k"}, 2 * time.Second, report.BacklogBuilding, load.Interrupted, host.ExitInterrupted, 2, -1, 2000, 0, []string{"building"}, 2.1},
		{"interrupted while it is drained", fast, []string{"backlog=5k"}, 5500 * time.Millisecond, report.BacklogDraining, load.Interrupted, host.ExitInterrupted, 5, 0.5, 5000, 0, []string{"building", "draining"}, 5.6},
		{"interrupted afterwards", fast, []string{"backlog=5k", "for=1h"}, 8 * time.Second, report.BacklogDrained, load.Interrupted, host.ExitInterrupted, 5, 1.24, 5000, 0, []string{"building", "draining", "after"}, 8.1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.interrupt > 0 {
					time.AfterFunc(tt.interrupt, cancel)
				}
				m := fakeKind{perBatch: 10, consumeDelay: time.Microsecond, readEvery: tt.readEvery}
				set := append([]string{"op=roundtrip", "rate=1k/s", "batch-events=10", "slo=drain<1m"}, tt.set...)
				began := time.Now()
				said, lasted := report.BacklogWaiting, map[string]float64{}
				d := assert.Value(Execute(ctx, Job{Portable: true, Workload: resolve(t, &m, set...), Backlog: func(state string, took time.Duration) {
					lasted[said], said = took.Seconds(), state
				}}))(t)
				took, b := time.Since(began), d.Backlog
				assert.Equal(t, said, b.State, "the state that was said last")
				for state, want := range map[string]*float64{report.BacklogWaiting: b.BuildAtS, report.BacklogBuilding: b.BuildS, report.BacklogDraining: b.DrainS} {
					if got, ok := lasted[state]; ok {
						assert.Equal(t, got, *want, "how long it was "+state)
					}
				}
				assert.Equal(t, d.Stopped, tt.stopped, "stopped by")
				assert.Equal(t, b.State, tt.state, "state")
				assert.Equal(t, d.ExitCode(), tt.exit, "exit code, with %v and %v", d.Checks, d.Trust)
				near := func(what string, got *float64, want float64) {
					t.Helper()
					v := -1.0
					if got != nil {
						v = *got
					}
					assert.True(t, math.Abs(v-want) <= 0.02+0.01*math.Abs(want), "%s: got %v, want %v", what, v, want)
				}
				near("building", b.BuildS, tt.build)
				near("draining", b.DrainS, tt.drain)
				most := float64(b.MostEvents)
				near("the most that waited", &most, tt.most)
				near("the missing rate", &b.MissingPerS, tt.missing)
				length := took.Seconds()
				assert.True(t, length <= tt.took+0.05, "the run took %v, want %v at most", length, tt.took)
				var stages []string
				for _, s := range b.Stages {
					stages = append(stages, s.Name)
				}
				assert.Same(t, stages, tt.stages, "stages")
				if i := slices.IndexFunc(b.Stages, func(s report.BacklogStage) bool { return s.Name == "building" }); i >= 0 {
					assert.Equal(t, math.Round(b.Stages[i].EventsPerS/10), 100, "acked a second while it was built, by 10")
					assert.True(t, b.Stages[i].Response.Count > 0 && b.Stages[i].SendDelay.Count > 0, "no times while it was built")
				}
				<-m.session.ended
			})
		})
	}
}

// The series has what waits at the end of each interval, also of those that end when nothing more is sent.
func TestBacklogSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fakeKind{perBatch: 10, consumeDelay: time.Microsecond, readEvery: 4 * time.Millisecond}
		w := resolve(t, &m, "op=roundtrip", "rate=1k/s", "batch-events=10", "backlog=3k", "count=4k", "backlog-drained=100%", "interval=500ms")
		d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: w}))(t)
		for i := range d.Intervals {
			iv := &d.Intervals[i]
			if iv.EndS != math.Trunc(2*iv.EndS)/2 {
				continue
			}
			want := 1000 * min(iv.EndS, 3)
			if iv.EndS > 3 {
				want -= 1500*(min(iv.EndS, 4)-3) + 2500*max(iv.EndS-4, 0)
			}
			assert.True(t, math.Abs(float64(iv.LagEvents)-max(want, 0)) <= 40, "at %v s, %d events wait, want %v", iv.EndS, iv.LagEvents, max(want, 0))
		}
	})
}

// A target whose reader cannot pause says so before anything is sent.
func TestBacklogNeedsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fakeKind{consumeDelay: time.Microsecond}
		_, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &m, "op=roundtrip", "rate=1k/s", "backlog=5k")})
		assert.ErrorHas(t, err, "cannot pause")
	})
}

// Of several groups, all wait for the slowest, and it is named.
func TestBacklogOfGroups(t *testing.T) {
	for _, tt := range []struct {
		name         string
		rates        []float64 // at which groups read
		failed, last string
		drains       []float64
	}{
		{"one is slower", []float64{3000, 2000}, "", "g2", []float64{0.45, 0.9}},
		{"one keeps up with what is sent at most", []float64{3000, 1000}, "not drained in 10 s: 1 k events are left; the group g2 was last and read 1 k/s while 1 k/s came, and needs 90/s more", "g2", []float64{0.5, -1}},
		{"one stands still", []float64{0, 3000}, "not drained in 10 s: 11 k events are left; the group g1 was last and read 0/s while 1 k/s came, and needs 1.09 k/s more", "g1", []float64{-1, 0.5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBacklog(&workload.Backlog{Events: 1000, Drained: 0.99}, []string{"g1", "g2"})
			s := backlogSample{measuring: true, read: make([]amount, 2)}
			end := goOn
			for at := time.Duration(0); end < endDrained; at += 10 * time.Millisecond {
				s.acked.events = uint64(at / time.Millisecond)
				s.acked.bytes = 100 * s.acked.events
				for i, rate := range tt.rates {
					if b.drainAt >= 0 {
						s.read[i].events = min(s.acked.events, s.read[i].events+uint64(rate/100))
						s.read[i].bytes = 100 * s.read[i].events
					}
				}
				end = b.step(at, &s)
			}
			r := b.report()
			text, failed := r.Failure()
			assert.Equal(t, failed, tt.failed != "", "failed")
			assert.Equal(t, text, tt.failed, "text")
			assert.Equal(t, r.Last, tt.last, "the last group")
			for i, want := range tt.drains {
				got := -1.0
				if g := &r.Groups[i]; g.DrainS != nil {
					got = *g.DrainS
					assert.True(t, math.Abs(g.EventsPerS-tt.rates[i]) <= 50, "group %d reads %v/s, want %v", i, g.EventsPerS, tt.rates[i])
				}
				assert.True(t, math.Abs(got-want) <= 0.06, "group %d drained in %v s, want %v", i, got, want)
			}
			assert.Equal(t, r.MostBytes, 100*r.MostEvents, "bytes")
		})
	}
}
