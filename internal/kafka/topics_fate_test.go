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
		if res.Done != 1 || res.Failed != 1 || res.Unknown != 2 || res.Service.Count() != tt.service || res.FailedService.Count() != tt.failed {
			t.Errorf("%d in a request: got %d done, %d failed, %d unknown, %d service times and %d of failed ones",
				tt.each, res.Done, res.Failed, res.Unknown, res.Service.Count(), res.FailedService.Count())
		}
		for _, d := range seen {
			if want := d.Name == "there"; d.Certain != want || (d.Class == "") != (d.Name == "new") {
				t.Errorf("%d in a request: %s is certain: %v, of class %q", tt.each, d.Name, d.Certain, d.Class)
			}
		}
		assert.True(t, len(seen) == 4 && seen[3].Last && seen[0].Last == (tt.each == 1), "%d in a request: saw %+v", tt.each, seen)
		for _, f := range res.Failures {
			assert.True(t, f.Events == 1 && f.Batches == 1, "%d in a request: %+v", tt.each, f)
		}
	}
	w.PerRequest, w.Names, w.Failures = 1, []string{"late", "left-out", "new", "new"}, 1
	if res := topics(t, c, w); res.Unknown != 2 || res.Done != 0 || res.Unsent != 2 {
		t.Errorf("a limit of one: got %d unknown, %d done, %d unsent", res.Unknown, res.Done, res.Unsent)
	}
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
	if res.Failed != 2 || res.Operations != 2 || res.Unsent != w.DueBefore(res.Begun)-2 || res.Elapsed > time.Minute {
		t.Errorf("got %d failed of %d, %d unsent in %s", res.Failed, res.Operations, res.Unsent, res.Elapsed)
	}
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

// One group reads the topics whose whole name matches, each from its committed offset,
// and counts them by partition.
func TestConsumeTopics(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "orders-b", "orders-a"), kfake.SeedTopics(1, "orders", "my-orders-a"))
	putInto := func(topic string, n int) {
		put(t, c, records(n, 2, sized(10)), kgo.DefaultProduceTopic(topic))
	}
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
	if got := drain(t, source(t, c, given), nil); got.events != 20 || got.per[2]+got.per[3] != 20 {
		t.Errorf("the group's second run got %d events, by partition %v", got.events, got.per)
	}
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
