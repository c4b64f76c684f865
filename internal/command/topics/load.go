package topics

import (
	"context"

	"carronade/internal/command"
	"carronade/internal/compat"
	"carronade/internal/workload"
	"carronade/target"
	"carronade/target/kafka"
)

// Load makes a load of operations on topics for an old tool. doc names the
// brokers, and has what settings reach them.
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
	work := kafka.TopicWork{
		Op: l.Op, URL: w.URL, Options: spec.Options, Given: spec.Given, Names: l.Names, Upto: -1,
		Spec:        kafka.TopicSpec{Partitions: int32(l.Partitions), Replicas: int16(l.Replicas)},
		Concurrency: l.Concurrency, PerRequest: l.PerRequest, Rate: l.Rate, Times: l.Times, For: l.For, Failures: l.Failures,
		Logf: c.Note,
	}
	if l.Each != nil {
		work.Each = func(d kafka.TopicDone) {
			l.Each(compat.TopicDone{Name: d.Name, Due: d.Due, Sent: d.Sent, At: d.At, Class: d.Class, Err: d.Err, Bytes: d.Bytes, InFlight: d.InFlight})
		}
	}
	r, err := kafka.Topics(ctx, work)
	if err != nil {
		return nil, err
	}
	return &compat.TopicResult{
		Done: r.Done, Failed: r.Failed, Unsent: r.Unsent, Elapsed: r.Elapsed, InFlightMean: r.BusyMean, Bytes: r.Bytes,
		Interrupted: r.Interrupted, JSON: topicsDocument(r),
	}, nil
}
