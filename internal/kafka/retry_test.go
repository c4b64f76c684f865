package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

var idempotent = []string{"idempotent=true", "acks=all"}

func withStamps(c *cluster.Config) { c.Verify, c.RunID = true, 5 }

// checkInOrder checks that the log contains every stamped event below total
// exactly once and in the order of its stream, and nothing else.
func checkInOrder(t *testing.T, p *producer, recs []*kgo.Record, total uint64) {
	t.Helper()
	next := map[int32]uint64{}
	slices.SortStableFunc(recs, func(a, b *kgo.Record) int { return int(a.Offset - b.Offset) })
	for _, r := range recs {
		s, ok := wire.ParseStamp(r.Value)
		assert.Must(t, ok && s.Run == 5, "offset %d of partition %d: no stamp of ours", r.Offset, r.Partition)
		assert.Must(t, s.Index == next[s.Stream],
			"offset %d of partition %d: event %d, want %d", r.Offset, r.Partition, s.Index, next[s.Stream])
		next[s.Stream]++
	}
	for s := range int32(p.Partitioner().Streams()) {
		want := p.Partitioner().Before(s, total)
		assert.True(t, next[s] == want, "stream %d has %d events, want %d", s, next[s], want)
	}
}

// checkAtMostOnce checks a producer that is not idempotent: the log contains all
// acked events, perhaps unknown ones, and no duplicates.
func checkAtMostOnce(t *testing.T, p *producer, out []load.Outcome, recs []*kgo.Record) {
	t.Helper()
	type event struct {
		stream int32
		index  uint64
	}
	outcomes := map[event]*load.Outcome{}
	for i := range out {
		o := &out[i]
		for k := range uint64(o.Events) {
			outcomes[event{o.Stream, o.First + k}] = o
		}
	}
	found := map[event]bool{}
	for _, r := range recs {
		s, ok := wire.ParseStamp(r.Value)
		assert.Must(t, ok, "no stamp")
		e := event{s.Stream, s.Index}
		assert.Must(t, !found[e], "%+v is in the log twice", e)
		found[e] = true
		o := outcomes[e]
		assert.Must(t, o != nil && o.Failed <= 0, "%+v is in the log, but its outcome is failed: %+v", e, o)
	}
	for e, o := range outcomes {
		assert.Must(t, o.Acked <= 0 || found[e], "%+v was acked but is not in the log", e)
	}
}

func TestLeaderMoves(t *testing.T) {
	t.Parallel()
	const events = 30_000
	for _, given := range [][]string{nil, {"acks=all"}, idempotent, {"clients=2"}} {
		t.Run(strings.Join(given, " "), func(t *testing.T) {
			c := eventsCluster(t, 3, kfake.NumBrokers(3))
			p := openProducer(t, c.ListenAddrs(), withStamps, given...)
			r := newRig(t, p)
			r.events = 50
			moved := 0
			out := r.sendAnd(events, func(fired int) {
				for ; moved < fired/1000; moved++ {
					part := int32(moved % 3)
					to := (c.LeaderFor("events", part) + 1) % 3
					err := c.MoveTopicPartition("events", part, to)
					assert.True(t, err == nil, "%v", err)
				}
			})
			got := tally(out)
			assert.True(t, got.retries != 0, "leaders moved %d times and nothing was retried", moved)
			got.retries = 0
			want := (tallies{acked: events})
			assert.Must(t, got == want, "got %+v, want %+v", got, want)
			recs := readBack(t, c.ListenAddrs(), events)
			if slices.Equal(given, idempotent) {
				checkInOrder(t, p, recs, events)
			} else {
				checkAtMostOnce(t, p, out, recs)
			}
		})
	}
}

// refuseProduce makes the cluster answer produce requests with the error that pick returns (0: none).
func refuseProduce(c *kfake.Cluster, pick func(partition int32) int16) {
	c.ControlKey(wire.ProduceKey, func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		code := pick(req.Topics[0].Partitions[0].Partition)
		if code == 0 {
			return nil, nil, false
		}
		return answerAll(req, code, 0), nil, true
	})
}

