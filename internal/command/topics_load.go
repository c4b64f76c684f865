package command

import (
	"context"
	"time"

	"carronade/internal/compat"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/target"
	"carronade/target/kafka"
	"carronade/target/kafka/admin"
	"carronade/target/kafka/cluster"
)

// LoadTopics runs operations on topics for an old tool. doc names the brokers and has the connection
// settings.
func LoadTopics(ctx context.Context, c Console, k target.Kind, doc *workload.Document, l compat.TopicLoad) (*compat.TopicResult, error) {
	doc.Add("op", "carronade as", workload.Consume)
	w, err := workload.Resolve([]target.Kind{k}, doc, nil)
	if err != nil {
		return nil, err
	}
	for _, text := range w.Warnings {
		c.Warn(text)
	}
	spec, err := w.Spec()
	if err != nil {
		return nil, err
	}
	work := admin.Work{
		Op: l.Op, URL: w.URL, Options: spec.Options, Given: spec.Given, Names: l.Names, Next: l.Next, Upto: -1,
		Spec:        cluster.TopicSpec{Partitions: int32(l.Partitions), Replicas: int16(l.Replicas)},
		Concurrency: l.Concurrency, PerRequest: l.PerRequest, Rate: l.Rate, Times: l.Times, For: l.For, Failures: l.Failures,
		Started: l.Started, Logf: c.Note,
	}
	r, result, err := measured(ctx, work, l.Each)
	if err != nil {
		return nil, err
	}
	return &compat.TopicResult{
		Target: w.Target(), Done: r.Done, Failed: r.Failed, Unknown: r.Unknown, Unsent: r.Unsent, Elapsed: r.Elapsed, Bytes: r.Bytes,
		Interrupted: r.Interrupted, Result: result,
	}, nil
}

// measured does the work, and returns its result also as that of a run: its events are the
// operations, its batches are the requests. see is called with each operation; nil: not called.
func measured(ctx context.Context, work admin.Work, see func(compat.TopicDone)) (*admin.Result, *load.Result, error) {
	s := newSeconds(&work, see)
	var began time.Time
	started := work.Started
	work.Started = func(at time.Time) {
		if began = at; started != nil {
			started(at)
		}
	}
	work.Each = s.done
	r, err := kafka.Topics(ctx, work)
	if err != nil {
		return nil, nil, err
	}
	out := &load.Result{Started: began, Ended: time.Now(), Mode: load.ClosedLoop, Failures: r.Failures, Classes: r.Classes, Stopped: endOf(r, &work)}
	if work.Rate > 0 {
		out.Mode = load.OpenLoop
	}
	out.Intervals = s.intervals(&work, r)
	h := &out.Measurement
	h.Name, h.Rate, h.End, h.Arrived, h.ArrivedBytes = measure.Measurement, work.Rate*float64(r.PerRequest), r.Elapsed, r.Done, r.Bytes
	h.InFlight = r.BusyMean * float64(r.PerRequest)
	h.Set, h.Lower = s.total, s.lower
	for i := range out.Intervals {
		h.Counts.Add(out.Intervals[i].Counts)
	}
	h.Answers = h.Answered
	return r, out, nil
}

// endOf is why a load ended.
func endOf(r *admin.Result, w *admin.Work) load.Reason {
	switch {
	case r.Interrupted:
		return load.Interrupted
	case w.Failures > 0 && r.Failed+r.Unknown > w.Failures:
		return load.ByFailures
	case r.Unsent > 0 || w.Times < 0 || r.Operations < uint64(w.Times):
		return load.ByTime
	}
	return load.ByEvents
}
