package system

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

func TestStampOf(t *testing.T) {
	wall := time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)
	for _, c := range []struct {
		name, line string
		want       stamp
		ok         bool
	}{
		{"time and uptime", "[2026-11-21T12:00:00.123+0000][0.512s][info][gc] GC(3)", stamp{wall: wall}, true},
		{"uptime first", "[0.512s][2026-11-21T14:00:00.123+0200][info][gc] GC(3)", stamp{wall: wall}, true},
		{"uptime", "[0.512s][info][gc             ] GC(3)", stamp{since: 512 * time.Millisecond}, true},
		{"uptime in some locales", "[0,512s][info][gc] GC(3)", stamp{since: 512 * time.Millisecond}, true},
		{"milliseconds since the start", "[512ms] GC(3)", stamp{since: 512 * time.Millisecond}, true},
		{"milliseconds since 1970", "[1795262400123ms] GC(3)", stamp{wall: wall}, true},
		{"nanoseconds", "[512000000ns] GC(3)", stamp{since: 512 * time.Millisecond}, true},
		{"no decorations", "GC(3) Pause", stamp{}, false},
		{"others", "[info][gc] GC(3) Pause", stamp{}, false},
		{"cut", "[0.5", stamp{}, false},
		{"not a number", "[1.2.3s] GC(3)", stamp{}, false},
		{"too large", "[99999999999999999999s] GC(3)", stamp{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := stampOf([]byte(c.line))
			assert.True(t, ok == c.ok && got.wall.Equal(c.want.wall) && got.since == c.want.since,
				"got %v, %v, want %v, %v", got, ok, c.want, c.ok)
		})
	}
}

func FuzzStampOf(f *testing.F) {
	f.Add([]byte("[2026-11-21T12:00:00.123+0000][0.512s][info][gc] GC(3)"))
	f.Add([]byte("[9223372036s][]["))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, ok := stampOf(line)
		assert.True(t, !ok || !s.wall.IsZero() || s.since >= 0, "%q: got %v", line, s.since)
	})
}

// TestPausesHaveTimes reads a log with the time since the start of its JVM, whose moment follows
// from the time at which the file was changed.
func TestPausesHaveTimes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "gc.log")
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	write := func(text string, at time.Duration) {
		t.Helper()
		old, _ := os.ReadFile(name)
		assert.OK(t, os.WriteFile(name, append(old, text...), 0o600))
		assert.OK(t, os.Chtimes(name, start.Add(at), start.Add(at)))
	}
	var began []time.Duration
	var lengths []time.Duration
	g := newGCLog(name, true)
	g.OnPause = func(at time.Time, length time.Duration) {
		began, lengths = append(began, at.Sub(start)), append(lengths, length)
	}
	defer g.Close()
	write("[1.000s][info][gc] Using G1\n", 1010*time.Millisecond)
	assert.Value(g.Read(t.Context()))(t)
	write("[5.300s][info][gc] GC(0) Pause Young 9M->1M(9M) 300.000ms\n[6.000s][info][gc] GC(1) Pause Young 9M->1M(9M) 1.000ms\n", 6002*time.Millisecond)
	assert.Value(g.Read(t.Context()))(t)
	want := []time.Duration{5002 * time.Millisecond, 6001 * time.Millisecond}
	assert.True(t, len(began) == 2 && began[0] == want[0] && began[1] == want[1] && lengths[0] == 300*time.Millisecond,
		"pauses began at %v and lasted %v, want %v", began, lengths, want)
}
