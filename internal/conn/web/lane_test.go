package web

import (
	"net"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/test/testkit/assert"
)

// A connection that the server closed because it was idle is made again at once,
// every time.
func TestIdleConnectionsAreMadeAgain(t *testing.T) {
	t.Parallel()
	happened := 0
	l := &lane{State: State{S: &Lanes{Options: Options{Happened: func(string, time.Time, time.Duration) { happened++ }}, Sink: &clockSink{at: 10 * time.Second}}}}
	l.Accepts = l.accepts
	for _, tt := range []struct {
		since time.Duration
		want  bool
	}{{0, true}, {10*time.Second - time.Millisecond, false}} {
		here, there := net.Pipe()
		defer there.Close()
		k := newLink(l, here)
		k.startedAt, l.link = tt.since, k
		k.Kill(ErrServerClosed)
		assert.Equal(t, k.Lost(), tt.want, "whether it was lost, up since %v", tt.since)
	}
	assert.Equal(t, happened, 2, "lost connections in the report")
}

// A clockSink is a sink with a fixed time.
type clockSink struct{ at time.Duration }

func (s *clockSink) Now() time.Duration     { return s.at }
func (*clockSink) Complete([]load.Outcome)  {}
func (*clockSink) Ready(int, time.Duration) {}

// Overlapping pauses count once.
func TestOverlappingPausesCountOnce(t *testing.T) {
	t.Parallel()
	sink := &clockSink{at: time.Second}
	l := &lane{State: State{S: &Lanes{Sink: sink}, Closed: true}}
	for range 3 {
		l.Pause(sink.at, 10*time.Second)
	}
	sink.at = 5 * time.Second
	l.Pause(sink.at, 10*time.Second)
	assert.True(t, l.Metrics.Paused == 14*time.Second && l.Metrics.Throttled == 4,
		"paused for %v after %d answers, want 14s after 4", l.Metrics.Paused, l.Metrics.Throttled)
}

// Errors of documents are counted by text, in bounded memory.
func TestTally(t *testing.T) {
	t.Parallel()
	var y Tally
	for i := range 3 * mostTexts {
		y.Add(strings.Repeat("x", i))
		y.Add("always")
	}
	all := y.All()
	assert.Equal(t, all["always"], 3*mostTexts, "counted")
	if got, want := all["..."], uint64(2*mostTexts+1); len(all) != mostTexts+1 || got != want {
		t.Errorf("%d texts and %d others, want %d and %d", len(all), got, mostTexts+1, want)
	}
}
