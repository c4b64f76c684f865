package run

import (
	"testing"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
)

// TestRoomForMarks: requests over the network leave room for the marks of the owner, and both leave
// room for those of the run's own faults.
func TestRoomForMarks(t *testing.T) {
	e := &execution{Job: Job{Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h")}}
	m := &Marker{e: e, rec: fault.NewRecorder(time.Second, 1, 1, func(int32) int { return 0 }), began: time.Now()}
	const planned = 20
	m.reserve(planned)
	room := func(mark func(at time.Time) error) (n int) {
		for ; n < 100; n++ {
			if mark(time.Now()) != nil {
				break
			}
		}
		return n
	}
	got, want := room(func(at time.Time) error { _, err := m.MarkRemote("note", "a", "web", at, at); return err }), (fault.MostMarks-planned)/2
	assert.True(t, got == want, "there is room for %d marks of requests, want %d", got, want)
	got, want = room(func(at time.Time) error { _, err := m.Mark("note", "a", "mark", at, at); return err }), (fault.MostMarks-planned)/2
	assert.True(t, got == want, "there is room for %d marks of the owner, want %d", got, want)
	got = room(func(at time.Time) error { return m.own("note", "a", "fault", at, at) })
	assert.True(t, got == planned, "there is room for %d marks of faults, want %d", got, planned)
}
