package cli

import (
	"context"
	"runtime"
	"strconv"
	"time"

	"carronade/internal/command"
	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/system"
	"carronade/internal/trust"
	"carronade/internal/workload"
	"carronade/target"
)

// keepPatience is how long a store may take for the report of a load on topics.
const keepPatience = 30 * time.Second

// topicsAs makes a load on topics for a tool and keeps its report.
func (s *session) topicsAs(ctx context.Context, tool *compat.Tool, load topicLoad, k target.Kind, doc *workload.Document, ours compat.Ours, l compat.TopicLoad) (*compat.TopicResult, error) {
	t := &command.Settings{Doc: *doc}
	keep, err := s.keeping(ctx, t, true)
	if err != nil {
		return nil, err
	}
	defer keep.close()
	labels := map[string]string{"as": tool.Name}
	for name, value := range l.Labels {
		labels[name] = value
	}
	sampler := system.NewSampler()
	started := l.Started
	l.Started = func(at time.Time) {
		sampler = system.NewSampler() // what connecting took is not the load's
		if started != nil {
			started(at)
		}
	}
	r, err := load(ctx, s.console(), k, &t.Doc, l)
	if err != nil {
		return nil, err
	}
	r.Result.Usage = sampler.Sample()
	d := topicReport(r, l)
	d.Labels, d.Note = labels, l.Note
	err = d.Seal()
	if err == nil && keep.store != nil {
		kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepPatience)
		defer cancel()
		err = keep.store.Put(kept, d)
	}
	s.kept(keep, d, err)
	if ours.ReportJSON != "" {
		s.writeAs(ours.ReportJSON, d.WriteJSON)
	}
	return r, nil
}

// topicsOp begins the operation of such a report, as it is typed.
const topicsOp = "topics "

// topicReport is the report of a load on topics: its events are operations, its
// shots requests. There is no workload that would be it, so that it cannot be
// replayed.
func topicReport(r *compat.TopicResult, l compat.TopicLoad) *report.Document {
	id := run.NewID()
	op := topicsOp + l.Op
	in := report.Input{
		Version: version(), RunID: strconv.FormatUint(id, 16), ID: report.IDOf(id),
		Target: r.Target, Op: op, Repetition: 1, Repetitions: 1,
		Result: r.Result, Processors: runtime.GOMAXPROCS(0),
		Host: system.Describe(),
	}
	in.Trust = trust.Judge(trust.Input{Result: r.Result, Processors: in.Processors})
	r.Result.Steady = trust.Steady(r.Result)
	settings := map[string]any{"target": r.Target, "op": op}
	add := func(name, kind, text string, value any) {
		settings[name] = value
		in.Settings = append(in.Settings, report.Setting{Name: name, Type: kind, Value: text, Independent: true})
	}
	number := func(name string, n int) {
		if n > 0 {
			add(name, target.Int.String(), strconv.Itoa(n), n)
		}
	}
	add("op", target.String.String(), op, op)
	count := len(l.Names)
	if l.Times != 0 { // -1, without end, is none
		count = l.Times
	}
	number("count", count)
	number("per-request", l.PerRequest)
	number("concurrency", l.Concurrency)
	if l.Op == "create" {
		number("partitions", l.Partitions)
		number("replicas", l.Replicas)
	}
	if l.Rate > 0 {
		text := strconv.FormatFloat(l.Rate, 'f', -1, 64) + "/s"
		add("rate", target.Rate.String(), text, text)
	}
	if l.For > 0 {
		add("for", target.Duration.String(), l.For.String(), l.For.String())
	}
	in.Workload = settings
	return report.Build(in)
}
