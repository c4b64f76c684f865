package kafka

import (
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn/socket"
	"carronade/internal/kafka/cluster"
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
		Progress: cluster.NewProgress(nil, []int64{0}), cl: &cluster.Cluster{Config: c}, lanes: make([]sync.Mutex, 1),
		now: func() time.Duration { return time.Since(start) + time.Second },
		sink: func(_ int, as []load.Arrival) {
			got = as[0]
			<-time.After(handling)
		},
	}
	st := newFetcher(src, fetcherKey{}, "127.0.0.1:1")
	st.version = 12
	p := &part{id: 0, end: 1 << 62}
	st.added = []*part{p}
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
		if _, err := broker.Write(body); err != nil {
			t.Fatal(err)
		}
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
