package export

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/verdict/find"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// pageSearched is the report of a search with a text that must be escaped.
func pageSearched() *report.Document {
	trial := func(rate float64, result find.Result, p99 time.Duration) find.Tried {
		return find.Tried{
			Trial: find.Trial{Role: find.Search, Rate: rate, Measure: time.Minute}, Report: "abcd2345", Achieved: rate,
			Verdict: &find.Verdict{Result: result, Why: "<script>late</script>"},
			Times:   []find.Quantile{{Of: "response", P: 50, At: p99 / 9, Least: p99 / 10, Most: p99 / 8}, {Of: "response", P: 99, At: p99, Least: p99 / 2, Most: 2 * p99}},
		}
	}
	return &report.Document{
		Schema: report.SearchSchema, ID: "f1234567", Target: "kafka://127.0.0.1:9092/orders", Op: "produce", Mode: report.Searching,
		Labels: map[string]string{"find": "f1234567"}, Trust: measure.Trust{OK: true, Level: measure.Trusted},
		Search: &report.Search{
			Limits: []string{"p99 < 50 ms"}, Within: []report.SearchLimit{{Name: "p99 < 50 ms", Of: "response", P: 99, Within: 50 * time.Millisecond}},
			Answer: &find.Answer{
				Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true, Why: "the backlog grows",
				Trials: []find.Tried{trial(500, find.Pass, 5*time.Millisecond), trial(948, find.Pass, 20*time.Millisecond), trial(997, find.Fail, 200*time.Millisecond), trial(1100, find.Undecided, 300*time.Millisecond)},
			},
		},
	}
}

// The page of a search has the answer, the curve and the trials, and no numbers of a run.
func TestSearch(t *testing.T) {
	got := pageWritten(t, pageSearched())
	assert.Has(t, got, "Ceiling of kafka://127.0.0.1:9092/orders", "ceiling 948 to 997/s", "f-load-latency-response", "label.find=f1234567", "&lt;script&gt;late", ">p99 &lt; 50 ms<")
	for _, not := range []string{"Numbers of the measurement", "<script>late"} {
		assert.True(t, !strings.Contains(got, not), "it has %s", not)
	}
	both := pageWritten(t, pageSearched(), measured("b", 8, 1))
	assert.Has(t, both, "Numbers of the measurement", "Trials of f1234567", "f-throughput")
}
