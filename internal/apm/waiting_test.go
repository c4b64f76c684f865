package apm

import (
	"testing"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/conn/web"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// An outcomeSink is a sink that keeps the newest outcome.
type outcomeSink struct {
	load.Sink
	out load.Outcome
}

func (s *outcomeSink) Complete(out []load.Outcome) { s.out = out[0] }

// The time for which a request waits for a connection of net/http's pool is the system's, and not
// the generator's lateness.
func TestWaitingForThePoolIsTheSystems(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		name        string
		asked, sent time.Duration
		delay       time.Duration // of the generator
	}{
		{"an open connection", 12 * ms, 12 * ms, 2 * ms},
		{"waited for one", 12 * ms, 3000 * ms, 2 * ms},
		{"nothing is known", -1, 12 * ms, 2 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sink := &outcomeSink{}
			s := &session{cfg: &config{}, Lanes: web.Lanes{Sink: sink}}
			l := &httpLane{State: web.State{S: &s.Lanes}, s: s, inFlight: 1}
			e := job{batch: load.Batch{Events: 1, Ready: 10 * ms, Free: 10 * ms}, encodedRequest: &encodedRequest{body: &wire.Body{Bytes: []byte("x")}}}
			l.finish(e, seen{asked: tt.asked, sent: tt.sent, got: true, wrote: true}, 4000*ms, web.Verdict{Acked: 1}, 202)
			assert.Equal(t, sink.out.Sent-sink.out.Free, tt.delay, "send delay")
		})
	}
}
