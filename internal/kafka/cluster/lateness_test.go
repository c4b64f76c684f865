package cluster

import (
	"testing"
	"time"

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
