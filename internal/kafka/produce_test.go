package kafka

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"carronade/internal/kafka/cluster"
	standinkafka "carronade/internal/kafka/standin"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// What is produced can be read back, with every option that affects batches.
func TestProduceArrives(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		given  []string
		change func(*cluster.Config)
		batch  int // events per batch; 0: as many as fit
	}{
		{name: "plain"},
		{name: "gzip", given: []string{"compression=gzip"}},
		{name: "snappy", given: []string{"compression=snappy"}},
		{name: "lz4", given: []string{"compression=lz4"}},
		{name: "zstd", given: []string{"compression=zstd"}},
		{name: "zstd, part of a batch", given: []string{"compression=zstd"}, batch: 37},
		{name: "part of a batch", batch: 41},
		{name: "one event per batch", given: []string{"batch-size=4KiB"}, change: func(c *cluster.Config) { c.BatchEvents = 1 }},
		{name: "keys and headers", given: []string{"key=uniform(100)", "header=a=b", "header=source=carronade"}},
		{name: "keys choose the partition", given: []string{"key=uniform(100)", "partitioner=murmur2"}},
		{name: "keys choose, lz4, fresh", given: []string{"key=zipf(50,1.1)", "partitioner=murmur2", "compression=lz4", "fresh=true"}},
		{name: "sticky", given: []string{"partitioner=sticky", "batch-size=8KiB"}},
		{name: "fixed", given: []string{"partitioner=fixed(2)"}},
		{name: "fresh", given: []string{"fresh=true", "size=20-300", "key=seq"}},
		{name: "fresh zstd", given: []string{"fresh=true", "compression=zstd", "payload=text"}},
		{name: "three clients", given: []string{"clients=3"}},
		{name: "acks all", given: []string{"acks=all"}},
		{name: "idempotent", given: []string{"acks=all", "idempotent=true"}, batch: 100},
		{name: "stamps", change: func(c *cluster.Config) { c.Verify, c.RunID = true, 77 }},
		{name: "stamps, fresh", given: []string{"fresh=true"}, change: func(c *cluster.Config) { c.Verify, c.RunID = true, 77 }, batch: 9},
		{name: "tiny values", given: []string{"size=1"}, change: func(c *cluster.Config) { c.Verify = true }},
		{name: "large values", given: []string{"size=100KiB", "batch-size=16KiB", "max-request=128KiB"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := eventsCluster(t, 4, kfake.NumBrokers(2))
			p := openProducer(t, c.ListenAddrs(), tt.change, tt.given...)
			r := newRig(t, p)
			r.events = tt.batch
			total := uint64(5000)
			if strings.HasPrefix(tt.name, "large") || p.cfg.BatchEvents == 1 {
				total = 100 // large or many batches
			}
			began := time.Now()
			out := r.send(total)
			if got, want := tally(out), (tallies{acked: int(total)}); got != want {
				t.Fatalf("got %+v, want %+v; the first: %+v", got, want, out[0])
			}
			recs := readBack(t, c.ListenAddrs(), int(total))

			// Offsets, bytes and order must match the outcomes.
			type place struct {
				part int32
				base int64
			}
			at := map[place]load.Outcome{}
			bytes := int64(0)
			for _, o := range out {
				at[place{p.LogOf(o.Stream), o.Place}] = o
				bytes += o.Bytes
			}
			assert.Equal(t, len(at), len(out), "batches at places")
			got, seen := int64(0), map[int32]uint64{}
			parts := map[int32]int{}
			for _, rec := range recs {
				got += int64(len(rec.Key) + len(rec.Value))
				for _, h := range rec.Headers {
					got += int64(len(h.Key) + len(h.Value))
				}
				parts[rec.Partition]++
				assert.True(t, p.cfg.Partitioner.Kind != "murmur2" || wire.PartitionOf(rec.Key, 4) == rec.Partition,
					"key %s in partition %d", rec.Key, rec.Partition)
				// The clock of a machine may be set during the test: a time of another unit is years away.
				assert.True(t, rec.Timestamp.After(began.Add(-time.Hour)) && rec.Timestamp.Before(time.Now().Add(time.Hour)), "timestamp %v", rec.Timestamp)
				if o, ok := at[place{rec.Partition, rec.Offset}]; ok && o.First != seen[o.Stream] {
					t.Errorf("stream %d: event %d at offset %d, want event %d", o.Stream, o.First, rec.Offset, seen[o.Stream])
				} else if ok {
					seen[o.Stream] += uint64(o.Events)
				}
				if s, ok := wire.ParseStamp(rec.Value); p.cfg.Verify && len(rec.Value) >= wire.StampSize && (!ok || s.Run != 77 || p.LogOf(s.Stream) != rec.Partition) {
					t.Fatalf("stamp %+v, %v in partition %d", s, ok, rec.Partition)
				}
			}
			assert.Equal(t, got, bytes, "bytes of events, read back and in the outcomes")
			checkKeys(t, p, p.cfg.Fresh && p.gen.HasKey(), out, recs)
			assert.True(t, p.cfg.Partitioner.Kind != "fixed" || parts[2] == int(total), "partitions: %v", parts)
			if p.cfg.Partitioner.Kind == "roundrobin" {
				assert.Equal(t, cmp.Diff(map[int32]int{0: int(total) / 4, 1: int(total) / 4, 2: int(total) / 4, 3: int(total) / 4}, parts), "",
					"partitions (-want +got):\n")
			}
			assert.Equal(t, p.Stamped(), strings.HasPrefix(tt.name, "stamps"), "Stamped()")
			checkMetrics(t, p, out)
		})
	}
}

