package kafka

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func TestReadView(t *testing.T) {
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
		name            string
		version, code   int16
		parts           []kmsg.MetadataResponseTopicPartition
		leaders, epochs []int32
		wantErr         string
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

// waitingSender returns a sender with a partition that waits for an answer and ten batches of one without a leader.
// All its lanes are nil: code that looks at one panics.
func waitingSender(partitions, lanes int) *sender {
	s := &sender{routes: make([]atomic.Pointer[lane], partitions), partitions: make([]partitionState, partitions), lanes: make([]*lane, lanes)}
	s.partitions[0].inFlight = 1
	s.startRecovery(0)
	for range 10 {
		s.later = append(s.later, &slot{log: 1})
	}
	return s
}

// TestDispatchLooksAtWhatWaits: not at each lane, nor at a partition that is not listed, though it would find it ready.
func TestDispatchLooksAtWhatWaits(t *testing.T) {
	s := waitingSender(1000, 1000)
	s.now = time.Second
	for i := range s.partitions[2:] { // with a batch that is too late
		sl := &slot{log: int32(2 + i), deadline: time.Millisecond}
		s.partitions[2+i].recovering, s.partitions[2+i].queue = true, []*slot{sl}
	}
	s.dispatch()
	assert.True(t, slices.Equal(s.recovering, []int32{0}) && len(s.later) == 10, "partitions %v and %d batches wait, want 0 and 10", s.recovering, len(s.later))
	for i, ps := range s.partitions[2:] {
		assert.True(t, len(ps.queue) == 1, "it looked at partition %d", 2+i)
	}
}

// BenchmarkDispatch has the same result for any number of partitions and brokers.
func BenchmarkDispatch(b *testing.B) {
	for _, n := range []int{2, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := waitingSender(n, max(1, n/1000))
			for b.Loop() {
				s.dispatch()
			}
		})
	}
}

// When a partition begins a new epoch, a batch that may be in the log already is given up as unknown. Under
// new numbers the broker could not detect the duplicate.
func TestNewEpochSendsNothingTwice(t *testing.T) {
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
	assert.True(t, len(s.outcomes) == 1 && s.outcomes[0].Unknown == 10, "outcomes %+v, want ten events unknown", s.outcomes)
}

// A spot is where a record is.
type spot struct {
	part   int32
	offset int64
}

func recordsIn(t testing.TB, path string) (all []spot) {
	t.Helper()
	topic, err := wire.ReadList(path, func(r wire.ListRun) error {
		for i := range r.Count {
			all = append(all, spot{r.Partition, r.Offset + i})
		}
		return nil
	})
	assert.Must(t, err == nil && topic == "events", "topic %q: %v", topic, err)
	return all
}

func writeList(t testing.TB, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list")
	assert.OK(t, os.WriteFile(path, []byte(lines), 0o600))
	return path
}

