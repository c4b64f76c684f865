package run

import (
	"testing"
	"time"

	"carronade/load"
)

func TestReadAfter(t *testing.T) {
	for _, tt := range []struct {
		name    string
		plan    load.Plan
		streams int
		want    bool
	}{
		{"a short run", load.Plan{Schedule: load.Constant(5000), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 30 * time.Second}}, 6, true},
		{"fast, in full batches", load.Plan{Schedule: load.Constant(1e6), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 20 * time.Second}}, 4, true},
		{"a day", load.Plan{Schedule: load.Constant(50_000), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 24 * time.Hour}}, 6, false},
		{"a day, but a limit of events", load.Plan{Schedule: load.Constant(50_000), Measurement: load.Limits{Time: 24 * time.Hour, Events: 1000}}, 6, true},
		{"no end", load.Plan{Schedule: load.Constant(1), Linger: 5 * time.Millisecond}, 1, false},
		{"a schedule that ends", load.Plan{Schedule: load.Until(load.Constant(100), time.Minute)}, 1, true},
		{"one event a batch", load.Plan{Schedule: load.Constant(1e6), BatchEvents: 1, Linger: time.Second, Measurement: load.Limits{Time: 20 * time.Second}}, 4, false},
		{"a hundred a batch", load.Plan{Schedule: load.Constant(1e6), BatchEvents: 100, Measurement: load.Limits{Time: 20 * time.Second}}, 4, true},
		{"nothing is batched", load.Plan{Schedule: load.Constant(1e6), Measurement: load.Limits{Time: 20 * time.Second}}, 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := readAfter(&tt.plan, tt.streams); got != tt.want {
				t.Errorf("at most %d batches: read afterwards %v, want %v", mostBatches(&tt.plan, tt.streams), got, tt.want)
			}
		})
	}
}
