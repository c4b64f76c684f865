package command

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"carronade/internal/kafka"
	"carronade/internal/kafka/cluster"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// The hash of a file with names is that of what was read: a pipe can be read only once.
func TestTopicsFileIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	text := []byte("# names\na\n\n b \n")
	assert.OK(t, os.WriteFile(path, text, 0o600))
	var doc workload.Document
	doc.Add("target", "target", "kafka://127.0.0.1:9092")
	w := assert.Value(workload.Resolve([]protocol.Kind{kafka.Kind{}}, &doc, nil))(t)
	f := &topicFlags{op: cluster.OpDeleteTopics, file: path}
	names, err := f.names([]string{"kafka://127.0.0.1:9092"}, w, &protocol.Room{})
	assert.Must(t, err == nil && slices.Equal(names, []string{"a", "b"}), "got %v and %v", names, err)
	assert.OK(t, os.WriteFile(path, nil, 0o600)) // a pipe has nothing more
	job := f.job([]string{"kafka://127.0.0.1:9092"}, &cluster.TopicLoad{Op: f.op, Names: names}, w)
	i := slices.IndexFunc(job.Settings, func(s run.TopicsSetting) bool { return s.Name == report.TopicsFileHash })
	assert.True(t, i >= 0 && job.Settings[i].Values[0] == run.TopicsHash(text), "got %+v, want the hash of what was read", job.Settings)
}