// TestListsWhatWasAcked: the list of a run that produces has each acked record once, with
// either engine, and a run that reads it reads exactly these.
func TestListsWhatWasAcked(t *testing.T) {
	t.Parallel()
	events := testkit.Cases(3000, 700)
	for name, given := range map[string]map[string][]string{
		"wire":       {"clients": {"2"}},
		"idempotent": {"idempotent": {"true"}, "acks": {"all"}},
		"client":     {"engine": {cluster.EngineClient}, "clients": {"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := eventsCluster(t, 3, kfake.NumBrokers(2))
			putEvents(t, c, records(60, 3, sized(10))) // not of this run
			list := filepath.Join(t.TempDir(), "list")
			given["items-out"] = []string{list}
			s := spec(t, fakeURL(c.ListenAddrs()), given)
			s.Clients = max(1, s.Options.Int("clients"))
			sess := assert.Value(open(t, s))(t)
			ctx := testkit.Minute(t)
			r := assert.Value(load.Fire(ctx, load.Plan{BatchEvents: 7, Concurrency: 4, Measurement: load.Limits{Events: uint64(events)}}, sess.Target()))(t)
			assert.OK(t, sess.Capabilities().Finish())
			acked := int(r.Measurement.Acked)
			if got := sess.Facts()["items_listed"]; got != uint64(acked) || acked < events {
				t.Errorf("%v records listed, %d acked", got, acked)
			}
			got := recordsIn(t, list)
			slices.SortFunc(got, func(a, b spot) int { return int(int64(a.part-b.part)*1e9 + a.offset - b.offset) })
			n := len(slices.Compact(got))
			assert.Must(t, n == acked, "%d different records in the list, %d acked", n, acked)
			for _, p := range got {
				assert.Must(t, p.offset >= 20, "%v is not of this run", p)
			}
			var mu sync.Mutex
			seen := 0
			plan := load.Plan{BatchEvents: 1, Concurrency: 8, Observe: func(out []load.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				for _, o := range out {
					assert.True(t, o.Place >= 20, "offset %d was read", o.Place)
					seen += int(o.Events)
				}
			}}
			again := filepath.Join(t.TempDir(), "list")
			read, sess := fireReads(t, c, plan, map[string][]string{"items-in": {list}, "items-out": {again}, "clients": {"2"}})
			assert.True(t, int(read.Measurement.Acked) == acked && seen == acked,
				"%d records read, %d seen, of %d: %v", read.Measurement.Acked, seen, acked, read.Failures)
			assert.OK(t, sess.Capabilities().Finish())
			of := recordsIn(t, again)
			slices.SortFunc(of, func(a, b spot) int { return int(int64(a.part-b.part)*1e9 + a.offset - b.offset) })
			assert.True(t, slices.Equal(of, got), "the list of what was read has %d records, and differs", len(of))
		})
	}
}

// TestReadsInTheOrderOfTheList: records are read in the list's order, and those that are
// not there fail, are in no list, and do not hide the others of their batch.
func TestReadsInTheOrderOfTheList(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := filled(t, 2, 100, 50)
	list := writeList(t, "# topic: events\n1,90,3\n0,5\n1,3,2\n0,99,5\n")
	var got []spot
	out := filepath.Join(t.TempDir(), "out")
	r, sess := fireReads(t, c, load.Plan{BatchEvents: 1, Concurrency: 1, Observe: func(o []load.Outcome) {
		for _, o := range o {
			got = append(got, spot{offset: o.Place})
		}
	}}, map[string][]string{"items-in": {list}, "items-out": {out}})
	want := []spot{{0, 90}, {0, 91}, {0, 92}, {0, 5}, {0, 3}, {0, 4}, {0, 99}, {0, 100}, {0, 101}, {0, 102}, {0, 103}}
	assert.True(t, slices.Equal(got, want) && r.Measurement.Acked == 7 && r.Classes["rejected"] == 4,
		"%v read, %d acked, %v", got, r.Measurement.Acked, r.Failures)
	assert.OK(t, sess.Capabilities().Finish())
	assert.Equal(t, len(recordsIn(t, out)), 7, "records listed")
}

// TestAppendFound: of a batch with gaps, the list has the records that are there.
func TestAppendFound(t *testing.T) {
	raw := wireBatch(t, 10, wire.None, []int32{0, 1, 4, 9}, values(4, 8), nil)
	raw = append(raw, wireBatch(t, 20, wire.None, dense(10), values(10, 8), nil)...)
	var got []wire.ListRun
	assert.Value(wire.ForEachBatch(raw, func(b wire.Batch) error { got = appendFound(got, &b, b.Records(), 11, 25); return nil }))(t)
	want := []wire.ListRun{{Offset: 11, Count: 1}, {Offset: 14, Count: 1}, {Offset: 19, Count: 6}}
	assert.True(t, slices.Equal(got, want), "got %v, want %v", got, want)
}

// TestListingLines: lines are bounded, so that partitions alternate when they are read.
func TestListingLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	out := assert.Value(wire.CreateList(path, "events"))(t)
	l := &listing{out: out, runs: make([]wire.ListRun, 2)}
	for i := range int64(2 * mostInLine) {
		l.add(0, i, 1)
		l.add(1, i, 1)
	}
	l.add(1, -1, 3)
	assert.OK(t, l.finish())
	text := assert.Value(os.ReadFile(path))(t)
	want := "\n0,0,4096\n1,0,4096\n0,4096,4096\n1,4096,4096\n"
	assert.True(t, strings.HasSuffix(string(text), want), "got %q", text)
	w := l.warnings()
	assert.True(t, len(w) == 1 && strings.Contains(w[0], "lacks 3 records"), "warnings: %v", w)
}

