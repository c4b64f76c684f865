package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/payload"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/units"
)

func generator(t testing.TB, s payload.Spec) *payload.Generator {
	t.Helper()
	g := assert.Value(payload.New(s))(t)
	return g
}

// Any prefix of a template's records is a batch: its bytes, its checksum and its
// events' bytes are those of the records themselves.
func TestTemplatePrefixes(t *testing.T) {
	t.Parallel()
	sizes := []string{"0", "1", "100", "0-300", "lognormal(50,1)"}
	rapid.Check(t, func(rt *rapid.T) {
		spec := payload.Spec{
			Seed: rapid.Uint64().Draw(rt, "seed"), Size: rapid.SampledFrom(sizes).Draw(rt, "size"),
			Key: rapid.SampledFrom([]string{"none", "seq", "uniform(10)"}).Draw(rt, "key"),
		}
		spec.Headers = rapid.SampledFrom([][]string{nil, {"a=b", "empty="}, {"n-${rnd.nextInt(1000)}=${rnd.nextLong()}", "a=b"}}).Draw(rt, "headers")
		gen := generator(t, spec)
		batch := rapid.IntRange(100, 20_000).Draw(rt, "batch size")
		per := rapid.IntRange(0, 5).Draw(rt, "events per batch")
		s := assert.Value(newBatchPool(batchPoolConfig{gen: gen, batchSize: batch, batchEvents: per, pool: 64 << 10, stamps: true}))(rt)
		defer s.free()
		number := uint64(0)
		for _, d := range s.templates {
			if len(d.recs) > batch-wire.HeaderSize && d.events() > 1 {
				rt.Fatalf("%d records are %d bytes, more than a batch of %d", d.events(), len(d.recs), batch)
			}
			if per > 0 && d.events() > per {
				rt.Fatalf("%d events, want %d at most", d.events(), per)
			}
			k := rapid.IntRange(1, d.events()).Draw(rt, "prefix")
			recs := d.recs[:d.size(k)]
			if got, want := d.sum(k).After(0), wire.UpdateCRC(0, recs); got != want {
				rt.Fatalf("sum of %d records = %08x, want %08x", k, got, want)
			}
			n, total := 0, 0
			err := wire.ForEachRecord(recs, int32(k), func(r *wire.Record) error {
				e := number + uint64(n)
				if want := gen.AppendValue(nil, e); !bytes.Equal(r.Value, want) {
					return fmt.Errorf("value of event %d is %q, want %q", e, r.Value, want)
				}
				if want := gen.AppendKey(nil, e); !bytes.Equal(r.Key, want) {
					return fmt.Errorf("key of event %d is %q, want %q", e, r.Key, want)
				}
				if !bytes.Equal(d.recs[d.valueStarts[n]:][:len(r.Value)], r.Value) {
					return fmt.Errorf("value of event %d is not at %d", e, d.valueStarts[n])
				}
				i := 0
				if err := r.Headers(func(k, v []byte) {
					if want, name := gen.AppendHeader(nil, i, e); !bytes.Equal(k, want[:name]) || !bytes.Equal(v, want[name:]) {
						rt.Fatalf("header %d of event %d is %s=%s, want %s", i, e, k, v, want)
					}
					i++
				}); err != nil || i != gen.NumHeaders() {
					return fmt.Errorf("event %d has %d headers: %w", e, i, err)
				}
				total += r.EventBytes()
				n++
				return nil
			})
			assert.OK(rt, err)
			if total != int(d.bytes[k-1]) {
				rt.Fatalf("%d events have %d bytes, the template has %d", k, total, d.bytes[k-1])
			}
			number += uint64(d.events())
		}
	})
}

func TestBatchPoolFills(t *testing.T) {
	gen := generator(t, payload.Spec{Size: "100"})
	for _, tt := range []struct {
		pool      int64
		templates int
	}{{0, 1}, {256 << 10, 1}, {1 << 20, 4}, {3 << 20, 12}} {
		s := assert.Value(newBatchPool(batchPoolConfig{gen: gen, batchSize: 256 << 10, pool: tt.pool}))(t)
		assert.Equal(t, len(s.templates), tt.templates, "templates of a pool of %d", tt.pool)
		assert.OK(t, s.free())
	}
	s := assert.Value(newBatchPool(batchPoolConfig{gen: gen, batchSize: 256 << 10, batchEvents: 1, pool: 64 << 20}))(t)
	defer s.free()
	assert.Equal(t, len(s.templates), mostTemplates, "templates")
}

