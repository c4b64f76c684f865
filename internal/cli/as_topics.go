package cli

import (
	"context"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/dropin"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
)

// topicsAs runs a load on topics for a tool and stores its report.
func (s *session) topicsAs(ctx context.Context, tool *dropin.Tool, makes topicLoad, k protocol.Kind, doc *workload.Document, common dropin.Common, l dropin.TopicLoad) (r *dropin.TopicResult, err error) {
	t := &cmdutil.Settings{Doc: *doc}
	for _, k := range common.Keep {
		t.Doc.Add(k.Name, k.Flag, k.Text)
	}
	job := topicsJob(&l)
	job.Labels, job.Note = map[string]string{"as": tool.Name}, t.Last("note")
	step := stepOf(ctx)
	of, err := workload.ParseLabels(step.labels())
	if err != nil {
		return nil, err
	}
	started := l.Started
	job.Load = func(ctx context.Context, began func()) (where string, result *load.Result, err error) {
		l.Started = func(at time.Time) {
			if began(); started != nil {
				started(at)
			}
		}
		where, r, result, err = makes(ctx, s.console(), k, &t.Doc, l)
		return where, result, err
	}
	d, keep, err := s.makeTopics(ctx, t, job, of)
	if err != nil {
		return nil, err
	}
	defer keep.close()
	s.reportStored(keep.keeping, d, keep.err, true)
	step.made(d)
	if common.ReportJSON != "" && step == nil {
		s.writeAs(common.ReportJSON, d.WriteJSON)
	}
	return r, nil
}

// topicsJob describes the requested load, for its report.
func topicsJob(l *dropin.TopicLoad) run.TopicsJob {
	job := run.TopicsJob{
		Op: l.Op, Count: len(l.Names), PerRequest: l.PerRequest, Concurrency: l.Concurrency, Rate: l.Rate, For: l.For,
	}
	if l.Times != 0 {
		job.Count = l.Times
	}
	if l.Op == "create" {
		job.Partitions, job.Replicas = int(l.Spec.Partitions), int(l.Spec.Replicas)
	}
	return job
}