func checkMetrics(t *testing.T, p *producer, out []load.Outcome) {
	t.Helper()
	var got, want cluster.BrokerMetrics
	for _, m := range p.Metrics() {
		got.Records += m.Records
		got.Batches += m.Batches
		got.Bytes += m.Bytes
	}
	for _, o := range out {
		want.Records += uint64(o.Events)
		want.Batches++
		want.Bytes += uint64(o.Wire)
	}
	assert.Same(t, got, want, "metrics (-outcomes +brokers)")
	w, _ := p.Wire()
	assert.True(t, w == want.Bytes, "%d bytes written, outcomes say %d", w, want.Bytes)
}

// TLS has no writev: the flusher writes.
func TestProduceOverTLS(t *testing.T) {
	t.Parallel()
	server, ca := authority(t)
	var client *tls.Config
	c := eventsCluster(t, 3, kfake.TLS(server))
	for _, given := range [][]string{nil, {"fresh=true"}, idempotent} {
		p := openProducer(t, c.ListenAddrs(), withStamps, append(given, "tls-ca="+ca)...)
		assert.Must(t, !p.senders[0].lanes[0].link.Out.Direct(), "the connection is written directly, without TLS")
		client = p.cfg.Security.TLS
		r := newRig(t, p)
		got, want := tally(r.send(20_000)), (tallies{acked: 20_000})
		assert.Must(t, got == want, "got %+v, want %+v", got, want)
	}
	readBack(t, c.ListenAddrs(), 60_000, kgo.DialTLSConfig(client))
}

func TestProduceWithoutAcks(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 3)
	p := openProducer(t, c.ListenAddrs(), nil, "acks=0")
	r := newRig(t, p)
	out := r.send(20_000)
	got, want := tally(out), (tallies{unknown: 20_000})
	assert.Must(t, got == want, "got %+v, want %+v", got, want)
	for _, o := range out {
		assert.True(t, o.Done == o.Sent && o.Class == load.OK, "sent %v, done %v, class %v", o.Sent, o.Done, o.Class)
	}
	// Without answers, only the end offsets show when the events have arrived.
	testkit.Until(t, "20,000 events have arrived", func() bool {
		got := 0
		for _, end := range endOffsets(t, c.ListenAddrs()) {
			got += int(end)
		}
		return got == 20_000
	})
}

// Every version of the request works, with the topic's name and with its id.
func TestProduceVersions(t *testing.T) {
	t.Parallel()
	for version := int16(wire.MinProduceVersion); version <= wire.MaxProduceVersion; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			versions := kversion.Stable()
			versions.SetMaxKeyVersion(wire.ProduceKey, version)
			c := eventsCluster(t, 3, kfake.MaxVersions(versions))
			used := make(chan int16, 100)
			c.ControlKey(wire.ProduceKey, func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				used <- req.GetVersion()
				return nil, nil, false
			})
			p := openProducer(t, c.ListenAddrs(), nil)
			out := newRig(t, p).send(3000)
			got, want := tally(out), (tallies{acked: 3000})
			assert.Must(t, got == want, "got %+v, want %+v", got, want)
			assert.Equal(t, <-used, version, "version of the request")
			readBack(t, c.ListenAddrs(), 3000)
		})
	}
}

func TestProduceClose(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 1)
	// Answers never come.
	c.ControlKey(wire.ProduceKey, func(kmsg.Request) (kmsg.Response, error, bool) { c.KeepControl(); return nil, nil, true })
	p := openProducer(t, c.ListenAddrs(), nil)
	r := newRig(t, p)
	l := p.Route(0)
	for i := range 3 {
		batch := []load.Batch{{Seq: uint64(i), First: uint64(i), Events: 1, DueFirst: -1}}
		assert.Must(t, l.Fire(batch) == 1 && batch[0].Bytes == 100, "batch %d was not taken completely: %+v", i, batch)
		if i < 2 {
			l.Flush()
		}
	}
	assert.OK(t, l.Close())
	r.check(r.outcomes, 3)
	assert.Equal(t, tally(r.outcomes), tallies{unknown: 2, failed: 1})
	for _, o := range r.outcomes {
		assert.Equal(t, o.Class, load.Canceled, "class")
	}
	assert.Equal(t, l.Fire([]load.Batch{{Seq: 9, Events: 1}}), 0, "batches that a closed lane takes")
}