// The template of a batch depends only on the batch's stream and first event, and all templates are used about equally often.
func TestPick(t *testing.T) {
	s := &batchPool{templates: make([]template, 4)}
	seen := map[*template]int{}
	for stream := range int32(8) {
		for first := uint64(0); first < 2000*2383; first += 2383 {
			d := s.pick(stream, 0, first)
			assert.Must(t, d == s.pick(stream, 0, first), "a second call picked another template")
			seen[d]++
		}
	}
	for d, n := range seen {
		assert.True(t, n >= 3000 && n <= 5000, "template %p was picked %d times of 16000", d, n)
	}
	assert.Equal(t, len(seen), 4, "templates used")
}

func TestStreams(t *testing.T) {
	gen := generator(t, payload.Spec{Key: "uniform(1000)"})
	for _, tt := range []struct {
		part             cluster.Partitioner
		clients, streams int
	}{
		{cluster.Partitioner{Kind: "roundrobin"}, 1, 6},
		{cluster.Partitioner{Kind: "roundrobin"}, 3, 18},
		{cluster.Partitioner{Kind: "sticky"}, 2, 12},
		{cluster.Partitioner{Kind: "fixed", Fixed: 4}, 2, 2},
		{cluster.Partitioner{Kind: "murmur2"}, 1, 6},
		{cluster.Partitioner{Kind: "murmur2"}, 4, 24},
	} {
		t.Run(fmt.Sprintf("%s by %d", tt.part, tt.clients), func(t *testing.T) {
			s := cluster.NewStreams(&cluster.Config{Partitioner: tt.part, Clients: tt.clients}, []cluster.TopicLogs{{Partitions: 6}}, gen, 100)
			assert.Must(t, s.Partitioner.Streams() == tt.streams, "%d streams, want %d", s.Partitioner.Streams(), tt.streams)
			const events = 50_000
			perClient := make([]uint64, tt.clients)
			for i := range int32(tt.streams) {
				c, p := s.Client(i), s.Log(i)
				assert.True(t, c >= 0 && c < tt.clients && p >= 0 && p < 6 && (tt.part.Kind != "fixed" || p == 4),
					"stream %d: client %d, partition %d", i, c, p)
				perClient[c] += s.Partitioner.Before(i, events)
				if tt.part.Kind != "murmur2" {
					continue
				}
				for k := range s.Partitioner.Before(i, 1000) {
					key := gen.AppendKey(nil, s.Partitioner.Event(i, k)%cluster.CycleEvents)
					got := wire.PartitionOf(key, 6)
					assert.Must(t, got == p, "event %d of stream %d has key %s of partition %d, not %d", k, i, key, got, p)
				}
			}
			total := uint64(0)
			for _, n := range perClient {
				total += n
				assert.True(t, n >= events/uint64(tt.clients)-300, "clients get %v of %d events", perClient, events)
			}
			assert.Equal(t, total, events, "events of all parts")
		})
	}
}

// Where keys choose among very many partitions, the memory of all their batches is bounded.
func TestBatchPoolOfManyPartitions(t *testing.T) {
	testkit.Need(t, "some seconds")
	const partitions = 4000
	for _, tt := range []struct {
		name, size   string
		codec        wire.Codec
		pool         int64
		events       int
		most         int64 // bytes kept
		warns, fails bool
	}{
		{name: "small events", size: "100", pool: 1 << 20, most: mostKeyedPool, warns: true},
		{name: "compressed", size: "100", codec: wire.LZ4, pool: 1 << 20, most: mostKeyedPool, warns: true},
		{name: "a larger pool", size: "100", pool: 300 << 20, most: 300 << 20, warns: true},
		{name: "large events", size: "100KiB", pool: 1 << 20, fails: true},
		{name: "batches of many events", size: "100", pool: 1 << 20, events: 1000, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gen := generator(t, payload.Spec{Size: tt.size, Key: "seq"})
			s, err := newBatchPool(batchPoolConfig{
				gen: gen, codec: tt.codec, batchSize: 256 << 10, batchEvents: tt.events, pool: tt.pool, cycle: cycleOf(gen, partitions),
			})
			if tt.fails {
				var targetErr *protocol.Error
				assert.Must(t, errors.As(err, &targetErr) && strings.Contains(targetErr.Hint, "--fresh"),
					"got %v, want an error whose hint names --fresh", err)
				return
			}
			assert.OK(t, err)
			defer s.free()
			kept := s.rawBytes + s.compressedBytes
			assert.True(t, kept <= tt.most && kept >= tt.most/4, "%d bytes are kept, want at most %d, and not much less", kept, tt.most)
			assert.Equal(t, (s.warning != ""), tt.warns, "whether it warns: %q", s.warning)
			for p, ds := range s.byPart {
				assert.Must(t, len(ds) != 0, "partition %d has no batch", p)
			}
		})
	}
	gen := generator(t, payload.Spec{Size: "100", Key: "seq"})
	s := assert.Value(newBatchPool(batchPoolConfig{gen: gen, batchSize: 256 << 10, pool: 1 << 20, cycle: cycleOf(gen, 12)}))(t)
	defer s.free()
	if s.warning != "" || s.byPart[0][0].size(s.byPart[0][0].events()) < 255<<10 {
		t.Errorf("12 partitions: batches of %d bytes, %q; want full ones", s.byPart[0][0].size(s.byPart[0][0].events()), s.warning)
	}
}

