//go:build conformance

package acceptance

import (
	"os"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// TestInterrupted presses Ctrl-C at each stage of a run: there is a report each time, and nothing hangs.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	url := topicURL(broker, broker.CreateTopic(t, 2, 1))
	for _, engine := range engines {
		for _, tt := range []struct{ name, args string }{
			{"warming up", "--rate 1000/s --warmup 60s --for 1m"},
			{"measuring", "--rate 1000/s --for 1m"},
			{"full speed", ""},
			{"consuming", "--op consume --idle-timeout 1m"},
		} {
			t.Run(engine+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				s := start(t, append([]string{"run", url, "--engine", engine, "--json"}, strings.Fields(tt.args)...)...)
				s.awaitStderr(progressText)
				s.signal(os.Interrupt)
				d := s.wait(15*time.Second).want(t, 130).document(t)
				all := d.wholeRun()
				assert.True(t, d.Stopped != "" && (all.Acked > 0 || tt.name == "consuming") && d.Totals.Acked == d.Totals.Sent &&
					(tt.name != "warming up" || d.Totals.Sent == 0), "stopped by %q with %+v, its measurement %+v", d.Stopped, all, d.Totals.counts)
			})
		}
	}
}

// TestInterruptedFrozen presses Ctrl-C while a broker is frozen: in the drain, and twice.
func TestInterruptedFrozen(t *testing.T) {
	t.Parallel()
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	for _, engine := range engines {
		begin := func(t *testing.T, flags ...string) *session {
			topic := c.CreateTopic(t, 1, 1)
			s := start(t, append([]string{"run", topicURL(c, topic), "--engine", engine, "--rate", "200/s", "--for", "3s", "--drain", "6s", "--json"}, flags...)...)
			s.awaitStderr(progressText)
			c.Node(1).Freeze(t)
			t.Cleanup(func() { c.Node(1).Thaw(t) })
			return s
		}
		t.Run(engine+"/draining", func(t *testing.T) {
			s := begin(t)
			pause(t, 4*time.Second) // the measurement is over, and answers are missing
			s.signal(os.Interrupt)
			d := s.wait(15*time.Second).want(t, 130).document(t)
			assert.True(t, d.Totals.Unknown+d.Totals.Unsent != 0, "the frozen broker left no event unanswered: %+v", d.Totals.counts)
		})
		t.Run(engine+"/twice", func(t *testing.T) {
			s := begin(t, "--drain", "60s")
			pause(t, time.Second) // so that something is in flight
			s.signal(os.Interrupt)
			pause(t, 300*time.Millisecond)
			s.signal(os.Interrupt)
			s.wait(20*time.Second).want(t, 130) // the drain would last a minute
		})
	}
	t.Run("reading back", func(t *testing.T) {
		topic := c.CreateTopic(t, 1, 1)
		s := start(t, "run", topicURL(c, topic), "--for", "3s", "--size", "1KiB", "--verify", "--json")
		s.awaitStderr("reading back", "read back", "verif")
		c.Node(1).Freeze(t)
		t.Cleanup(func() { c.Node(1).Thaw(t) })
		s.signal(os.Interrupt)
		d := s.wait(15*time.Second).want(t, 130).document(t)
		assert.True(t, d.Totals.Acked > 0 && d.Ledger != nil && d.Ledger.Lost == 0,
			"totals %+v, ledger %+v: unread events are not lost", d.Totals.counts, d.Ledger)
	})
}