// TestListErrors: what is wrong with a list is an error with a place, before anything is
// sent, and leaves an older list unchanged.
func TestListErrors(t *testing.T) {
	t.Parallel()
	c := filled(t, 2, 10, 50)
	folder := t.TempDir()
	old := writeList(t, "0,1\n")
	for _, tt := range []struct {
		op    string
		given map[string][]string
		want  string
	}{
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "0,1\n2,1\n")}}, ":2: the topic events has 2 partitions, and no partition 2"},
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "0,1\nx\n")}}, `:2: "x" is not PARTITION,OFFSET`},
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "# topic: others\n0,1\n")}}, "is a list of records of the topic others, not of events"},
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "# topic: events\n")}}, "has no records"},
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "0,1,9223372036854775800\n1,1,9\n")}}, ":2: the list has more than 2^63 records"},
		{cluster.OpRead, map[string][]string{"items-in": {filepath.Join(folder, "absent")}}, "no such file"},
		{cluster.OpRead, map[string][]string{"items-in": {old}, "items-out": {old}}, "is also the list of items-in"},
		{cluster.OpProduce, map[string][]string{"items-out": {filepath.Join(folder, "absent", "list")}}, "make the list of items-out: open "},
		{cluster.OpProduce, map[string][]string{"items-out": {old}, "acks": {"0"}}, "items-out needs acknowledgements"},
		{cluster.OpProduce, map[string][]string{"items-out": {old}, "partitioner": {"fixed(7)"}}, "no partition 7"},
	} {
		s := spec(t, fakeURL(c.ListenAddrs()), tt.given)
		s.Op = tt.op
		_, err := open(t, s)
		assert.ErrorHas(t, err, tt.want, "%s %v", tt.op, tt.given)
	}
	text, err := os.ReadFile(old)
	assert.True(t, err == nil && string(text) == "0,1\n", "the older list has %q (%v)", text, err)
}

// The items of a list have the order in which they were added, and come again if they are recycled.
func TestItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			part   int32
			offset int64
		}
		list := &items{recycle: rapid.Bool().Draw(t, "recycle")}
		var want []item
		for range rapid.IntRange(0, 20).Draw(t, "spans") {
			part, from := rapid.Int32Range(0, 3).Draw(t, "partition"), rapid.Int64Range(0, 40).Draw(t, "offset")
			n := rapid.Uint64Range(0, 5).Draw(t, "items")
			list.add(part, from, n)
			for i := range n {
				want = append(want, item{part, from + int64(i)})
			}
		}
		for n := range uint64(len(want)) {
			part, offset, left := list.at(n)
			if left == 0 || (item{part, offset}) != want[n] {
				t.Fatalf("item %d is offset %d of partition %d, with %d left; want %+v", n, offset, part, left, want[n])
			}
			for i := range min(left, len(want)-int(n)) {
				if next := want[int(n)+i]; next != (item{part, offset + int64(i)}) {
					t.Fatalf("item %d, %d after item %d, is %+v", int(n)+i, i, n, next)
				}
			}
		}
		_, _, left := list.at(uint64(len(want)))
		if again := list.recycle && len(want) > 0; (left > 0) != again {
			t.Fatalf("after the last of %d items there are %d, recycled %v", len(want), left, list.recycle)
		}
	})
}

// TestWholeTopic: every record between the starts and the ends is one item.
func TestWholeTopic(t *testing.T) {
	t.Parallel()
	starts, ends := []int64{0, 100, 7, 5000}, []int64{3000, 100, 8, 9000}
	list := wholeTopic(starts, ends, false)
	assert.Must(t, list.n == 3000+1+4000, "%d items, want 7001", list.n)
	seen := map[[2]int64]bool{}
	turns, last := 0, int32(-1)
	for n := range list.n {
		part, offset, _ := list.at(n)
		assert.Must(t, offset >= starts[part] && offset < ends[part] && !seen[[2]int64{int64(part), offset}],
			"item %d is offset %d of partition %d, again or outside", n, offset, part)
		seen[[2]int64{int64(part), offset}] = true
		if part != last {
			turns, last = turns+1, part
		}
	}
	assert.True(t, turns >= 6, "the partitions took %d turns: they should alternate", turns)
}

