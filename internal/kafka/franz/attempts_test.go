package franz

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// The report has the number of failed attempts, and says nothing if none failed.
func TestClientAttempts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                string
		refused, unanswered uint64 // requests of one batch
	}{
		{"no failures", 0, 0},
		{"refused", 3, 0},
		{"connection closed", 0, 2},
		{"both", 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := kafkatest.Fake(t, kfake.SeedTopics(1, "t"))
			var seen atomic.Uint64
			c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				switch n := seen.Add(1); {
				case n <= tt.refused:
					asked := req.(*kmsg.ProduceRequest)
					resp := req.ResponseKind().(*kmsg.ProduceResponse)
					for _, topic := range asked.Topics {
						rt := kmsg.NewProduceResponseTopic()
						rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
						for _, p := range topic.Partitions {
							rp := kmsg.NewProduceResponseTopicPartition()
							rp.Partition, rp.ErrorCode = p.Partition, kerr.RequestTimedOut.Code
							rt.Partitions = append(rt.Partitions, rp)
						}
						resp.Topics = append(resp.Topics, rt)
					}
					return resp, nil, true
				case n <= tt.refused+tt.unanswered:
					return nil, errors.New("the test closes this connection"), true
				}
				return nil, nil, false
			})
			p := openProducer(t, "kafka://"+c.ListenAddrs()[0]+"/t", map[string][]string{"engine": {cluster.EngineClient}, "idempotent": {"true"}})
			const events = 200
			run := assert.Value(load.New(load.Plan{Schedule: load.Constant(2000), Measurement: load.Limits{Events: events}}, p))(t)
			run.Start()
			assert.Equal(t, assert.Value(run.Wait())(t).Measurement.Acked, events, "events acked")
			a := &p.attempts
			assert.True(t, a.refused.Load() == tt.refused && a.unanswered.Load() == tt.unanswered,
				"%d attempts refused and %d unanswered, want %d and %d", a.refused.Load(), a.unanswered.Load(), tt.refused, tt.unanswered)
			got, want := a.written.Load(), seen.Load()
			assert.True(t, got == want, "%d batches were written, the broker saw %d", got, want)
			_, counted := p.Facts()["batch_attempts"]
			assert.True(t, counted == (tt.refused+tt.unanswered > 0), "got the facts %v", p.Facts())
		})
	}
}

// connect finds the cluster of a URL, for one operation.
func connect(t *testing.T, op, rawURL string, given map[string][]string) *cluster.Cluster {
	t.Helper()
	spec := protocoltest.Spec(t, cluster.Options(), rawURL, given)
	spec.Op = op
	c := assert.Value(cluster.ParseConfig(spec))(t)
	cl := assert.Value(c.Connect(t.Context()))(t)
	t.Cleanup(cl.Close)
	return cl
}

func openProducer(t *testing.T, rawURL string, given map[string][]string) *Producer {
	t.Helper()
	p := assert.Value(NewProducer(t.Context(), connect(t, cluster.OpProduce, rawURL, given)))(t)
	t.Cleanup(func() { assert.OK(t, p.Close()) })
	return p
}

// scriptedConn reads what it was given, and takes every write.
type scriptedConn struct {
	net.Conn
	reads [][]byte
}

func (c *scriptedConn) Write(b []byte) (int, error) { return len(b), nil }

func (c *scriptedConn) Read(b []byte) (int, error) {
	if len(c.reads) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.reads[0])
	c.reads = c.reads[1:]
	return n, nil
}

// A request that waited for room under the in-flight limit was not kept back by the
// client, even if one read brought the answers that made room.
func TestRoomMadeByAnswers(t *testing.T) {
	t.Parallel()
	now := time.Millisecond
	a := attempts{inFlight: 2, logOf: func(_ string, _ [16]byte, partition int32) int32 { return partition }}
	a.answers.start(func() time.Duration { return now })
	conn := &scriptedConn{}
	c := newCountedConn(conn, &a)
	write := func(id int32, at time.Duration) {
		t.Helper()
		now = at
		req := kmsg.NewPtrProduceRequest()
		req.Version, req.Acks, req.Topics = 8, 1, []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{{}}}}
		assert.Value(c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, id)))(t)
	}
	answer := func(id int32) []byte {
		resp := kmsg.NewPtrProduceResponse()
		rp := kmsg.NewProduceResponseTopicPartition()
		rp.BaseOffset = int64(id)
		resp.Version, resp.Topics = 8, []kmsg.ProduceResponseTopic{{Topic: "t", Partitions: []kmsg.ProduceResponseTopicPartition{rp}}}
		body := resp.AppendTo(binary.BigEndian.AppendUint32(nil, uint32(id)))
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	read := func(at time.Duration, b []byte) {
		t.Helper()
		now = at
		conn.reads = append(conn.reads, b)
		assert.Value(c.Read(make([]byte, 4<<10)))(t)
	}
	const ms = time.Millisecond
	write(1, 2*ms)
	write(2, 3*ms)
	read(50*ms, append(answer(1), answer(2)...))
	write(3, 51*ms) // of a batch that was handed over when both places were taken
	write(4, 60*ms) // of one that was handed over at 55 ms, when there was room
	read(70*ms, append(answer(3), answer(4)...))
	for offset, want := range map[int64]time.Duration{1: ms, 2: 0, 3: ms, 4: 5 * ms} {
		handed := map[int64]time.Duration{1: ms, 2: 3 * ms, 3: 4 * ms, 4: 55 * ms}[offset]
		at, got := a.answers.find(0, offset, handed)
		assert.True(t, at != 0 && got == want, "batch %d was kept back for %v, want %v; answered at %v", offset, got, want, at)
	}
}

