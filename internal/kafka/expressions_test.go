package kafka

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	standinkafka "carronade/internal/kafka/standin"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/measure"
	"carronade/payload"
	"carronade/test/testkit/assert"
)

// Most partitions get no events where few keys choose them. Nothing waits for those.
func TestPartitionsWithoutEvents(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]map[string][]string{
		"pooled":      {"key": {"uniform(2)"}},
		"fresh":       {"key": {"uniform(2)"}, "fresh": {"true"}},
		"expressions": {"key": {"k-${rnd.nextInt(2)}"}, "header": {"x=${(this.last() + 1) % 10}%{0}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, err := standinkafka.Start(standinkafka.Options{Listen: "127.0.0.1:0", InMemory: true, Topics: []standinkafka.Topic{{Name: "events", Partitions: 16}}})
			assert.OK(t, err)
			t.Cleanup(func() { srv.Close() })
			given["partitioner"] = []string{"murmur2"}
			session := assert.Value(Kind{}.Open(t.Context(), spec(t, fakeURL([]string{srv.Addr()}), given)))(t)
			t.Cleanup(func() { session.Close() })
			const events = 500
			res := launch(t, session, load.Plan{Measurement: load.Limits{Events: events}})
			assert.True(t, res.Measurement.Acked == events, "acked %d: %v", res.Measurement.Acked, res.Failures)
		})
	}
}

// Keys and headers by expressions arrive: those of each event, whichever engine, number of
// clients and partitioner sends them, and with values of the time of sending.
func TestExpressionsArrive(t *testing.T) {
	t.Parallel()
	const events = 3000
	for _, tt := range []struct {
		name  string
		given map[string][]string
	}{
		{"wire", nil},
		{"wire, two clients", map[string][]string{"clients": {"2"}, "batch-size": {"2KiB"}}},
		{"wire, zstd, sticky", map[string][]string{"compression": {"zstd"}, "partitioner": {"sticky"}}},
		{"client", map[string][]string{"engine": {"client"}}},
		{"client, zstd, two clients", map[string][]string{"engine": {"client"}, "compression": {"zstd"}, "clients": {"2"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv, err := standinkafka.Start(standinkafka.Options{Listen: "127.0.0.1:0", InMemory: true, Topics: []standinkafka.Topic{{Name: "events", Partitions: 3}}})
			assert.OK(t, err)
			t.Cleanup(func() { srv.Close() })
			given := map[string][]string{
				"key":    {"key-${this.last() + 1}%{-1}-${rnd.nextInt(1000)}"},
				"header": {"n=${this.last() + 1}%{-1}", "x-${math:random(30) + 1}=${int64:toString(rnd.nextLong(), 36)}", "at=${time:millisSinceEpoch()}", "same=1"},
			}
			maps.Copy(given, tt.given)
			addrs := []string{srv.Addr()}
			s := spec(t, fakeURL(addrs), given)
			s.Seed = 5
			session := assert.Value(Kind{}.Open(t.Context(), s))(t)
			t.Cleanup(func() { session.Close() })
			res := launch(t, session, load.Plan{Measurement: load.Limits{Events: events}})
			assert.Must(t, res.Measurement.Acked == events, "acked %d: %v", res.Measurement.Acked, res.Failures)
			gen := assert.Value(payload.New(payload.Spec{Seed: 5, Key: given["key"][0], Headers: given["header"]}))(t)
			seen, size := map[uint64]bool{}, uint64(0)
			for _, r := range readBack(t, addrs, events) {
				n := eventOf(t, gen, r)
				assert.Must(t, !seen[n], "event %d arrived twice", n)
				seen[n] = true
				at, err := strconv.ParseInt(string(r.Headers[2].Value), 10, 64)
				if late := r.Timestamp.UnixMilli() - at; err != nil || late < -60_000 || late > 60_000 {
					t.Fatalf("a header has the time %s, its record %v", r.Headers[2].Value, r.Timestamp)
				}
				size += uint64(len(r.Key) + len(r.Value))
				for _, h := range r.Headers {
					size += uint64(len(h.Key) + len(h.Value))
				}
			}
			assert.Equal(t, len(seen), events, "events")
			assert.Equal(t, size, res.Measurement.Bytes, "bytes of events, read and counted by the run")
		})
	}
}

// eventOf returns the number of a record's event, by its first header, and checks its key
// and the other headers but the one of the time.
func eventOf(t *testing.T, gen *payload.Generator, r *kgo.Record) uint64 {
	t.Helper()
	assert.Must(t, len(r.Headers) == gen.NumHeaders(), "got the headers %v", r.Headers)
	n := assert.Value(strconv.ParseUint(string(r.Headers[0].Value), 10, 64))(t)
	want := gen.AppendKey(nil, n)
	assert.Must(t, bytes.Equal(r.Key, want) && strings.HasPrefix(string(want), fmt.Sprintf("key-%d-", n)), "event %d has the key %s, want %s", n, r.Key, want)
	for i, h := range r.Headers {
		want, name := gen.AppendHeader(nil, i, n)
		assert.Must(t, h.Key == string(want[:name]) && (i == 2 || bytes.Equal(h.Value, want[name:])),
			"event %d has the header %s=%s, want %s", n, h.Key, h.Value, want)
	}
	return n
}

// From a pool, values repeat with the events; the key of an event chooses its partition.
func TestExpressionsInPools(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 4)
	p := openProducer(t, c.ListenAddrs(), nil, "fresh=false", "pool=16KiB", "batch-size=4KiB", "partitioner=murmur2",
		"key=user-${rnd.nextInt(50)}", "header=${rnd.nextInt(10)}=${rnd.nextLong()}")
	newRig(t, p).send(5000)
	values := map[string]int{}
	for _, r := range readBack(t, c.ListenAddrs(), 5000) {
		assert.Must(t, strings.HasPrefix(string(r.Key), "user-") && len(r.Headers) == 1, "the key %s and the headers %v", r.Key, r.Headers)
		values[string(r.Headers[0].Value)]++
	}
	assert.True(t, len(values) >= 20 && len(values) <= 500, "%d different values of 5000 events from a pool", len(values))
}

