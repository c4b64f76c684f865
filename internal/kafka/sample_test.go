package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// sample reads a topic of a cluster and returns the values, by partition.
func sample(t *testing.T, c *kfake.Cluster, topic string, given map[string][]string, w SampleWork) (*SampleResult, map[int32]int, error) {
	t.Helper()
	s := spec(t, urlOf(c, topic), given)
	w.URL, w.Options, w.Given, w.Logf = s.URL, s.Options, s.Given, t.Logf
	found := map[int32]int{}
	w.Batch = func(partition int32, b *wire.Batch, records []byte, from, to int64) {
		err := wire.ForEachRecord(records, b.NumRecords, func(r *wire.Record) error {
			if offset := b.BaseOffset + int64(r.OffsetDelta); offset >= from && offset < to {
				found[partition]++
			}
			return nil
		})
		assert.True(t, err == nil, "%v", err)
	}
	ctx := testkit.Minute(t)
	r, err := Sample(ctx, w)
	return r, found, err
}

func TestSampleReadsATopic(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(3, "t"), kfake.SeedTopics(1, "empty"))
	put(t, c, records(3000, 3, sized(100)), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	for _, test := range []struct {
		name  string
		topic string
		given map[string][]string
		count uint64
		want  int
		whole bool
	}{
		{"all", "t", nil, 0, 3000, true},
		{"a part", "t", nil, 700, 700, false},
		{"as many as there are", "t", nil, 3000, 3000, true},
		{"from an offset", "t", map[string][]string{"from": {"400"}}, 0, 1800, false},
		{"an empty topic", "empty", nil, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, found, err := sample(t, c, test.topic, test.given, SampleWork{Count: test.count})
			assert.OK(t, err)
			got := 0
			for _, n := range found {
				got += n
			}
			assert.True(t, got == test.want && r.Read == uint64(test.want) && r.Whole == test.whole && !r.Interrupted,
				"got %d records, %+v, want %d, whole %v", got, r, test.want, test.whole)
		})
	}
}

func TestSampleOfNewRecords(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(10, 1, sized(100)))
	r, found, err := sample(t, c, "t", map[string][]string{"from": {"latest"}}, SampleWork{For: 300 * time.Millisecond})
	assert.True(t, err == nil && found[0] == 0 && !r.Whole && !r.Interrupted,
		"got %v, %d records and %+v, want none, and not everything", err, found[0], r)
}

func TestSampleRefuses(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t)
	_, _, err := sample(t, c, "missing", nil, SampleWork{})
	assert.True(t, err != nil && strings.Contains(err.Error(), "does not exist") && !errors.Is(err, context.Canceled),
		"got %v, want that the topic does not exist", err)
	assert.True(t, c.TopicInfo("missing") == nil, "reading a missing topic created it")
}
