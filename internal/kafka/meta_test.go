package kafka

import (
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
			v, _, err := readView(m, []string{topic}, nil, nil)
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
	_, _, err := readView(kmsg.NewPtrMetadataResponse(), []string{topic}, nil, nil)
	assert.True(t, err != nil, "got no error for an answer without topics")
}

// TestViewWithoutOne: a topic that was deleted keeps its leaders, and those of the others change.
func TestViewWithoutOne(t *testing.T) {
	names := []string{"gone", "here"}
	answer := func(codes []int16, leader int32) *kmsg.MetadataResponse {
		m := kmsg.NewPtrMetadataResponse()
		m.SetVersion(12)
		for id := range int32(3) {
			m.Brokers = append(m.Brokers, kmsg.MetadataResponseBroker{NodeID: id, Host: "h", Port: 9000 + id})
		}
		for i, code := range codes {
			top := kmsg.MetadataResponseTopic{Topic: &names[i], ErrorCode: code, TopicID: [16]byte{byte(i + 1)}}
			if code == 0 {
				top.Partitions = []kmsg.MetadataResponseTopicPartition{{Leader: leader, LeaderEpoch: leader}}
			} else {
				top.TopicID = [16]byte{}
			}
			m.Topics = append(m.Topics, top)
		}
		return m
	}
	unknown := kerr.UnknownTopicOrPartition.Code
	old, known, err := readView(answer([]int16{0, 0}, 1), names, nil, nil)
	assert.OK(t, err)
	v, _, err := readView(answer([]int16{unknown, 0}, 2), names, known, old)
	assert.OK(t, err)
	assert.Same(t, v.leaders, []int32{1, 2}, "leaders")
	assert.Same(t, v.epochs, []int32{1, 2}, "epochs")
	assert.Same(t, v.topics, old.topics, "topics")
	_, _, err = readView(answer([]int16{unknown, unknown}, 2), names, known, old)
	assert.ErrorHas(t, err, "topic here: UNKNOWN_TOPIC_OR_PARTITION", "all topics")
	_, _, err = readView(answer([]int16{unknown, 0}, 2), names, nil, nil)
	assert.ErrorHas(t, err, "topic gone: UNKNOWN_TOPIC_OR_PARTITION", "at first")
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
			s.later = append(s.later, &slot{log: 1}) // partition 1 has no leader
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
