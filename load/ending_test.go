package load

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// roomless is a target whose streams have no lane, or whose lane has no room for them,
// as during a login.
type roomless struct {
	*fake
	lanes bool
}

func (r roomless) Route(s int32) Lane {
	if !r.lanes {
		return nil
	}
	return noRoomLane{r.fake.lanes[r.Client(s)]}
}

type noRoomLane struct{ *fakeLane }

func (noRoomLane) Room(int32, uint64) int { return 0 }

// TestStopFiresWhatWaits: events that linger when the run is stopped are fired and
// answered. Events that the bound holds back are not, nor are those of streams without
// a lane or room; they do not delay the end.
func TestStopFiresWhatWaits(t *testing.T) {
	room := func(f *fake) Target { return f }
	noRoom := func(f *fake) Target { return roomless{f, true} }
	nowhere := func(f *fake) Target { return roomless{f, false} }
	wide := Plan{MaxInFlight: 1000}
	for _, tt := range []struct {
		name    string
		plan    Plan
		streams int
		service time.Duration
		of      func(*fake) Target
		why     Reason
		want    measure.Counts
		whole   bool
	}{
		{"one stream", wide, 1, time.Millisecond, room, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}, true},
		{"streams that batch separately", wide, 7, time.Millisecond, room, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}, true},
		{"delayed", Plan{}, 1, time.Second, room, Interrupted, measure.Counts{Offered: 996, Sent: 11, Acked: 11, Unsent: 985}, true},
		{"ended by a limit", wide, 1, time.Millisecond, room, ByFailures, measure.Counts{Offered: 996, Sent: 990, Acked: 990, Unsent: 6}, false},
		{"no lane", wide, 3, time.Millisecond, nowhere, Interrupted, measure.Counts{Offered: 996, Unsent: 996}, true},
		{"a lane without room", wide, 3, time.Millisecond, noRoom, Interrupted, measure.Counts{Offered: 996, Unsent: 996}, true},
		{"one stream, drop", Plan{MaxInFlight: 1000, Overload: Drop}, 1, time.Millisecond, room, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}, true},
		{"delayed, drop", Plan{Overload: Drop}, 1, time.Second, room, Interrupted, measure.Counts{Offered: 996, Sent: 11, Acked: 11, Dropped: 979, Unsent: 6}, true},
		{"streams delayed, drop", Plan{Overload: Drop}, 7, time.Second, room, Interrupted, measure.Counts{Offered: 996, Sent: 2, Acked: 2, Dropped: 990, Unsent: 4}, true},
		{"no lane, drop", Plan{Overload: Drop}, 3, time.Millisecond, nowhere, Interrupted, measure.Counts{Offered: 996, Dropped: 992, Unsent: 4}, true},
		{"a lane without room, drop", Plan{Overload: Drop}, 3, time.Millisecond, noRoom, Interrupted, measure.Counts{Offered: 996, Dropped: 992, Unsent: 4}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tt.plan
				p.Schedule, p.Linger, p.Portable, p.MaxInFlight = Constant(1000), 10*time.Millisecond, true, max(p.MaxInFlight, 1)
				r := assert.Value(New(p, tt.of(newFake(RoundRobin(tt.streams), 1, constantly(tt.service)))))(t)
				r.Start()
				time.Sleep(995*time.Millisecond + 500*time.Microsecond)
				r.Stop(tt.why)
				res := assert.Value(r.Wait())(t)
				h := &res.Measurement
				got := measure.Counts{Offered: h.Offered, Sent: h.Sent, Acked: h.Acked, Dropped: h.Dropped, Unsent: h.Unsent}
				assert.Same(t, got, tt.want)
				assert.Equal(t, res.Whole, tt.whole, "whole")
				assert.True(t, h.Censored.Count() == h.Unsent && (h.Sent == 0 || h.Batching.Max() <= 10*time.Millisecond),
					"%d ages of %d unsent events, batched for at most %v", h.Censored.Count(), h.Unsent, h.Batching.Max())
			})
		})
	}
}

// TestStopEndsWithItsDrain: batches in flight when fireRemaining finds no room are
// still waited for, until the drain is over or aborted.
func TestStopEndsWithItsDrain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		abort time.Duration // after the stop; 0: never
		took  time.Duration
		acked uint64
	}{
		{"answered in it", 0, 1490 * time.Millisecond, 1},
		{"aborted", 100 * time.Millisecond, 595500 * time.Microsecond, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := Plan{Schedule: Constant(1000), Linger: 490 * time.Millisecond, MaxInFlight: 1, Overload: Drop, Portable: true, Drain: 5 * time.Second}
				f := newFake(RoundRobin(2), 1, constantly(time.Second))
				r := assert.Value(New(p, f))(t)
				began := time.Now()
				r.Start()
				time.Sleep(495*time.Millisecond + 500*time.Microsecond)
				r.Stop(Interrupted)
				if tt.abort > 0 {
					time.Sleep(tt.abort)
					r.Abort()
				}
				res := assert.Value(r.Wait())(t)
				assert.Equal(t, time.Since(began), tt.took, "time until it ended")
				assert.Equal(t, min(1, res.Measurement.Acked), tt.acked, "%d events were answered", res.Measurement.Acked)
			})
		})
	}
}

// TestWhole: an interruption completes a run without another end. It cuts short a run
// that has another end, has not begun to measure, or whose answers were not awaited.
func TestWhole(t *testing.T) {
	for _, tt := range []struct {
		name        string
		plan        Plan
		abort, want bool
	}{
		{name: "a rate", plan: Plan{Schedule: Constant(100)}, want: true},
		{name: "concurrency", plan: Plan{Concurrency: 2}, want: true},
		{name: "full speed", want: true},
		{name: "aborted", plan: Plan{Schedule: Constant(100)}, abort: true},
		{name: "in the warm-up", plan: Plan{Schedule: Constant(100), WarmupTime: 2 * time.Second}},
		{name: "a time", plan: Plan{Schedule: Constant(100), Measurement: Limits{Time: time.Minute}}},
		{name: "a number", plan: Plan{Concurrency: 2, Measurement: Limits{Events: 1e6}}},
		{name: "bytes", plan: Plan{Concurrency: 2, Measurement: Limits{Bytes: 1 << 40}}},
		{name: "failures, but none occur", plan: Plan{Concurrency: 2, Measurement: Limits{Failures: 3}}, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tt.plan
				p.BatchEvents, p.Portable = 1, true
				r := assert.Value(New(p, newFake(Single(), 1, constantly(50*time.Millisecond))))(t)
				r.Start()
				time.Sleep(time.Second)
				r.Stop(Interrupted)
				if tt.abort {
					r.Abort()
				}
				res := assert.Value(r.Wait())(t)
				assert.True(t, res.Whole == tt.want && res.Stopped == Interrupted, "whole: got %v, stopped by %q", res.Whole, res.Stopped)
			})
		})
	}
}
