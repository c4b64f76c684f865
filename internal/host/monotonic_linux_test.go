package host

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"golang.org/x/sys/unix"
)

// TestMonotonicOf: the result for an instant is between the clock's own values
// before and after it.
func TestMonotonicOf(t *testing.T) {
	clock := func() int64 {
		var ts unix.Timespec
		assert.OK(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
		return ts.Nano()
	}
	before := clock()
	at := time.Now()
	after := clock()
	const exact = 20_000 // ns
	for _, tt := range []struct {
		name string
		at   time.Time
		add  int64
	}{{"now", at, 0}, {"an hour before", at.Add(-time.Hour), -int64(time.Hour)}} {
		got, ok := MonotonicOf(tt.at)
		assert.True(t, ok && got >= before+tt.add-exact && got <= after+tt.add+exact,
			"%s: got %d, %v; want between %d and %d", tt.name, got, ok, before+tt.add, after+tt.add)
	}
	_, ok := MonotonicOf(at.Round(0))
	assert.True(t, !ok, "got one for a time without a monotonic reading")
}
