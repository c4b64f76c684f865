package omb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// resultFormat is OMB's format of result files, written from its description: rates are per second, publish and
// end-to-end latencies are milliseconds, and publish delays are whole microseconds.
type resultFormat struct {
	Workload          string
	Driver            string
	MessageSize       int64
	Topics            int
	Partitions        int
	ProducersPerTopic int
	ConsumersPerTopic int

	PublishRate, PublishErrorRate, ConsumeRate []float64
	Backlog                                    []int64

	PublishLatencyAvg, PublishLatency50pct, PublishLatency75pct, PublishLatency95pct, PublishLatency99pct, PublishLatency999pct, PublishLatency9999pct, PublishLatencyMax                                                                                 []float64
	PublishDelayLatencyAvg                                                                                                                                                                                                                                []float64
	PublishDelayLatency50pct, PublishDelayLatency75pct, PublishDelayLatency95pct, PublishDelayLatency99pct, PublishDelayLatency999pct, PublishDelayLatency9999pct, PublishDelayLatencyMax                                                                 []int64
	EndToEndLatencyAvg, EndToEndLatency50pct, EndToEndLatency75pct, EndToEndLatency95pct, EndToEndLatency99pct, EndToEndLatency999pct, EndToEndLatency9999pct, EndToEndLatencyMax                                                                         []float64
	AggregatedPublishLatencyAvg, AggregatedPublishLatency50pct, AggregatedPublishLatency75pct, AggregatedPublishLatency95pct, AggregatedPublishLatency99pct, AggregatedPublishLatency999pct, AggregatedPublishLatency9999pct, AggregatedPublishLatencyMax *float64

	AggregatedPublishDelayLatencyAvg                                                                                                                                                                                                                              *float64
	AggregatedPublishDelayLatency50pct, AggregatedPublishDelayLatency75pct, AggregatedPublishDelayLatency95pct, AggregatedPublishDelayLatency99pct, AggregatedPublishDelayLatency999pct, AggregatedPublishDelayLatency9999pct, AggregatedPublishDelayLatencyMax   *int64
	AggregatedEndToEndLatencyAvg, AggregatedEndToEndLatency50pct, AggregatedEndToEndLatency75pct, AggregatedEndToEndLatency95pct, AggregatedEndToEndLatency99pct, AggregatedEndToEndLatency999pct, AggregatedEndToEndLatency9999pct, AggregatedEndToEndLatencyMax *float64
	AggregatedPublishLatencyQuantiles, AggregatedEndToEndLatencyQuantiles                                                                                                                                                                                         map[string]float64
	AggregatedPublishDelayLatencyQuantiles                                                                                                                                                                                                                        map[string]int64
}

// readResult reads a result file: it has each field, and no other.
func readResult(t *testing.T, file string) *resultFormat {
	t.Helper()
	r := new(resultFormat)
	d := json.NewDecoder(bytes.NewReader([]byte(file)))
	d.DisallowUnknownFields()
	assert.OK(t, d.Decode(r))
	var names map[string]any
	assert.OK(t, json.Unmarshal([]byte(file), &names))
	assert.Equal(t, len(names), 7+4+3*8+3*8+3, "fields")
	n := len(r.PublishRate)
	for _, list := range [][]float64{r.PublishErrorRate, r.ConsumeRate, r.PublishLatencyAvg, r.PublishLatency99pct, r.PublishDelayLatencyAvg, r.EndToEndLatency95pct, r.EndToEndLatencyMax} {
		assert.Equal(t, len(list), n, "values of a list")
	}
	assert.Equal(t, len(r.Backlog), n, "values of backlog")
	assert.Equal(t, len(r.PublishDelayLatencyMax), n, "values of publishDelayLatencyMax")
	assert.True(t, r.AggregatedPublishLatencyAvg != nil && r.AggregatedPublishDelayLatencyMax != nil && r.AggregatedEndToEndLatency9999pct != nil, "an aggregated field is missing")
	for name := range r.AggregatedPublishLatencyQuantiles { // what its chart script does with it
		p := assert.Value(strconv.ParseFloat(name, 64))(t)
		assert.True(t, p > 0 && p <= 100 && !math.IsNaN(math.Log10(100/(100-p))), "quantile %s", name)
	}
	return r
}

// Quantiles are as HdrHistogram's iterator with 100 steps in each half has them: worked out by hand.
func TestQuantiles(t *testing.T) {
	h := measure.NewHistogram()
	for _, us := range []time.Duration{10, 20, 30} {
		h.RecordN(us*time.Microsecond, 300)
	}
	h.RecordN(40*time.Microsecond, 99)
	h.Record(50 * time.Microsecond)
	got := timesOf(h)
	got.withQuantiles(h)
	want := []quantile{{100 * 300. / 1000, 10}, {100 * 600. / 1000, 20}, {100 * 900. / 1000, 30}, {100 * 999. / 1000, 40}, {100, 50}}
	assert.Equal(t, fmt.Sprint(got.quantiles), fmt.Sprint(want))
	var many times
	wide := measure.NewHistogram()
	for us := range 100_000 {
		wide.Record(time.Duration(us+1) * time.Microsecond)
	}
	many.withQuantiles(wide)
	// 100 steps to a half, 100 to three quarters, and so on until the steps are smaller than a value.
	n := 0
	for _, q := range many.quantiles {
		if q.p <= 75 {
			n++
		}
	}
	assert.True(t, n >= 195 && n <= 205, "%d steps to 75 %%", n)
	var none times
	none.withQuantiles(nil)
	assert.True(t, none.quantiles == nil, "quantiles of nothing")
}

// searchOf is a search with this answer.
func searchOf(holds float64, settings *dropintest.Settings) func(context.Context, *workload.Document, time.Duration) (*report.Document, error) {
	return func(_ context.Context, d *workload.Document, _ time.Duration) (*report.Document, error) {
		*settings = dropintest.SettingsOf(d)
		return &report.Document{Search: &report.Search{Answer: &find.Answer{Holds: holds, Fails: 5000, Why: "too busy"}}}, nil
	}
}

// Numbers are padded as the tool's.
func TestPadded(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		want string
	}{{1, "    1.0"}, {1000, " 1000.0"}, {1e7, "10000000.0"}, {0.25, "    0.2"}, {0.35, "    0.3"}} {
		assert.Equal(t, padded(tt.x, rateWidth), tt.want)
	}
}
