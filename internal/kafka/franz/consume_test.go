package franz

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/payload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// A reader that has read to the end knows it: it is not behind, and the partition counts as empty, but not before the last events
// were polled. For a reader of committed events, an open transaction is the end of what it gets, but it lags behind the log.
func TestCaughtUp(t *testing.T) {
	t.Parallel()
	for isolation, want := range map[string]int{"uncommitted": 4, "committed": 2} {
		t.Run(isolation, func(t *testing.T) {
			c := kafkatest.Fake(t, kfake.SeedTopics(1, "t"))
			client := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"), kgo.TransactionalID("x")))(t)
			defer client.Close()
			for _, commit := range []bool{true, false} {
				assert.OK(t, client.BeginTransaction())
				assert.OK(t, client.ProduceSync(t.Context(), kgo.StringRecord("a"), kgo.StringRecord("b")).FirstErr())
				if commit {
					assert.OK(t, client.EndTransaction(t.Context(), kgo.TryCommit))
				}
			}
			// The answer with the events is the only one: no later answer says that there are no more events.
			var answered atomic.Bool
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if answered.Swap(true) {
					return nil, errors.New("the test closes this connection"), true
				}
				return nil, nil, false
			})
			s := assert.Value(NewSource(t.Context(), connect(t, cluster.OpConsume, "kafka://"+c.ListenAddrs()[0]+"/t", map[string][]string{
				"engine": {cluster.EngineClient}, "isolation": {isolation},
			}), false))(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			var events int
			var last time.Duration
			err := s.Receive(ctx, func() time.Duration { return time.Since(start) }, func(_ int, as []load.Arrival) {
				for _, a := range as {
					events, last = events+int(a.Events), a.At
				}
				if events >= want {
					cancel()
				}
			})
			assert.Must(t, errors.Is(err, context.Canceled) && events == want, "got %d events and %v, want %d", events, err, want)
			assert.Equal(t, s.Lag()[0], int64(4-want), "events that are in the log and were not read")
			at := s.Emptied()[0]
			assert.True(t, at >= last, "the partition counts as empty at %v, the last events were polled at %v", at, last)
		})
	}
}

// A reader's own delay counts until it has read to the end. For a reader of committed events, that is the
// last stable offset, if the broker says it.
func TestOwnDelayCountsToTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name         string
		committed    bool
		stable, next int64 // the last stable offset, and the offset that is read next
		counts       bool
	}{
		{"uncommitted, up to the last stable offset", false, 5, 5, true},
		{"uncommitted, up to the high watermark", false, 5, 10, false},
		{"committed, before the last stable offset", true, 5, 4, true},
		{"committed, up to the last stable offset", true, 5, 5, false},
		{"committed, the broker does not say it", true, -1, 5, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &cluster.Config{Fetch: cluster.Fetching{Committed: tt.committed}}
			r := &reader{s: &Source{cl: &cluster.Cluster{Config: c}}, lateness: newOwnLateness(nil, nil)}
			r.lateness.log(0).ownDelay = time.Millisecond
			r.addArrival(&kgo.FetchTopicPartition{FetchPartition: kgo.FetchPartition{
				HighWatermark: 10, LastStableOffset: tt.stable, Records: []*kgo.Record{{Offset: tt.next - 1}},
			}}, 0, time.Second)
			assert.Equal(t, r.lateness.log(0).ownDelay > 0, tt.counts, "whether the own delay counts for what comes next")
		})
	}
}

// TestGroupBegins: a new group of a round trip begins where the logs ended when the run began; what it has committed, and
// where a consumer wants to begin, stay.
func TestGroupBegins(t *testing.T) {
	c := kafkatest.Fake(t, kfake.SeedTopics(2, "t"))
	for _, op := range []string{cluster.OpRoundTrip, cluster.OpConsume} {
		s := assert.Value(NewSource(t.Context(), connect(t, op, "kafka://"+c.ListenAddrs()[0]+"/t", map[string][]string{"group": {"g"}, "engine": {"client"}}), false))(t)
		end := kgo.NewOffset().AtEnd()
		got := assert.Value(s.fromStarts(t.Context(), map[string]map[int32]kgo.Offset{"t": {0: end, 1: kgo.NewOffset().At(7)}, "other": {0: end}}))(t)
		want := map[bool]int64{true: 0, false: -1}[op == cluster.OpRoundTrip]
		for p, at := range map[int32]int64{0: want, 1: 7} {
			assert.Equal(t, got["t"][p].EpochOffset().Offset, at, "%s, partition %d", op, p)
		}
		assert.Equal(t, got["other"][0].EpochOffset().Offset, -1, "%s, another topic", op)
	}
}