// The options that the hint and the warning suggest work as printed. Nothing is
// reported where batches are below the bound anyway.
func TestBoundOfManyPartitions(t *testing.T) {
	for _, tt := range []struct {
		name, size           string
		parts, batch, events int
		codec                wire.Codec
		warns, fails         bool
	}{
		{name: "large batches", size: "100", parts: 2000, batch: 1_000_000, warns: true},
		{name: "large batches, compressed", size: "100", parts: 2000, batch: 1_000_000, codec: wire.LZ4, warns: true},
		{name: "large batches of few events", size: "100", parts: 2000, batch: 1_000_000, events: 1},
		{name: "few events, compressed", size: "100", parts: 2000, batch: 1_000_000, events: 100, codec: wire.LZ4},
		{name: "small batches of many events", size: "100", parts: 2000, batch: 16 << 10, events: 100_000},
		{name: "many events", size: "100", parts: 2000, batch: 1_000_000, events: 5000, fails: true},
		{name: "large events", size: "200KiB", parts: 2000, batch: 256 << 10, fails: true},
		{name: "large events one by one", size: "200KiB", parts: 2000, batch: 1 << 20, events: 1, fails: true},
		{name: "events larger than batches", size: "200KiB", parts: 2000, batch: 16 << 10, fails: true},
		{name: "at the default", size: "100", parts: 17_000, batch: 16 << 10, events: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gen := generator(t, payload.Spec{Size: tt.size, Key: "seq"})
			cycle := cycleOf(gen, tt.parts)
			bound := func(pool int64) (message string, failed bool) {
				s := batchPool{codec: tt.codec}
				err := s.limitBatchSize(&batchPoolConfig{gen: gen, codec: tt.codec, batchSize: tt.batch, batchEvents: tt.events, pool: pool, cycle: cycle})
				if targetErr, ok := errors.AsType[*protocol.Error](err); ok {
					return targetErr.Hint, true
				}
				return s.warning, false
			}
			message, failed := bound(1 << 20)
			assert.Must(t, failed == tt.fails && (message != "") == (tt.warns || tt.fails),
				"got %q, failed %v, want a warning %v, a failure %v", message, failed, tt.warns, tt.fails)
			if message == "" {
				return
			}
			_, rest, _ := strings.Cut(message, "--pool ")
			word, _, _ := strings.Cut(rest, " ")
			pool := assert.Value(units.ParseSize(word))(t, "%q", message)
			again, failed := bound(pool)
			assert.True(t, !failed && (!tt.warns || again == ""), "with --pool %s: got %q, failed %v; want no message", word, again, failed)
		})
	}
}

// Batches that are encoded when they are sent need no pool, however many partitions there are.
func TestFreshBatchPool(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 200)
	p := openProducer(t, c.ListenAddrs(), nil, "fresh=true", "partitioner=murmur2", "key=seq")
	assert.True(t, p.batchPool.rawBytes <= 256<<10, "the pool keeps %d bytes, which are never sent", p.batchPool.rawBytes)
	got := tally(newRig(t, p).send(3000))
	assert.True(t, got.acked == 3000, "%+v, want all acked", got)
}

// cycleOf is the cycle of one client whose keys choose the partition.
func cycleOf(gen *payload.Generator, partitions int) *cluster.KeyCycle {
	s := cluster.NewStreams(&cluster.Config{Partitioner: cluster.Partitioner{Kind: "murmur2"}, Clients: 1}, []cluster.TopicLogs{{Partitions: partitions}}, gen, 1)
	return s.Cycle
}

// TestBatchPoolEnds: an interrupt ends the encoding of a large pool, also within a batch.
func TestBatchPoolEnds(t *testing.T) {
	gen := assert.Value(payload.New(payload.Spec{}))(t)
	asked := 0
	_, err := newBatchPool(batchPoolConfig{gen: gen, batchSize: 1 << 30, pool: 1 << 40, cut: func() error {
		if asked++; asked == 3 {
			return context.Canceled
		}
		return nil
	}})
	assert.True(t, errors.Is(err, context.Canceled) && asked == 3, "got %v after %d questions", err, asked)
}
