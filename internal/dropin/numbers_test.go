package dropin

import (
	"testing"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// An element of the sorted times is found by its number.
func TestNthTime(t *testing.T) {
	h := measure.NewHistogram()
	assert.Equal(t, NthTime(h, 0), 0, "the time of none")
	h.RecordN(time.Millisecond, 3)
	h.RecordN(2*time.Millisecond, 2)
	for n, want := range map[uint64]time.Duration{0: time.Millisecond, 2: time.Millisecond, 3: 2 * time.Millisecond, 4: 2 * time.Millisecond, 9: 2 * time.Millisecond} {
		got := NthTime(h, n)
		assert.True(t, (got-want).Abs() <= want/1000, "element %d is %v, want %v", n, got, want)
	}
}
