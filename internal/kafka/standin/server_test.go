package standin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/standin/standintest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func produceOf(t *testing.T, records int, acks int16) *kmsg.ProduceRequest {
	t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(12)
	assert.OK(t, req.ReadFrom(produceFrame("t", 0, records, 10)[19:]))
	req.Acks = acks
	return req
}

func code(r kmsg.Response) int16 { return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode }

// TestServerAnswersWhenServed: each answer leaves when its last record is served, also between requests that were sent together.
func TestServerAnswersWhenServed(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Topics, opts.Capacity = []Topic{{"t", 1}}, standintest.Limited(10, 10_000)
		s := start(t, opts)
		cl := dial(t, s)
		begin := time.Now()
		first, second, third := produceOf(t, 1, 1), produceOf(t, 5, 1), produceOf(t, 1000, 1)
		assert.Value(cl.nc.Write(append(append(frameOf(first), frameOf(second)...), frameOf(third)...)))(t)
		for i, want := range []time.Duration{100 * time.Millisecond, 600 * time.Millisecond} {
			got := code(cl.receive(first))
			assert.Must(t, got == 0, "answer %d is error %d", i, got)
			if got := time.Since(begin); got < want {
				t.Errorf("answer %d came after %v, want %v at least", i, got, want)
			}
		}
		// The third would come after 100 s: the first two did not wait for it, as the deadline of the connection shows.
	})
}

// TestServerRefuses: what finds the queue full is refused with an error that clients
// understand as an overload. Without an answer it is lost.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Topics, opts.Capacity = []Topic{{"t", 1}}, standintest.Limited(1000, 2)
		s := start(t, opts)
		raw := dial(t, s)
		err := kerr.ErrorForCode(code(raw.ask(produceOf(t, 10, 1))))
		assert.Must(t, errors.Is(err, kerr.ThrottlingQuotaExceeded), "got %v from a batch that does not fit, want that the quota is exceeded", err)
		got := s.Counts()
		assert.True(t, got.Refused == 10 && got.Events == 0, "counted %+v, want 10 refused", got)
		raw.send(produceOf(t, 10, 0))
		assert.Equal(t, code(raw.ask(produceOf(t, 3, 1))), 0, "error from a batch for which there is room")
		got = s.Counts()
		assert.True(t, got.Refused == 20 && got.Events == 3, "counted %+v, want 20 refused and 3 taken", got)
		// What was refused is not in the log.
		want := int64(3)
		if opts.Discard {
			want += int64(opts.Events)
		}
		req := kmsg.NewPtrListOffsetsRequest()
		req.SetVersion(7)
		rt := kmsg.NewListOffsetsRequestTopic()
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rt.Topic, rp.Timestamp = "t", -1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		assert.Equal(t, raw.ask(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset, want, "end of the log")
	})
}

// TestServerAndAcksNone: records without an answer are served, and pass the broker.
func TestServerAndAcksNone(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Topics, opts.Capacity = []Topic{{"t", 1}}, standintest.Limited(10, 100)
		s := start(t, opts)
		raw := dial(t, s)
		begin := time.Now()
		raw.send(produceOf(t, 4, 0))
		got := code(raw.ask(produceOf(t, 1, 1)))
		assert.Must(t, got == 0, "got error %d", got)
		if got := time.Since(begin); got < 500*time.Millisecond {
			t.Errorf("answered after %v, want 500ms at least: four others are served before", got)
		}
		if got := s.Counts(); got.Events != 5 {
			t.Errorf("counted %+v, want 5 events", got)
		}
	})
}

// TestServerInRecord: the record has the arrivals and the answers, and no answer is earlier than a queue makes it.
func TestServerInRecord(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		const n = 200
		path := filepath.Join(t.TempDir(), "record.csv")
		opts.Record, opts.Topics, opts.Capacity = path, []Topic{{"t", 1}}, standintest.Limited(1000, n)
		s := start(t, opts)
		raw := dial(t, s)
		var all []byte
		for range n {
			all = append(all, frameOf(produceOf(t, 1, 1))...)
		}
		assert.Value(raw.nc.Write(all))(t)
		for range n {
			raw.receive(produceOf(t, 1, 1))
		}
		assert.OK(t, s.Close())
		rows := testkit.CSV(t, path)
		assert.Must(t, len(rows) == n+1, "%d rows, want %d", len(rows), n+1)
		served := int64(0)
		for _, r := range rows[1:] {
			arrived, err1 := strconv.ParseInt(r[7], 10, 64)
			writing, err2 := strconv.ParseInt(r[8], 10, 64)
			assert.Must(t, err1 == nil && err2 == nil, "%q is not answered", r)
			served = max(served, arrived) + int64(time.Millisecond)
			assert.True(t, writing >= served, "an answer left %d ns before its event was served", served-writing)
		}
	})
}