// TestClientLateness checks that the time for which fetched records wait for a poll
// counts as the reader's delay, for them and for what the client fetches next.
func TestClientLateness(t *testing.T) {
	const ms = time.Millisecond
	l := newOwnLateness(func() time.Duration { return 0 }, func(_ string, p int32) int32 { return p })
	ask := func(at time.Duration, broker int32) { l.asked(broker, at, at) }
	read := func(at time.Duration, broker int32, logs ...int32) {
		l.answered(broker, at)
		for _, log := range logs {
			l.OnFetchBatchRead(kgo.BrokerMetadata{NodeID: broker}, "t", log, kgo.FetchBatchMetrics{})
		}
	}
	type log struct {
		log  int32
		more bool
		want time.Duration
	}
	poll := func(at time.Duration, logs ...log) {
		t.Helper()
		for _, g := range logs {
			assert.Equal(t, l.earliest(g.log, at, g.more), g.want, "earliest at %v of log %d", at, g.log)
		}
		l.endPoll(at)
	}
	ask(5*ms, 1)
	ask(5*ms, 2)
	read(10*ms, 1, 0, 2)
	poll(10*ms+1, log{0, false, 10 * ms}, log{2, false, 10 * ms})
	ask(10*ms, 1)
	read(20*ms, 1, 0)
	read(21*ms, 2, 1)
	poll(120*ms, log{0, false, 20 * ms}, log{1, false, 21 * ms}) // 100 ms late
	ask(120*ms, 2)
	read(125*ms, 2, 1)
	poll(125*ms+1, log{1, true, 26 * ms}) // requested 99 ms late
	ask(125*ms, 2)
	read(130*ms, 2, 1)
	poll(130*ms+1, log{1, false, 31 * ms}) // the rest of the log inherits that delay
	ask(133*ms, 1)
	read(135*ms, 1, 2)
	poll(135*ms+1, log{2, false, 22 * ms}) // log 2 waited for the poll of log 0: asked 113 ms late
	ask(130*ms, 2)
	read(140*ms, 2, 1)
	poll(140*ms+1, log{1, false, 140 * ms})
	poll(150*ms, log{1, false, 140*ms + 1}) // unknown when it was read: after the last poll
	ask(142*ms, 2)                          // 2 ms late
	l.OnBrokerThrottle(kgo.BrokerMetadata{NodeID: 2}, 7*ms, true)
	read(160*ms, 2, 1)
	l.OnBrokerThrottle(kgo.BrokerMetadata{NodeID: 2}, 7*ms, true)
	ask(168*ms, 2) // 1 ms after the broker's pause
	read(169*ms, 2, 1)
	poll(165*ms, log{1, false, 158 * ms})
	poll(170*ms, log{1, false, 168 * ms})
	ask(170*ms, 2)
	l.lost(2)
	ask(300*ms, 2) // on another connection
	read(301*ms, 2, 1)
	poll(302*ms, log{1, false, 301 * ms})
}

// TestFetchConn: requests for records and their answers are recognized among others, in
// pieces of any size; the time of an answer is when it arrived, not when it was read.
func TestFetchConn(t *testing.T) {
	t.Parallel()
	for _, piece := range []int{1, 3, 1000} {
		ours, broker := testkit.Pair(t)
		now := time.Duration(0)
		l := newOwnLateness(func() time.Duration { return now }, func(string, int32) int32 { return 0 })
		c := newFetchConn(ours, l)
		l.OnBrokerConnect(kgo.BrokerMetadata{NodeID: 4}, 0, c, nil)
		got := func() fetchAnswer { return l.fetches(4).newest }
		request := func(key kmsg.Key, at time.Duration) {
			t.Helper()
			now = at
			b := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 6}, uint16(key))
			assert.Value(c.Write(append(b, 0, 0, 0, 0)))(t)
		}
		answer := func(size int, at time.Duration) {
			t.Helper()
			now = at
			assert.Value(broker.Write(append(binary.BigEndian.AppendUint32(nil, uint32(size)), make([]byte, size)...)))(t)
			for left := 4 + size; left > 0; {
				n := assert.Value(c.Read(make([]byte, min(piece, left))))(t)
				left -= n
			}
		}
		const ms = time.Millisecond
		request(kmsg.ApiVersions, 1*ms)
		answer(50, 2*ms)
		assert.Equal(t, got(), (fetchAnswer{}), "times after the answer to another request")
		request(kmsg.Fetch, 3*ms)
		answer(100, 10*ms)
		a := got()
		assert.True(t, a.arrived > 0 && a.arrived <= 10*ms && a.askDelay == 0, "the first answer: %v", a)
		first := got().arrived
		request(kmsg.Fetch, 13*ms)
		answer(0, 20*ms)
		answer(9, 20*ms)
		a = got()
		assert.True(t, a.arrived >= 13*ms && a.arrived <= 20*ms && a.askDelay == 13*ms-first, "the second answer: %v, the first arrived at %v", a, first)
		request(kmsg.Fetch, 21*ms)
		assert.OK(t, c.Close())
		assert.Equal(t, l.fetches(4).late.CouldAsk, 0, "when a request on another connection could have been written")
	}
}

