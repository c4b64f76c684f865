package load

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// sharingTarget is a fake whose lanes send the events of every stream.
type sharingTarget struct{ *fake }

func (sharingTarget) Shares() bool { return true }

// TestFirstFreeLane: one connection answers its first batch after a second, the other
// at once. If events have no order, no other event waits for the slow answer.
func TestFirstFreeLane(t *testing.T) {
	const slow = 1005 * time.Millisecond // no event is due when it answers
	for _, tt := range []struct {
		name     string
		shared   bool
		overload Overload
		late     uint64 // the event with the slow answer, and those that waited for it
		dropped  uint64
	}{
		{"queue, shared", true, Queue, 1, 0},
		{"queue, each its own", false, Queue, 53, 0},
		{"drop, shared", true, Drop, 1, 0},
		{"drop, each its own", false, Drop, 1, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := true
				f := newFake(RoundRobin(2), 2, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					if first {
						first = false
						return at + slow, Outcome{}
					}
					return at + time.Millisecond, Outcome{}
				})
				var target Target = f
				if tt.shared {
					target = sharingTarget{f}
				}
				used := [2]int{}
				var late uint64
				r, err := Fire(t.Context(), Plan{
					Schedule: Constant(100), BatchEvents: 1, MaxInFlight: 1, Overload: tt.overload, Threads: 1,
					Measurement: Limits{Time: 2 * time.Second}, Portable: true,
					Observe: func(out []Outcome) {
						for _, o := range out {
							used[o.Lane]++
							if o.Done-o.DueFirst > 5*time.Millisecond {
								late++
							}
						}
					},
				}, target)
				assert.OK(t, err)
				assert.True(t, late == tt.late && r.Measurement.Dropped == tt.dropped && r.Measurement.Acked == 200-tt.dropped,
					"%d late, %d dropped, %d acked; want %d, %d, %d",
					late, r.Measurement.Dropped, r.Measurement.Acked, tt.late, tt.dropped, 200-tt.dropped)
				assert.True(t, used[0] != 0 && used[1] != 0, "batches by connection: %d; want both used", used)
			})
		})
	}
}

// TestNoFreeLane: while every connection waits for an answer, due events wait for the
// first of them. The system causes that delay, not the generator.
func TestNoFreeLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(RoundRobin(2), 2, constantly(30*time.Millisecond)) // two at a time: 66 a second
		r, err := Fire(t.Context(), Plan{
			Schedule: Constant(100), BatchEvents: 1, MaxInFlight: 1, Threads: 1, Measurement: Limits{Time: 3 * time.Second}, Drain: time.Minute, Portable: true,
		}, sharingTarget{f})
		assert.OK(t, err)
		// The last is due at 2.99 s, and 300 take 150 rounds of 30 ms: 4.5 s.
		if got := r.Measurement.Queueing.Max(); got < 1400*time.Millisecond || got > 1600*time.Millisecond {
			t.Errorf("the longest queueing time is %v, want about 1.5 s", got)
		}
		got := r.Measurement.SendDelay.Max()
		assert.True(t, got <= time.Millisecond, "a send delay of %v, want none", got)
	})
}

// TestManyLanes: also with thousands of lanes, each gets as much as the others and no batch waits.
func TestManyLanes(t *testing.T) {
	for _, lanes := range []int{3, 2000} {
		synctest.Test(t, func(t *testing.T) {
			fired := make([]int, lanes)
			f := newFake(RoundRobin(lanes), lanes, func(lane int, _ Batch, at time.Duration) (time.Duration, Outcome) {
				fired[lane]++
				return at + 5*time.Millisecond, Outcome{}
			})
			r, err := Fire(t.Context(), Plan{
				Schedule: Constant(float64(lanes)), BatchEvents: 1, MaxInFlight: 2, Threads: 1, Measurement: Limits{Time: 3 * time.Second}, Portable: true,
			}, sharingTarget{f})
			assert.OK(t, err)
			if got := r.Measurement.Queueing.Max(); got != 0 || r.Measurement.Acked != 3*uint64(lanes) {
				t.Errorf("%d lanes: %d acked, queueing took %v at most", lanes, r.Measurement.Acked, got)
			}
			for lane, n := range fired {
				assert.Must(t, n == 3, "%d lanes: lane %d got %d batches, want 3", lanes, lane, n)
			}
		})
	}
}

// A pausingLane pauses the thread once, while it fires the event with a number, and counts the
// batches of each write.
type pausingLane struct {
	*fakeLane
	t *pausingTarget
}

type pausingTarget struct {
	sharingTarget
	pausedBy  Batch
	unwritten map[int]int // batches by lane
	writes    []write
}

type write struct {
	at      time.Duration
	batches int
}

func (p *pausingTarget) Route(s int32) Lane { return pausingLane{p.lanes[p.Client(s)], p} }

func (l pausingLane) Fire(batches []Batch) int {
	for _, b := range batches {
		if b.Stream == l.t.pausedBy.Stream && b.First == l.t.pausedBy.First {
			time.Sleep(20 * time.Millisecond)
		}
	}
	l.t.unwritten[l.id] += len(batches)
	return l.fakeLane.Fire(batches)
}

func (l pausingLane) Flush() {
	l.t.writes = append(l.t.writes, write{l.f.sink.Now(), l.t.unwritten[l.id]})
	l.t.unwritten[l.id] = 0
}

// TestLateTogether: a punctual thread with many lanes writes each of the batches that are due
// together by itself. A late one writes several on a lane, until it has caught up.
func TestLateTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, rate, paused = 400, 4_000, 500 * time.Millisecond
		p := &pausingTarget{sharingTarget: sharingTarget{newFake(RoundRobin(lanes), lanes, constantly(100*time.Microsecond))}, unwritten: map[int]int{}}
		p.pausedBy = Batch{Stream: 0, First: uint64(rate * paused.Seconds() / lanes)}
		r, err := Fire(t.Context(), Plan{
			Schedule: Burst(20, 5*time.Millisecond), BatchEvents: 1, MaxInFlight: 2 * mostTogether, Threads: 1,
			Measurement: Limits{Time: time.Second}, Portable: true,
		}, p)
		assert.OK(t, err)
		assert.Equal(t, r.Measurement.Acked, rate, "acked")
		late, written := 0, 0
		for _, w := range p.writes {
			written += w.batches
			switch during := w.at >= paused && w.at < paused+25*time.Millisecond; {
			case during:
				late = max(late, w.batches)
			case w.batches != 1:
				t.Errorf("at %v a write had %d batches, want 1", w.at, w.batches)
			}
		}
		assert.True(t, late == mostTogether && written == rate,
			"a late write had at most %d batches, %d in all; want %d, %d", late, written, mostTogether, rate)
	})
}