// answerAll returns an answer with the same error for every partition.
func answerAll(req *kmsg.ProduceRequest, code int16, throttle int32) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	resp.ThrottleMillis = throttle
	for _, rt := range req.Topics {
		t := kmsg.NewProduceResponseTopic()
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.ErrorCode = rp.Partition, code
			if code != 0 {
				p.BaseOffset = -1
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func TestErrorsByClass(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err     *kerr.Error
		class   load.Class
		unknown bool
	}{
		{kerr.MessageTooLarge, load.TooLarge, false},
		{kerr.RecordListTooLarge, load.TooLarge, false},
		{kerr.TopicAuthorizationFailed, load.Unauthorized, false},
		{kerr.ThrottlingQuotaExceeded, load.Throttled, false},
		{kerr.RequestTimedOut, load.Timeout, true},
		{kerr.NotEnoughReplicas, load.Rejected, false},
		{kerr.NotEnoughReplicasAfterAppend, load.Timeout, true},
		{kerr.KafkaStorageError, load.Rejected, true},
		{kerr.InvalidRecord, load.Rejected, false},
		{kerr.CorruptMessage, load.Protocol, false},
		{kerr.UnsupportedForMessageFormat, load.Protocol, false},
	} {
		t.Run(tt.err.Message, func(t *testing.T) {
			c := eventsCluster(t, 1)
			refuseProduce(c, func(int32) int16 { return tt.err.Code })
			p := openProducer(t, c.ListenAddrs(), nil)
			out := newRig(t, p).send(10)
			want := tallies{failed: 10}
			if tt.unknown {
				want = tallies{unknown: 10}
			}
			assert.Equal(t, tally(out), want)
			o := out[0]
			assert.True(t, o.Class == tt.class && strings.HasPrefix(o.Text, tt.err.Message+": ") && o.Place == -1, "class %v, text %q, place %d", o.Class, o.Text, o.Place)
		})
	}
}

// After an error that precedes appending, a batch is tried again until the delivery timeout.
func TestRetryUntilDeliveryTimeout(t *testing.T) {
	t.Parallel()
	for _, given := range [][]string{nil, idempotent} {
		t.Run(strings.Join(given, " "), func(t *testing.T) {
			t.Parallel()
			const limit = 3 * time.Second // a stall of the machine must leave time for a retry
			c := eventsCluster(t, 1)
			refuseProduce(c, func(int32) int16 { return kerr.NotLeaderForPartition.Code })
			p := openProducer(t, c.ListenAddrs(), nil, append(slices.Clone(given), "delivery-timeout="+limit.String())...)
			out := newRig(t, p).send(10)
			got := tally(out)
			assert.True(t, got.retries != 0, "no retries")
			got.retries = 0
			assert.Equal(t, got, (tallies{failed: 10}))
			o := out[0]
			assert.True(t, o.Done >= limit && strings.Contains(o.Text, "NOT_LEADER"), "done at %v, text %q", o.Done, o.Text)
		})
	}
}

func TestRetriableErrorsThenAcked(t *testing.T) {
	t.Parallel()
	const events = 3000
	codes := []int16{kerr.UnknownTopicOrPartition.Code, kerr.LeaderNotAvailable.Code, kerr.NotLeaderForPartition.Code}
	for _, given := range [][]string{nil, idempotent} {
		t.Run(strings.Join(given, " "), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			c := eventsCluster(t, 3)
			codes := codes
			if given != nil {
				codes = append(slices.Clone(codes), kerr.NotEnoughReplicas.Code, kerr.KafkaStorageError.Code, kerr.CorruptMessage.Code)
			}
			refuseProduce(c, func(int32) int16 {
				if rnd.IntN(4) > 0 {
					return 0
				}
				return codes[rnd.IntN(len(codes))]
			})
			p := openProducer(t, c.ListenAddrs(), withStamps, given...)
			r := newRig(t, p)
			r.events = 100
			out := r.send(events)
			got := tally(out)
			assert.True(t, got.retries != 0, "no retries")
			got.retries = 0
			want := (tallies{acked: events})
			assert.Must(t, got == want, "got %+v, want %+v", got, want)
			recs := readBack(t, c.ListenAddrs(), events)
			if given != nil {
				checkInOrder(t, p, recs, events)
			} else {
				checkAtMostOnce(t, p, out, recs)
			}
		})
	}
}

