package cluster

import (
	"slices"
	"testing"
	"time"

	"carronade/payload"
	"carronade/test/testkit/assert"
)

func TestLateness(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	type cycle struct {
		before, after, arrived, at, throttle time.Duration
		more                                 bool
		want                                 time.Duration // of Earliest
	}
	for _, tt := range []struct {
		name   string
		cycles []cycle
	}{
		{"never late", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 50 * ms, want: 50 * ms},
			{before: 50 * ms, after: 50 * ms, arrived: 90 * ms, at: 90 * ms, want: 90 * ms},
		}},
		{"the first request is not late", []cycle{{before: 500 * ms, after: 501 * ms, arrived: 550 * ms, at: 550 * ms, want: 550 * ms}}},
		{"an answer waits to be read", []cycle{{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 80 * ms, want: 50 * ms}}},
		{"then the next request waits for the answer", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 80 * ms, want: 50 * ms},
			{before: 81 * ms, after: 82 * ms, arrived: 90 * ms, at: 91 * ms, want: 58 * ms}, // 32 ms and 1 ms
			{before: 91 * ms, after: 91 * ms, arrived: 99 * ms, at: 99 * ms, want: 98 * ms}, // over, except for 1 ms
		}},
		{"the rest of the log inherits the delay", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 10 * ms, at: 10 * ms, want: 10 * ms},
			{before: 110 * ms, after: 110 * ms, arrived: 120 * ms, at: 120 * ms, more: true, want: 20 * ms},
			{before: 125 * ms, after: 125 * ms, arrived: 130 * ms, at: 130 * ms, more: true, want: 25 * ms},
			{before: 130 * ms, after: 130 * ms, arrived: 140 * ms, at: 140 * ms, want: 35 * ms},
			{before: 140 * ms, after: 140 * ms, arrived: 150 * ms, at: 150 * ms, want: 150 * ms},
		}},
		{"unknown when it arrived", []cycle{
			{before: 1 * ms, after: 1 * ms, at: 50 * ms, want: 50 * ms},
			{before: 60 * ms, after: 60 * ms, at: 70 * ms, want: 60 * ms},
		}},
		{"the broker throttles", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 50 * ms, throttle: 100 * ms, want: 50 * ms},
			{before: 152 * ms, after: 152 * ms, arrived: 170 * ms, at: 170 * ms, want: 168 * ms},
		}},
		{"never 0, which means unknown", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 2 * ms, at: 2 * ms, want: 2 * ms},
			{before: 9 * ms, after: 9 * ms, arrived: 2 * ms, at: 9 * ms, want: 1},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l Lateness
			own := time.Duration(0)
			for i, c := range tt.cycles {
				l.Asked(c.before, c.after)
				l.Answered(c.arrived, c.at)
				assert.Equal(t, l.Earliest(&own, c.at, c.more), c.want, "answer %d", i)
				if c.throttle > 0 {
					l.Throttled(c.throttle)
				}
			}
		})
	}
}

// The lag of a log is what a broker reported less what was delivered, and unknown before a report.
func TestProgress(t *testing.T) {
	t.Parallel()
	p := NewProgress(nil, []int64{5, 7, 9})
	p.Begin(1, 70) // such as a committed offset
	p.Deliver(0, 8)
	p.Reported(0, 20, 15)
	p.Reported(2, 3, 3) // an old answer: the log is not behind
	for _, tt := range []struct {
		name      string
		got, want []int64
	}{
		{"starts", p.Starts(), []int64{5, 70, 9}},
		{"positions", p.Positions(), []int64{8, 70, 9}},
		{"lag", p.Lag(), []int64{12, -1, 0}},
		{"what may be read", []int64{p.Behind(0), p.Behind(1), p.Behind(2)}, []int64{7, -1, 0}},
	} {
		assert.True(t, slices.Equal(tt.got, tt.want), "%s: got %v, want %v", tt.name, tt.got, tt.want)
	}
}

// TestKeysHaveOneOwner: all events of a key belong to one client and one partition, and
// each client has some of each partition.
func TestKeysHaveOneOwner(t *testing.T) {
	t.Parallel()
	gen := assert.Value(payload.New(payload.Spec{Seed: 1, Size: "10", Payload: "random", Key: "uniform(500)"}))(t)
	const clients, partitions = 3, 6
	s := NewStreams(Partitioner{Kind: "murmur2"}, clients, partitions, gen, 1)
	type place struct {
		client    int
		partition int32
	}
	owners, used := map[string]place{}, map[place]bool{}
	for stream := range int32(s.Partitioner.Streams()) {
		for k := range uint64(400) {
			key := string(gen.AppendKey(nil, s.KeyNumber(stream, k)))
			p := place{s.Client(stream), s.Partition(stream)}
			was, ok := owners[key]
			assert.Must(t, !ok || was == p, "key %q belongs to %v and %v", key, was, p)
			owners[key], used[p] = p, true
		}
	}
	assert.True(t, len(owners) >= 450 && len(used) == clients*partitions, "%d keys in %d streams", len(owners), len(used))
}
