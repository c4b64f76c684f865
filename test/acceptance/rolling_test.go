//go:build conformance

package acceptance

import (
	"os"
	"slices"
	"testing"
	"time"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// Every operation goes on while the leaders of its partitions move and while three nodes are restarted, one after the
// other: nothing is lost, and events are acked or read until the end.
func TestRollingRestarts(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Start(t, kafkatest.Config{Nodes: 3})
	common := []string{"--for", "1h", "--json", "--quiet"}
	type operation struct {
		name  string
		flags []string
		topic string
		*session
	}
	feed := cluster.CreateTopic(t, 3, 3)
	ops := []*operation{
		{name: "produce", flags: []string{"--rate", "100/s", "--acks", "all", "--verify"}},
		{name: "produce, client", flags: []string{"--rate", "100/s", "--engine", "client", "--idempotent", "--acks", "all", "--verify"}},
		{name: "transactions", flags: []string{"--rate", "100/s", "--engine", "client", "--transactions", "--acks", "all", "--verify"}},
		{name: "round trip", flags: []string{"--rate", "50/s", "--op", "roundtrip", "--acks", "all", "--verify"}},
		{name: "round trip, client", flags: []string{"--rate", "50/s", "--op", "roundtrip", "--engine", "client", "--acks", "all", "--verify"}},
		{name: "feed", topic: feed, flags: []string{"--rate", "100/s", "--engine", "client", "--idempotent", "--acks", "all"}},
		{name: "consume", topic: feed, flags: []string{"--op", "consume", "--idle-timeout", "60s"}},
		{name: "group", topic: feed, flags: []string{"--op", "consume", "--engine", "client", "--group", "rolling", "--clients", "2", "--idle-timeout", "60s"}},
	}
	sends := func(o *operation) bool { return o.name != "consume" && o.name != "group" }
	for _, o := range ops {
		if o.topic == "" {
			o.topic = cluster.CreateTopic(t, 3, 3)
		}
		o.session = start(t, slices.Concat([]string{"run", topicURL(cluster, o.topic)}, common, o.flags)...)
	}
	// grows waits until every topic has more records.
	grows := func(when string) {
		t.Helper()
		for _, o := range ops {
			before := cluster.EndSum(t, o.topic)
			for deadline := time.Now().Add(3 * time.Minute); cluster.EndSum(t, o.topic) < before+100; pause(t, time.Second) {
				assert.Must(t, time.Now().Before(deadline), "%s: %s has no more records:\n%s", when, o.name, o.stderrText())
			}
		}
	}
	grows("at the beginning")
	for _, o := range ops {
		for p := range int32(3) {
			cluster.MoveLeader(t, o.topic, p, cluster.Node(int(p+1)%3+1))
		}
	}
	grows("after the leaders moved")
	for id := 1; id <= 3; id++ {
		cluster.Node(id).Stop(t)
		grows("with a node less")
		cluster.Node(id).Start(t)
		for _, o := range ops {
			cluster.AwaitInSync(t, o.topic)
		}
		grows("with the node again")
	}
	for _, o := range ops {
		if sends(o) {
			o.signal(os.Interrupt)
		}
	}
	for _, o := range ops {
		e := o.wait(10 * time.Minute)
		d := e.document(t)
		all := d.wholeRun()
		t.Logf("%s: exit %d, %+v, ledger %+v", o.name, e.code, all, d.Ledger)
		if !sends(o) {
			// A group may read again what it had not committed.
			end := uint64(cluster.EndSum(t, feed))
			assert.True(t, all.Consumed == end || o.name == "group" && all.Consumed > end, "%s: consumed %d of %d events\n%s", o.name, all.Consumed, end, e.stderr)
			continue
		}
		// Ctrl-C leaves what is due at that moment unsent. Without idempotence, a batch that is sent again may be there twice.
		assert.True(t, all.Failed+all.Unknown+all.Dropped == 0 && all.Unsent < 1000, "%s: %+v, %+v\n%s", o.name, all, d.Failures, e.stderr)
		once := slices.Contains(o.flags, "--idempotent") || slices.Contains(o.flags, "--transactions")
		if l := d.Ledger; o.name != "feed" {
			assert.True(t, l != nil && l.Lost+l.Corrupted+l.Inexact == 0 && l.Read == l.Acked+l.Duplicated && l.Acked > 1000 && (!once || l.Duplicated+l.Reordered == 0), "%s: %+v", o.name, l)
		}
	}
}