// A key that is an expression is known to the ledger, as other fresh keys.
func TestExpressionKeyIsKnown(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 2)
	p := openProducer(t, c.ListenAddrs(), nil, "key=k${rnd.nextInt(100)}", "partitioner=murmur2")
	out := newRig(t, p).send(2000)
	assert.True(t, p.cfg.Fresh, "a key that varies comes from a pool")
	checkKeys(t, p, true, out, readBack(t, c.ListenAddrs(), 2000))
}

func TestExpressionOptions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		given map[string][]string
		fresh bool
		err   string
	}{
		{"nothing that varies", map[string][]string{"header": {"a=%{rnd.nextInt(5)}"}, "key": {"seq"}}, false, ""},
		{"a header", map[string][]string{"header": {"a=${rnd.nextInt(5)}"}}, true, ""},
		{"a key", map[string][]string{"key": {"a${rnd.nextInt(5)}"}}, true, ""},
		{"a pool is asked for", map[string][]string{"key": {"a${rnd.nextInt(5)}"}, "fresh": {"false"}}, false, ""},
		{"the time in a pool", map[string][]string{"header": {"a=${time:nanos()}"}, "fresh": {"false"}}, false, "events are made before the run here"},
		{"the time in a key", map[string][]string{"key": {"${time:nanos()}"}}, false, "must be the same"},
		{"an unknown name", map[string][]string{"header": {"a=${foo}"}}, false, "foo is not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := cluster.ParseConfig(spec(t, "kafka://127.0.0.1:9092/events", tt.given))
			if tt.err != "" {
				assert.ErrorHas(t, err, tt.err)
				return
			}
			assert.OK(t, err)
			assert.Equal(t, cfg.Fresh, tt.fresh, "fresh")
		})
	}
}

