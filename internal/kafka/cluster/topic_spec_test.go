package cluster

import (
	"math"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

func TestTopicSpec(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		wrong            bool
	}{
		{name: "all", text: "partitions=3,replicas=2,retention.ms=5", want: "partitions=3,replicas=2,retention.ms=5"},
		{name: "config prefix", text: "config.segment.ms=2,config.flush.ms=1", want: "flush.ms=1,segment.ms=2"},
		{name: "of another broker", text: "redpanda.remote.read=true", want: "redpanda.remote.read=true"},
		{name: "of another broker, with words of Kafka's", text: "flush.bytes=1,retention.local.target.bytes=5", want: "flush.bytes=1,retention.local.target.bytes=5"},
		{name: "a mistyped name", text: "retention.mss=5", wrong: true},
		{name: "swapped letters", text: "retentoin.ms=5", wrong: true},
		{name: "a name that Kafka has not", text: "partitons=3", wrong: true},
		{name: "value with a comma", text: "cleanup.policy=compact,delete,partitions=1", want: "partitions=1,cleanup.policy=compact,delete"},
		{name: "empty", text: "", want: ""},
		{name: "broker defaults", text: "auto", want: ""},
		{name: "broker defaults, with a setting", text: "auto,retention.ms=5", want: "retention.ms=5"},
		{name: "no value", text: "partitions", wrong: true},
		{name: "zero", text: "replicas=0", wrong: true},
		{name: "too many", text: "replicas=40000", wrong: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseTopicSpec(tt.text)
			assert.Must(t, (err != nil) == tt.wrong, "got error %v, want one: %v", err, tt.wrong)
			assert.True(t, err != nil || got.String() == tt.want, "got %q, want %q", got, tt.want)
		})
	}
	_, err := ParseTopicSpec("partition=3")
	assert.ErrorHas(t, err, "did you mean partitions?")
}

// The texts of two layouts differ wherever the layouts differ.
func TestLayoutOfMany(t *testing.T) {
	of := func(n int, change ...int) string {
		leaders := make([]int32, n)
		for i := range leaders {
			leaders[i] = int32(i % 3)
		}
		for _, i := range change {
			leaders[i] = 7
		}
		return Layout(leaders)
	}
	assert.Equal(t, of(6), "0: 0 3, 1: 1 4, 2: 2 5")
	all := of(120)
	assert.True(t, strings.Contains(all, "(the first 64 of 120; #"), "got %q", all)
	if of(120) != all || of(120, 119) == all || of(121) == all {
		t.Errorf("got %q, and %q with another leader, and %q with one more partition", all, of(120, 119), of(121))
	}
}

func TestDue(t *testing.T) {
	for _, tt := range []struct {
		name string
		work TopicLoad
		at   time.Duration
		want uint64
	}{
		{"none yet", TopicLoad{Op: OpListTopics, Times: -1, Rate: 10}, 0, 0},
		{"the first", TopicLoad{Op: OpListTopics, Times: -1, Rate: 10}, 1, 1},
		{"ten", TopicLoad{Op: OpListTopics, Times: -1, Rate: 10}, time.Second, 10},
		{"eleven", TopicLoad{Op: OpListTopics, Times: -1, Rate: 10}, time.Second + 1, 11},
		{"thirds", TopicLoad{Op: OpListTopics, Times: -1, Rate: 3}, 3 * time.Second, 9},
		{"several in a request", TopicLoad{Op: OpCreateTopics, Next: func() string { return "" }, Times: -1, Rate: 3, PerRequest: 10}, time.Second + 1, 40},
		{"one in a listing", TopicLoad{Op: OpListTopics, Times: -1, Rate: 3, PerRequest: 10}, time.Second + 1, 4},
		{"a number", TopicLoad{Op: OpCreateTopics, Next: func() string { return "" }, Times: 25, Rate: 3, PerRequest: 10}, time.Second, 25},
		{"a number that is not reached", TopicLoad{Op: OpListTopics, Times: math.MaxInt, Rate: 10}, time.Second, 10},
		{"names", TopicLoad{Op: OpDeleteTopics, Names: NumberedNames("x", 7), Rate: 10}, time.Minute, 7},
		{"until its time is over", TopicLoad{Op: OpListTopics, Times: -1, Rate: 50, For: 100 * time.Millisecond}, time.Minute, 5},
		{"without a rate", TopicLoad{Op: OpListTopics, Times: -1}, time.Minute, 0},
	} {
		assert.Equal(t, tt.work.DueBefore(tt.at), tt.want, "%s", tt.name)
	}
}
