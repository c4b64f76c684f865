package kafka

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// fromBeginning makes a share group start at the beginning of the log. This is a
// setting of the group, not of its clients.
func fromBeginning(t *testing.T, group string, opts ...kgo.Opt) {
	t.Helper()
	cl := assert.Value(kgo.NewClient(opts...))(t)
	defer cl.Close()
	set := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	set.Name, set.Value = "share.auto.offset.reset", new("earliest")
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName, of.Configs = kmsg.ConfigResourceTypeGroupConfig, group, append(of.Configs, set)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, of)
	resp := assert.Value(req.RequestWith(t.Context(), cl))(t)
	for _, r := range resp.Resources {
		assert.OK(t, kerr.ErrorForCode(r.ErrorCode))
	}
}

// receiveShare receives n events of a share group and returns the number of events of
// each partition. Members may receive them in any order.
func receiveShare(t *testing.T, src load.Source, n int) map[int32]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	per, sum := map[int32]int{}, 0
	start := time.Now()
	err := src.Receive(ctx, func() time.Duration { return time.Since(start) }, func(_ int, as []load.Arrival) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range as {
			per[a.Log] += int(a.Events)
			sum += int(a.Events)
		}
		if sum >= n {
			cancel()
		}
	})
	assert.Must(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
	return per
}

// Each record goes to one member of a share group, also with more members than
// partitions, and the members accept what they got when they leave.
func TestConsumeShareGroup(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"))
	put(t, c, records(3000, 2, sized(20)))
	fromBeginning(t, "s", kgo.SeedBrokers(c.ListenAddrs()...))
	src := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "share-group": {"s"}, "clients": {"3"}})
	got := receiveShare(t, src, 3000)
	assert.True(t, got[0]+got[1] == 3000 && len(got) == 2, "got events %v, want 3000 once each", got)
	facts := src.(consumerEngine).Facts()["share_group"].(map[string]any)
	var events, bytes uint64
	for i, n := range facts["member_events"].([]uint64) {
		events += n
		bytes += facts["member_bytes"].([]uint64)[i]
	}
	assert.True(t, events == 3000 && bytes == 60_000 && len(facts["member_events"].([]uint64)) == 3, "facts are %v", facts)
	for log, n := range src.Lag() {
		assert.Equal(t, n, -1, "lag of partition %d, which a share group does not know", log)
	}
	assert.Equal(t, src.Rebalancing(), 0, "time without an assignment")
	// Only records produced since then are delivered.
	put(t, c, records(40, 2, sized(20)))
	again := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "share-group": {"s"}})
	got = receiveShare(t, again, 40)
	assert.True(t, got[0]+got[1] == 40, "got events %v, want the 40 new ones", got)
}

// A coordinator that does not answer must not delay the end of a run.
func TestGroupLeavesASilentCoordinator(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	end := testEnd(t)
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(100, 1, sized(10)))
	src := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}})
	silent := func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		c.SleepControl(func() { <-end })
		return nil, nil, false
	}
	for _, key := range []kmsg.Key{kmsg.OffsetCommit, kmsg.LeaveGroup} {
		c.ControlKey(int16(key), silent)
	}
	var ended time.Time
	got := drain(t, src, func(r *read) bool {
		if r.events < 100 {
			return false
		}
		ended = time.Now()
		return true
	})
	assert.Equal(t, got.events, 100, "events")
	took := time.Since(ended)
	assert.True(t, took <= time.Minute, "it took %v to leave", took)
}
