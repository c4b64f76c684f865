package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestReadView(t *testing.T) {
	t.Parallel()
	const topic = "events"
	broker := func(id int32) kmsg.MetadataResponseBroker {
		return kmsg.MetadataResponseBroker{NodeID: id, Host: "h", Port: 9000 + id}
	}
	part := func(p, leader, epoch int32, err *kerr.Error) kmsg.MetadataResponseTopicPartition {
		m := kmsg.MetadataResponseTopicPartition{Partition: p, Leader: leader, LeaderEpoch: epoch}
		if err != nil {
			m.ErrorCode = err.Code
		}
		return m
	}
	for _, tt := range []struct {
		name    string
		version int16
		code    int16
		parts   []kmsg.MetadataResponseTopicPartition
		leaders []int32
		epochs  []int32
		wantErr string
	}{
		{name: "two", version: 12, parts: []kmsg.MetadataResponseTopicPartition{part(1, 2, 5, nil), part(0, 1, 4, nil)}, leaders: []int32{1, 2}, epochs: []int32{4, 5}},
		{name: "no epochs yet", version: 6, parts: []kmsg.MetadataResponseTopicPartition{part(0, 1, 0, nil)}, leaders: []int32{1}, epochs: []int32{-1}},
		{name: "no leader", version: 12, code: kerr.LeaderNotAvailable.Code, parts: []kmsg.MetadataResponseTopicPartition{part(0, -1, 4, kerr.LeaderNotAvailable)}, leaders: []int32{noLeader}, epochs: []int32{4}},
		{name: "a leader that is not listed", version: 12, parts: []kmsg.MetadataResponseTopicPartition{part(0, 9, 4, nil)}, leaders: []int32{noLeader}, epochs: []int32{4}},
		{name: "unknown", version: 12, code: kerr.UnknownTopicOrPartition.Code, wantErr: "topic events: UNKNOWN_TOPIC_OR_PARTITION"},
		{name: "forbidden", version: 12, code: kerr.TopicAuthorizationFailed.Code, wantErr: "topic events: TOPIC_AUTHORIZATION_FAILED"},
		{name: "no partitions", version: 12, wantErr: "topic events has no partitions"},
		{name: "a number too high", version: 12, parts: []kmsg.MetadataResponseTopicPartition{part(7, 1, 4, nil)}, wantErr: "partition 7 of 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := kmsg.NewPtrMetadataResponse()
			m.SetVersion(tt.version)
			m.Brokers = []kmsg.MetadataResponseBroker{broker(1), broker(2)}
			other, name := "other", topic
			m.Topics = []kmsg.MetadataResponseTopic{{Topic: &other}, {Topic: &name, ErrorCode: tt.code, Partitions: tt.parts}}
			v, err := readView(m, topic)
			if tt.wantErr != "" {
				assert.ErrorHas(t, err, tt.wantErr, "error")
				return
			}
			assert.OK(t, err)
			assert.Same(t, v.leaders, tt.leaders, "leaders")
			assert.Same(t, v.epochs, tt.epochs, "epochs")
			assert.Equal(t, v.brokers[2], "h:9002", "brokers %v", v.brokers)
		})
	}
	_, err := readView(kmsg.NewPtrMetadataResponse(), topic)
	assert.True(t, err != nil, "got no error for an answer without topics")
}

// A partition without a leader has no lane. When it has a leader again, Ready is called.
func TestRouteWithoutLeader(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 2)
	p := openProducer(t, c.ListenAddrs(), nil)
	q := &readySink{countSink: countSink{start: time.Now(), completed: make(chan int, 10)}, ready: make(chan int, 10)}
	p.Start(q)
	v := *p.metadata.view.Load()
	with := v.leaders
	v.leaders = []int32{noLeader, with[1]}
	p.senders[0].update(&v)
	l := p.Route(0)
	assert.True(t, l == nil, "lane %v serves a partition without a leader", l)
	assert.True(t, p.Route(1) != nil, "the other partition has no lane")
	select {
	case l := <-q.ready:
		t.Errorf("got Ready(%d), want no call", l)
	default:
	}
	v.leaders = with
	p.senders[0].update(&v)
	assert.Equal(t, <-q.ready, -1, "Ready()")
	assert.True(t, p.Route(0) != nil, "no lane, although the partition has a leader")
}

// A readySink is a quiet sink that passes on calls of Ready.
type readySink struct {
	countSink
	ready chan int
}

func (q *readySink) Ready(lane int, _ time.Duration) { q.ready <- lane }

