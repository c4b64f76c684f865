package cli

import (
	"slices"
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/internal/workload"
)

// A program that is called by a tool's name is the tool.
func TestCalled(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", ""},
		{"./carronade run null://", "run null://"},
		{"/opt/kafka/bin/kafka-producer-perf-test.sh --topic t", "as kafka-producer-perf-test --topic t"},
		{"sangrenel", "as sangrenel"},
		{"./bin/kafka-run-class.sh org.apache.kafka.tools.ProducerPerformance --topic t", "as org.apache.kafka.tools.ProducerPerformance --topic t"},
		{"kafka-run-class", "as"},
	} {
		if got := called(strings.Fields(tt.args)); !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%q is %q, want %q", tt.args, got, tt.want)
		}
	}
}

// What a run's numbers are to be read with is said once: what resolving said
// already is not said again.
func TestUnsaid(t *testing.T) {
	w := &workload.Workload{Warnings: []string{"early"}}
	d := &report.Document{Warnings: []string{"early", "late"}}
	if got := unsaid(w, d); !slices.Equal(got, []string{"late"}) || len(d.Warnings) != 2 {
		t.Errorf("unsaid are %q of %q", got, d.Warnings)
	}
}
