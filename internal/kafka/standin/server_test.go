package standin

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

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

// TestServerAnswersWhenServed: each answer leaves when its last record is served,
// also between requests that were sent together.
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
		// The third would come after 100 s: the first two did not wait for it, as the
		// deadline of the connection shows.
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
		if err := kerr.ErrorForCode(code(raw.ask(produceOf(t, 10, 1)))); !errors.Is(err, kerr.ThrottlingQuotaExceeded) {
			t.Fatalf("got %v from a batch that does not fit, want that the quota is exceeded", err)
		}
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

// TestServerInRecord: the record has the arrivals and the answers, and no answer is
// earlier than a queue makes it.
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

// TestRecord: the record contains what a client produces and consumes, by
// partition and offset, with the times of the answers.
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
