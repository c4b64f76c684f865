package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
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
	l.link = newLink(l, conn, f, l.link.topics)
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

// awaitCompleted waits for n outcomes.
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

// An answer to a request of which only a part was written violates the protocol. It ends the connection, but not the program.
func TestAnswerBeforeTheRequestIsWritten(t *testing.T) {
	t.Parallel()
	conn, broker := testkit.Pair(t)
	broker.SetReadBuffer(4 << 10)
	conn.SetWriteBuffer(4 << 10)
	_, l := openProducerOn(t, conn, 1, "size=8MiB", "batch-size=9MiB", "max-request=9MiB", "pool=9MiB")
	l.s.mu.Lock() // the lane gets another link when this one ends
	direct, format, sent := l.link.Out.Direct(), l.link.format, l.link.topics[0]
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
	topic.Topic, topic.TopicID = sent.Name, sent.ID
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

// A reader counts its connections, and those that it loses; and it knows when a partition is empty.
func TestReadersKnowTheirConnections(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
			put(t, c, records(100, 2, sized(10)))
			s := spec(t, urlOf(c, "t"), map[string][]string{"engine": {engine}, "fetch-wait": {"50ms"}})
			s.Op = cluster.OpConsume
			var lost atomic.Int64
			s.Happened = func(name string, _ time.Time, _ time.Duration) {
				if name == "connection lost" {
					lost.Add(1)
				}
			}
			sess := assert.Value(open(t, s))(t)
			src := sess.Source()
			connected, answering := src.Capabilities().Connected, src.Capabilities().Answering
			n, ok := connected()
			assert.True(t, n == 0 && ok, "%d connections before it reads, %t; want 0", n, ok)
			assert.Equal(t, answering.Patience(), 50*time.Millisecond, "the broker's patience")
			var cut atomic.Bool // the next request for records ends its connection
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if cut.CompareAndSwap(true, false) {
					return nil, errors.New("cut"), true
				}
				return nil, nil, false
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := time.Now()
			now := func() time.Duration { return time.Since(start) }
			var mu sync.Mutex
			events := 0
			done := make(chan error, 1)
			go func() {
				done <- src.Receive(ctx, now, func(_ int, as []load.Arrival) {
					mu.Lock()
					defer mu.Unlock()
					for _, a := range as {
						events += int(a.Events)
					}
				})
			}()
			reach := func(what string, ok func() bool) {
				t.Helper()
				for deadline := time.Now().Add(time.Minute); !ok(); {
					assert.Must(t, !time.Now().After(deadline), "not reached: %s", what)
					select {
					case err := <-done:
						t.Fatalf("it ended: %v", err)
					case <-time.After(5 * time.Millisecond):
					}
				}
			}
			have := func(n int) func() bool {
				return func() bool {
					mu.Lock()
					defer mu.Unlock()
					return events >= n
				}
			}
			emptied := func() []time.Duration { return answering.Emptied() }
			reach("all events", have(100))
			reach("connections", func() bool { n, _ := connected(); return n > 0 })
			reach("empty partitions", func() bool { e := emptied(); return len(e) == 2 && e[0] > 0 && e[1] > 0 })
			before := emptied()
			reach("the word that they are still empty", func() bool { e := emptied(); return e[0] > before[0] && e[1] > before[1] })
			assert.Equal(t, lost.Load(), 0, "connections lost")
			cut.Store(true)
			reach("a lost connection", func() bool { return lost.Load() == 1 })
			put(t, c, []*kgo.Record{{Partition: 0, Value: []byte("more")}, {Partition: 1, Value: []byte("more")}})
			reach("what came after it", have(102))
			cancel()
			<-done
			assert.Equal(t, lost.Load(), 1, "connections lost, without those that are closed at the end")
			assert.Equal[any](t, sess.Facts()["lost_connections"], uint64(1), "the facts lost connections")
			n, _ = connected()
			assert.True(t, n == 0, "%d connections at the end, want 0", n)
			var reconnects, requests uint64
			for _, m := range sess.Capabilities().Brokers() {
				reconnects, requests = reconnects+m.Reconnects, requests+m.Requests
			}
			assert.True(t, reconnects == 1 && requests >= 3, "%d reconnects and %d requests, want 1 and some", reconnects, requests)
		})
	}
}

