package run

import (
	"testing"
	"time"

	"carronade/load"
)

func TestReadAfter(t *testing.T) {
	tests := []struct {
		name    string
		plan    load.Plan
		stripes int
		want    bool
	}{
		{"a short run", load.Plan{Schedule: load.Constant(5000), Linger: 5 * time.Millisecond, Hold: load.Limits{Time: 30 * time.Second}}, 6, true},
		{"fast, in full shots", load.Plan{Schedule: load.Constant(1e6), Linger: 5 * time.Millisecond, Hold: load.Limits{Time: 20 * time.Second}}, 4, true},
		{"a day", load.Plan{Schedule: load.Constant(50_000), Linger: 5 * time.Millisecond, Hold: load.Limits{Time: 24 * time.Hour}}, 6, false},
		{"a day, but so many events", load.Plan{Schedule: load.Constant(50_000), Hold: load.Limits{Time: 24 * time.Hour, Events: 1000}}, 6, true},
		{"no end", load.Plan{Schedule: load.Constant(1), Linger: 5 * time.Millisecond}, 1, false},
		{"a schedule that ends", load.Plan{Schedule: load.Until(load.Constant(100), time.Minute)}, 1, true},
		{"one event a shot", load.Plan{Schedule: load.Constant(1e6), EventsPerShot: 1, Linger: time.Second, Hold: load.Limits{Time: 20 * time.Second}}, 4, false},
		{"a hundred a shot", load.Plan{Schedule: load.Constant(1e6), EventsPerShot: 100, Hold: load.Limits{Time: 20 * time.Second}}, 4, true},
		{"nothing gathers", load.Plan{Schedule: load.Constant(1e6), Hold: load.Limits{Time: 20 * time.Second}}, 4, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readAfter(&tt.plan, tt.stripes); got != tt.want {
				t.Errorf("at most %d shots: read afterwards %v, want %v", mostShots(&tt.plan, tt.stripes), got, tt.want)
			}
		})
	}
}