// inspect looks at a target until a time is over.
func inspect(t *testing.T, s protocol.Spec, within time.Duration) (protocol.Inspection, error) {
	t.Helper()
	return protocoltest.Inspect(t, Kind{}, s, within)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	server, ca := authority(t)
	plaintext := fakeCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "t"))
	secured := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.TLS(server))
	login := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "alice", "right"))
	secret := t.TempDir() + "/password"
	writeFile(t, secret, "right")
	unused := testkit.Listen(t, func(*net.TCPConn) {})
	missing := func(op string) protocol.Spec {
		s := spec(t, urlOf(plaintext, "none"), nil)
		s.Op = op
		return s
	}
	inspects := protocoltest.Inspector(t, Kind{})
	inspects("brokers", spec(t, urlOf(plaintext, "t"), nil), "brokers", protocol.LevelOK, "3 brokers answer at the addresses that they advertise")
	inspects("a topic", spec(t, urlOf(plaintext, "t"), nil), "topic", protocol.LevelOK, "the topic t has 6 partitions", "advertised")
	inspects("a missing topic", missing(""), "topic", protocol.LevelWarning, "the topic none does not exist", "replication")
	inspects("a missing topic that is only read", missing("consume"), "topic", protocol.LevelError, "does not exist")
	inspects("a missing topic that is created", spec(t, urlOf(plaintext, "none"), map[string][]string{"create-topic": {"partitions=2"}}), "topic", protocol.LevelOK, "the run creates it")
	inspects("one seed is closed", spec(t, "kafka://"+plaintext.ListenAddrs()[0]+","+testkit.ClosedPort+"/t", nil), "address "+testkit.ClosedPort, protocol.LevelWarning, "does not answer as a broker")
	inspects("the clock", spec(t, urlOf(plaintext, "t"), nil), "clock", protocol.LevelOK, "run on this machine")
	inspects("no login", spec(t, urlOf(plaintext, "t"), nil), "login", protocol.LevelOK, "without TLS and without a login")
	inspects("TLS", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-ca": {ca}}), "certificate", protocol.LevelWarning, "expires in")
	inspects("any certificate", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-insecure-skip-verify": {"true"}}), "login", protocol.LevelNote, "any certificate is accepted")
	inspects("SASL", spec(t, urlOf(login, "t"), map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"alice"}, "password": {"file:" + secret}}), "login", protocol.LevelOK, "PLAIN as alice")
	in, err := inspect(t, spec(t, urlOf(plaintext, "t"), map[string][]string{"clients": {"4"}}), time.Minute)
	assert.True(t, err == nil && in.Connections == 12 && len(in.Addresses) == 3, "%d connections to %v, %v", in.Connections, in.Addresses, err)
	wrong := t.TempDir() + "/wrong"
	writeFile(t, wrong, "wrong")
	_, otherCA := authority(t)
	for _, tt := range []struct {
		name       string
		spec       protocol.Spec
		want, hint string
	}{
		{"a closed port", spec(t, "kafka://"+testkit.ClosedPort+"/t", nil), "refused", "carronade standin kafka"},
		{"another authority", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-ca": {otherCA}}), "unknown authority", "--tls-ca"},
		{"without TLS", spec(t, urlOf(secured, "t"), nil), "speaks TLS", "--tls"},
		{"another protocol", spec(t, "kafka://"+unused+"/t", nil), "", "another protocol"},
		{"a wrong password", spec(t, urlOf(login, "t"), map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"alice"}, "password": {"file:" + wrong}}), "log in by PLAIN", ""},
		{"without a login", spec(t, urlOf(login, "t"), nil), "requires a login", "--sasl-mechanism"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := inspect(t, tt.spec, time.Minute)
			protocoltest.Explained(t, err, tt.want, tt.hint)
			assert.True(t, len(in.Addresses) > 0, "no addresses")
		})
	}
}