// A broker that accepts connections, says what it can, and then closes them is asked again after pauses
// that grow, as one that cannot be reached.
func TestFetcherBacksOff(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	put(t, c, records(10, 2, sized(10)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int64
	var enough atomic.Bool
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if n := asked.Add(1); n >= 4 && enough.Load() {
			cancel()
		}
		return nil, errors.New("cut"), true
	})
	src := source(t, c, nil)
	start := time.Now()
	time.AfterFunc(2*time.Second, func() { enough.Store(true) })
	_ = src.Receive(ctx, func() time.Duration { return time.Since(start) }, func(int, []load.Arrival) {})
	took := time.Since(start)
	// Of each partition at once, again at once, and then after 80 ms, 160 ms and so on.
	n := asked.Load()
	assert.True(t, n <= 16+2*int64(took/time.Second), "%d requests in %v, want few", n, took)
}

// A partition that was read to its end is never silent.
func TestEmptiedAtTheEnd(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	put(t, c, []*kgo.Record{{Partition: 0, Value: []byte("one")}})
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		src := source(t, c, map[string][]string{"engine": {engine}, "until-end": {"true"}})
		got := drain(t, src, nil)
		assert.Must(t, got.events == 1, "%s: %d events, want 1", engine, got.events)
		first := src.Capabilities().Answering.Emptied()
		<-time.After(2 * time.Millisecond)
		for i, at := range src.Capabilities().Answering.Emptied() {
			assert.True(t, at > first[i], "%s: partition %d was empty at %v, and then at %v", engine, i, first[i], at)
		}
	}
}

// TestOpenTransactionBlocks: a reader of committed events ends before another producer's open transaction. The log does
// not end there: the reader lags behind it, and can say whose transaction it is.
func TestOpenTransactionBlocks(t *testing.T) {
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		t.Run(engine, func(t *testing.T) {
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			s := spec(t, urlOf(c, "t"), map[string][]string{"engine": {engine}, "isolation": {"committed"}})
			s.Op = cluster.OpRoundTrip
			sess := assert.Value(open(t, s))(t)
			src := sess.Source()
			seek, blocked := src.Capabilities().Seeker, src.Capabilities().Blocked
			text, err := blocked(t.Context())
			assert.True(t, text == "" && err == nil, "nothing is open: %q, %v", text, err)
			before := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t")))(t)
			defer before.Close()
			assert.OK(t, before.ProduceSync(t.Context(), kgo.StringRecord("before")).FirstErr())
			other := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"), kgo.TransactionalID("other")))(t)
			defer other.Close()
			assert.OK(t, other.BeginTransaction())
			assert.OK(t, other.ProduceSync(t.Context(), kgo.StringRecord("open")).FirstErr())
			assert.OK(t, before.ProduceSync(t.Context(), kgo.StringRecord("behind it")).FirstErr())
			id, _, err := other.ProducerID(t.Context())
			assert.OK(t, err)
			read := make(chan int32, 10)
			go func() {
				_ = src.Receive(t.Context(), func() time.Duration { return time.Second }, func(_ int, as []load.Arrival) {
					for i := range as {
						read <- as[i].Events
					}
				})
			}()
			assert.Equal(t, <-read, 1, "events before the transaction")
			testkit.Until(t, "the broker has said that there are more", func() bool { return seek.Positions()[0] >= 1 && src.Lag()[0] >= 2 })
			ends := assert.Value(seek.Ends(t.Context()))(t)
			if at, lag := seek.Positions()[0], src.Lag()[0]; ends[0] != 3 || at != 1 || lag != 2 {
				t.Errorf("read up to %d of %d, lag %d; want 1 of 3, and 2", at, ends[0], lag)
			}
			text, err = blocked(t.Context())
			want := fmt.Sprintf("the last stable offset of t-0 stands at 1, before its end at 3, because of the open transaction of producer id %d", id)
			assert.True(t, text == want && err == nil, "got %q, %v; want %q", text, err, want)
		})
	}
}
