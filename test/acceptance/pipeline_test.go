//go:build conformance

package acceptance

import (
	"encoding/json"
	"testing"
	"time"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// A stage is what the tests read of a pipeline's stage.
type stage struct {
	Name   string `json:"name"`
	Totals counts `json:"totals"`
}

// stages returns the stages of a pipeline's report.
func stages(t *testing.T, e ended) (send, read stage) {
	t.Helper()
	var d struct {
		Parts []stage `json:"parts"`
	}
	if err := json.Unmarshal([]byte(e.stdout), &d); err != nil || len(d.Parts) != 2 || d.Parts[0].Name != "send" || d.Parts[1].Name != "read" {
		t.Fatalf("%v, stages %+v\n%s", err, d.Parts, e.stderr)
	}
	return d.Parts[0], d.Parts[1]
}

// TestPipeline: reads keep up with 50,000 records a second, and each record is read once.
func TestPipeline(t *testing.T) {
	c := kafkatest.Shared(t)
	topic := c.CreateTopic(t, 3, 1)
	e := run(t, "run", topicURL(c, topic), "--op", "pipeline", "--rate", "50k/s", "--for", "2s", "--json").wantOneOf(t, 0, 3)
	send, read := stages(t, e)
	assert.True(t, send.Totals.Acked == 100_000 && read.Totals.Acked == 100_000 && read.Totals.Offered == 100_000,
		"sent %+v, read %+v", send.Totals, read.Totals)
	assert.Equal(t, c.EndSum(t, topic), 100_000, "growth of the end offsets")
	d := e.document(t)
	assert.Must(t, d.EndToEnd != nil, "no end-to-end times")
	t.Logf("end to end: max %.1f ms", d.EndToEnd.MaxUS/1000)
}

// TestPipelineLeaderMoved: while leaders move, every record that was acked is read in the end.
func TestPipelineLeaderMoved(t *testing.T) {
	t.Parallel()
	threeNodes.Lock()
	defer threeNodes.Unlock()
	c := kafkatest.SharedThree(t)
	topic := c.CreateTopic(t, 2, 3)
	s := start(t, "run", topicURL(c, topic), "--op", "pipeline", "--acks", "all", "--idempotent", "--rate", "1000/s", "--for", "8s", "--read-delay", "500ms", "--json")
	s.awaitStderr(progressText)
	for range 3 {
		from := c.LeaderOf(t, topic, 0)
		c.MoveLeader(t, topic, 0, c.Node(from.ID()%3+1))
		pause(t, time.Second)
	}
	_, read := stages(t, s.wait(runTimeout).wantOneOf(t, 0, 3))
	assert.Equal(t, read.Totals.Acked, 8000, "read %+v", read.Totals)
}
