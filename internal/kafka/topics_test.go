package kafka

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func topics(t *testing.T, c *kfake.Cluster, w cluster.TopicLoad) *cluster.TopicResult {
	t.Helper()
	s := spec(t, urlOf(c, "t"), nil)
	w.URL, w.Options, w.Given, w.Logf = s.URL, s.Options, s.Given, t.Logf
	ctx := testkit.Minute(t)
	res := assert.Value(Topics(ctx, w))(t)
	assert.True(t, res.Operations == res.Done+res.Failed+res.Unknown,
		"%d operations, %d done, %d failed and %d unknown", res.Operations, res.Done, res.Failed, res.Unknown)
	assert.True(t, res.Unknown > 0 || res.Service.Count()+res.FailedService.Count() == res.Requests,
		"%d requests, %d service times and %d of failed ones", res.Requests, res.Service.Count(), res.FailedService.Count())
	return res
}

func TestTopicsLife(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(3))
	names := cluster.NumberedNames("load-", 100)
	create := cluster.TopicLoad{Op: cluster.OpCreateTopics, Names: names, Concurrency: 4, PerRequest: 10, Spec: cluster.TopicSpec{Partitions: 2, Replicas: 3, Config: [][2]string{{"retention.ms", "1000"}}}}
	res := topics(t, c, create)
	assert.Must(t, res.Done == 100 && res.Requests == 10 && res.Failed == 0,
		"create: got %d done, %d failed in %d requests, want 100 in 10: %v", res.Done, res.Failed, res.Requests, res.Failures)
	if info := c.TopicInfo("load-99"); info == nil || len(c.PartitionInfos("load-99")) != 2 {
		t.Fatalf("load-99 was not created with 2 partitions: %+v", info)
	}
	// An existing topic is a counted failure.
	create.Names = cluster.NumberedNames("load-", 120)
	res = topics(t, c, create)
	if res.Done != 20 || res.Failed != 100 || res.Classes[load.Rejected.String()] != 100 || len(res.Failures) != 1 {
		t.Errorf("create again: got %d done, %d failed, %v, %v", res.Done, res.Failed, res.Classes, res.Failures)
	}

	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpListTopics, Times: 5, Concurrency: 2})
	assert.True(t, res.Done == 5 && len(res.Topics) == 120,
		"list: got %d done and %d topics, want 5 and 120", res.Done, len(res.Topics))

	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpDescribeTopics, Names: []string{"load-0", "missing"}, PerRequest: 2})
	assert.Must(t, res.Done == 1 && res.Failed == 1 && len(res.Topics) == 1,
		"describe: got %d done, %d failed, %v", res.Done, res.Failed, res.Topics)
	if d := res.Topics[0]; d.Partitions != 2 || d.Replicas != 3 || d.Settings["retention.ms"] != "1000" || d.Leaders == "" {
		t.Errorf("describe: got %+v", d)
	}

	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpDeleteTopics, Names: append(names, "missing"), PerRequest: 7, Concurrency: 2})
	assert.True(t, res.Done == 100 && res.Failed == 1,
		"delete: got %d done, %d failed, want 100 and 1: %v", res.Done, res.Failed, res.Failures)
	assert.True(t, c.TopicInfo("load-0") == nil, "load-0 still exists")
}

func TestTopicsReadAndDeleteRecords(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(3, "t"), kfake.SeedTopics(1, "empty"))
	want := put(t, c, records(3000, 3, sized(100)))
	res := topics(t, c, cluster.TopicLoad{Op: cluster.OpReadTopics, Names: []string{"t", "empty", "missing"}})
	assert.True(t, res.Done == 2 && res.Failed == 1, "got %d done, %d failed, want 2 and 1: %v", res.Done, res.Failed, res.Failures)
	assert.True(t, res.Events == 3000 && int64(res.Bytes) == want && !res.BytesWire,
		"got %d events of %d bytes (as fetched: %v), want 3000 of %d", res.Events, res.Bytes, res.BytesWire, want)
	assert.True(t, c.TopicInfo("missing") == nil, "reading a missing topic created it")
	if res := topics(t, c, cluster.TopicLoad{Op: cluster.OpDeleteRecords, Names: []string{"t", "missing"}, Upto: 400}); res.Done != 1 || res.Failed != 1 {
		t.Errorf("delete records: got %d done, %d failed: %v", res.Done, res.Failed, res.Failures)
	}
	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpReadTopics})
	assert.True(t, res.Events == 1800, "got %d events after deleting 400 of each partition, want 1800", res.Events)
	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpDeleteRecords, Upto: -1})
	assert.True(t, res.Done == 1, "delete all records: got %d done: %v", res.Done, res.Failures)
	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpReadTopics})
	assert.True(t, res.Events == 0, "got %d events after deleting all", res.Events)
	put(t, c, records(30, 3, sized(10)), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	if res := topics(t, c, cluster.TopicLoad{Op: cluster.OpReadTopics}); res.Events != 30 || !res.BytesWire || res.Bytes == 0 {
		t.Errorf("compressed: got %d events, %d bytes, as fetched: %v", res.Events, res.Bytes, res.BytesWire)
	}
}

func TestTopicsAtARate(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t)
	slow := false
	c.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if !slow {
			slow = true
			c.SleepControl(func() { <-time.After(300 * time.Millisecond) })
		}
		return nil, nil, false
	})
	res := topics(t, c, cluster.TopicLoad{Op: cluster.OpCreateTopics, Names: cluster.NumberedNames("x", 20), Rate: 100, Concurrency: 1})
	assert.True(t, res.Elapsed >= 190*time.Millisecond, "20 requests at 100/s took %s", res.Elapsed)
	// Requests due behind the slow one waited for it: this counts as response time, not as service time.
	assert.True(t, res.Response.Percentile(50) >= 100*time.Millisecond, "the median of the response times is %v", res.Response.Percentile(50))
	served := time.Duration(res.Service.Sum()) // one after the other
	assert.True(t, served <= res.Elapsed, "service times of %v in %v", served, res.Elapsed)
}

