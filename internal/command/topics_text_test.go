package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/internal/layout"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// Operations with an unknown result are distinguished from those that failed.
func TestTextHasUnknown(t *testing.T) {
	answered, waited := measure.NewHistogram(), measure.NewHistogram()
	answered.RecordN(time.Millisecond, 2)
	waited.Record(time.Second)
	d := topicsDocument(&cluster.TopicResult{
		Op: cluster.OpCreateTopics, Operations: 5, Done: 2, Failed: 1, Unknown: 2, Requests: 5, Elapsed: time.Second, PerRequest: 1,
		Response: answered, Censored: waited, Service: measure.NewHistogram(), FailedService: measure.NewHistogram(),
		Failures: []measure.Failure{{Class: "timeout", Text: "late", Events: 2, Batches: 2}, {Class: "rejected", Text: "there", Events: 1, Batches: 1}},
	})
	var text strings.Builder
	d.text(&text, layout.Style{})
	assert.Has(t, text.String(), "FAIL  made 2 of 5 topics in 1 s", "  response  p50 1 ms, p99 >= ", "\n  failed    1\n", "\n  unknown   2, without a certain answer\n", "     2  timeout: late\n", "     1  rejected: there\n")
	data, err := json.Marshal(d)
	assert.True(t, err == nil && strings.Contains(string(data), `"failed":1,"unknown":2,`) &&
		strings.Contains(string(data), `"failed_service":{`), "%v: %s", err, data)
}
