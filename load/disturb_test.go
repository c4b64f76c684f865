package load

import (
	"testing"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestDisturbancesRemembered: the list contains the newest mostDisturbances. One that
// begins or ends removes only the one whose place it takes, and what is forgotten still
// covers its time.
func TestDisturbancesRemembered(t *testing.T) {
	at := func(i int) time.Duration { return time.Duration(i) * time.Second }
	var x disturbances
	for i := range 3 * mostDisturbances {
		late := 2 * time.Millisecond
		if i == 1 {
			late = 5 * time.Millisecond
		}
		x.begin(at(i), at(i)+late, false)
		x.begin(at(i)+late, at(i)+late+time.Millisecond, true) // the same thread is late again
		x.end(at(i) + 10*time.Millisecond)
		l := x.list.Load()
		want := min(i+1, mostDisturbances)
		assert.Must(t, len(l.d) == want, "%d are remembered after %d, want %d", len(l.d), i+1, want)
		oldest := max(0, i+1-mostDisturbances)
		if l.d[0].from != at(oldest) || l.d[len(l.d)-1].from != at(i) || l.d[len(l.d)-1].to != at(i)+10*time.Millisecond {
			t.Fatalf("after %d the list goes from %+v to %+v", i+1, l.d[0], l.d[len(l.d)-1])
		}
	}
	l := x.list.Load()
	for _, tt := range []struct {
		name      string
		due, want time.Duration
	}{
		{"within the newest", at(3*mostDisturbances-1) + 9*time.Millisecond, 2 * time.Millisecond},
		{"after the newest", at(3*mostDisturbances-1) + 10*time.Millisecond, 0},
		{"between two", at(3*mostDisturbances-2) + 500*time.Millisecond, 0},
		{"within the oldest", at(2 * mostDisturbances), 2 * time.Millisecond},
		{"forgotten", at(2*mostDisturbances - 1), 5 * time.Millisecond},
		{"before all", -time.Millisecond, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, l.at(tt.due), tt.want, "longest delay of an event due at %v", tt.due)
		})
	}
}

// TestLowerBoundInAStall: the generator is late by 2 ms while the system stalls for half a
// second of five. The lower values of the stall's times are then shorter by 2 ms, and none is
// left out because the stall has raised the mean.
func TestLowerBoundInAStall(t *testing.T) {
	const usual, late = 5 * time.Millisecond, 2 * time.Millisecond
	var l LowerBound
	measured := &measure.Histogram{}
	for i := range 2500 {
		d, disturbed := usual, time.Duration(0)
		if i >= 1000 && i < 1250 { // an event every 2 ms
			d, disturbed = usual+time.Duration(1250-i)*2*time.Millisecond, late
		}
		measured.Record(d)
		l.Record(d, 0, disturbed, 1)
	}
	for _, p := range []float64{50, 90.4, 95, 99} {
		want := measured.Percentile(p) - late
		if p == 50 {
			want = usual
		}
		got := l.Bound(measured).Percentile(p)
		assert.True(t, got >= want-want/50 && got <= want+want/50, "p%v: got %v, want %v", p, got, want)
	}
}
