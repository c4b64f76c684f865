package run

import (
	"context"
	"strconv"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/system"
	"carronade/internal/trust"
	"carronade/load"
	"carronade/target"
)

// topicsTimeout is the timeout for storing the report of a load on topics.
const topicsTimeout = 30 * time.Second

// A TopicsJob is a load of operations on topics. It is not a workload: its events are the
// operations, its batches are the requests, and the target's package runs it. Numbers of 0 are unset.
type TopicsJob struct {
	Version string // of the program

	Op                   string // create, list, delete, delete-records or read
	Count                int    // operations; below 0: without end
	PerRequest           int
	Concurrency          int
	Partitions, Replicas int // of topics to create
	Rate                 float64
	For                  time.Duration

	Labels map[string]string // of the report
	Note   string            // likewise
	// Store stores the finished report; nil: none.
	Store store.Store
	// Stored is called with the result of storing the sealed report, also without a store; may
	// be nil.
	Stored func(d *report.Document, err error)

	// Load runs the load, and returns its target, without secrets, and the result. It calls
	// began when the brokers were reached, so that connecting does not count.
	Load func(ctx context.Context, began func()) (target string, r *load.Result, err error)
}

// Topics runs operations on topics and makes a report, judged like that of any run. There is a
// report unless Load fails, whose error is returned unchanged.
func Topics(ctx context.Context, job TopicsJob) (*report.Document, error) {
	sampler := system.NewSampler()
	where, r, err := job.Load(ctx, func() { sampler = system.NewSampler() })
	if err != nil {
		return nil, err
	}
	r.Usage = sampler.Sample()
	// An interrupt cancels requests in flight, so the run is complete only if there were none.
	r.Whole = r.Stopped == load.Interrupted && job.endless() && r.Measurement.Length() > 0 && r.Classes[load.Canceled.String()] == 0
	d := job.report(where, r)
	err = d.Seal()
	if err == nil && job.Store != nil {
		kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), topicsTimeout)
		defer cancel()
		err = job.Store.Put(kept, d)
	}
	if job.Stored != nil {
		job.Stored(d, err)
	}
	return d, nil
}

// endless reports whether only failures or the user end the load.
func (job *TopicsJob) endless() bool { return job.Count < 0 && job.For == 0 }

// report builds the document. It has no workload, so it cannot be replayed.
func (job *TopicsJob) report(where string, r *load.Result) *report.Document {
	id := NewID()
	op := report.TopicsOp + job.Op
	in := report.Input{
		Version: job.Version, RunID: strconv.FormatUint(id, 16), ID: report.IDOf(id),
		Target: where, Op: op, Repetition: 1, Repetitions: 1, Labels: job.Labels, Note: job.Note,
		Result: r, Processors: load.Processors(),
		Host: system.Describe(),
	}
	in.Trust = trust.Judge(trust.Input{Result: r, Processors: in.Processors})
	r.Steady = trust.Steady(r)
	settings := map[string]any{"target": where, "op": op}
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
	number("count", job.Count)
	number("per-request", job.PerRequest)
	number("concurrency", job.Concurrency)
	number("partitions", job.Partitions)
	number("replicas", job.Replicas)
	if job.Rate > 0 {
		text := strconv.FormatFloat(job.Rate, 'f', -1, 64) + "/s"
		add("rate", target.Rate.String(), text, text)
	}
	if job.For > 0 {
		add("for", target.Duration.String(), job.For.String(), job.For.String())
	}
	in.Workload = settings
	return report.Build(in)
}
