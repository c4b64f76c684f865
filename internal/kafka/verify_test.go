package kafka

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/run/ledger"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// A timestamp or a codec that the broker changes does not count as corruption.
func TestRealVerifyChanged(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	const events = 4000
	for _, tt := range []struct {
		name     string
		settings []string
		given    map[string][]string
		method   string
	}{
		{"stamped", []string{"message.timestamp.type=LogAppendTime"}, nil, "batches and stamps"},
		{"idempotent", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"idempotent": {"true"}}, "batches and stamps"},
		{"compressed", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"compression": {"lz4"}}, "batches"},
		{"too small for stamps", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"size": {"10"}}, "batches"},
		{"compressed by the broker", []string{"compression.type=gzip"}, nil, "stamps"},
		{"with another codec", []string{"compression.type=gzip"}, map[string][]string{"compression": {"lz4"}}, "offsets"},
		{"with the same codec", []string{"compression.type=lz4"}, map[string][]string{"compression": {"lz4"}}, "batches"},
		{"unpacked by the broker", []string{"compression.type=uncompressed", "message.timestamp.type=LogAppendTime"}, map[string][]string{"compression": {"zstd"}}, "offsets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			topic := c.CreateTopic(t, 2, 1, tt.settings...)
			given := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, tt.given)
			given.Verify = true
			s := assert.Value(open(t, given))(t)
			p := s.(*session).out.(*producer)
			src := s.Source().(*wireSource)
			l := ledger.New(ledger.Config{
				Logs: 2, Start: src.Starts(), LogOf: p.LogOf, RunID: uint32(given.RunID), Stamped: p.Stamped(),
			})
			r := newRig(t, p)
			r.events = 20
			l.Fired(r.send(events))
			ctx, cancel := context.WithCancel(t.Context())
			var arrived atomic.Int64
			done := make(chan struct{})
			go func() {
				defer close(done)
				// It ends with the context.
				_ = src.Receive(ctx, func() time.Duration { return 0 }, func(_ int, a []load.Arrival) {
					l.Arrived(a)
					for i := range a {
						arrived.Add(int64(a[i].Events))
					}
				})
			}()
			testkit.Until(t, "all events have arrived", func() bool { return arrived.Load() >= events })
			cancel()
			<-done
			v := l.Verdict(slices.Repeat([]bool{true}, len(src.Logs())), nil)
			got := [7]uint64{v.Acked, v.Read, v.Lost, v.Corrupted, v.Recovered, v.Foreign, v.Inexact}
			assert.Equal(t, got, [7]uint64{events, events}, "acked, read, lost, corrupted, recovered, foreign, inexact")
			assert.Equal(t, v.Method, tt.method, "method")
		})
	}
}

// Records that were read and are missing at the end are reported: here the topic was
// deleted and created again.
func TestRealGone(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	const events = 4000
	topic := c.CreateTopic(t, 2, 1)
	given := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, nil)
	given.Verify = true
	s := assert.Value(open(t, given))(t)
	src := s.Source().(*wireSource)
	r := newRig(t, s.(*session).out.(*producer))
	r.send(events)
	got := drain(t, src, func(r *read) bool { return r.events == events })
	assert.Must(t, got.events == events, "read %d events, want %d", got.events, events)
	gone := func() (sum uint64) {
		t.Helper()
		ns := assert.Value(src.Gone(t.Context()))(t)
		for _, n := range ns {
			sum += n
		}
		return sum
	}
	assert.Equal(t, gone(), 0, "events gone")
	adm := c.Admin(t)
	assert.Value(adm.DeleteRecords(t.Context(), kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 1000}}}))(t)
	assert.Equal(t, gone(), 0, "events gone after a deletion like retention's")
	assert.Value(adm.DeleteTopics(t.Context(), topic))(t)
	testkit.Until(t, "the broker has created it again", func() bool {
		resp, err := adm.CreateTopic(t.Context(), 2, 1, nil, topic)
		return err == nil && resp.Err == nil
	})
	assert.Equal(t, gone(), events, "events gone")
	w := strings.Join(src.Warnings(), " ")
	assert.True(t, strings.Contains(w, "its log no longer holds"), "got the warnings %q", w)
}

// The leader epochs reveal a log that was truncated and has grown again.
func TestGoneByEpoch(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, tt := range []struct {
		name  string
		epoch int32 // as the leader answers
		end   int64
		want  uint64
	}{
		{"complete", 0, 1000, 0},
		{"truncated", 0, 700, 300},
		{"an epoch before", -2, 400, 600},
		{"all", 0, 0, 1000},
		{"not known", -1, -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := eventsCluster(t, 1)
			given := spec(t, fakeURL(c.ListenAddrs()), nil)
			given.Verify = true
			s := assert.Value(open(t, given))(t)
			src := s.Source().(*wireSource)
			newRig(t, s.(*session).out.(*producer)).send(1000)
			drain(t, src, func(r *read) bool { return r.events == 1000 })
			n := len(src.parts[0].readRanges)
			assert.Must(t, n == 1, "%d stretches, want one: %+v", n, src.parts[0].readRanges)
			ns, err := src.Gone(t.Context())
			assert.Must(t, err == nil && ns[0] == 0, "got %v, %v of a complete log", ns, err)
			c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				asked := req.(*kmsg.OffsetForLeaderEpochRequest)
				resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
				rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
				rt.Topic = asked.Topics[0].Topic
				rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				rp.LeaderEpoch, rp.EndOffset = max(-1, asked.Topics[0].Partitions[0].LeaderEpoch+tt.epoch), tt.end
				if tt.epoch == -2 {
					rp.LeaderEpoch = 0
				}
				rt.Partitions = append(rt.Partitions, rp)
				resp.Topics = append(resp.Topics, rt)
				return resp, nil, true
			})
			ns, err = src.Gone(t.Context())
			assert.True(t, err == nil && ns[0] == tt.want, "got %v, %v, want %d", ns, err, tt.want)
		})
	}
}