// A server that takes everything and never answers, and a broker that advertises such an address, end with the deadline.
func TestInspectBlackHole(t *testing.T) {
	t.Parallel()
	testkit.Need(t, "some seconds")
	silent := testkit.Listen(t, func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	if _, err := inspect(t, spec(t, "kafka://"+silent+"/t", nil), 300*time.Millisecond); err == nil {
		t.Error("a server that does not answer is fine")
	}
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	host, port, _ := net.SplitHostPort(silent)
	n, _ := strconv.Atoi(port)
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		m := req.(*kmsg.MetadataRequest)
		res := m.ResponseKind().(*kmsg.MetadataResponse)
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = 7, host, int32(n)
		res.Brokers = append(res.Brokers, b)
		for range m.Topics {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Leader, p.Replicas, p.ISR = 7, []int32{7}, []int32{7}
			rt := kmsg.NewMetadataResponseTopic()
			rt.Topic, rt.Partitions = new("t"), append(rt.Partitions, p)
			res.Topics = append(res.Topics, rt)
		}
		return res, nil, true
	})
	// A busy machine may need more than a second to find out about the brokers.
	in, err := inspect(t, spec(t, urlOf(c, "t"), nil), time.Second)
	for within := 2 * time.Second; err != nil && within < time.Minute; within *= 2 {
		in, err = inspect(t, spec(t, urlOf(c, "t"), nil), within)
	}
	assert.OK(t, err)
	f := protocoltest.FindingOf(in.Findings, "advertised address")
	protocoltest.Found(t, f, protocol.LevelError, "broker 7 advertises "+silent)
	assert.True(t, strings.Contains(f.Effect, "leads 1 of the 1 partitions"), "the effect is %q", f.Effect)
}

// TestInspectReal looks at a real cluster: its version, its settings and its quotas are known,
// and a topic that does not exist is not created by looking.
func TestInspectReal(t *testing.T) {
	t.Parallel()
	c := kafkatest.Shared(t)
	topic := fillTopic(t, c, 3, 10, nil)
	in := assert.Value(inspect(t, spec(t, "kafka://"+c.Bootstrap()+"/"+topic, map[string][]string{"acks": {"all"}}), time.Minute))(t)
	var text strings.Builder
	for _, f := range in.Findings {
		fmt.Fprintf(&text, "%s: %v: %s\n", f.Check, f.Level, f.Found)
		assert.True(t, f.Level < protocol.LevelWarning, "got %+v", f)
	}
	assert.Has(t, text.String(),
		"by their API versions Kafka ", "topic: ok: the topic "+topic+" has 3 partitions", "min.insync.replicas is 1", "quotas: ok: ", "retention: ok: ", "cleanup.policy is delete")
	absent := kafkatest.TopicName(t) + "-absent"
	for range 2 {
		in := assert.Value(inspect(t, spec(t, "kafka://"+c.Bootstrap()+"/"+absent, nil), time.Minute))(t)
		protocoltest.Found(t, protocoltest.FindingOf(in.Findings, "topic"), protocol.LevelWarning, "does not exist")
	}
}

// identifying are settings that identify a broker.
var identifying = []string{"broker.id", "node.id", "listeners", "advertised.listeners", "log.dirs", "controller.quorum.voters"}

func TestOpenAsksBrokersForTheirSettings(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"), kfake.NumBrokers(2), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "123456"}))
	s := assert.Value(open(t, spec(t, urlOf(c, "t"), nil)))(t)
	got, _ := s.Facts()["broker_settings"].(map[string]string)
	assert.True(t, got["message.max.bytes"] == "123456" && s.Facts()["brokers_described"] == 2,
		"got %v of %v brokers", got, s.Facts()["brokers_described"])
	for _, name := range identifying {
		assert.Equal(t, got[name], "", "the fact %s", name)
	}
}

// The version and rack of our stand-ins mean nothing, so reports leave them out.
func TestStandInsHaveNoRack(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{"carronade-standin": false, "carronade-discard": false, "another-s": true} {
		c := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.NumBrokers(1), kfake.ClusterID(id))
		s := assert.Value(open(t, spec(t, urlOf(c, "t"), nil)))(t)
		brokers, _ := s.Facts()["brokers"].([]map[string]any)
		if len(brokers) != 1 {
			t.Fatalf("got %v, want one broker", s.Facts()["brokers"])
		}
		_, rack := brokers[0]["rack"]
		_, version := brokers[0]["version"]
		assert.True(t, rack == want && version == want, "%s: got %v, want a rack and a version: %v", id, brokers[0], want)
	}
}
