package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
			if o := out[0]; o.Class != tt.class || !strings.HasPrefix(o.Text, tt.err.Message+": ") || o.Place != -1 {
				t.Errorf("class %v, text %q, place %d", o.Class, o.Text, o.Place)
			}
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
	t.Parallel()
	for _, tt := range []struct{ name, words, want string }{
		{"empty", "", ""},
		{"words", "Größe > 1 MiB", "Größe > 1 MiB"},
		{"escapes", "a\x1b[2Jb\r\nc\x07", "a [2Jb  c "},
		{"not UTF-8", "a\xffb", "ab"},
		{"long", strings.Repeat("x", 1<<20), strings.Repeat("x", maxMessage) + "..."},
		{"cut within a letter", strings.Repeat("x", maxMessage-1) + "é", strings.Repeat("x", maxMessage-1) + "..."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, printable([]byte(tt.words)), tt.want)
		})
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
