package cluster

import (
	"math"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

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