func watched(reported *int) *traffic {
	var tr traffic
	tr.init(&cluster.Config{Happened: func(string, time.Time, time.Duration) { *reported++ }})
	return &tr
}

// checkNoneLost checks that no connection was lost, how many are open, and that the others are forgotten.
func checkNoneLost(t *testing.T, tr *traffic, reported, open int) {
	t.Helper()
	n := tr.lost.Load()
	assert.True(t, n == 0 && reported == 0, "%d connections are lost, and %d reported; want none", n, reported)
	assert.Equal(t, tr.connections(), open, "connections open")
	tr.mu.Lock()
	defer tr.mu.Unlock()
	assert.Equal(t, len(tr.early), 0, "connections without a beginning")
}

// A connection that was never open, or that was not to a broker yet, is not lost, and does not stay open.
func TestConnectionsThatAreNotLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		broker int32
		hooks  []string
	}{
		{"it ends before its beginning is reported", 1, []string{"end", "begin"}},
		{"the broker cannot be reached", 1, []string{"fail"}},
		{"it is to a server whose id is not known", -1, []string{"begin", "end"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var reported int
			tr, meta, nc := watched(&reported), kgo.BrokerMetadata{NodeID: tt.broker}, &scriptedConn{}
			for _, hook := range tt.hooks {
				switch hook {
				case "begin":
					tr.OnBrokerConnect(meta, 0, nc, nil)
				case "fail":
					tr.OnBrokerConnect(meta, 0, nil, errors.New("refused"))
				case "end":
					tr.OnBrokerDisconnect(meta, nc)
				}
			}
			checkNoneLost(t, tr, reported, 0)
		})
	}
}

// The client reports the end of a connection that a broker closes at once before it reports that it failed.
func TestConnectionClosedAtOnce(t *testing.T) {
	t.Parallel()
	c := kafkatest.Fake(t)
	var reported int
	tr := watched(&reported)
	client := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.WithHooks(tr)))(t)
	defer client.Close()
	assert.OK(t, client.Ping(t.Context())) // on a connection that stays open
	c.ControlKey(int16(kmsg.ApiVersions), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, errors.New("the test closes this connection"), true
	})
	_, err := client.Broker(0).Request(t.Context(), kmsg.NewPtrMetadataRequest())
	assert.Must(t, err != nil, "the broker answered, want an error")
	checkNoneLost(t, tr, reported, 1)
}

// The client engine compresses with the wire engine's codecs, other clients can read
// the result, and any number of goroutines may compress at once.
func TestClientCompressor(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, 16_000)
	for i := range src {
		src[i] = byte('A' + r.IntN(26))
	}
	for _, tt := range []struct {
		name  string
		codec kgo.CompressionCodecType
		most  float64
	}{
		{"gzip", kgo.CodecGzip, 0.65}, {"snappy", kgo.CodecSnappy, 1.01}, {"lz4", kgo.CodecLz4, 1.01}, {"zstd", kgo.CodecZstd, 0.62},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := assert.Value(kgo.NewClient(compressionOf(tt.name)))(t)
			defer opts.Close()
			c, ok := opts.OptValue(kgo.WithCompressor).(kgo.Compressor)
			assert.Must(t, ok, "the client has no compressor")
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					var dst bytes.Buffer
					for range 10 {
						dst.Reset()
						out, codec := c.Compress(&dst, src)
						back, err := kgo.DefaultDecompressor().Decompress(out, codec)
						assert.True(t, codec == tt.codec && err == nil && bytes.Equal(back, src),
							"codec %v, %d bytes, %v", codec, len(back), err)
						got := float64(len(out)) / float64(len(src))
						assert.True(t, got <= tt.most, "compressed to %.3f, want at most %.3f", got, tt.most)
					}
				})
			}
			all.Wait()
		})
	}
	z := &compressor{codec: 4}
	out, codec := z.Compress(new(bytes.Buffer), src, kgo.CompressDisableZstd)
	assert.True(t, codec == kgo.CodecNone && bytes.Equal(out, src), "a broker without zstd gets codec %v", codec)
}

