package kafka

import (
	"sync/atomic"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestDispatchCost checks that the cost of dispatch depends on how many batches and
// partitions wait, and not on the number of partitions and brokers.
func TestDispatchCost(t *testing.T) {
	testkit.OnlyConformance(t, "it compares durations")
	cost := func(partitions, brokers int) time.Duration {
		s := &sender{routes: make([]atomic.Pointer[lane], partitions), partitions: make([]partitionState, partitions)}
		for i := range brokers {
			s.lanes = append(s.lanes, &lane{s: s, broker: int32(i)})
		}
		s.partitions[0].inFlight = 1
		s.startRecovery(0) // partition 0 waits for an answer
		for range 10 {
			s.later = append(s.later, &slot{part: 1}) // partition 1 has no leader
		}
		const rounds = 100
		best := time.Duration(1<<63 - 1)
		for range 10 {
			began := time.Now()
			for range rounds {
				s.dispatch()
			}
			best = min(best, time.Since(began))
		}
		assert.Must(t, len(s.recovering) == 1 && len(s.later) == 10,
			"%d partitions and %d batches wait, want 1 and 10", len(s.recovering), len(s.later))
		return best
	}
	few, many := cost(2, 1), cost(1_000_000, 1000)
	few = max(few, time.Microsecond)
	assert.True(t, many <= 50*few, "100 calls take %v with two partitions, %v with a million", few, many)
}
