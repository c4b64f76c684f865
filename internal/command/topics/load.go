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
	s := &seconds{see: l.Each, each: uint64(max(1, l.PerRequest))}
	var began time.Time
	r, err := kafka.Topics(ctx, kafka.TopicWork{
		Op: l.Op, URL: w.URL, Options: spec.Options, Given: spec.Given, Names: l.Names, Next: l.Next, Upto: -1,
		Spec:        kafka.TopicSpec{Partitions: int32(l.Partitions), Replicas: int16(l.Replicas)},
		Concurrency: l.Concurrency, PerRequest: l.PerRequest, Rate: l.Rate, Times: l.Times, For: l.For, Failures: l.Failures,
		Started: func(at time.Time) {
			if began = at; l.Started != nil {
				l.Started(at)
			}
		},
		Each: s.done, Logf: c.Note,
	})
	if err != nil {
		return nil, err
	}
	out := &compat.TopicResult{
		Target: w.Target(), Done: r.Done, Failed: r.Failed, Unsent: r.Unsent, Elapsed: r.Elapsed, Bytes: r.Bytes, Interrupted: r.Interrupted,
		Result: &load.Result{Started: began, Ended: time.Now(), Mode: load.ClosedLoop, Failures: r.Failures, Classes: r.Classes, Stopped: stopped(r, l)},
	}
	if l.Rate > 0 {
		out.Result.Mode = load.OpenLoop
	}
	h := &out.Result.Hold
	h.Name, h.Rate, h.End, h.Arrived, h.ArrivedBytes = "hold", l.Rate*float64(r.PerRequest), r.Elapsed, r.Done, r.Bytes
	h.InFlight = r.BusyMean * float64(r.PerRequest)
	h.Service, h.Response = r.Service, r.Response
	out.Result.Intervals = s.intervals(r)
	for i := range out.Result.Intervals {
		h.Counts.Add(out.Result.Intervals[i].Counts)
	}
	return out, nil
}

// stopped is why a load ended.
func stopped(r *kafka.TopicResult, l compat.TopicLoad) load.Reason {
	switch {
	case r.Interrupted:
		return load.Interrupted
	case l.Failures > 0 && r.Failed > l.Failures:
		return load.ByFailures
	case r.Unsent > 0 || l.Times < 0 || r.Operations < uint64(l.Times):
		return load.ByTime
	}
	return load.ByEvents
}

// seconds are the intervals of a load in the making.
type seconds struct {
	see  func(compat.TopicDone)
	each uint64 // operations in a request
	rows []measure.Interval
	last kafka.TopicDone
}

// done takes an operation. Those of a request come one behind the other.
func (s *seconds) done(d kafka.TopicDone) {
	for int(d.At/time.Second) >= len(s.rows) {
		n := time.Duration(len(s.rows)) * time.Second
		s.rows = append(s.rows, measure.Interval{Phase: "hold", Start: n, End: n + time.Second, LagEvents: -1, Set: measure.Set{Service: measure.NewHistogram()}})
	}
	row := &s.rows[d.At/time.Second]
	row.Offered++
	row.Sent++
	if d.Class == "" {
		row.Acked++
		row.Bytes += d.Bytes
		row.AckedBytes += d.Bytes
	} else {
		row.Failed++
	}
	if row.Shots == 0 || d.Sent != s.last.Sent || d.At != s.last.At {
		row.Shots++
		row.Answered++
		row.Service.Record(d.At - d.Sent)
	}
	row.InFlight = uint64(d.InFlight-1) * s.each
	s.last = d
	if s.see != nil {
		s.see(compat.TopicDone{Name: d.Name, Due: d.Due, Sent: d.Sent, At: d.At, Class: d.Class, Err: d.Err, Bytes: d.Bytes, InFlight: d.InFlight})
	}
}

// intervals are those of a load that has ended: what was never begun is the last
// one's.
func (s *seconds) intervals(r *kafka.TopicResult) []measure.Interval {
	if len(s.rows) == 0 {
		s.rows = append(s.rows, measure.Interval{Phase: "hold", LagEvents: -1})
	}
	row := &s.rows[len(s.rows)-1]
	row.End = max(r.Elapsed, row.Start)
	row.Offered += r.Unsent
	row.Unsent += r.Unsent
	return s.rows
}
