package riemann

import (
	"crypto/tls"
	"testing"
	"time"

	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A firstOutcome is a sink for one outcome.
type firstOutcome struct {
	start time.Time
	came  chan load.Outcome
}

func (s *firstOutcome) Now() time.Duration          { return time.Since(s.start) }
func (s *firstOutcome) Complete(out []load.Outcome) { s.came <- out[0] }
func (*firstOutcome) Ready(int, time.Duration)      {}

// The time for which a message waits for a connection is the system's, and not the generator's lateness:
// the message is free when it can be written.
func TestWaitingIsTheSystems(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "TCP", true: "TLS"}[secure], func(t *testing.T) {
			t.Parallel()
			var conf *tls.Config
			url, given := "riemann://", []string(nil)
			if secure {
				c := newCertificates(t)
				conf, url, given = c.server, "riemann+tls://", []string{"tls-ca=" + c.ca, "tls-cert=" + c.cert, "tls-key=" + c.key}
			}
			f := serve(t, conf)
			s := openSession(t, specOf(t, url+f.addr, given...))
			sink := &firstOutcome{start: time.Now(), came: make(chan load.Outcome, 1)}
			s.Start(sink)
			l := s.lanes[0].(*lane)
			if n := l.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}); n != 1 {
				t.Fatal("not taken")
			}
			f.setResetting(true)
			testkit.Until(t, "the connection is lost", func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.link == nil
			})
			l.Flush()
			back := sink.Now()
			f.setResetting(false)
			o := <-sink.came
			assert.Equal(t, o.Acked, 1, "acked, with the error %q", o.Text)
			assert.True(t, o.Free >= back && o.Free <= o.Sent, "it could be written from %v on and was sent at %v, but counts as free at %v", back, o.Sent, o.Free)
		})
	}
}
