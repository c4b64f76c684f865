package acceptance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func topicURL(c *kafkatest.Cluster, topic string) string {
	return "kafka://" + c.Bootstrap() + "/" + topic
}

var (
	codecs  = []string{"none", "gzip", "snappy", "lz4", "zstd"}
	engines = []string{"wire", "client"}
)

// A delivery is what a run with a codec and an engine sent to a topic of its own.
type delivery struct {
	name  string
	flags []string
	topic string
	all   counts
}

// TestDelivery sends to real Kafka with each codec and engine, and checks what arrived by end offsets, by Kafka's dump of the
// segments, and by Kafka's consumer. Both tools read all topics at once: a start takes them longer than the reading.
func TestDelivery(t *testing.T) {
	const partitions = 3
	broker := kafkatest.One(t)
	var sent []*delivery
	for _, engine := range engines {
		for _, codec := range codecs {
			sent = append(sent, &delivery{name: engine + "/" + codec, flags: []string{"--engine", engine, "--compression", codec}})
		}
		sent = append(sent, &delivery{name: engine + "/idempotent", flags: []string{"--engine", engine, "--compression", "none", "--idempotent", "--acks", "all"}})
	}
	var topics []string
	for _, d := range sent {
		d.topic = broker.CreateTopic(t, partitions, 1)
		topics = append(topics, d.topic)
	}
	t.Run("send", func(t *testing.T) {
		for _, d := range sent {
			t.Run(d.name, func(t *testing.T) { d.send(t, broker) })
		}
	})
	if t.Failed() {
		return
	}
	batches, records := broker.Node(1).Dump(t, topics...), broker.Consume(t, deliveredEvents*len(sent), topics...)
	assert.Equal(t, len(records), deliveredEvents*len(sent), "events that the console consumer printed")
	for _, d := range sent {
		t.Run(d.name, func(t *testing.T) {
			of := slices.DeleteFunc(slices.Clone(batches), func(b kafkatest.Batch) bool { return b.Topic != d.topic })
			codec := d.flags[slices.Index(d.flags, "--compression")+1]
			checkBatches(t, of, deliveredEvents, codec, slices.Contains(d.flags, "--idempotent"))
			d.checkRecords(t, records)
		})
	}
}

// deliveredEvents is the number of events of each delivery.
const deliveredEvents = 3000

// send sends numbered events, with the event's number as key and as value, and the name of the delivery in a
// header, so that each record that Kafka's consumer prints can be checked.
func (d *delivery) send(t *testing.T, broker *kafkatest.Cluster) {
	args := append([]string{
		"run", topicURL(broker, d.topic), "--rate", "3000/s", "--for", "1s", "--json", "--quiet",
		"--key", "seq", "--header", "team=red", "--header", "delivery=" + d.name, "--payload", "monotonic", "--fresh",
		"--batch-size", "4KiB",
	}, d.flags...)
	doc := run(t, args...).succeeded(t).document(t)
	d.all = doc.wholeRun()
	assert.True(t, d.all.Acked == deliveredEvents && doc.Totals.Acked == deliveredEvents && d.all.Sent == deliveredEvents,
		"totals: %+v, want %d acked", doc.Totals.counts, deliveredEvents)
	assert.Equal(t, broker.EndSum(t, d.topic), int64(d.all.Acked), "growth of the end offsets, and events acked")
}

func (d *delivery) checkRecords(t *testing.T, records []kafkatest.Record) {
	t.Helper()
	headers := "team:red,delivery:" + d.name
	var eventBytes uint64
	seen := make(map[int]bool)
	for _, r := range records {
		if r.Headers != headers {
			continue
		}
		key, err := strconv.Atoi(r.Key)
		assert.Must(t, err == nil && !seen[key] && key >= 0 && key < deliveredEvents,
			"key %q: twice, not one of ours, or not a number: %+v", r.Key, r)
		seen[key] = true
		value, err := strconv.Atoi(r.Value)
		assert.Must(t, err == nil && value == key, "event %d has the value %q", key, r.Value)
		eventBytes += uint64(len(r.Key) + len(r.Value) + len(headers) - len(":,:"))
	}
	assert.Equal(t, len(seen), deliveredEvents, "events that the console consumer printed with the headers %s", headers)
	assert.Equal(t, d.all.Bytes, eventBytes, "bytes of events in the report, and read by Kafka's consumer")
}