func TestBackoff(t *testing.T) {
	t.Parallel()
	for n, ms := range map[int32]int64{1: 100, 2: 200, 3: 400, 4: 800, 5: 1000, 1 << 30: 1000} {
		want := time.Duration(ms) * time.Millisecond
		for range 100 {
			got := backoff(n)
			assert.Must(t, got >= want*8/10 && got <= want*12/10, "after %d attempts %v, want about %v", n, got, want)
		}
	}
}

// TestDispatchCost checks that the cost of dispatch depends on how many batches and
// partitions wait, and not on the number of partitions and brokers.
func TestDispatchCost(t *testing.T) {
	testkit.OnlyConformance(t, "it compares durations")
	cost := func(partitions, brokers int) time.Duration {
		s := &sender{routes: make([]atomic.Pointer[lane], partitions), partitions: make([]partitionState, partitions)}
		for i := range brokers {
			s.lanes = append(s.lanes, &lane{s: s, broker: int32(i)})
		}
		s.partitions[0].inFlight = 1
		s.startRecovery(0) // partition 0 waits for an answer
		for range 10 {
			s.later = append(s.later, &slot{part: 1}) // partition 1 has no leader
		}
		const rounds = 100
		best := time.Duration(1<<63 - 1)
		for range 10 {
			began := time.Now()
			for range rounds {
				s.dispatch()
			}
			best = min(best, time.Since(began))
		}
		assert.Must(t, len(s.recovering) == 1 && len(s.later) == 10,
			"%d partitions and %d batches wait, want 1 and 10", len(s.recovering), len(s.later))
		return best
	}
	few, many := cost(2, 1), cost(1_000_000, 1000)
	few = max(few, time.Microsecond)
	assert.True(t, many <= 50*few, "100 calls take %v with two partitions, %v with a million", few, many)
}

// When a partition begins a new epoch, a batch that may be in the log already is given up as unknown. Under
// new numbers the broker could not detect the duplicate.
func TestNewEpochSendsNothingTwice(t *testing.T) {
	t.Parallel()
	s := &sender{p: &producer{}, pid: 7, epoch: 3}
	l := &lane{s: s}
	newSlot := func(seq int32, maybe bool) *slot {
		sl := &slot{lane: l, batch: load.Batch{Seq: uint64(seq), Events: 10}, count: 10, seq: seq, maybeAppended: maybe, liveIndex: len(s.live), sent: -1, class: load.Refused, text: "lost"}
		s.live = append(s.live, sl)
		return sl
	}
	ps := &partitionState{pid: 7, epoch: 3, next: 30, needsEpoch: true}
	doubtful, first, second := newSlot(0, true), newSlot(10, false), newSlot(20, false)
	ps.queue = append(ps.queue, doubtful, first, second)
	assert.Must(t, s.renumber(ps), "no new epoch")
	assert.Must(t, len(ps.queue) == 2 && ps.queue[0] == first && ps.queue[1] == second,
		"%d batches are sent again, want the two that were certainly not appended", len(ps.queue))
	assert.True(t, first.seq == 0 && second.seq == 10 && ps.next == 20 && ps.epoch == 4,
		"sequences %d, %d, then %d in epoch %d; want 0, 10, 20 in 4", first.seq, second.seq, ps.next, ps.epoch)
	assert.True(t, len(s.outcomes) == 1 && s.outcomes[0].Unknown == 10,
		"outcomes %+v, want ten events unknown", s.outcomes)
}

// openProducerOn opens a producer whose only lane uses the connection given.
func openProducerOn(t *testing.T, conn net.Conn, partitions int32, given ...string) (*rig, *lane) {
	t.Helper()
	p := openProducer(t, eventsCluster(t, partitions).ListenAddrs(), nil, given...)
	l := p.senders[0].lanes[0]
	f := l.link.format
	l.link.Conn.Close()
	l.link = newLink(l, conn, f)
	return newRig(t, p), l
}

// sendEach sends a batch of one event to each partition, with one call of Fire.
func sendEach(t *testing.T, l *lane, partitions int32) {
	t.Helper()
	var batches []load.Batch
	for i := range partitions {
		batches = append(batches, load.Batch{Seq: uint64(i), Stream: i, Events: 1, DueFirst: -1, DueLast: -1})
	}
	n := l.Fire(batches)
	assert.Must(t, n == len(batches), "%d of %d batches taken", n, len(batches))
	l.Flush()
}