func TestTopicsInterrupted(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t)
	s := spec(t, urlOf(c, "t"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	interrupt := func(cluster.TopicDone) {
		if seen++; seen == 10 {
			cancel()
		}
	}
	res, err := Topics(ctx, cluster.TopicLoad{Op: cluster.OpCreateTopics, URL: s.URL, Options: s.Options, Names: cluster.NumberedNames("x", 1000), Rate: 100, Each: interrupt})
	assert.OK(t, err)
	assert.True(t, res.Interrupted && res.Operations+res.Unsent == 1000 && res.Unsent > 0,
		"got %d operations, %d unsent, interrupted %v", res.Operations, res.Unsent, res.Interrupted)
}

func TestTopicsRefuses(t *testing.T) {
	t.Parallel()
	u := &url.URL{Scheme: "kafka", Host: "127.0.0.1:1"}
	for _, w := range []cluster.TopicLoad{
		{Op: "paint", URL: u},
		{Op: cluster.OpCreateTopics, URL: u, Names: []string{"no spaces"}},
	} {
		_, err := Topics(t.Context(), w)
		assert.True(t, err != nil, "%+v: no error", w)
	}
}

// Time and failures can end a load, and Each sees every operation.
func TestTopicsLimits(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(30, 1, sized(10)))
	var seen []cluster.TopicDone
	w := cluster.TopicLoad{Op: cluster.OpCreateTopics, Names: cluster.NumberedNames("y", 100), Concurrency: 2, Each: func(d cluster.TopicDone) { seen = append(seen, d) }}
	w.Rate, w.For = 2.5, 2*time.Second
	res := topics(t, c, w)
	assert.True(t, res.Done <= 5 && res.Unsent == 100-res.Done && !res.Interrupted,
		"100 at 2.5/s for 2 s: got %d done, %d unsent, interrupted: %v", res.Done, res.Unsent, res.Interrupted)
	assert.Equal(t, uint64(len(seen)), res.Done, "operations that Each saw")
	// A stall of the machine may last until the time is over.
	if len(seen) > 0 && (seen[0].Name == "" || seen[0].Class != "" || seen[0].At < seen[0].Sent || seen[0].Sent < seen[0].Due || seen[0].InFlight < 1) {
		t.Errorf("the first is %+v", seen[0])
	}
	seen = nil
	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpReadTopics, Names: []string{"t", "no", "none", "never"}, Failures: 1, Each: w.Each})
	if res.Failed != 2 || res.Unsent != 1 || len(seen) != 3 || seen[0].Bytes != res.Bytes || seen[0].Events != 30 || seen[1].Class == "" {
		t.Errorf("a limit of one failure: got %d failed, %d unsent, saw %+v", res.Failed, res.Unsent, seen)
	}
}

// Names are made when they are needed, operations go on until their time is over,
// and reading starts again with the first topic.
func TestTopicsWithoutEnd(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(30, 1, sized(10)))
	made := 0
	next := func() string { made++; return fmt.Sprintf("n%d", made) }
	started := 0
	res := topics(t, c, cluster.TopicLoad{Op: cluster.OpCreateTopics, Next: next, Times: 25, PerRequest: 10, Concurrency: 2, Started: func(time.Time) { started++ }})
	if res.Done != 25 || made != 25 || res.Requests != 3 || res.Unsent != 0 || started != 1 || c.TopicInfo("n1") == nil || c.TopicInfo("n25") == nil {
		t.Errorf("25 topics: got %d done of %d names in %d requests, %d unsent, started %d times", res.Done, made, res.Requests, res.Unsent, started)
	}
	for i, w := range []cluster.TopicLoad{
		{Op: cluster.OpCreateTopics, Times: -1},
		{Op: cluster.OpCreateTopics, Times: math.MaxInt},
		{Op: cluster.OpListTopics, Times: -1},
		{Op: cluster.OpReadTopics, Names: []string{"t"}, Times: -1},
	} {
		t.Run(fmt.Sprintf("%s, %d times", w.Op, w.Times), func(t *testing.T) {
			t.Parallel()
			if w.Op == cluster.OpCreateTopics {
				made := 0
				w.Next = func() string { made++; return fmt.Sprintf("n%d-%d", i, made) }
			}
			w.Rate, w.For, w.Concurrency = 10, 2*time.Second, 2
			res := topics(t, c, w)
			assert.True(t, res.Done+res.Unsent == 20 && res.Failed == 0,
				"for 2 s at 10/s: got %d done, %d failed, %d unsent", res.Done, res.Failed, res.Unsent)
			assert.True(t, w.Op != cluster.OpReadTopics || res.Done == 0 || len(res.Topics) == 1 && res.Events == 30*res.Done,
				"read %d times: %d events, %v", res.Done, res.Events, res.Topics)
		})
	}
	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpReadTopics, Names: []string{"t", "no"}, Times: 5})
	assert.True(t, res.Done == 3 && res.Failed == 2, "two topics five times: got %d done, %d failed", res.Done, res.Failed)
	s := spec(t, urlOf(c, "t"), nil)
	_, err := Topics(t.Context(), cluster.TopicLoad{Op: cluster.OpCreateTopics, URL: s.URL, Next: func() string { return "no spaces" }, Times: 1})
	assert.True(t, err != nil, "a name with a space: no error")
}
