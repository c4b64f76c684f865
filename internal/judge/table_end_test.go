package judge

import (
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// A consume run ends with its last record, as in Kafka's tool, and not when its connections are closed. After a
// warm-up only the end of the run is known.
func TestTableConsumeEnd(t *testing.T) {
	start := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	end := func(warmup string) time.Duration {
		r := row("c", start, fields{
			"op": "consume", "throughput": 500.0, "consumed": 1000.0, "bytes_moved": 1e6, "elapsed": 2.0, "warmup": warmup,
			"started": fromMS(start), "ended": fromMS(start.Add(2034 * time.Millisecond)),
		})
		table := assert.Value(TableOf([]store.Row{r}, Consuming))(t)
		return table.Runs[0].End.Sub(start)
	}
	assert.Equal(t, end(""), 2*time.Second, "without a warm-up")
	assert.Equal(t, end("1s"), 2034*time.Millisecond, "after a warm-up")
}
