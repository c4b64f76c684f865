package compat

import "testing"

// A tool is found by its name, by an alias, and by the names of their files.
func TestFind(t *testing.T) {
	tools := []Tool{{Name: "kafka-topics"}, {Name: "mongoose", Aliases: []string{"mongoose-base"}}}
	for called, want := range map[string]string{
		"mongoose": "mongoose", "/usr/bin/mongoose": "mongoose", "./mongoose.jar": "mongoose", "mongoose.exe": "mongoose",
		"mongoose-base": "mongoose", "mongoose-base-4.2.11.jar": "mongoose", "kafka-topics.sh": "kafka-topics",
		"mongoose-4.2": "", "mongoose-base-next.jar": "", "topics": "", "carronade": "", "": "",
	} {
		got := ""
		if tool, ok := Find(tools, called); ok {
			got = tool.Name
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", called, got, want)
		}
	}
}

// Kafka's own runner runs what its first argument names.
func TestRunsOthers(t *testing.T) {
	for called, want := range map[string]bool{"kafka-run-class": true, "./bin/kafka-run-class.sh": true, "kafka-run": false, "carronade": false} {
		if got := RunsOthers(called); got != want {
			t.Errorf("%q: %v, want %v", called, got, want)
		}
	}
}
