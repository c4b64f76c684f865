package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/protocol/protocoltest"
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
	info := c.TopicInfo("load-99")
	assert.Must(t, info != nil && len(c.PartitionInfos("load-99")) == 2, "load-99 was not created with 2 partitions: %+v", info)
	// An existing topic is a counted failure.
	create.Names = cluster.NumberedNames("load-", 120)
	res = topics(t, c, create)
	assert.True(t, res.Done == 20 && res.Failed == 100 && res.Classes[load.Rejected.String()] == 100 && len(res.Failures) == 1,
		"create again: got %d done, %d failed, %v, %v", res.Done, res.Failed, res.Classes, res.Failures)
	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpListTopics, Times: 5, Concurrency: 2})
	assert.True(t, res.Done == 5 && len(res.Topics) == 120, "list: got %d done and %d topics, want 5 and 120", res.Done, len(res.Topics))
	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpDescribeTopics, Names: []string{"load-0", "missing"}, PerRequest: 2})
	assert.Must(t, res.Done == 1 && res.Failed == 1 && len(res.Topics) == 1,
		"describe: got %d done, %d failed, %v", res.Done, res.Failed, res.Topics)
	d := res.Topics[0]
	assert.True(t, d.Partitions == 2 && d.Replicas == 3 && d.Settings["retention.ms"] == "1000" && d.Leaders != "", "describe: got %+v", d)
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
	res = topics(t, c, cluster.TopicLoad{Op: cluster.OpReadTopics})
	assert.True(t, res.Events == 30 && res.BytesWire && res.Bytes != 0, "compressed: got %d events, %d bytes, as fetched: %v", res.Events, res.Bytes, res.BytesWire)
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
	for _, w := range []cluster.TopicLoad{{Op: "paint", URL: u}, {Op: cluster.OpCreateTopics, URL: u, Names: []string{"no spaces"}}} {
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
	assert.True(t, res.Failed == 2 && res.Unsent == 1 && len(seen) == 3 && seen[0].Bytes == res.Bytes && seen[0].Events == 30 && seen[1].Class != "",
		"a limit of one failure: got %d failed, %d unsent, saw %+v", res.Failed, res.Unsent, seen)
}

// Names are made when they are needed, operations go on until their time is over, and reading starts again with the first topic.
func TestTopicsWithoutEnd(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(30, 1, sized(10)))
	made := 0
	next := func() string { made++; return fmt.Sprintf("n%d", made) }
	started := 0
	res := topics(t, c, cluster.TopicLoad{Op: cluster.OpCreateTopics, Next: next, Times: 25, PerRequest: 10, Concurrency: 2, Started: func(time.Time) { started++ }})
	assert.True(t, res.Done == 25 && made == 25 && res.Requests == 3 && res.Unsent == 0 && started == 1 && c.TopicInfo("n1") != nil && c.TopicInfo("n25") != nil,
		"25 topics: got %d done of %d names in %d requests, %d unsent, started %d times", res.Done, made, res.Requests, res.Unsent, started)
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

