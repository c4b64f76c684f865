package dropintest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"carronade/test/testkit/assert"
)

// An OMBResult is a result file of OpenMessaging Benchmark, written from its description: rates are per second, publish and
// end-to-end latencies are milliseconds, and publish delays are whole microseconds.
type OMBResult struct {
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

// ReadOMBResult reads a result file: it has each field, and no other.
func ReadOMBResult(t testing.TB, file string) *OMBResult {
	t.Helper()
	r := new(OMBResult)
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
