package workload

import (
	"testing"
	"time"

	"carronade/load"
	"carronade/test/testkit/assert"
)

func TestExtent(t *testing.T) {
	rate := load.Constant(1000)
	for _, tt := range []struct {
		name   string
		plan   load.Plan
		events uint64
		length time.Duration
	}{
		{"for a time", load.Plan{Schedule: rate, Measurement: load.Limits{Time: 2 * time.Second}}, 2000, 2 * time.Second},
		{"with a warm-up", load.Plan{Schedule: rate, WarmupTime: time.Second, Measurement: load.Limits{Time: 2 * time.Second}}, 3000, 3 * time.Second},
		{"a number of events", load.Plan{Schedule: rate, WarmupTime: time.Second, Measurement: load.Limits{Events: 501}}, 1501, 1500 * time.Millisecond},
		{"a number of events, or a time", load.Plan{Schedule: rate, Measurement: load.Limits{Events: 5000, Time: time.Second}}, 1000, time.Second},
		{"a shape that ends", load.Plan{Schedule: load.Until(rate, time.Second)}, 1000, time.Second},
		{"without an end", load.Plan{Schedule: rate}, 0, 0},
		{"without a schedule", load.Plan{WarmupEvents: 10, Measurement: load.Limits{Events: 20, Time: time.Second}}, 30, 0},
		{"without a schedule, for a time", load.Plan{WarmupTime: time.Second, Measurement: load.Limits{Time: time.Second}}, 0, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events, length := extent(&tt.plan)
			assert.True(t, events == tt.events && length == tt.length,
				"got %d events in %v, want %d in %v", events, length, tt.events, tt.length)
		})
	}
}