func checkBatches(t *testing.T, batches []kafkatest.Batch, events int, codec string, idempotent bool) {
	t.Helper()
	type writer struct {
		partition int32
		id        int64
		epoch     int
	}
	next := make(map[writer]int)  // sequence expected
	ends := make(map[int32]int64) // offset expected
	compressed, count := 0, 0
	for _, b := range batches {
		at := fmt.Sprintf("partition %d, batch at %d", b.Partition, b.Base)
		assert.True(t, b.Valid, "%s: its checksum is wrong", at)
		assert.True(t, b.Base == ends[b.Partition] && b.Last-b.Base+1 == int64(b.Count) && len(b.Records) == b.Count,
			"%s: offsets %d to %d, claims %d records, contains %d, expected to begin at %d", at, b.Base, b.Last, b.Count, len(b.Records), ends[b.Partition])
		ends[b.Partition] = b.Last + 1
		count += b.Count
		if b.Codec == codec {
			compressed++
		}
		for _, r := range b.Records {
			assert.Must(t, strings.Count(r.HeaderKeys, ",") == 1 && r.KeySize >= 1,
				"%s: record %d has header keys %q and a key of %d bytes", at, r.Offset, r.HeaderKeys, r.KeySize)
		}
		if !idempotent {
			continue
		}
		w := writer{b.Partition, b.ProducerID, b.Epoch}
		assert.True(t, b.ProducerID >= 0 && b.BaseSequence == next[w],
			"%s: producer %d, sequence %d, want %d", at, b.ProducerID, b.BaseSequence, next[w])
		next[w] = b.BaseSequence + b.Count
	}
	assert.Equal(t, count, events, "events in the segments")
	// A client may leave a batch uncompressed if it would not shrink.
	assert.True(t, compressed*2 >= len(batches), "%d of %d batches are compressed with %s", compressed, len(batches), codec)
	assert.Equal(t, len(ends), 3, "partitions written")
}

// TestVerify sends to a topic that contains an older run's records and reads back what was sent, with each codec and engine.
func TestVerify(t *testing.T) {
	t.Parallel()
	broker := kafkatest.One(t)
	topic := broker.CreateTopic(t, 4, 1)
	before := int64(0)
	for _, engine := range engines {
		for _, codec := range []string{"none", "zstd"} {
			t.Run(engine+"/"+codec, func(t *testing.T) {
				d := run(t, "run", topicURL(broker, topic), "--rate", "20k/s", "--for", "1s", "--warmup", "500ms", "--verify",
					"--engine", engine, "--compression", codec, "--json", "--quiet").succeeded(t).document(t)
				all := d.wholeRun()
				d.checkLedger(t, all.Acked)
				end := broker.EndSum(t, topic)
				assert.Equal(t, uint64(end-before), all.Acked, "growth of the end offsets, and events acked")
				before = end
				assert.Equal(t, d.Totals.Offered, 20_000, "events offered")
			})
		}
	}
}

// TestRoundTrip produces and consumes at the same time.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	broker := kafkatest.One(t)
	for _, tt := range []struct {
		name  string
		flags []string
	}{
		{"plain", []string{"--size", "100"}},
		{"one byte", []string{"--size", "1"}},
		{"compressed", []string{"--size", "100", "--compression", "lz4"}},
		{"client", []string{"--size", "100", "--engine", "client"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			topic := broker.CreateTopic(t, 2, 1)
			d := run(t, append([]string{"run", topicURL(broker, topic), "--op", "roundtrip", "--rate", "2000/s", "--for", "2s", "--drain", "60s", "--json", "--quiet"}, tt.flags...)...).
				succeeded(t).document(t)
			assert.Equal(t, d.Totals.Acked, 4000, "acked events")
			switch e2e := d.EndToEnd; {
			case e2e == nil:
				t.Error("the report has no end_to_end")
			case e2e.Count != 4000:
				t.Errorf("end_to_end counts %d events, want 4000", e2e.Count)
			case d.Response == nil || e2e.P50US <= 0 || e2e.MaxUS < e2e.P50US:
				t.Errorf("end_to_end: %+v", *e2e)
			}
			assert.Equal(t, broker.EndSum(t, topic), 4000, "growth of the end offsets")
		})
	}
	t.Run("concurrency", func(t *testing.T) {
		t.Parallel()
		topic := broker.CreateTopic(t, 1, 1)
		d := run(t, "run", topicURL(broker, topic), "--op", "roundtrip", "--concurrency", "1", "--count", "200", "--json", "--quiet").succeeded(t).document(t)
		assert.True(t, d.EndToEnd != nil && d.EndToEnd.Count == 200 && d.Response == nil,
			"end_to_end %+v, response %+v: want 200 events and none", d.EndToEnd, d.Response)
	})
}
