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

	"carronade/internal/ledger"
	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
	"carronade/internal/testkit/kafkatest"
	"carronade/load"
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
			s, err := open(t, given)
			assert.OK(t, err)
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
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for deadline := time.Now().Add(10 * time.Second); arrived.Load() < events && time.Now().Before(deadline); {
				<-tick.C
			}
			cancel()
			<-done
			v := l.Verdict(slices.Repeat([]bool{true}, len(src.Logs())), nil)
			got := [7]uint64{v.Acked, v.Read, v.Lost, v.Corrupted, v.Recovered, v.Foreign, v.Inexact}
			if want := [7]uint64{events, events}; got != want {
				t.Errorf("acked, read, lost, corrupted, recovered, foreign, inexact: got %v, want %v", got, want)
			}
			assert.Equal(t, v.Method, tt.method, "got the method")
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
	s, err := open(t, given)
	assert.OK(t, err)
	src := s.Source().(*wireSource)
	r := newRig(t, s.(*session).out.(*producer))
	r.send(events)
	if got := drain(t, src, func(r *read) bool { return r.events == events }); got.events != events {
		t.Fatalf("read %d events, want %d", got.events, events)
	}
	gone := func() (sum uint64) {
		t.Helper()
		ns, err := src.Gone(t.Context())
		assert.OK(t, err)
		for _, n := range ns {
			sum += n
		}
		return sum
	}
	assert.Equal(t, gone(), 0, "events are reported as gone")
	adm := c.Admin(t)
	if _, err := adm.DeleteRecords(t.Context(), kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 1000}}}); err != nil {
		t.Fatal(err)
	}
	assert.Equal(t, gone(), 0, "events are reported as gone after a deletion like retention's")
	if _, err := adm.DeleteTopics(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; { // the broker takes a moment
		resp, err := adm.CreateTopic(t.Context(), 2, 1, nil, topic)
		if err == nil && resp.Err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err, resp.Err)
		}
	}
	assert.Equal(t, gone(), events, "events are reported as gone")
	if w := strings.Join(src.Warnings(), " "); !strings.Contains(w, "its log no longer holds") {
		t.Errorf("got the warnings %q", w)
	}
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
			s, err := open(t, given)
			assert.OK(t, err)
			src := s.Source().(*wireSource)
			newRig(t, s.(*session).out.(*producer)).send(1000)
			drain(t, src, func(r *read) bool { return r.events == 1000 })
			if n := len(src.parts[0].readRanges); n != 1 {
				t.Fatalf("%d stretches, want one: %+v", n, src.parts[0].readRanges)
			}
			if ns, err := src.Gone(t.Context()); err != nil || ns[0] != 0 {
				t.Fatalf("got %v, %v of a complete log", ns, err)
			}
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
			if ns, err := src.Gone(t.Context()); err != nil || ns[0] != tt.want {
				t.Errorf("got %v, %v, want %d", ns, err, tt.want)
			}
		})
	}
}
