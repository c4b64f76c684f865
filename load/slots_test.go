package load

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestSlotsStayFew: however many slots a bound has, and however many events were sent, a
// lane with little in flight keeps few entries. Ten thousand lanes would otherwise take
// more memory with each event.
func TestSlotsStayFew(t *testing.T) {
	for _, tt := range []struct {
		name   string
		plan   Plan
		shared bool
	}{
		{name: "single events", plan: Plan{BatchEvents: 1}},
		{name: "batches that fill", plan: Plan{Linger: 20 * time.Millisecond}},
		{name: "shared lanes", plan: Plan{BatchEvents: 1}, shared: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(RoundRobin(2), 2, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + 25*time.Millisecond, Outcome{}
				})
				p := tt.plan
				p.Schedule, p.MaxInFlight, p.Threads, p.Portable = Constant(200), 1000, 1, true
				p.Measurement = Limits{Time: 30 * time.Second}
				var target Target = f
				if tt.shared {
					target = sharingTarget{f}
				}
				r := assert.Value(New(p, target))(t)
				r.Start()
				assert.Value(r.Wait())(t)
				lanes := 0
				for _, th := range r.threads {
					for _, ls := range th.lanes {
						lanes++
						got, most := len(ls.slots.ring), 16
						assert.True(t, got <= most, "lane %d has room for %d entries, want at most %d", ls.index, got, most)
						assert.Equal(t, ls.slots.n, p.MaxInFlight, "lane %d slots", ls.index)
					}
				}
				assert.Equal(t, lanes, 2, "lanes")
			})
		})
	}
}

// A countedLane counts what is fired until it is written.
type countedLane struct {
	*fakeLane
	unwritten, most *int // over all lanes
}

func (l countedLane) Fire(batches []Batch) int {
	taken := l.fakeLane.Fire(batches)
	*l.unwritten += taken
	*l.most = max(*l.most, *l.unwritten)
	return taken
}

func (l countedLane) Flush() { *l.unwritten = 0 }

// A countedTarget has counted lanes.
type countedTarget struct {
	sharingTarget
	unwritten, most int
}

func (c *countedTarget) Route(s int32) Lane {
	return countedLane{c.lanes[c.Client(s)], &c.unwritten, &c.most}
}

// TestLateInPieces: a thread with very many events due fires them in pieces, each of which
// it writes before the next, and none of them later.
func TestLateInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := testkit.Cases(3, 1)*leastAtOnce + 5
		late := 0
		f := newFake(RoundRobin(2), 2, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
			if at != s.DueFirst {
				late++
			}
			return at + 20*time.Millisecond, Outcome{}
		})
		c := &countedTarget{sharingTarget: sharingTarget{f}}
		res, err := Fire(t.Context(), Plan{
			Schedule: Burst(uint64(events), time.Minute), BatchEvents: 1, MaxInFlight: events, Overload: Drop, Threads: 1,
			Measurement: Limits{Time: time.Second}, Portable: true,
		}, c)
		assert.OK(t, err)
		assert.True(t, res.Measurement.Acked == uint64(events) && late <= 0,
			"%d acked, %d sent late; want %d, 0", res.Measurement.Acked, late, events)
		assert.Equal(t, c.most, leastAtOnce, "most that were fired and not written")
	})
}
