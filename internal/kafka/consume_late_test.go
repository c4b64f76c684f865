package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn/socket"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestFetcherReportsOwnDelay checks that the arrivals of a fetcher that reads late, or asks
// late, contain that delay.
func TestFetcherReportsOwnDelay(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the arrival time of answers is not known on this system")
	}
	const delay = 150 * time.Millisecond
	c := assert.Value(cluster.ParseConfig(spec(t, "kafka://127.0.0.1:1/t", nil)))(t)
	var got load.Arrival
	var handling time.Duration
	start := time.Now()
	src := &wireSource{
		Progress: cluster.NewProgress(nil, []int64{0}), cl: &cluster.Cluster{Config: c}, topics: []wire.Topic{{Name: "t"}}, lanes: make([]sync.Mutex, 1),
		now: func() time.Duration { return time.Since(start) + time.Second },
		sink: func(_ int, as []load.Arrival) {
			got = as[0]
			<-time.After(handling)
		},
	}
	st := newFetcher(src, fetcherKey{}, "127.0.0.1:1")
	st.version = 12
	p := &partition{id: 0, end: 1 << 62}
	st.added = []*partition{p}
	conn, broker := testkit.Pair(t)
	st.conn, st.in = conn, socket.NewStamped(conn)

	// cycle sends a request, makes the broker answer with three events while more remain,
	// waits, and handles the answer. It returns the fetcher's own delay.
	offset := int64(0)
	cycle := func(reading time.Duration, more int64) (own time.Duration) {
		t.Helper()
		assert.Must(t, st.takeAdded(), "nothing to read")
		assert.OK(t, st.ask(t.Context()))
		answer := kmsg.NewPtrFetchResponse()
		answer.SetVersion(st.version)
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic = "t"
		fp := kmsg.NewFetchResponseTopicPartition()
		b := batchOf(3)
		binary.BigEndian.PutUint64(b, uint64(offset))
		offset += 3
		fp.HighWatermark, fp.RecordBatches = offset+more, b
		topic.Partitions = append(topic.Partitions, fp)
		answer.Topics = append(answer.Topics, topic)
		body := answer.AppendTo([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0})
		binary.BigEndian.PutUint32(body, uint32(len(body)-4))
		binary.BigEndian.PutUint32(body[4:], uint32(st.corr))
		assert.Value(broker.Write(body))(t)
		<-time.After(reading)
		frame := assert.Value(st.answer())(t)
		assert.Value(st.handle(frame))(t)
		return got.At - got.Earliest
	}
	for st.in.Arrived(0, src.now()) == 0 { // the kernel starts to report it a moment after it was asked to
		cycle(0, 0)
		assert.Must(t, time.Since(start) <= time.Minute, "the kernel never reports when an answer arrived")
	}
	own := cycle(delay, 0)
	assert.True(t, own >= delay && got.Earliest > 0, "read %v late: got an own delay of %v", delay, own)
	cycle(0, 0)
	handling = delay
	cycle(0, 0)
	handling = 0
	own = cycle(0, 3)
	assert.True(t, own >= delay, "asked %v late: got an own delay of %v", delay, own)
	own = cycle(0, 0)
	assert.True(t, own >= delay, "the rest after an answer %v late has a delay of %v", delay, own)
	assert.Equal(t, st.parts[0].ownDelay, 0, "own delay after it caught up")
}

// batchOf is a record batch of n empty records.
func batchOf(n int32) []byte {
	var recs []byte
	for i := range n {
		recs = wire.AppendRecord(recs, i, nil, []byte("v"), []byte{0})
	}
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(recs))
	h := wire.Header{Length: int32(wire.HeaderSize + len(recs) - 12), LastOffsetDelta: n - 1, ProducerID: -1, NumRecords: n}
	h.Put(b)
	wire.Seal(b, wire.SumOf(recs))
	return append(b, recs...)
}

// A fetcher delivers the valid part of an answer before an error in it, since the
// partition is read from behind it later.
func TestFetcherDeliversBeforeAnError(t *testing.T) {
	t.Parallel()
	c := assert.Value(cluster.ParseConfig(spec(t, "kafka://127.0.0.1:1/t", nil)))(t)
	delivered := 0
	src := &wireSource{
		Progress: cluster.NewProgress(nil, []int64{0}), cl: &cluster.Cluster{Config: c}, topics: []wire.Topic{{Name: "t"}}, lanes: make([]sync.Mutex, 1),
		sink: func(_ int, as []load.Arrival) {
			for _, a := range as {
				delivered += int(a.Events)
			}
		},
		now: func() time.Duration { return 1 },
	}
	st := newFetcher(src, fetcherKey{}, "127.0.0.1:1")
	st.version = 12
	p := &partition{id: 0, end: 1 << 62}
	st.parts = []*partition{p}

	answer := kmsg.NewPtrFetchResponse()
	answer.SetVersion(st.version)
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic = "t"
	for _, id := range []int32{0, 7} { // 7 was not asked for
		fp := kmsg.NewFetchResponseTopicPartition()
		fp.Partition, fp.HighWatermark, fp.RecordBatches = id, 3, batchOf(3)
		topic.Partitions = append(topic.Partitions, fp)
	}
	answer.Topics = append(answer.Topics, topic)
	_, err := st.handle(answer.AppendTo([]byte{0}))
	assert.True(t, err != nil, "got no error for a partition that was not asked for")
	if delivered != 3 || p.offset != 3 || src.Next(0) != 3 {
		t.Errorf("got %d events delivered, offset %d, delivered offset %d, want 3 each", delivered, p.offset, src.Next(0))
	}
}

