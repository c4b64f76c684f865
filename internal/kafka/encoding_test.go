package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A session says whether its events are pooled, and what share of the codec's work is
// done during the run: with the wire engine and a pool only that of batches which are
// not whole templates, with the client's always all.
func TestEncoding(t *testing.T) {
	t.Parallel()
	const none, some = -1, 0.5 // of the codec's work; some: more than nothing and not all
	for _, tt := range []struct {
		name     string
		given    map[string][]string
		plan     load.Plan
		events   string
		measured float64
	}{
		{name: "pooled", events: measure.Pooled, measured: none},
		{name: "fresh", given: map[string][]string{"fresh": {"true"}}, events: measure.Fresh, measured: none},
		{name: "pooled, whole batches", given: map[string][]string{"compression": {"zstd"}}, plan: load.Plan{BatchEvents: 7}, events: measure.Pooled, measured: 0},
		{name: "pooled, the last batch of ten is shorter", given: map[string][]string{"compression": {"gzip"}}, plan: load.Plan{BatchEvents: 7, Measurement: load.Limits{Events: 66}}, events: measure.Pooled, measured: some},
		{name: "fresh, zstd", given: map[string][]string{"compression": {"zstd"}, "fresh": {"true"}}, events: measure.Fresh, measured: 1},
		{name: "client, pooled", given: map[string][]string{"engine": {"client"}}, events: measure.Pooled, measured: none},
		{name: "client, gzip", given: map[string][]string{"engine": {"client"}, "compression": {"gzip"}}, events: measure.Pooled, measured: 1},
		{name: "client, fresh, gzip", given: map[string][]string{"engine": {"client"}, "compression": {"gzip"}, "fresh": {"true"}}, events: measure.Fresh, measured: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			asked := spec(t, urlOf(c, "t"), tt.given)
			asked.BatchEvents = tt.plan.BatchEvents
			s := assert.Value(open(t, asked))(t)
			if tt.plan.Measurement.Events == 0 {
				tt.plan.Measurement.Events = 70
			}
			launch(t, s, tt.plan)
			e := s.Capabilities().Encoding()
			assert.True(t, e.Events == tt.events && (e.Distinct > 0) == (tt.events == measure.Pooled),
				"got %+v, want %s events", e, tt.events)
			ratio, compressed := s.Facts()["compressed_to"].(float64)
			if compressed != (e.Codec != "") || compressed && (ratio <= 0.5 || ratio > 1.1) { // random bytes
				t.Errorf("compressed to %v", s.Facts()["compressed_to"])
			}
			got := float64(none)
			if e.CodecMeasured != nil {
				got = *e.CodecMeasured
			}
			assert.True(t, !(tt.measured == some && (got <= 0 || got >= some) || tt.measured != some && got != tt.measured),
				"%g of the codec's work was measured, want %g", got, tt.measured)
		})
	}
}

// Reading sends nothing.
func TestEncodingOfReader(t *testing.T) {
	t.Parallel()
	e := (&session{}).encoding()
	assert.True(t, e == nil, "got %+v", e)
}
