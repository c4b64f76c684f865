package kafka

import (
	"cmp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// firePipeline runs a pipeline and returns the results of both stages.
func firePipeline(t *testing.T, url string, p load.Plan, given map[string][]string, done func(sent, read *load.Outcome)) (*load.Result, load.StageResult) {
	t.Helper()
	s := spec(t, url, given)
	s.Op = cluster.OpPipeline
	s.Clients = max(1, s.Options.Int("clients"))
	s.BatchEvents, s.Concurrency = p.BatchEvents, p.Concurrency
	sess := assert.Value(open(t, s))(t)
	of, plan := sess.Capabilities().Pipeline()
	plan.Done = done
	ctx := testkit.Minute(t)
	if p.Measurement.Events == 0 {
		p.Measurement.Events = 6000
	}
	stage := load.NewStage(plan, of, &p)
	p.Completed = func() { stage.CatchUp(time.Minute, ctx.Done()) }
	r := assert.Value(load.New(p, sess.Target()))(t)
	stage.Start(r)
	r.Start()
	res := assert.Value(r.Wait())(t)
	return res, stage.Result(res)
}

// TestPipeline: each batch that was produced is read once, from its own offsets, in
// batches of any size, compressed or not, from any number of clients.
func TestPipeline(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 3, kfake.NumBrokers(2))
	for name, tt := range map[string]struct {
		plan  load.Plan
		given map[string][]string
	}{
		"one by one":      {load.Plan{Concurrency: 8, BatchEvents: 1, Measurement: load.Limits{Events: 300}}, nil},
		"full speed":      {load.Plan{}, map[string][]string{"batch-size": {"4KiB"}}},
		"schedule":        {load.Plan{Schedule: load.Constant(20_000), Linger: 5 * time.Millisecond}, map[string][]string{"size": {"1-300"}}},
		"compressed":      {load.Plan{BatchEvents: 70}, map[string][]string{"compression": {"gzip"}}},
		"several clients": {load.Plan{Concurrency: 4, BatchEvents: 7}, map[string][]string{"clients": {"3"}}},
		"one partition":   {load.Plan{BatchEvents: 100}, map[string][]string{"partitioner": {"fixed(2)"}}},
		"one at a time":   {load.Plan{BatchEvents: 100}, map[string][]string{"read-in-flight": {"1"}, "read-queue": {"1000"}}},
		"small answers":   {load.Plan{BatchEvents: 100}, map[string][]string{"fetch-partition-max": {"1KiB"}}},
		"keys":            {load.Plan{BatchEvents: 10}, map[string][]string{"key": {"uniform(10)"}, "partitioner": {"murmur2"}}},
		"another address": {load.Plan{BatchEvents: 100}, map[string][]string{"read-from": {fakeURL(c.ListenAddrs()[1:])}}},
		"checked":         {load.Plan{BatchEvents: 100}, map[string][]string{"decode": {"true"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var sent, read uint64
			res, got := firePipeline(t, fakeURL(c.ListenAddrs()), tt.plan, tt.given, func(s, r *load.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				assert.True(t, r.Place == s.Place && r.Events == s.Events && r.Read == s.Bytes,
					"batch at %d with %d events of %d bytes: read at %d, %d of %d", s.Place, s.Events, s.Bytes, r.Place, r.Events, r.Read)
				sent += uint64(s.Events)
				read += uint64(r.Acked)
			})
			want := cmp.Or(tt.plan.Measurement.Events, 6000)
			assert.True(t, sent == want && read == want && res.Measurement.Acked == want && got.Acked == want && got.Unread+got.Missed == 0,
				"sent %d, read %d; %+v, %d unread, %d without a place, %v", sent, read, got.Counts, got.Unread, got.Missed, got.Classes)
			assert.Equal(t, res.Measurement.EndToEnd.Count(), want, "end-to-end times")
		})
	}
}

// A record that is not there yet is asked for again, as one of a mirror that is behind.
func TestPipelineWaits(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]int16{"an empty answer": 0, "an error": kerr.OffsetOutOfRange.Code} {
		t.Run(name, func(t *testing.T) {
			c := eventsCluster(t, 2)
			var asked atomic.Int64
			c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if asked.Add(1)%2 == 0 {
					return nil, nil, false
				}
				return answerFetch(req.(*kmsg.FetchRequest), early), nil, true
			})
			url := fakeURL(c.ListenAddrs())
			_, got := firePipeline(t, url, load.Plan{BatchEvents: 500}, map[string][]string{"read-from": {url}}, func(_, _ *load.Outcome) {})
			assert.True(t, got.Acked == 6000 && asked.Load() >= 24,
				"%d read, %v %q, %d requests", got.Acked, got.Classes, got.Text, asked.Load())
		})
	}
}

// TestPipelineFails: reads that are refused are counted, and have a reason.
func TestPipelineFails(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 1)
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return answerFetch(req.(*kmsg.FetchRequest), kerr.TopicAuthorizationFailed.Code), nil, true
	})
	res, got := firePipeline(t, fakeURL(c.ListenAddrs()), load.Plan{BatchEvents: 100}, nil, func(_, _ *load.Outcome) {})
	if res.Measurement.Acked != 6000 || got.Acked != 0 || got.Classes["unauthorized"] != 6000 || !strings.Contains(got.Text, "TOPIC_AUTHORIZATION_FAILED") {
		t.Errorf("%d acked, %d read, %v, %q", res.Measurement.Acked, got.Acked, got.Classes, got.Text)
	}
}

// TestPipelineRefused: what a pipeline cannot do is an error before it begins.
func TestPipelineRefused(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := eventsCluster(t, 3, kfake.SeedTopics(1, "small"))
	url := fakeURL(c.ListenAddrs())
	for _, tt := range []struct {
		name, value, want string
	}{
		{"acks", "0", "with acks=0 they do not answer"},
		{"engine", "client", "with the wire engine alone"},
		{"read-delay", "48h", "want a time from 0s to 24h"},
		{"read-in-flight", "0", "want a number from 1 to 1M"},
		{"read-from", "http://localhost/events", "does not begin with kafka://"},
		{"read-from", "kafka:///events", "has no broker address"},
		{"read-from", strings.Replace(url, "events", "small", 1), "the topic small has 1 partitions there, and events has 3"},
		{"read-from", strings.Replace(url, "events", "absent", 1), "--read-from: find the topic absent"},
	} {
		s := spec(t, url, map[string][]string{tt.name: {tt.value}})
		s.Op = cluster.OpPipeline
		_, err := open(t, s)
		assert.ErrorHas(t, err, tt.want, "%s %s", tt.name, tt.value)
	}
}
