package topics

import (
	"context"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/kafka"
	"carronade/internal/kafka/cluster"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// LoadTopics runs operations on topics for an old tool. doc names the brokers and has the connection
// settings. where is the target, without secrets; of is the result as that of a run.
func LoadTopics(ctx context.Context, c cmdutil.Console, k protocol.Kind, doc *workload.Document, work cluster.TopicLoad) (where string, r *cluster.TopicResult, of *load.Result, err error) {
	doc.Add("op", "carronade as", workload.Consume)
	w, err := workload.Resolve([]protocol.Kind{k}, doc, nil)
	if err != nil {
		return "", nil, nil, err
	}
	for _, text := range w.Warnings {
		c.Warn(text)
	}
	spec, err := w.Spec()
	if err != nil {
		return "", nil, nil, err
	}
	work.URL, work.Options, work.Given, work.Upto, work.Logf = w.URL, spec.Options, spec.Given, -1, c.Note
	if r, of, err = measured(ctx, work); err != nil {
		return "", nil, nil, err
	}
	return w.Target(), r, of, nil
}

// measured does the work, and returns its result also as that of a run: its events are the
// operations, its batches are the requests.
func measured(ctx context.Context, work cluster.TopicLoad) (*cluster.TopicResult, *load.Result, error) {
	s := newSeconds(&work)
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
	h.Set = s.total
	h.Lower = measure.Lower{Response: s.response.Bound(), Service: s.service.Bound()}
	for i := range out.Intervals {
		h.Counts.Add(out.Intervals[i].Counts)
	}
	h.Answers, h.Sends, h.SendBytes, h.SendWire = h.Answered, h.Sent, h.Bytes, h.WireBytes
	return r, out, nil
}

// endOf is why a load ended.
func endOf(r *cluster.TopicResult, w *cluster.TopicLoad) load.Reason {
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
