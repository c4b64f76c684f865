package topics

import (
	"strconv"
	"strings"

	"carronade/internal/kafka/cluster"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/protocol"
)

// job describes the work for its report: with what it has, a replay makes the same operations.
func (f *topicFlags) job(args []string, w *cluster.TopicLoad, on *workload.Workload) run.TopicsJob {
	job := run.TopicsJob{
		Op: w.Op, Concurrency: max(1, w.Concurrency), PerRequest: max(1, w.PerRequest), Rate: w.Rate,
		Partitions: int(w.Spec.Partitions), Replicas: int(w.Spec.Replicas), Note: f.Last("note"),
	}
	add := func(name string, kind protocol.Type, values ...string) {
		job.Settings = append(job.Settings, run.TopicsSetting{Name: name, Type: kind, Values: values})
	}
	switch {
	case w.Op == cluster.OpListTopics:
		job.Count = w.Times
	case f.count != "":
		job.Count = len(w.Names)
	case len(args) > 1:
		add(report.TopicsNames, protocol.String, args[1])
	case f.file == "":
		add(report.TopicsNames, protocol.String, strings.Trim(on.URL.Path, "/"))
	}
	if f.file != "" {
		add(report.TopicsFile, protocol.String, f.file)
		job.Settings = append(job.Settings, run.TopicsSetting{Name: report.TopicsFileHash, Type: protocol.String, Values: []string{f.fileHash}, Aside: true})
	}
	if len(f.config) > 0 {
		add("config", protocol.List, f.config...)
	}
	if f.internal {
		add("internal", protocol.Bool, "true")
	}
	if w.Op == cluster.OpDeleteRecords && w.Upto >= 0 {
		add("upto", protocol.Int, strconv.FormatInt(w.Upto, 10))
	}
	for _, s := range on.Settings() { // of the connection
		if given := s.From > workload.FromPreset && s.Name != "target" && s.Name != "op"; given && s.Independent {
			add(s.Name, s.Type, s.Texts...)
		}
	}
	return job
}
