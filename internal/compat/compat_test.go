package compat

import "testing"

// A tool is called by its name, by another of its names, and by files of them.
func TestFind(t *testing.T) {
	tools := []Tool{{Name: "kafka-topics"}, {Name: "mongoose", Calls: []string{"mongoose-base"}}}
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
			t.Errorf("%q is %q, want %q", called, got, want)
		}
	}
}