// FuzzCountedConn checks that no input makes the counting panic, however it is split into reads.
func FuzzCountedConn(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8, 0, 0, 0, 7, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 9, 9}, uint8(3))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		c := newCountedConn(&net.TCPConn{}, new(attempts))
		c.pending[7] = pendingProduce{version: 9, batches: 1}
		for rest := b; len(rest) > 0; {
			n := min(len(rest), int(cut)+1)
			c.parse(rest[:n])
			rest = rest[n:]
		}
		produceOf(b)
		if len(b) >= 4 {
			binary.BigEndian.PutUint32(b, uint32(len(b)-4))
			produceOf(b)
		}
	})
}

// After too many uncommitted transactions, the result of later ones is unknown.
func TestFatesAreBounded(t *testing.T) {
	l := &lane{id: 3}
	tr := &transactor{s: &sender{lanes: []*lane{l}}, uncommittedRanges: make([]uncommittedRange, mostUncommitted)}
	for i := range uint64(10) {
		l.addToTransaction(&load.Batch{First: i * 100, Events: 100})
		tr.recordEnd(i%2 == 0, true)
	}
	n := 0
	tr.uncommitted(func(stream int32, first, events uint64, aborted bool) {
		n++
		assert.True(t, stream == 3 && first == 100 && events == 900 && !aborted,
			"got %d events from %d of stream %d, aborted %v; want 900 from 100 of 3, unknown", events, first, stream, aborted)
	})
	assert.Equal(t, n, 1, "reports")
}

// TestSentAgain sends batches again, in the same transaction and in a later one: only
// the events whose last transaction was not committed are reported.
func TestSentAgain(t *testing.T) {
	type transaction struct {
		batches [][2]uint64 // first, attempt; of 10 events each
		how     string
	}
	for _, tt := range []struct {
		name string
		txns []transaction
		want string // of batches, by their first events
	}{
		{"in order", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}}, "aborted"}, {[][2]uint64{{30, 0}}, "committed"}}, "aborted 0 10 20"},
		{"in the same", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {10, 1}}, "aborted"}}, "aborted 0 10 20"},
		{"in the same, the first", []transaction{{[][2]uint64{{50, 0}, {60, 0}}, "committed"}, {[][2]uint64{{70, 0}, {50, 1}, {80, 0}}, "aborted"}}, "aborted 50 70 80"},
		{"with others between", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {30, 0}}, "committed"}, {[][2]uint64{{0, 1}, {30, 1}}, "aborted"}}, "aborted 0 30"},
		{"committed after", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {30, 0}}, "aborted"}, {[][2]uint64{{20, 1}, {0, 1}, {40, 0}}, "committed"}}, "aborted 10 30"},
		{"refused, and not known after", []transaction{{[][2]uint64{{0, 0}, {10, 0}}, "aborted"}, {[][2]uint64{{10, 1}}, "unknown"}}, "aborted 0 unknown 10"},
		{"three times", []transaction{{[][2]uint64{{0, 0}, {10, 0}}, "aborted"}, {[][2]uint64{{10, 1}, {10, 2}}, "committed"}, {[][2]uint64{{0, 1}, {20, 0}}, "aborted"}}, "aborted 0 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &lane{id: 3}
			tr := &transactor{s: &sender{lanes: []*lane{l}}}
			for _, x := range tt.txns {
				for _, s := range x.batches {
					l.addToTransaction(&load.Batch{First: s[0], Events: 10, Attempt: int32(s[1])})
				}
				tr.recordEnd(x.how == "committed", x.how == "aborted")
			}
			noted := map[bool]map[uint64]bool{true: {}, false: {}}
			tr.uncommitted(func(_ int32, first, events uint64, aborted bool) {
				for i := range events {
					noted[aborted][first+i] = true
				}
			})
			var got []string
			for _, aborted := range []bool{true, false} {
				if len(noted[aborted]) > 0 {
					got = append(got, map[bool]string{true: "aborted", false: "unknown"}[aborted])
				}
				for _, i := range slices.Sorted(maps.Keys(noted[aborted])) {
					if i%10 == 0 {
						got = append(got, strconv.FormatUint(i, 10))
					}
				}
				n := len(noted[aborted])
				assert.True(t, n%10 == 0, "%d events are reported, which are not complete batches", n)
			}
			assert.Equal(t, strings.Join(got, " "), tt.want)
		})
	}
}
