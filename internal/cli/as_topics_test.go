package cli

import (
	"errors"
	"testing"
	"time"

	"carronade/internal/compat"
	"carronade/internal/report"
)

// A load on topics says how many there are to be, where there is a number.
func TestTopicsJob(t *testing.T) {
	for _, tt := range []struct {
		name string
		load compat.TopicLoad
		want int // count
	}{
		{"by name", compat.TopicLoad{Op: "delete", Names: []string{"a", "b"}, Partitions: 3}, 2},
		{"made as they go", compat.TopicLoad{Op: "create", Next: func() string { return "a" }, Times: 7}, 7},
		{"one read again", compat.TopicLoad{Op: "read", Names: []string{"a"}, Times: 7}, 7},
		{"without end", compat.TopicLoad{Op: "read", Names: []string{"a"}, Times: -1, For: time.Second}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := topicsJob(tt.load)
			if job.Count != tt.want || job.Op != tt.load.Op || job.For != tt.load.For || job.Partitions != 0 {
				t.Errorf("got %+v, want a count of %d", job, tt.want)
			}
		})
	}
}

// Their reports cannot be replayed, and say what can be done.
func TestReplayOfTopics(t *testing.T) {
	var said *words
	if _, err := replayed(&report.Document{Op: "topics create"}); !errors.As(err, &said) || said.Hint == "" {
		t.Errorf("got %v", err)
	}
}
