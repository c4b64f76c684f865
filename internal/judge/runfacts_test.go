package judge

import (
	"maps"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// Facts that a target reports about the run and its client differ from run to
// run, and do not make two servers differ.
func TestFactsOfARunAreNotOfServers(t *testing.T) {
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	rows := func(with fields) []store.Row {
		f := fields{"op": "produce", "target": "kafka://a/t", "target.version": "4.3"}
		maps.Copy(f, with)
		return []store.Row{row("a", start, f)}
	}
	for _, tt := range []struct {
		name            string
		base, candidate fields
		found           bool
	}{
		{"counts of attempts", nil, fields{"target.batch_attempts": 5120.0, "target.batch_attempts_refused": 3.0}, false},
		{"renewed logins", fields{"target.logins_renewed": 2.0}, fields{"target.logins_renewed": 3.0}, false},
		{"transactions", fields{"target.transactions.end_mean_us": 900.0}, fields{"target.transactions.end_mean_us": 1100.0}, false},
		{"a ratio", fields{"target.compressed_to": 0.601}, fields{"target.compressed_to": 0.602}, false},
		{"partitions", fields{"target.topic.partitions": 3.0}, fields{"target.topic.partitions": 6.0}, true},
	} {
		got := findings(rows(tt.base), rows(tt.candidate))
		severe := false
		for _, f := range got {
			severe = severe || f.Severe
		}
		assert.Equal(t, severe, tt.found, "%s: %+v", tt.name, got)
	}
}
