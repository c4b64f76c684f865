package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestMembers: what each member read is exact. Without a group, partitions are divided evenly.
func TestMembers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, engine, group string
	}{
		{"wire", cluster.EngineWire, ""},
		{"client", cluster.EngineClient, ""},
		{"a group", cluster.EngineClient, "g"},
	} {
		for _, clients := range []string{"3", "8"} {
			t.Run(tt.name+" "+clients, func(t *testing.T) {
				c := fakeCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(6, "t"))
				bytes := put(t, c, records(600, 6, sized(10)))
				given := map[string][]string{"engine": {tt.engine}, "clients": {clients}, "until-end": {"true"}}
				if tt.group != "" {
					given["group"] = []string{tt.group}
				}
				r := assert.Value(load.Consume(t.Context(), load.ReadPlan{Ends: true}, source(t, c, given)))(t)
				assert.Equal(t, len(r.Members), map[string]int{"3": 3, "8": 8}[clients], "members")
				var sum, size uint64
				for i, m := range r.Members {
					sum, size = sum+m.Consumed, size+m.Bytes
					if tt.group != "" {
						continue
					}
					want := map[string]int{"3": 2, "8": 1}[clients]
					if i >= 6 {
						want = 0
					}
					assert.True(t, m.Partitions == want && m.Consumed == uint64(100*want) && m.Rebalances == 0 && m.UnassignedS == 0, "member %d: %+v", i, m)
				}
				assert.True(t, sum == 600 && size == uint64(bytes), "%d events and %d bytes, want 600 and %d: %+v", sum, size, bytes, r.Members)
			})
		}
	}
}

// TestMemberRebalance: a member whose partitions move to one that joins later counts it.
func TestMemberRebalance(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(4, "t"))
	put(t, c, records(40, 4, sized(10)))
	src := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}})
	r := load.NewReading(load.ReadPlan{}, src)
	r.Start()
	member := func() load.MemberResult { return src.Capabilities().Members.State(0) }
	testkit.Until(t, "the first member reads all", func() bool { return member().Partitions == 4 && r.First() >= 0 })
	assert.Equal(t, member().Rebalances, 0, "rebalances before another joins")
	second := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t")))(t)
	defer second.Close()
	testkit.Until(t, "partitions move", func() bool { return member().Rebalances > 0 })
	r.Stop(load.Interrupted)
	got := assert.Value(r.Wait())(t).Members
	assert.True(t, len(got) == 1 && got[0].Rebalances > 0 && got[0].Consumed == 40 && got[0].Partitions == 4, "got %+v", got)
}