// A broker that does not answer must not delay the end of a run.
func TestFetcherEndsWhileABrokerIsSilent(t *testing.T) {
	t.Parallel()
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	c := assert.Value(cluster.ParseConfig(spec(t, "kafka://"+l.Addr().String()+"/t", nil)))(t)
	st := newFetcher(&wireSource{cl: &cluster.Cluster{Config: c}, lanes: make([]sync.Mutex, 1)}, fetcherKey{}, l.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- st.connect(ctx) }()
	conn := assert.Value(l.Accept())(t)
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 64)); err != nil { // the request
		t.Fatal(err)
	}
	cancel()
	assert.True(t, testkit.Wait(t, "the fetcher's end", done) != nil, "got no error")
	if st.conn != nil {
		st.conn.Close()
	}
}

// After a large answer, a fetcher gives its memory back once answers are small again; not
// while there are large ones now and then.
func TestFetcherShrinks(t *testing.T) {
	t.Parallel()
	const large = 8 << 20
	for _, tt := range []struct {
		name    string
		answers func(i int) int // sizes in bytes
		want    bool
	}{
		{"small ones", func(int) int { return 1000 }, true},
		{"large ones now and then", func(i int) int {
			if i%(shrinkAfter/2) == 0 {
				return large / 2
			}
			return 1000
		}, false},
		{"half of it", func(int) int { return large / 2 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := &fetcher{buf: make([]byte, large)}
			st.decoder.marks = make([]load.Stamp, 0, 1000)
			for i := range 2 * shrinkAfter {
				st.shrink(tt.answers(i))
			}
			assert.Equal(t, st.buf == nil && st.decoder.marks == nil, tt.want, "given back")
		})
	}
	st := &fetcher{buf: make([]byte, leastAnswer)}
	for range 2 * shrinkAfter {
		st.shrink(100)
	}
	assert.True(t, st.buf != nil, "a buffer of the least size was given back")
}

func sample(t *testing.T, c *kfake.Cluster, topic string, given map[string][]string, w SampleWork) (*SampleResult, map[int32]int, error) {
	t.Helper()
	s := spec(t, urlOf(c, topic), given)
	w.URL, w.Options, w.Given, w.Logf = s.URL, s.Options, s.Given, t.Logf
	found := map[int32]int{}
	w.Batch = func(partition int32, b *wire.Batch, records []byte, from, to int64) {
		err := wire.ForEachRecord(records, b.NumRecords, func(r *wire.Record) error {
			if offset := b.BaseOffset + int64(r.OffsetDelta); offset >= from && offset < to {
				found[partition]++
			}
			return nil
		})
		assert.True(t, err == nil, "%v", err)
	}
	ctx := testkit.Minute(t)
	r, err := Sample(ctx, w)
	return r, found, err
}

func TestSampleReadsATopic(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(3, "t"), kfake.SeedTopics(1, "empty"))
	put(t, c, records(3000, 3, sized(100)), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	for _, test := range []struct {
		name  string
		topic string
		given map[string][]string
		count uint64
		want  int
		whole bool
	}{
		{"all", "t", nil, 0, 3000, true},
		{"a part", "t", nil, 700, 700, false},
		{"as many as there are", "t", nil, 3000, 3000, true},
		{"from an offset", "t", map[string][]string{"from": {"400"}}, 0, 1800, false},
		{"an empty topic", "empty", nil, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, found, err := sample(t, c, test.topic, test.given, SampleWork{Count: test.count})
			assert.OK(t, err)
			got := 0
			for _, n := range found {
				got += n
			}
			assert.True(t, got == test.want && r.Read == uint64(test.want) && r.Whole == test.whole && !r.Interrupted,
				"got %d records, %+v, want %d, whole %v", got, r, test.want, test.whole)
		})
	}
}

func TestSampleOfNewRecords(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(10, 1, sized(100)))
	r, found, err := sample(t, c, "t", map[string][]string{"from": {"latest"}}, SampleWork{For: 300 * time.Millisecond})
	assert.True(t, err == nil && found[0] == 0 && !r.Whole && !r.Interrupted,
		"got %v, %d records and %+v, want none, and not everything", err, found[0], r)
}

func TestSampleRefuses(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t)
	_, _, err := sample(t, c, "missing", nil, SampleWork{})
	assert.True(t, err != nil && strings.Contains(err.Error(), "does not exist") && !errors.Is(err, context.Canceled),
		"got %v, want that the topic does not exist", err)
	assert.True(t, c.TopicInfo("missing") == nil, "reading a missing topic created it")
}
