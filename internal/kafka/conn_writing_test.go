package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
