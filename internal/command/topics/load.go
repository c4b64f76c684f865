package topics

import (
	"context"
	"time"

	"carronade/internal/command"
	"carronade/internal/compat"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/target"
	"carronade/target/kafka"
)

// Load runs operations on topics for an old tool. doc names the brokers and has the connection
// settings.
func Load(ctx context.Context, c command.Console, k target.Kind, doc *workload.Document, l compat.TopicLoad) (*compat.TopicResult, error) {
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
	s := newSeconds(l)
	var began time.Time
	work := kafka.TopicWork{
		Op: l.Op, URL: w.URL, Options: spec.Options, Given: spec.Given, Names: l.Names, Next: l.Next, Upto: -1,
		Spec:        kafka.TopicSpec{Partitions: int32(l.Partitions), Replicas: int16(l.Replicas)},
		Concurrency: l.Concurrency, PerRequest: l.PerRequest, Rate: l.Rate, Times: l.Times, For: l.For, Failures: l.Failures,
		Started: func(at time.Time) {
			if began = at; l.Started != nil {
				l.Started(at)
			}
		},
		Each: s.done, Logf: c.Note,
	}
	r, err := kafka.Topics(ctx, work)
	if err != nil {
		return nil, err
	}
	out := &compat.TopicResult{
		Target: w.Target(), Done: r.Done, Failed: r.Failed, Unknown: r.Unknown, Unsent: r.Unsent, Elapsed: r.Elapsed, Bytes: r.Bytes, Interrupted: r.Interrupted,
		Result: &load.Result{Started: began, Ended: time.Now(), Mode: load.ClosedLoop, Failures: r.Failures, Classes: r.Classes, Stopped: stopped(r, l)},
	}
	if l.Rate > 0 {
		out.Result.Mode = load.OpenLoop
	}
	out.Result.Intervals = s.intervals(&work, r)
	h := &out.Result.Measurement
	h.Name, h.Rate, h.End, h.Arrived, h.ArrivedBytes = measure.Measurement, l.Rate*float64(r.PerRequest), r.Elapsed, r.Done, r.Bytes
	h.InFlight = r.BusyMean * float64(r.PerRequest)
	h.Set, h.Lower = s.total, s.lower
	for i := range out.Result.Intervals {
		h.Counts.Add(out.Result.Intervals[i].Counts)
	}
	h.Answers = h.Answered
	return out, nil
}

// stopped is why a load ended.
func stopped(r *kafka.TopicResult, l compat.TopicLoad) load.Reason {
	switch {
	case r.Interrupted:
		return load.Interrupted
	case l.Failures > 0 && r.Failed+r.Unknown > l.Failures:
		return load.ByFailures
	case r.Unsent > 0 || l.Times < 0 || r.Operations < uint64(l.Times):
		return load.ByTime
	}
	return load.ByEvents
}
