package otlp

import (
	"testing"

	"carronade/test/testkit/assert"
)

// TestStages: a Collector whose exporter counts nothing has what it accepted as its last count, not what it refused.
func TestStages(t *testing.T) {
	t.Parallel()
	all := Kind{}.Capabilities().Stages
	assert.Equal(t, all[len(all)-2].Metrics, "otelcol_receiver_accepted_*", "the stage before the exporter")
}