// TestClientHeadersAllocateNothing: headers that vary use the memory of their batch.
func TestClientHeadersAllocateNothing(t *testing.T) {
	gen := assert.Value(payload.New(payload.Spec{Size: "10", Headers: []string{"n=${this.last() + 1}%{-1}", "at=${time:nanos()}", "same=x"}}))(t)
	c := &content{}
	cfg := &cluster.Config{Clients: 1, Fresh: true}
	c.prepare(gen, cfg, false)
	p := &Producer{cfg: cfg, gen: gen, streams: cluster.NewStreams(cfg, []cluster.TopicLogs{{Name: "events", Partitions: 1}}, gen, 1)}
	to := &liveBatch{l: &lane{s: &sender{p: p}}, records: make([]kgo.Record, 50)}
	batch := load.Batch{Events: 50}
	n := testing.AllocsPerRun(100, func() { c.fill(to, &batch); batch.First += 50 })
	assert.True(t, n < 1, "%v allocations a batch", n)
	var bytes int64
	want := c.fill(to, &batch)
	for i := range to.records {
		r := &to.records[i]
		assert.Must(t, len(r.Headers) == 3 && r.Headers[0].Key == "n" && r.Headers[2].Key == "same" &&
			string(r.Headers[2].Value) == "x", "record %d has the headers %v", i, r.Headers)
		bytes += int64(len(r.Key) + len(r.Value))
		for _, h := range r.Headers {
			bytes += int64(len(h.Key) + len(h.Value))
		}
	}
	assert.Equal(t, bytes, want, "bytes of the records")
}

// What the client's goroutines waited for a processor, between being handed a batch and
// writing it, is not the broker's; what they waited for an answer is.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		name                         string
		due, written, room, at, want time.Duration
	}{
		{"written at once", 100 * ms, 100 * ms, 0, 105 * ms, 0},
		{"written late", 100 * ms, 108 * ms, 0, 113 * ms, 8 * ms},
		{"written when there was room", 100 * ms, 120 * ms, 120 * ms, 125 * ms, 0},
		{"later than that", 100 * ms, 122 * ms, 120 * ms, 127 * ms, 2 * ms},
		{"room before it was handed over", 100 * ms, 103 * ms, 90 * ms, 108 * ms, 3 * ms},
		{"not known when", 100 * ms, 0, 0, 113 * ms, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a answerTimes
			a.start(func() time.Duration { return 0 })
			a.add(3, answerAt{1000, tt.at - ms, tt.written, tt.room})
			a.add(3, answerAt{2000, tt.at, tt.written, tt.room})
			a.add(3, answerAt{3000, tt.at + ms, tt.written, tt.room})
			at, unwritten := a.find(3, 2999, tt.due)
			assert.True(t, at == tt.at && unwritten == tt.want, "got %v and %v, want %v and %v", at, unwritten, tt.at, tt.want)
			at, unwritten = a.find(3, 999, tt.due)
			assert.True(t, at == 0 && unwritten == 0, "of an offset before all: %v and %v, want 0", at, unwritten)
		})
	}
}

// The first of several answers can have arrived earlier than the reader woke by as much
// as the reader was late recently, but not while the socket was still empty.
func TestReaderWakesLate(t *testing.T) {
	const ms = time.Millisecond
	r := readTimes{emptyAt: 10 * ms}
	steps := []struct {
		name                         string
		at, arrived, want, wantDelay time.Duration
	}{
		{"the kernel's time is not known", 20 * ms, 0, 20 * ms, 0},
		{"at once", 20 * ms, 20 * ms, 20 * ms, 0},
		{"the clocks differ a little", 20 * ms, 20*ms + 1000, 20 * ms, 0},
		{"late", 36 * ms, 20 * ms, 10 * ms, 16 * ms},
		{"at once, after one that was late", 40 * ms, 40 * ms, 25 * ms, 15 * ms},
		{"not known, after one that was late", 60 * ms, 0, 60*ms - (15*ms - 15*ms/16), 15*ms - 15*ms/16},
	}
	for _, tt := range steps {
		if r.woken(tt.at, tt.arrived); r.wokenAt != tt.want || r.delay != tt.wantDelay {
			t.Errorf("%s: got %v with a delay of %v, want %v with %v", tt.name, r.wokenAt, r.delay, tt.want, tt.wantDelay)
		}
	}
}
