package cli

import (
	"errors"
	"testing"
	"time"

	"carronade/internal/command"
	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

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

// A report without the names of its topics, such as an old tool's, cannot be replayed; the error has
// a hint.
func TestReplayOfTopics(t *testing.T) {
	s := &session{Program: &Program{}}
	err := s.replayTopics(t.Context(), &command.Settings{}, &report.Document{Op: "topics create", Target: "kafka://b"})
	if said := (*words)(nil); !errors.As(err, &said) || said.Hint != "repeat the original command, or use carronade topics create kafka://b/TOPIC" {
		t.Errorf("got %v", err)
	}
}