// TestRecord: the record contains what a client produces and consumes, by partition and offset, with the times of the answers.
func TestRecord(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		const events = 50
		path := filepath.Join(t.TempDir(), "record.csv")
		opts.Record, opts.Topics, opts.Events, opts.BatchEvents = path, []Topic{{"t", 1}}, 10, 10
		s := start(t, opts)
		cl := client(t, s, kgo.ConsumeTopics("t"), kgo.DefaultProduceTopic("t"))
		assert.OK(t, cl.ProduceSync(testkit.Minute(t), values(events)...).FirstErr())
		want := int64(events)
		if opts.Discard {
			want += 10 // synthetic records at the start
		}
		for got := int64(0); got < want; {
			f := cl.PollFetches(testkit.Minute(t))
			assert.OK(t, f.Err())
			got += int64(f.NumRecords())
		}
		cl.Close()
		assert.OK(t, s.Close())
		rows := testkit.CSV(t, path)
		assert.Must(t, len(rows) >= 3, "%q", rows)
		next := map[string]int64{"produce": want - events, "fetch": 0}
		for _, r := range rows[1:] {
			offset, err1 := strconv.ParseInt(r[5], 10, 64)
			n, err2 := strconv.ParseInt(r[6], 10, 64)
			if err1 != nil || err2 != nil || r[4] != "0" || offset != next[r[2]] {
				t.Fatalf("%q: want the offset %d of partition 0", r, next[r[2]])
			}
			next[r[2]] += n
			assert.True(t, r[7] != "" && r[8] != "" && r[9] != "", "%q is not answered", r)
		}
		assert.True(t, next["produce"] == want && next["fetch"] == want,
			"produced up to %d, fetched up to %d, want %d", next["produce"], next["fetch"], want)
	})
}

func forBoth(t *testing.T, f func(t *testing.T, opts Options)) {
	t.Run("broker", func(t *testing.T) { f(t, Options{Listen: "127.0.0.1:0"}) })
	t.Run("discard", func(t *testing.T) { f(t, Options{Listen: "127.0.0.1:0", Discard: true, Events: 3000}) })
}

func start(t *testing.T, opts Options) Server {
	t.Helper()
	s := assert.Value(Start(opts))(t)
	t.Cleanup(func() { assert.OK(t, s.Close(), "closing the stand-in") })
	return s
}

func client(t *testing.T, s Server, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl := assert.Value(kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.Addr()), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("t"),
	}, opts...)...))(t)
	t.Cleanup(cl.Close)
	return cl
}

func values(n int) (records []*kgo.Record) {
	for i := range n {
		records = append(records, &kgo.Record{Value: fmt.Appendf(nil, "value %d", i)})
	}
	return records
}

func consume(ctx context.Context, t *testing.T, cl *kgo.Client, n int) (records []*kgo.Record) {
	t.Helper()
	for len(records) < n {
		fs := cl.PollFetches(ctx)
		assert.OK(t, fs.Err0(), "read after %d of %d records", len(records), n)
		fs.EachError(func(topic string, p int32, err error) { t.Fatalf("fetching %s/%d: %v", topic, p, err) })
		records = append(records, fs.Records()...)
	}
	return records
}

func TestProduce(t *testing.T) {
	t.Parallel()
	codecs := []struct {
		name  string
		codec kgo.CompressionCodec
		acks  kgo.Acks
		plain bool // not idempotent
	}{
		{"none, all, idempotent", kgo.NoCompression(), kgo.AllISRAcks(), false},
		{"none, leader", kgo.NoCompression(), kgo.LeaderAck(), true},
		{"none, no acks", kgo.NoCompression(), kgo.NoAck(), true},
		{"gzip", kgo.GzipCompression(), kgo.AllISRAcks(), false},
		{"snappy", kgo.SnappyCompression(), kgo.AllISRAcks(), false},
		{"lz4", kgo.Lz4Compression(), kgo.AllISRAcks(), false},
		{"zstd", kgo.ZstdCompression(), kgo.AllISRAcks(), false},
	}
	forBoth(t, func(t *testing.T, opts Options) {
		for _, c := range codecs {
			t.Run(c.name, func(t *testing.T) {
				s := start(t, opts)
				kopts := []kgo.Opt{kgo.ProducerBatchCompression(c.codec), kgo.RequiredAcks(c.acks)}
				if c.plain {
					kopts = append(kopts, kgo.DisableIdempotentWrite())
				}
				cl := client(t, s, kopts...)
				const want = 5000
				assert.OK(t, cl.ProduceSync(testkit.Minute(t), values(want)...).FirstErr())
				// Without acks the client is ahead of the stand-in, and the stand-in counts records before its broker has them.
				ctx := testkit.Minute(t)
				grown := func() (sum int64) {
					ends := assert.Value(kadm.NewClient(cl).ListEndOffsets(ctx, "t"))(t)
					ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
					if opts.Discard {
						sum -= 3 * int64(opts.Events)
					}
					return sum
				}
				for (s.Counts().Events < want || grown() < want) && ctx.Err() == nil {
				}
				assert.Equal(t, s.Counts().Events, want, "events counted")
				assert.Equal(t, grown(), want, "growth of the end offsets")
			})
		}
	})
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		s := start(t, opts)
		ctx := testkit.Minute(t)
		const n = 2000
		assert.OK(t, client(t, s).ProduceSync(ctx, values(n)...).FirstErr())
		want := n
		if opts.Discard {
			want += 3 * int(opts.Events)
		}
		cl := client(t, s, kgo.ConsumeTopics("t"))
		next := map[int32]int64{}
		for _, r := range consume(ctx, t, cl, want) {
			assert.Must(t, r.Offset == next[r.Partition], "partition %d: got offset %d, want %d", r.Partition, r.Offset, next[r.Partition])
			next[r.Partition]++
			assert.Must(t, !opts.Discard || len(r.Value) == 100, "got a synthetic event of %d bytes, want 100", len(r.Value))
		}
		// The end is reached: the next record is the one produced now.
		assert.OK(t, client(t, s).ProduceSync(ctx, values(1)...).FirstErr())
		got := consume(ctx, t, cl, 1)[0]
		assert.Equal(t, got.Offset, next[got.Partition], "offset after the end")
	})
}