func (r *rig) awaitCompleted(n int) []load.Outcome {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		out := r.outcomes
		r.mu.Unlock()
		if len(out) >= n {
			return out
		}
		select {
		case <-r.wake:
		case <-deadline:
			r.t.Fatalf("%d of %d batches completed", len(out), n)
		}
	}
}

// An answer to a request of which only a part was written violates the protocol. It
// ends the connection, but not the program.
func TestAnswerBeforeTheRequestIsWritten(t *testing.T) {
	t.Parallel()
	conn, broker := testkit.Pair(t)
	broker.SetReadBuffer(4 << 10)
	conn.SetWriteBuffer(4 << 10)
	_, l := openProducerOn(t, conn, 1, "size=8MiB", "batch-size=9MiB", "max-request=9MiB", "pool=9MiB")
	l.s.mu.Lock() // the lane gets another link when this one ends
	direct, format := l.link.Out.Direct(), l.link.format
	l.s.mu.Unlock()
	if !direct {
		t.Skip("without writev, a write writes all bytes or ends the connection")
	}
	sendEach(t, l, 1)

	var head [14]byte
	assert.Value(io.ReadFull(broker, head[:]))(t)
	answer := kmsg.NewPtrProduceResponse()
	answer.SetVersion(format.Version)
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic, topic.TopicID = format.Topic, format.TopicID
	topic.Partitions = append(topic.Partitions, kmsg.NewProduceResponseTopicPartition())
	answer.Topics = append(answer.Topics, topic)
	b := append([]byte{0, 0, 0, 0}, head[8:12]...) // its correlation id
	if answer.IsFlexible() {
		b = append(b, 0)
	}
	b = answer.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	assert.Value(broker.Write(b))(t)
	// Only a part of the request may have been written when the connection ends.
	n, err := io.Copy(io.Discard, broker)
	assert.True(t, n < 8<<20, "got %d bytes (%v): writing of the request went on", n, err)
}

// The producer gives up a connection whose broker reads nothing, even if it does not
// know how much of a write went out. What was not written goes over another connection.
func TestBrokerReadsNothing(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	conn, broker := net.Pipe() // no *net.TCPConn, as with TLS: one blocking write for everything
	defer broker.Close()
	// The other broker must answer within the time, even if the machine stalls.
	r, l := openProducerOn(t, conn, 2, "batch-events=1", "request-timeout=4s")
	sendEach(t, l, 2)
	for _, o := range r.awaitCompleted(2) {
		assert.Equal(t, o.Acked, 1, "got %+v, want it acked by the broker that reads", o)
	}
}

// Pending describes for each connection what the producer waits for.
func TestPending(t *testing.T) {
	conn, broker := net.Pipe()
	defer broker.Close()
	r, l := openProducerOn(t, conn, 2, "batch-events=1")
	all := func() string { return strings.Join(r.p.Pending(), "\n") }
	got, want := all(), "nothing in flight"
	assert.True(t, strings.Contains(got, want), "got %q, want %q", got, want)
	sendEach(t, l, 2)
	for _, want := range []string{"broker 0 at 127.0.0.1:", " without an answer", "not written because the socket is full"} {
		got := all()
		assert.True(t, strings.Contains(got, want), "got %q, want %q", got, want)
	}
	l.s.mu.Lock()
	link := l.link
	l.link, l.outage.Err = nil, errBrokerClosed
	l.s.mu.Unlock()
	got, want = all(), "without a connection for "
	assert.True(t, strings.Contains(got, want), "got %q, want %q", got, want)
	l.s.mu.Lock()
	l.link = link
	l.s.mu.Unlock()
}

// What is being written when the run ends may have been written completely, so it does not count as failed.
func TestCloseWhileWriting(t *testing.T) {
	t.Parallel()
	conn, broker := net.Pipe() // no *net.TCPConn, as with TLS: one blocking write for everything
	defer broker.Close()
	r, l := openProducerOn(t, conn, 2, "batch-events=1")
	sendEach(t, l, 2)
	var size [4]byte
	assert.Value(io.ReadFull(broker, size[:]))(t)
	// The broker reads the first request completely, and none of the second.
	assert.Value(io.CopyN(io.Discard, broker, int64(binary.BigEndian.Uint32(size[:]))))(t)
	assert.OK(t, l.Close())
	for _, o := range r.awaitCompleted(2) {
		assert.True(t, o.Stream != 0 || o.Unknown == 1,
			"got %d failed (%s), want it unknown: the broker has read all of it", o.Failed, o.Text)
	}
}
