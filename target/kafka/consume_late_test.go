package kafka

import (
	"encoding/binary"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/socket"
	"carronade/load"
)

func TestLateness(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	type cycle struct {
		before, after, arrived, at, throttle time.Duration
		more                                 bool
		want                                 time.Duration // of Earliest
	}
	for _, tt := range []struct {
		name   string
		cycles []cycle
	}{
		{"never late", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 50 * ms, want: 50 * ms},
			{before: 50 * ms, after: 50 * ms, arrived: 90 * ms, at: 90 * ms, want: 90 * ms},
		}},
		{"the first request is not late", []cycle{{before: 500 * ms, after: 501 * ms, arrived: 550 * ms, at: 550 * ms, want: 550 * ms}}},
		{"an answer waits to be read", []cycle{{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 80 * ms, want: 50 * ms}}},
		{"then the next request waits for the answer", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 80 * ms, want: 50 * ms},
			{before: 81 * ms, after: 82 * ms, arrived: 90 * ms, at: 91 * ms, want: 58 * ms}, // 32 ms and 1 ms
			{before: 91 * ms, after: 91 * ms, arrived: 99 * ms, at: 99 * ms, want: 98 * ms}, // over, except for 1 ms
		}},
		{"the rest of the log inherits the delay", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 10 * ms, at: 10 * ms, want: 10 * ms},
			{before: 110 * ms, after: 110 * ms, arrived: 120 * ms, at: 120 * ms, more: true, want: 20 * ms},
			{before: 125 * ms, after: 125 * ms, arrived: 130 * ms, at: 130 * ms, more: true, want: 25 * ms},
			{before: 130 * ms, after: 130 * ms, arrived: 140 * ms, at: 140 * ms, want: 35 * ms},
			{before: 140 * ms, after: 140 * ms, arrived: 150 * ms, at: 150 * ms, want: 150 * ms},
		}},
		{"unknown when it arrived", []cycle{
			{before: 1 * ms, after: 1 * ms, at: 50 * ms, want: 50 * ms},
			{before: 60 * ms, after: 60 * ms, at: 70 * ms, want: 60 * ms},
		}},
		{"the broker throttles", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 50 * ms, throttle: 100 * ms, want: 50 * ms},
			{before: 152 * ms, after: 152 * ms, arrived: 170 * ms, at: 170 * ms, want: 168 * ms},
		}},
		{"never 0, which means unknown", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 2 * ms, at: 2 * ms, want: 2 * ms},
			{before: 9 * ms, after: 9 * ms, arrived: 2 * ms, at: 9 * ms, want: 1},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l lateness
			p := &part{}
			for i, c := range tt.cycles {
				l.asked(c.before, c.after)
				l.answered(c.arrived, c.at)
				if got := l.earliest(p, c.at, c.more); got != c.want {
					t.Errorf("answer %d: got %v, want %v", i, got, c.want)
				}
				if c.throttle > 0 {
					l.throttled(c.throttle)
				}
			}
		})
	}
}

// TestFetcherReportsOwnDelay checks that the arrivals of a fetcher that reads late, or asks
// late, contain that delay.
func TestFetcherReportsOwnDelay(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the arrival time of answers is not known on this system")
	}
	const delay = 150 * time.Millisecond
	c, err := parseConfig(spec(t, "kafka://127.0.0.1:1/t", nil))
	if err != nil {
		t.Fatal(err)
	}
	var got load.Arrival
	var handling time.Duration
	start := time.Now()
	src := &wireSource{
		cl: &cluster{cfg: c}, lanes: make([]sync.Mutex, 1),
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if st.conn, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	defer st.conn.Close()
	st.in = socket.NewStamped(st.conn)
	broker, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()

	// cycle sends a request, makes the broker answer with three events while more remain,
	// waits, and handles the answer. It returns the fetcher's own delay.
	offset := int64(0)
	cycle := func(reading time.Duration, more int64) (own time.Duration) {
		t.Helper()
		if !st.takeAdded() {
			t.Fatal("nothing to read")
		}
		if err := st.ask(t.Context()); err != nil {
			t.Fatal(err)
		}
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
		frame, err := st.answer()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.handle(frame); err != nil {
			t.Fatal(err)
		}
		return got.At - got.Earliest
	}
	for st.in.Arrived(0, src.now()) == 0 { // the kernel starts to report it a moment after it was asked to
		cycle(0, 0)
		if time.Since(start) > time.Minute {
			t.Fatal("the kernel never reports when an answer arrived")
		}
	}
	if own := cycle(delay, 0); own < delay || got.Earliest <= 0 {
		t.Errorf("read %v late: got an own delay of %v", delay, own)
	}
	cycle(0, 0)
	handling = delay
	cycle(0, 0)
	handling = 0
	if own := cycle(0, 3); own < delay {
		t.Errorf("asked %v late: got an own delay of %v", delay, own)
	}
	if own := cycle(0, 0); own < delay {
		t.Errorf("the rest after an answer %v late has a delay of %v", delay, own)
	}
	if st.parts[0].ownDelay != 0 {
		t.Errorf("caught up, but the own delay is still %v", st.parts[0].ownDelay)
	}
}