func TestGroup(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		s := start(t, opts)
		ctx := testkit.Minute(t)
		const n = 3000
		producer := client(t, s)
		assert.OK(t, producer.ProduceSync(ctx, values(n)...).FirstErr())
		want := n
		if opts.Discard {
			want += 3 * int(opts.Events)
		}
		group := func() *kgo.Client {
			return client(t, s, kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"), kgo.DisableAutoCommit())
		}
		one := group()
		consume(ctx, t, one, want)
		assert.OK(t, one.CommitUncommittedOffsets(ctx))
		one.Close()
		committed := assert.Value(kadm.NewClient(producer).FetchOffsets(ctx, "g"))(t)
		sum := int64(0)
		committed.Each(func(o kadm.OffsetResponse) { sum += o.At })
		assert.Equal(t, sum, int64(want), "sum of committed offsets")
		// Two members share what follows.
		two, three := group(), group()
		got := make(chan int, 2)
		pollCtx, stop := context.WithCancel(ctx)
		defer stop()
		poll := func(cl *kgo.Client) {
			for pollCtx.Err() == nil {
				got <- len(cl.PollFetches(pollCtx).Records())
			}
		}
		go poll(two)
		go poll(three)
		assert.OK(t, producer.ProduceSync(ctx, values(n)...).FirstErr())
		for total := 0; total < n; {
			select {
			case k := <-got:
				total += k
			case <-ctx.Done():
				t.Fatalf("two members read %d of %d", total, n)
			}
		}
		stop()
	})
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		s := start(t, opts)
		ctx := testkit.Minute(t)
		cl := client(t, s, kgo.TransactionalID("tx"))
		for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
			assert.OK(t, cl.BeginTransaction())
			assert.OK(t, cl.ProduceSync(ctx, values(10)...).FirstErr(), "transaction %d", i)
			assert.OK(t, cl.EndTransaction(ctx, end), "transaction %d", i)
		}
		assert.Equal(t, s.Counts().Events, 30, "events")
	})
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Topics = []Topic{{"seeded", 5}}
		s := start(t, opts)
		ctx := testkit.Minute(t)
		cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(s.Addr())))(t)
		defer cl.Close()
		adm := kadm.NewClient(cl)
		assert.Value(adm.CreateTopic(ctx, 2, 1, nil, "made"))(t)
		topics := assert.Value(adm.ListTopics(ctx, "seeded", "made", "missing"))(t)
		wantID := "carronade-standin"
		if opts.Discard {
			wantID = "carronade-discard"
		}
		meta, err := adm.BrokerMetadata(ctx)
		assert.True(t, err == nil && meta.Cluster == wantID, "got cluster %q, %v; want %q", meta.Cluster, err, wantID)
		assert.Equal(t, len(topics["seeded"].Partitions), 5, "partitions of the seeded topic")
		got := topics["missing"].Err
		assert.True(t, errors.Is(got, kerr.UnknownTopicOrPartition), "got %v for a missing topic, want %v", got, kerr.UnknownTopicOrPartition)
		produce := func(partition int32) error {
			p := client(t, s, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			return p.ProduceSync(ctx, &kgo.Record{Topic: "made", Partition: partition, Value: []byte("v")}).FirstErr()
		}
		assert.OK(t, produce(1))
		assert.Value(adm.CreatePartitions(ctx, 2, "made"))(t)
		err = produce(3)
		assert.True(t, err == nil, "producing to an added partition: %v", err)
		assert.Value(adm.DeleteTopics(ctx, "made"))(t)
		assert.Value(adm.CreateTopic(ctx, 1, 1, nil, "made"))(t)
		ends := assert.Value(adm.ListEndOffsets(ctx, "made"))(t)
		want := int64(0)
		if opts.Discard {
			want = int64(opts.Events)
		}
		o, _ := ends.Lookup("made", 0)
		assert.True(t, o.Offset == want, "got end offset %d of a topic created again, want %d", o.Offset, want)
	})
}
