//go:build conformance

package acceptance

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// groupsReport is what the tests read of the groups of a report.
type groupsReport struct {
	Totals struct {
		Acked uint64 `json:"acked"`
	} `json:"totals"`
	Ledger struct {
		Complete bool `json:"complete"`
		Groups   []struct {
			Group      string `json:"group"`
			Acked      uint64 `json:"acked"`
			Read       uint64 `json:"read"`
			Lost       uint64 `json:"lost"`
			Unread     uint64 `json:"unread"`
			Duplicated uint64 `json:"duplicated"`
			Recovered  uint64 `json:"recovered"`
		} `json:"groups"`
	} `json:"ledger"`
}

// checkGroups checks that each group of a run got every event at least once.
func checkGroups(t testing.TB, e ended, number int) groupsReport {
	t.Helper()
	var r groupsReport
	assert.OK(t, json.Unmarshal([]byte(e.stdout), &r), "%.2000s", e.stderr)
	assert.Equal(t, len(r.Ledger.Groups), number, "groups: %.2000s", e.stderr)
	assert.True(t, r.Ledger.Complete && r.Totals.Acked > 0, "%d acked, complete: %v", r.Totals.Acked, r.Ledger.Complete)
	for _, g := range r.Ledger.Groups {
		assert.True(t, g.Lost == 0 && g.Unread == 0 && g.Read == g.Acked+g.Recovered+g.Duplicated, "%+v", g)
		t.Logf("%+v", g)
	}
	return r
}

// TestGroupsFanOut: three groups of four members read five topics, and each of them gets each event.
func TestGroupsFanOut(t *testing.T) {
	broker := kafkatest.Shared(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			var topics []string
			for range 5 {
				topics = append(topics, broker.CreateTopic(t, 4, 1))
			}
			e := run(t, "run", topicURL(broker, strings.Join(topics, ",")), "--op", "roundtrip", "--engine", engine, "--groups", "3", "--members", "4",
				"--rate", "5k/s", "--size", "200", "--for", "5s", "--drain", "60s", "--verify", "--json", "--quiet").wantOneOf(t, 0, 3)
			for _, g := range checkGroups(t, e, 3).Ledger.Groups {
				assert.Equal(t, g.Duplicated, 0, "%s: nothing moved, so nothing comes twice", g.Group)
			}
		})
	}
}

// TestGroupsKill: a broker of three is killed, and no group loses an event. What comes twice is counted.
func TestGroupsKill(t *testing.T) {
	cluster := kafkatest.Start(t, kafkatest.Config{Nodes: 3})
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			topic := cluster.CreateTopic(t, 6, 3, "min.insync.replicas=2")
			s := start(t, "run", topicURL(cluster, topic), "--op", "roundtrip", "--engine", engine, "--groups", "3", "--members", "2", "--acks", "all",
				"--rate", "2k/s", "--size", "200", "--for", "30s", "--drain", "120s", "--verify", "--json")
			s.awaitStderr(progressText)
			cluster.Node(3).Kill()
			pause(t, 5*time.Second)
			cluster.Node(3).Start(t)
			checkGroups(t, s.wait(runTimeout).wantOneOf(t, 0, 1, 3, 4), 3)
			cluster.AwaitInSync(t, topic)
		})
	}
}

// TestGroupsMemberLeaves: another member joins a group while it reads, gets partitions, reads from them without
// committing, and leaves. No group loses an event, and the other group has none twice.
func TestGroupsMemberLeaves(t *testing.T) {
	broker := kafkatest.Shared(t)
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			topic := broker.CreateTopic(t, 6, 1)
			prefix := "joined-" + topic
			s := start(t, "run", topicURL(broker, topic), "--op", "roundtrip", "--engine", "client", "--groups", "2", "--members", "2", "--group", prefix,
				"--client-property", "group.protocol="+protocol, "--rate", "2k/s", "--size", "200", "--for", "25s", "--drain", "60s", "--verify", "--json")
			s.awaitStderr(progressText)
			read := joinFor(t, broker, 6*time.Second, prefix+"-1", topic, protocol)
			assert.True(t, read > 0, "the other member got no events: nothing moved")
			groups := checkGroups(t, s.wait(runTimeout).wantOneOf(t, 0, 3), 2).Ledger.Groups
			assert.Equal(t, groups[1].Duplicated, 0, "%s: no member joined it", groups[1].Group)
		})
	}
}

// joinFor joins a group as one more member, reads for a time without committing, and leaves. It returns how many
// events it read.
func joinFor(t testing.TB, broker *kafkatest.Cluster, d time.Duration, group, topic, protocol string) (read int) {
	t.Helper()
	opts := append(broker.ClientOpts(), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
	if protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	client, err := kgo.NewClient(opts...)
	assert.OK(t, err)
	defer client.Close() // leaves
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for ctx.Err() == nil {
		read += client.PollFetches(ctx).NumRecords()
	}
	return read
}