// A finally refused batch leaves no gap in the sequence, and no batch is reordered
// or duplicated. When all epochs are used, the producer requests another id.
func TestRefusedBatchBumpsEpoch(t *testing.T) {
	t.Parallel()
	for _, last := range []bool{false, true} { // the last epochs of an id
		t.Run(fmt.Sprintf("last=%t", last), func(t *testing.T) {
			const events = 6000
			c := eventsCluster(t, 2)
			n := 0
			refuseProduce(c, func(int32) int16 {
				if n++; n%7 == 3 {
					return kerr.MessageTooLarge.Code
				}
				return 0
			})
			p := openProducer(t, c.ListenAddrs(), withStamps, idempotent...)
			s := p.senders[0]
			if last {
				s.epoch = 1<<15 - 2
				s.assignProducerID()
			}
			first, epoch := s.pid, s.epoch
			r := newRig(t, p)
			r.events = 100
			out := r.send(events)
			got := tally(out)
			assert.Must(t, got.failed != 0 && got.unknown == 0 && got.acked+got.failed == events, "got %+v", got)
			checkAtMostOnce(t, p, out, readBack(t, c.ListenAddrs(), got.acked))
			s.mu.Lock()
			defer s.mu.Unlock()
			assert.True(t, s.epoch != epoch, "the epoch is still %d", epoch)
			assert.Equal(t, s.pid != first, last, "whether the producer has another id")
		})
	}
}

// A broker's message is shown on terminals and in reports.
func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ name, words, want string }{
		{"empty", "", ""},
		{"words", "Größe > 1 MiB", "Größe > 1 MiB"},
		{"escapes", "a\x1b[2Jb\r\nc\x07", "a [2Jb  c "},
		{"not UTF-8", "a\xffb", "ab"},
		{"long", strings.Repeat("x", 1<<20), strings.Repeat("x", maxMessage) + "..."},
		{"cut within a letter", strings.Repeat("x", maxMessage-1) + "é", strings.Repeat("x", maxMessage-1) + "..."},
	} {
		assert.Equal(t, printable([]byte(tt.words)), tt.want, tt.name)
	}
}

// Opening ends with an error if the broker never assigns a producer id. If the time ends
// while it has not answered an attempt, the error is still its answer to the one before.
func TestProducerIDUnavailable(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("silent=%t", silent), func(t *testing.T) {
			t.Parallel()
			if !silent {
				testkit.Need(t, "two seconds")
			}
			c := eventsCluster(t, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			c.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if n++; silent && n > 1 {
					cancel()
					return nil, nil, true // handled, and never answered
				}
				resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
				resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code
				return resp, nil, true
			})
			given := []string{"idempotent=true", "acks=all"}
			if !silent { // long enough to connect to the broker on a busy machine
				given = append(given, "request-timeout=2s")
			}
			p, err := newProducer(ctx, configFor(t, c.ListenAddrs(), nil, given...), nil)
			assert.True(t, errors.Is(err, kerr.CoordinatorLoadInProgress), "got %v, want the broker's error", err)
			if err == nil {
				p.Close()
			}
		})
	}
}

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
	assert.True(t, res.Measurement.Acked == 6000 && got.Acked == 0 && got.Classes["unauthorized"] == 6000 && strings.Contains(got.Text, "TOPIC_AUTHORIZATION_FAILED"),
		"%d acked, %d read, %v, %q", res.Measurement.Acked, got.Acked, got.Classes, got.Text)
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
