package kafka

import (
	"testing"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The time for which a batch waits for a connection or a leader is the system's, not the generator's
// lateness: the batch is free when it can be written.
func TestWaitingIsTheSystems(t *testing.T) {
	t.Parallel()
	for _, given := range [][]string{nil, idempotent} {
		for _, leader := range []bool{false, true} {
			t.Run(name(given, leader), func(t *testing.T) {
				t.Parallel()
				n := &badNet{}
				c := eventsCluster(t, 1, n.listen())
				p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) { cfg.Logf = func(string, ...any) {} }, given...)
				r := newRig(t, p)
				s := p.senders[0]
				l := s.lanes[0]
				v := *p.metadata.view.Load()
				if n := l.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}); n != 1 {
					t.Fatal("not taken")
				}
				if leader {
					away := v
					away.leaders = []int32{noLeader}
					s.update(&away)
				} else {
					n.setRefusing(true)
					testkit.Until(t, "the connection is lost", func() bool {
						s.mu.Lock()
						defer s.mu.Unlock()
						return l.link == nil
					})
				}
				l.Flush()
				back := r.Now()
				if leader {
					s.update(&v)
				} else {
					n.setRefusing(false)
				}
				o := r.completedWithin(1, time.Minute)[0]
				assert.Equal(t, o.Acked, 1, "acked, with the error %q", o.Text)
				assert.True(t, o.Free >= back && o.Free <= o.Sent, "it could be written from %v on and was sent at %v, but counts as free at %v", back, o.Sent, o.Free)
			})
		}
	}
}

func name(given []string, leader bool) string {
	text := "no connection"
	if leader {
		text = "no leader"
	}
	if given != nil {
		text += ", idempotent"
	}
	return text
}

// The same for reads of records by their places.
func TestWaitingReadsAreTheSystems(t *testing.T) {
	t.Parallel()
	n := &badNet{}
	c := filled(t, 1, 10, 10, n.listen())
	s := spec(t, fakeURL(c.ListenAddrs()), nil)
	s.Op, s.Clients = cluster.OpRead, 1
	s.Logf = func(string, ...any) {}
	sess, err := open(t, s)
	assert.OK(t, err)
	reader := sess.Target().(*itemReader)
	sink := &firstOutcome{start: time.Now(), came: make(chan load.Outcome, 1)}
	reader.Start(sink)
	client := reader.clients[0]
	n.setRefusing(true)
	if n := client.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}); n != 1 {
		t.Fatal("not taken")
	}
	client.Flush()
	testkit.Until(t, "no connection can be made", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return client.live[0].err != nil
	})
	back := sink.Now()
	n.setRefusing(false)
	o := <-sink.came
	assert.Equal(t, o.Acked, 1, "read, with the error %q", o.Text)
	assert.True(t, o.Free >= back && o.Free <= o.Sent, "it could be written from %v on and was sent at %v, but counts as free at %v", back, o.Sent, o.Free)
}

// A firstOutcome is a sink for one outcome.
type firstOutcome struct {
	start time.Time
	came  chan load.Outcome
}

func (s *firstOutcome) Now() time.Duration          { return time.Since(s.start) }
func (s *firstOutcome) Complete(out []load.Outcome) { s.came <- out[0] }
func (*firstOutcome) Ready(int, time.Duration)      {}