// A topic that the broker did not create in time may still be created: the
// operation is unknown, and its time is not a service time.
func TestTopicsUnknown(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t)
	c.ControlKey(int16(kmsg.CreateTopics), func(in kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := in.(*kmsg.CreateTopicsRequest)
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, topic := range req.Topics {
			one := kmsg.NewCreateTopicsResponseTopic()
			one.Topic = topic.Topic
			switch topic.Topic {
			case "late":
				one.ErrorCode = kerr.RequestTimedOut.Code
			case "there":
				one.ErrorCode = kerr.TopicAlreadyExists.Code
			}
			if topic.Topic != "left-out" {
				resp.Topics = append(resp.Topics, one)
			}
		}
		return resp, nil, true
	})
	var seen []cluster.TopicDone
	w := cluster.TopicLoad{Op: cluster.OpCreateTopics, Names: []string{"new", "there", "late", "left-out"}, Each: func(d cluster.TopicDone) { seen = append(seen, d) }}
	for _, tt := range []struct {
		each            int
		service, failed uint64
	}{{1, 1, 1}, {2, 1, 0}, {4, 1, 0}} {
		seen, w.PerRequest = nil, tt.each
		res := topics(t, c, w)
		assert.True(t, res.Done == 1 && res.Failed == 1 && res.Unknown == 2 && res.Service.Count() == tt.service && res.FailedService.Count() == tt.failed,
			"%d in a request: got %d done, %d failed, %d unknown, %d service times and %d of failed ones", tt.each, res.Done, res.Failed, res.Unknown, res.Service.Count(), res.FailedService.Count())
		for _, d := range seen {
			want := d.Name == "there"
			assert.True(t, d.Certain == want && (d.Class == "") == (d.Name == "new"), "%d in a request: %s is certain: %v, of class %q", tt.each, d.Name, d.Certain, d.Class)
		}
		assert.True(t, len(seen) == 4 && seen[3].Last && seen[0].Last == (tt.each == 1), "%d in a request: saw %+v", tt.each, seen)
		for _, f := range res.Failures {
			assert.True(t, f.Events == 1 && f.Batches == 1, "%d in a request: %+v", tt.each, f)
		}
	}
	w.PerRequest, w.Names, w.Failures = 1, []string{"late", "left-out", "new", "new"}, 1
	res := topics(t, c, w)
	assert.True(t, res.Unknown == 2 && res.Done == 0 && res.Unsent == 2, "a limit of one: got %d unknown, %d done, %d unsent", res.Unknown, res.Done, res.Unsent)
}

// Operations that an interruption cuts off are unknown, and those that were due by
// then but not begun are unsent, whatever the total.
func TestTopicsCanceled(t *testing.T) {
	t.Parallel()
	for _, times := range []int{-1, math.MaxInt} {
		c := fakeCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		requests, ended := 0, make(chan struct{})
		c.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			if requests++; requests == 3 {
				c.SleepControl(func() {
					<-time.After(200 * time.Millisecond)
					cancel()
					<-ended // no answer comes before
				})
			}
			return nil, nil, false
		})
		s, made := spec(t, urlOf(c, "t"), nil), 0
		w := cluster.TopicLoad{
			Op: cluster.OpCreateTopics, URL: s.URL, Options: s.Options, Next: func() string { made++; return fmt.Sprintf("n%d", made) },
			Times: times, For: time.Minute, Rate: 100, PerRequest: 2,
		}
		res, err := Topics(ctx, w)
		close(ended)
		assert.OK(t, err)
		if res.Done != 4 || res.Unknown != 2 || res.Failed != 0 || res.Classes[load.Canceled.String()] != 2 || res.Service.Count() != 2 || res.Response.Count() != 2 || res.Censored.Count() != 1 || !res.Interrupted {
			t.Errorf("%d times: got %d done, %d unknown, %d failed, %v, interrupted: %v", times, res.Done, res.Unknown, res.Failed, res.Classes, res.Interrupted)
		}
		if due := w.DueBefore(res.Begun); res.Begun < 200*time.Millisecond || res.Operations+res.Unsent != due || due < 40 {
			t.Errorf("%d times: %d operations and %d unsent of %d due in %s", times, res.Operations, res.Unsent, due, res.Begun)
		}
	}
}

// A limit of failures ends a load at once: requests that are not due yet are not made.
func TestTopicsFailureLimit(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t)
	w := cluster.TopicLoad{Op: cluster.OpReadTopics, Names: []string{"no"}, Times: -1, Rate: 1, For: time.Hour, Concurrency: 1, Failures: 1} // one at a time: others in flight may fail, too
	res := topics(t, c, w)
	assert.True(t, res.Failed == 2 && res.Operations == 2 && res.Unsent == w.DueBefore(res.Begun)-2 && res.Elapsed <= time.Minute,
		"got %d failed of %d, %d unsent in %s", res.Failed, res.Operations, res.Unsent, res.Elapsed)
}