// A batch that was certainly refused and waits for another attempt has failed when the run ends, with the broker's error.
func TestProduceCloseBetweenAttempts(t *testing.T) {
	t.Parallel()
	for _, given := range [][]string{nil, idempotent} {
		c := eventsCluster(t, 1)
		refuseProduce(c, func(int32) int16 { return kerr.NotLeaderForPartition.Code })
		p := openProducer(t, c.ListenAddrs(), nil, given...)
		r := newRig(t, p)
		l := p.Route(0)
		assert.Must(t, l.Fire([]load.Batch{{Events: 7, DueFirst: -1}}) == 1, "not taken")
		l.Flush()
		s := p.senders[0]
		for refused := false; !refused; { // no outcome reports it
			s.mu.Lock()
			if refused = s.live[0].text != "" && !s.live[0].inFlight; refused {
				l.(*lane).throttledUntil = time.Hour // no other attempt is made
			}
			s.mu.Unlock()
		}
		l.Close()
		got := tally(r.outcomes)
		assert.True(t, got.failed == 7 && r.outcomes[0].Class == load.Rejected, "%v: got %+v, %+v", given, got, r.outcomes)
	}
}

// A countSink is a sink that only counts, without allocating.
type countSink struct {
	start     time.Time
	completed chan int
}

func (q *countSink) Now() time.Duration          { return time.Since(q.start) }
func (q *countSink) Complete(out []load.Outcome) { q.completed <- len(out) }
func (q *countSink) Ready(int, time.Duration)    {}

// A batch causes no allocations from Fire to Complete. The server runs in this process, and causes none either.
func TestProduceAllocatesNothing(t *testing.T) {
	srv := assert.Value(standinkafka.Start(standinkafka.Options{Listen: "127.0.0.1:0", Discard: true, Topics: []standinkafka.Topic{{Name: "events", Partitions: 4}}}))(t)
	defer srv.Close()
	for name, change := range map[string]func(*cluster.Config){
		"plain":          nil,
		"stamps":         withStamps,
		"fresh":          func(c *cluster.Config) { c.Fresh = true },
		"one event each": func(c *cluster.Config) { c.BatchEvents = 1 },
		"idempotent":     func(c *cluster.Config) { c.Idempotent, c.Acks = true, cluster.AcksAll },
	} {
		t.Run(name, func(t *testing.T) {
			p := openProducer(t, []string{srv.Addr()}, change)
			q := &countSink{start: time.Now(), completed: make(chan int, 100)}
			p.Start(q)
			l := p.Route(0)
			batches := make([]load.Batch, 4)
			seq, events := uint64(0), uint64(0)
			round := func() {
				for i := range batches {
					room := l.Room(int32(i), events)
					batches[i] = load.Batch{Seq: seq, Stream: int32(i), First: events, Events: int32(min(room, 500)), DueFirst: -1, DueLast: -1}
					seq++
				}
				events += 500
				assert.Must(t, l.Fire(batches) == 4, "not all batches were taken")
				l.Flush()
				for n := 0; n < 4; {
					n += <-q.completed
				}
			}
			for range 50 {
				round()
			}
			n := testing.AllocsPerRun(200, round)
			assert.True(t, n < 1, "four batches cause %v allocations", n)
		})
	}
}

// The first batch of each partition, of one event, needs nothing but what a lane has prepared.
func TestPrepare(t *testing.T) {
	t.Parallel()
	const partitions = 4
	p := openProducer(t, eventsCluster(t, partitions).ListenAddrs(), nil, "size=100")
	r := newRig(t, p)
	s := p.senders[0]
	l := s.lanes[0]
	l.prepare()
	room := func() [7]int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return [7]int{
			len(s.freeSlots), len(s.freeRequests), cap(s.freeRequests[0].framing), cap(s.freeRequests[0].slots),
			cap(s.live), cap(s.outcomes), cap(s.answers),
		}
	}
	before := room()
	if before[0] != partitions || before[1] != 1 {
		t.Fatalf("it prepared %d batches and %d requests", before[0], before[1])
	}
	sendEach(t, l, partitions)
	r.awaitCompleted(partitions)
	assert.Equal(t, room(), before, "slots, requests and the room of slices after the first request")
}

// checkKeys compares the keys that a target reports for its events with those of
// the records at their offsets. known says whether it must report any.
func checkKeys(t *testing.T, p load.Target, known bool, out []load.Outcome, recs []*kgo.Record) {
	t.Helper()
	can := p.Capabilities()
	type place struct {
		part   int32
		offset int64
	}
	keys := map[place]string{}
	for _, o := range out {
		for k := range o.Events {
			key, ok := can.AppendKey(nil, o.Stream, o.First+uint64(k))
			assert.Must(t, ok == known, "the key of event %d of stream %d: known %v, want %v", o.First+uint64(k), o.Stream, ok, known)
			keys[place{can.LogOf(o.Stream), o.Place + int64(k)}] = string(key)
		}
	}
	for _, r := range recs {
		if want := string(r.Key); known && keys[place{r.Partition, r.Offset}] != want {
			t.Fatalf("partition %d, offset %d: key %q, but %q is reported", r.Partition, r.Offset, want, keys[place{r.Partition, r.Offset}])
		}
	}
}
