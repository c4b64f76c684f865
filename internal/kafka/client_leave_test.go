package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
