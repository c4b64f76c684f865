package cli

import (
	"slices"
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// A program that is started under a tool's name behaves like the tool.
func TestCalled(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", ""},
		{"./carronade run null://", "run null://"},
		{"/opt/kafka/bin/kafka-producer-perf-test.sh --topic t", "as kafka-producer-perf-test --topic t"},
		{"sangrenel", "as sangrenel"},
		{"./bin/kafka-run-class.sh org.apache.kafka.tools.ProducerPerformance --topic t", "as org.apache.kafka.tools.ProducerPerformance --topic t"},
		{"kafka-run-class", "as"},
	} {
		got := called(strings.Fields(tt.args))
		assert.True(t, slices.Equal(got, strings.Fields(tt.want)), "%q is %q, want %q", tt.args, got, tt.want)
	}
}

// Warnings that were printed when the workload was resolved are not printed
// again.
func TestNewWarnings(t *testing.T) {
	w := &workload.Workload{Warnings: []string{"early"}}
	d := &report.Document{Warnings: []string{"early", "late"}}
	got := newWarnings(w, d)
	assert.True(t, slices.Equal(got, []string{"late"}) && len(d.Warnings) == 2, "got %q of %q", got, d.Warnings)
}
