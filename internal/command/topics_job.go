package command

import (
	"strconv"
	"strings"

	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/target"
	"carronade/target/kafka/cluster"
)

// job describes the work for its report: with what it has, a replay makes the same operations.
func (f *topicFlags) job(args []string, w *cluster.TopicLoad, on *workload.Workload) run.TopicsJob {
	job := run.TopicsJob{
		Op: w.Op, Concurrency: max(1, w.Concurrency), PerRequest: max(1, w.PerRequest), Rate: w.Rate,
		Partitions: int(w.Spec.Partitions), Replicas: int(w.Spec.Replicas), Note: f.Last("note"),
	}
	add := func(name string, kind target.Type, values ...string) {
		job.Settings = append(job.Settings, run.TopicsSetting{Name: name, Type: kind, Values: values})
	}
	switch {
	case w.Op == cluster.OpListTopics:
		job.Count = w.Times
	case f.count != "":
		job.Count = len(w.Names)
	case len(args) > 1:
		add(report.TopicsNames, target.String, args[1])
	case f.file == "":
		add(report.TopicsNames, target.String, strings.Trim(on.URL.Path, "/"))
	}
	if f.file != "" {
		add(report.TopicsFile, target.String, f.file)
		job.Settings = append(job.Settings, run.TopicsSetting{Name: report.TopicsFileHash, Type: target.String, Values: []string{f.fileHash}, Aside: true})
	}
	if len(f.config) > 0 {
		add("config", target.List, f.config...)
	}
	if f.internal {
		add("internal", target.Bool, "true")
	}
	if w.Op == cluster.OpDeleteRecords && w.Upto >= 0 {
		add("upto", target.Int, strconv.FormatInt(w.Upto, 10))
	}
	for _, s := range on.Settings() { // of the connection
		if given := s.From > workload.FromPreset && s.Name != "target" && s.Name != "op"; given && s.Independent {
			add(s.Name, s.Type, s.Texts...)
		}
	}
	return job
}
