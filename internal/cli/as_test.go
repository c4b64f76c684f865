package cli

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/internal/command"
	"carronade/internal/dropin"
	"carronade/internal/fleet"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// Every tool takes the flags that it has in common with the others, and has no flag
// of its own with such a name.
func TestCommonFlags(t *testing.T) {
	for _, tool := range oldTools() {
		t.Run(tool.Name, func(t *testing.T) {
			own, common, err := tool.Split([]string{"--store", "a.db", "--label", "a=b", "--no-store"})
			assert.True(t, err == nil && len(own) == 0 && len(common.Keep) == 3, "%q is left, %+v, %v", own, common, err)
			var help bytes.Buffer
			p := &dropin.Program{Called: tool.Name, Args: []string{"--help"}, In: strings.NewReader(""), Out: &help, Err: &help}
			assert.Value(tool.Main(t.Context(), p))(t)
			for _, name := range []string{"strict", "generation", "report-json", "store", "no-store", "label"} {
				flags := regexp.MustCompile(`(?m)^\s*\[?--?`+name+`\b[^-]`).FindAllString(help.String(), -1)
				assert.True(t, len(flags) == 1, "the help has %d flags --%s:\n%s", len(flags), name, help.String())
			}
		})
	}
}

// TestUnusable: each node that cannot take part is named.
func TestUnusable(t *testing.T) {
	fine := fleet.Info{Name: "a", Version: fleetVersion()}
	busy := fleet.Info{Name: "b", Version: fleetVersion(), Busy: "7"}
	old := fleet.Info{Name: "c", Version: "0"}
	assert.OK(t, unusable([]fleet.Info{fine}))
	var got []string
	for _, err := range splitErrors(unusable([]fleet.Info{busy, fine, old})) {
		got = append(got, err.Error()+" | "+advice.Hint(err))
	}
	want := "node b is busy with run 7 | wait for its end, or use other nodes\n" +
		"node c has version 0 of carronade, this machine " + fleetVersion() + " | use the same version everywhere"
	assert.Equal(t, strings.Join(got, "\n"), want, "got %q", got)
}

// The job of a load on topics has the number of operations, if there is one.
func TestTopicsJob(t *testing.T) {
	two := dropin.TopicLoad{Op: "delete", Names: []string{"a", "b"}}
	two.Spec.Partitions = 3 // of topics to create
	for _, tt := range []struct {
		name string
		load dropin.TopicLoad
		want int // count
	}{
		{"by name", two, 2},
		{"names made during the load", dropin.TopicLoad{Op: "create", Next: func() string { return "a" }, Times: 7}, 7},
		{"one read repeatedly", dropin.TopicLoad{Op: "read", Names: []string{"a"}, Times: 7}, 7},
		{"without end", dropin.TopicLoad{Op: "read", Names: []string{"a"}, Times: -1, For: time.Second}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := topicsJob(&tt.load)
			assert.True(t, job.Count == tt.want && job.Op == tt.load.Op && job.For == tt.load.For && job.Partitions == 0,
				"got %+v, want a count of %d", job, tt.want)
		})
	}
}

// A report without the names of its topics, such as an old tool's, cannot be replayed; the error has a hint.
func TestReplayOfTopics(t *testing.T) {
	s := &session{Program: &Program{}}
	err := s.replayTopics(t.Context(), &command.Settings{}, &report.Document{Op: "topics create", Target: "kafka://b"})
	if said := (*protocol.Error)(nil); !errors.As(err, &said) || said.Hint != "repeat the original command, or use carronade topics create kafka://b/TOPIC" {
		t.Errorf("got %v", err)
	}
}

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

// Warnings that were printed when the workload was resolved are not printed again.
func TestNewWarnings(t *testing.T) {
	w := &workload.Workload{Warnings: []string{"early"}}
	d := &report.Document{Warnings: []string{"early", "late"}}
	got := newWarnings(w, d)
	assert.True(t, slices.Equal(got, []string{"late"}) && len(d.Warnings) == 2, "got %q of %q", got, d.Warnings)
}
