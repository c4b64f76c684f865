package franz

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/payload"
	"carronade/test/testkit/assert"
)

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
	c := assert.Value(kfake.NewCluster(kfake.NumBrokers(1)))(t)
	defer c.Close()
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
	gen, err := payload.New(payload.Spec{Size: "10", Headers: []string{"n=${this.last() + 1}%{-1}", "at=${time:nanos()}", "same=x"}})
	assert.OK(t, err)
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
		name                   string
		due, written, room, at time.Duration
		want                   time.Duration
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
	t.Parallel()
	const ms = time.Millisecond
	r := readTimes{emptyAt: 10 * ms}
	steps := []struct {
		name            string
		at, arrived     time.Duration
		want, wantDelay time.Duration
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
