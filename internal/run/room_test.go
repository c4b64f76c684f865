package run

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"carronade/test/testkit/assert"
)

// What is kept leaves no room to the collector, but a little always.
func TestRoomPercent(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name       string
		asked      uint64
		live, kept int64
		want       uint64
	}{
		{"nothing is kept", 100, 30 * mib, 0, 100},
		{"most is kept", 100, 40 * mib, 30 * mib, 25},
		{"all is kept", 100, 40 * mib, 40 * mib, 10},
		{"more is kept than the last collection saw", 100, 40 * mib, 50 * mib, 10},
		{"the user's setting", 400, 40 * mib, 30 * mib, 100},
		{"a small heap", 100, 3 * mib, 2 * mib, 100},
		{"no collection yet", 100, 0, mib, 100},
		{"a huge heap", 10, 4096 * mib, 4096 * mib, 1},
	} {
		assert.Equal(t, roomPercent(tt.asked, tt.live, tt.kept), tt.want, "%s", tt.name)
	}
}

func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return sampled(s[0])
}

// Executions share the setting. The last one that ends restores what the user asked for, even if
// that changed meanwhile.
func TestHeapRoomIsRestored(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(80))
	ballast := make([]byte, 64<<20)
	runtime.GC()
	var a, b heapRoom
	a.keep(24 << 20)
	one := gcPercent()
	b.keep(24 << 20)
	both := gcPercent()
	runtime.KeepAlive(ballast)
	assert.True(t, one < 80 && both < one, "got %d and %d, want less than 80, and less with two", one, both)
	a.keep(0)
	got := gcPercent()
	assert.True(t, got > both && got < 80, "got %d after one ended, want more than %d and less than 80", got, both)
	debug.SetGCPercent(60)
	b.keep(20 << 20)
	if b.keep(0); gcPercent() != 60 {
		t.Errorf("got %d at the end, want 60", gcPercent())
	}
	debug.SetGCPercent(-1)
	b.keep(24 << 20)
	if b.keep(0); gcPercent() < 1<<20 {
		t.Errorf("the collector was turned on, with %d", gcPercent())
	}
}
