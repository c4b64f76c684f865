package load

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestBatchGroupsDoNotMatter: batches are counted and timed the same in batch groups
// and one by one, and the bound applies to both.
func TestBatchGroupsDoNotMatter(t *testing.T) {
	testkit.Need(t, "some seconds")
	for _, tt := range []struct {
		name string
		plan Plan
	}{
		{"the bound allows 100", Plan{BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 10_000}}},
		{"three events each, and one left over", Plan{BatchEvents: 3, MaxInFlight: 100, Measurement: Limits{Events: 10_000}}},
		{"a warm-up that ends in a batch group", Plan{BatchEvents: 1, MaxInFlight: 100, WarmupEvents: 1234, Measurement: Limits{Events: 10_000}}},
		{"concurrency", Plan{BatchEvents: 1, Concurrency: 100, Measurement: Limits{Events: 10_000}}},
		{"by time", Plan{BatchEvents: 1, MaxInFlight: 100, WarmupTime: time.Second, Measurement: Limits{Time: time.Second}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fire := func(groups int) (res *Result, most int) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(Single(), 1, constantly(3*time.Millisecond))
					f.groups = groups
					f.answer = func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
						f.lanes[0].mu.Lock()
						most = max(most, len(f.lanes[0].open)+1)
						f.lanes[0].mu.Unlock()
						return at + 3*time.Millisecond, Outcome{}
					}
					res = fireTest(t, tt.plan, f)
				})
				return res, most
			}
			want, _ := fire(0)
			got, most := fire(64)
			assert.Equal(t, most, 100, "at most batches in flight")
			assert.Same(t, got.Measurement.Counts, want.Measurement.Counts, "counts, one by one and in batch groups")
			assert.Same(t, got.Warmup.Counts, want.Warmup.Counts, "warm-up, one by one and in batch groups")
			assert.True(t, got.Measurement.Service.Equal(want.Measurement.Service), "service times differ")
			assert.Equal(t, got.Measurement.InFlight, want.Measurement.InFlight, "in flight")
		})
	}
}

func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slots
		n := rapid.IntRange(0, 40).Draw(t, "slots")
		s.fill(n, 5)
		want := make([]time.Duration, n)
		for i := range want {
			want[i] = 5
		}
		now := time.Duration(5)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			k := rapid.IntRange(1, 20).Draw(t, "n")
			if rapid.IntRange(0, 3).Draw(t, "join") == 0 {
				ready := now - time.Duration(rapid.IntRange(0, 3).Draw(t, "ago"))
				s.join(ready)
				old := 0
				for old < len(want) && want[old] <= ready {
					old++
				}
				for i := range old {
					want[i] = want[old-1]
				}
				if used := 1 + len(want) - old; s.used > used {
					t.Fatalf("%d entries, want at most %d", s.used, used)
				}
			} else if rapid.Bool().Draw(t, "push") {
				now += time.Duration(rapid.IntRange(0, 1).Draw(t, "later"))
				s.push(now, k)
				for range k {
					want = append(want, now)
				}
			} else if k <= len(want) {
				if got := s.pop(k); got != want[0] {
					t.Fatalf("pop(%d) is %v, want %v", k, got, want[0])
				}
				want = want[k:]
			}
			if s.n != len(want) {
				t.Fatalf("%d slots, want %d", s.n, len(want))
			}
			free := s.iterate()
			for i := range want {
				if got := free.next(); got != want[i] {
					t.Fatalf("slot %d became free at %v, want %v", i, got, want[i])
				}
			}
		}
	})
}

func TestStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
			o := Outcome{Status: 202}
			if s.Seq%4 == 0 {
				o = Outcome{Status: 503, Failed: s.Events, Class: Throttled, Text: "full"}
			}
			return at + 10*time.Millisecond, o
		})
		res := fireTest(t, Plan{Schedule: Constant(100), BatchEvents: 5, Measurement: Limits{Time: 3 * time.Second}}, f)
		want := measure.Statuses{{Code: 202, Batches: 45, Events: 225}, {Code: 503, Batches: 15, Events: 75}}
		assert.Same(t, res.Measurement.Statuses, want)
		var sum measure.Statuses
		var failed measure.Classes
		for _, iv := range res.Intervals {
			sum.Merge(iv.Statuses)
			failed.Merge(iv.Classes)
		}
		assert.Same(t, failed, measure.Classes{{Class: Throttled.String(), Events: 75, Batches: 15}}, "failures of the series")
		assert.Same(t, sum, want, "the series does not add up to the measurement")
	})
}

// TestTraceLeavesBatchGroups: Trace receives every batch, and batches are still fired
// in batch groups; with Observe they are fired one by one.
func TestTraceLeavesBatchGroups(t *testing.T) {
	const events = 10_000
	for _, tt := range []struct {
		name            string
		observe, groups bool
	}{{"trace", false, true}, {"trace beside observe", true, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(Single(), 1, constantly(3*time.Millisecond))
				f.groups = 64
				f.answer = func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + 3*time.Millisecond, Outcome{}
				}
				plan := Plan{BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: events}}
				batches, calls, most := 0, 0, 0
				plan.Trace = func(thread int, out []Outcome) {
					assert.Equal(t, thread, 0, "thread")
					calls++
					for i := range out {
						batches += out[i].count()
						most = max(most, out[i].count())
					}
				}
				if tt.observe {
					plan.Observe = func([]Outcome) {}
				}
				fireTest(t, plan, f)
				assert.Equal(t, batches, events, "batches traced")
				assert.Equal(t, most > 1, tt.groups, "whether batches came in groups, of %d at most", most)
			})
		})
	}
}