// Only operations that can be repeated can run without end.
func TestTopicsOnceEach(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t)
	s := spec(t, urlOf(c, "t"), nil)
	for _, op := range []string{cluster.OpCreateTopics, cluster.OpDescribeTopics, cluster.OpDeleteTopics, cluster.OpDeleteRecords} {
		_, err := Topics(t.Context(), cluster.TopicLoad{Op: op, URL: s.URL, Options: s.Options, Names: []string{"a", "b", "c"}, PerRequest: 2, Times: -1})
		protocoltest.Explained(t, err, "each topic once", "")
	}
}

// A broker that is reached and then does not answer leaves no client open.
func TestTopicsNoAnswer(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var requests atomic.Int64
	c.ControlKey(int16(kmsg.ApiVersions), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		switch requests.Add(1) {
		case 1: // of probe
			return nil, nil, false
		case 2:
			time.AfterFunc(200*time.Millisecond, cancel)
		}
		return nil, errors.New("hang up"), true
	})
	s := spec(t, urlOf(c, "t"), nil)
	clients := func() int {
		all := make([]byte, 4<<20)
		return bytes.Count(all[:runtime.Stack(all, true)], []byte("kgo.(*Client)"))
	}
	before := clients()
	_, err := Topics(ctx, cluster.TopicLoad{Op: cluster.OpListTopics, URL: &url.URL{Scheme: "kafka", Host: s.URL.Host}, Options: s.Options})
	assert.Must(t, err != nil && requests.Load() >= 2, "%d requests: %v", requests.Load(), err)
	testkit.Until(t, "each client is closed", func() bool { return clients() <= before })
}

// One group reads the topics whose whole name matches, each from its committed offset, and counts them by partition.
func TestConsumeTopics(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "orders-b", "orders-a"), kfake.SeedTopics(1, "orders", "my-orders-a"))
	putInto := func(topic string, n int) { put(t, c, records(n, 2, sized(10)), kgo.DefaultProduceTopic(topic)) }
	putInto("orders-a", 300)
	putInto("orders-b", 500)
	put(t, c, records(70, 1, sized(10)), kgo.DefaultProduceTopic("orders"))
	put(t, c, records(70, 1, sized(10)), kgo.DefaultProduceTopic("my-orders-a"))
	given := map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"orders-[ab]"}, "until-end": {"true"}, "clients": {"2"}}
	src := source(t, c, given)
	if got, want := src.Logs(), []string{"orders-a-0", "orders-a-1", "orders-b-0", "orders-b-1"}; !slices.Equal(got, want) {
		t.Fatalf("logs %q, want %q", got, want)
	}
	got := drain(t, src, nil)
	assert.True(t, got.events == 800 && got.per[0]+got.per[1] == 300 && got.per[2]+got.per[3] == 500,
		"got %d events, by partition %v", got.events, got.per)
	for log, n := range src.Lag() {
		if n != 0 {
			t.Errorf("%s is %d behind", src.Logs()[log], n)
		}
	}
	putInto("orders-b", 20)
	got = drain(t, source(t, c, given), nil)
	assert.True(t, got.events == 20 && got.per[2]+got.per[3] == 20, "the group's second run got %d events, by partition %v", got.events, got.per)
}

func TestConsumeTopicsRefused(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	for _, tt := range []struct {
		name  string
		given map[string][]string
		want  string
	}{
		{"none matches", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"orders.*"}}, "no name of the 1 topics matches"},
		{"no group", map[string][]string{"engine": {cluster.EngineClient}, "topics": {"t"}}, "only be consumed in a group"},
		{"no expression", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"["}}, "missing closing ]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, urlOf(c, "t"), tt.given)
			s.Op = cluster.OpConsume
			_, err := open(t, s)
			assert.ErrorHas(t, err, tt.want)
		})
	}
}