// TestTimedHeadersFit: a batch does not exceed its size when headers with the time are longer
// when they are sent than when its events were counted.
func TestTimedHeadersFit(t *testing.T) {
	t.Parallel()
	const batchSize = 2000
	p := openProducer(t, eventsCluster(t, 1).ListenAddrs(), nil, "batch-size=2000", "size=20", "fresh=true",
		"header=at=${time:nanos() % 2 == 0 ? 'a' : 'a text that is much longer than the other one, and that half of the events have'}")
	e := &p.senders[0].encoder
	for i := range uint64(500) {
		first := 100 * i
		batch := load.Batch{First: first, Events: int32(e.room(0, first))}
		sl := &slot{buffer: &buffer{}}
		e.encode(sl, &batch)
		size := wire.HeaderSize + len(sl.recs)
		assert.Must(t, size <= batchSize && batch.Events >= 8, "a batch of %d events has %d bytes, more than %d", batch.Events, size, batchSize)
	}
}

// A session says whether its events are pooled, and what share of the codec's work is done during the run: with the wire engine
// and a pool only that of batches which are not whole templates, with the client's always all.
func TestEncoding(t *testing.T) {
	t.Parallel()
	const none, some = -1, 0.5 // of the codec's work; some: more than nothing and not all
	for _, tt := range []struct {
		name     string
		given    map[string][]string
		plan     load.Plan
		events   string
		measured float64
	}{
		{name: "pooled", events: measure.Pooled, measured: none},
		{name: "fresh", given: map[string][]string{"fresh": {"true"}}, events: measure.Fresh, measured: none},
		{name: "pooled, whole batches", given: map[string][]string{"compression": {"zstd"}}, plan: load.Plan{BatchEvents: 7}, events: measure.Pooled, measured: 0},
		{name: "pooled, the last batch of ten is shorter", given: map[string][]string{"compression": {"gzip"}}, plan: load.Plan{BatchEvents: 7, Measurement: load.Limits{Events: 66}}, events: measure.Pooled, measured: some},
		{name: "fresh, zstd", given: map[string][]string{"compression": {"zstd"}, "fresh": {"true"}}, events: measure.Fresh, measured: 1},
		{name: "client, pooled", given: map[string][]string{"engine": {"client"}}, events: measure.Pooled, measured: none},
		{name: "client, gzip", given: map[string][]string{"engine": {"client"}, "compression": {"gzip"}}, events: measure.Pooled, measured: 1},
		{name: "client, fresh, gzip", given: map[string][]string{"engine": {"client"}, "compression": {"gzip"}, "fresh": {"true"}}, events: measure.Fresh, measured: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			asked := spec(t, urlOf(c, "t"), tt.given)
			asked.BatchEvents = tt.plan.BatchEvents
			s := assert.Value(open(t, asked))(t)
			if tt.plan.Measurement.Events == 0 {
				tt.plan.Measurement.Events = 70
			}
			launch(t, s, tt.plan)
			e := s.Capabilities().Encoding()
			assert.True(t, e.Events == tt.events && (e.Distinct > 0) == (tt.events == measure.Pooled),
				"got %+v, want %s events", e, tt.events)
			ratio, compressed := s.Facts()["compressed_to"].(float64)
			if compressed != (e.Codec != "") || compressed && (ratio <= 0.5 || ratio > 1.1) { // random bytes
				t.Errorf("compressed to %v", s.Facts()["compressed_to"])
			}
			got := float64(none)
			if e.CodecMeasured != nil {
				got = *e.CodecMeasured
			}
			assert.True(t, !(tt.measured == some && (got <= 0 || got >= some) || tt.measured != some && got != tt.measured),
				"%g of the codec's work was measured, want %g", got, tt.measured)
		})
	}
}

// Reading sends nothing.
func TestEncodingOfReader(t *testing.T) {
	t.Parallel()
	e := (&session{}).encoding()
	assert.True(t, e == nil, "got %+v", e)
}
