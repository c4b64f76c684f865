//go:build conformance

package acceptance

import (
	"sync"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// progressText is contained in the line that the program prints for each interval.
// Tests that disturb a run wait for it.
const progressText = "/s"

// startBoth starts the same run with each engine, each on its own topic, and waits
// until both send, so that one fault tests both.
func startBoth(t *testing.T, c *kafkatest.Cluster, partitions int32, replicas int16, flags ...string) (topics map[string]string, sessions map[string]*session) {
	t.Helper()
	topics, sessions = make(map[string]string), make(map[string]*session)
	for _, engine := range engines {
		topics[engine] = c.CreateTopic(t, partitions, replicas)
		sessions[engine] = start(t, append([]string{"run", topicURL(c, topics[engine]), "--engine", engine, "--json"}, flags...)...)
	}
	for _, s := range sessions {
		s.awaitStderr(progressText)
	}
	return topics, sessions
}

// threeNodes is locked by a test that moves or kills the leaders of the shared cluster of three nodes.
var threeNodes sync.Mutex

// TestLeaderKilled kills the leader of a partition while idempotent batches are in
// flight: nothing may be lost or duplicated.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	threeNodes.Lock()
	defer threeNodes.Unlock()
	c := kafkatest.SharedThree(t)
	topics, sessions := startBoth(t, c, 6, 3, "--acks", "all", "--idempotent", "--verify", "--rate", "2000/s", "--for", "15s")
	pause(t, 3*time.Second)
	dead := c.LeaderOf(t, topics["wire"], 0) // leads some partitions of the other topic too
	dead.Kill()
	ends := make(map[string]ended)
	for engine, s := range sessions {
		ends[engine] = s.wait(3 * time.Minute)
	}
	dead.Start(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			d := ends[engine].succeeded(t).document(t)
			all := d.wholeRun()
			d.checkLedger(t, all.Acked)
			assert.Equal(t, d.Totals.Offered, 30_000, "offered events")
			if got := c.EndSum(t, topics[engine]); got != int64(all.Acked+d.Ledger.Recovered) {
				t.Errorf("the end offsets grew by %d; acked are %d, recovered %d", got, all.Acked, d.Ledger.Recovered)
			}
			assert.True(t, d.Response != nil && d.Response.MaxUS >= 1e6 && d.Stall.LongestS > 0,
				"the report does not show the dead leader: stall %+v, response %+v", d.Stall, d.Response)
			sum := all.Failed + all.Unknown
			assert.True(t, sum == 0 || len(d.Failures) > 0, "%d events failed or are unknown, and no failure is named", sum)
			t.Logf("longest without an answer %.1f s, %d retries, %+v", d.Stall.LongestS, all.Retries, *d.Ledger)
		})
	}
}

// TestWiped kills a single node in the middle of a run with acks=1 and deletes its
// records: the events acknowledged before are lost, and the report says how many.
func TestWiped(t *testing.T) {
	t.Parallel()
	testkit.OnlyConformance(t, "takes half a minute: TestRealGone of internal/kafka deletes records too")
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	topic := c.CreateTopic(t, 2, 1)
	// An older run's records are lost too, so that the log ends before the offset where this run began.
	run(t, "run", topicURL(c, topic), "--count", "100k", "--quiet").wantOneOf(t, 0, 3)
	s := start(t, "run", topicURL(c, topic), "--verify", "--rate", "1000/s", "--for", "22s", "--json")
	s.awaitStderr(progressText)
	pause(t, 2*time.Second)
	n := c.Node(1)
	n.Kill()
	n.WipeRecords(t)
	n.Start(t)
	d := s.wait(runTimeout).wantOneOf(t, 1, 3).document(t)
	assert.Must(t, d.Ledger != nil && d.Ledger.Lost > 0, "the loss is not reported: %+v", d.Ledger)
	all, l := d.wholeRun(), d.Ledger
	left := uint64(c.EndSum(t, topic))
	assert.True(t, l.Acked == all.Acked && l.Inexact <= all.Acked && l.Corrupted == 0,
		"acked are %d: %+v", all.Acked, *l)
	// All events on the disk that are not recovered were acked; the other acked events are gone. The ledger
	// may have events that it could not check, but must not claim anything false.
	gone := all.Acked - (left - l.Recovered)
	t.Logf("acked %d, on the disk %d, gone %d; the ledger: %+v", all.Acked, left, gone, *l)
	assert.True(t, l.Lost <= gone && l.Lost+l.Unread+l.Inexact >= gone,
		"%d acked events are gone; the ledger says lost %d, unread %d, not checked %d", gone, l.Lost, l.Unread, l.Inexact)
}

// TestFrozen freezes a broker in an open loop. The in-flight bound changes where the time is spent, but not
// the sum. Batches of several events keep what waits small for the broker: a broker that needs time for the
// backlog would delay events beyond the closed form.
func TestFrozen(t *testing.T) {
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	const measurement = 9 * time.Second
	tests := []struct {
		name     string
		bound    string
		queueing bool
		run      *session
	}{
		{name: "wide bound", bound: "1000"},
		{name: "capped bound", bound: "1", queueing: true},
	}
	for i := range tests {
		// A short warm-up lets the broker's JVM compile its hot paths first.
		tests[i].run = start(t, "run", topicURL(c, c.CreateTopic(t, 1, 1)), "--rate", "5000/s", "--for", measurement.String(), "--warmup", "3s", "--size", "10",
			"--linger", "10ms", "--max-in-flight", tests[i].bound, "--json")
	}
	for _, tt := range tests {
		tt.run.awaitStderr(progressText)
	}
	pause(t, 5*time.Second)
	freeze := frozen{at: time.Now()}
	freeze.least, freeze.most = c.Node(1).FreezeFor(t, 2*time.Second)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.run.wait(runTimeout).succeeded(t).document(t)

			assert.Must(t, d.Response != nil && d.Queueing != nil && d.Service != nil, "the report has no response, queueing or service")
			d.checkFreeze(t, freeze, measurement, 1.05)
			assert.True(t, d.Response.Count == 45_000 && d.Totals.Acked == 45_000,
				"response counts %d events, acked are %d, want 45000", d.Response.Count, d.Totals.Acked)
			d.checkQueueing(t, freeze, tt.queueing)
		})
	}
	t.Run("closed loop", func(t *testing.T) {
		topic := c.CreateTopic(t, 1, 1)
		s := start(t, "run", topicURL(c, topic), "--concurrency", "4", "--for", "5s", "--json")
		s.awaitStderr(progressText)
		pause(t, time.Second)
		least, most := c.Node(1).FreezeFor(t, 2*time.Second)
		d := s.wait(runTimeout).succeeded(t).document(t)
		assert.True(t, d.Response == nil && d.SendDelay == nil,
			"a closed loop has response times or send delays: %+v, %+v", d.Response, d.SendDelay)
		if got := d.Stall.LongestS; got < least.Seconds()*0.95 || got > most.Seconds()+1+d.Freezes.TotalS {
			t.Errorf("the longest time without an answer is %.3f s, the freeze was %v to %v; freezes of the generator %+v", got, least, most, d.Freezes)
		}
		assert.True(t, d.Service != nil && d.Service.MaxUS >= least.Seconds()*0.95*1e6,
			"service does not show the freeze: %+v", d.Service)
	})
}
