package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/verdict/trust"
	"carronade/load"
	"carronade/protocol"
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
	// Settings are further ones, by the names of the command's flags: what a replay needs besides
	// the numbers.
	Settings []TopicsSetting

	Labels map[string]string // of the report
	Note   string            // likewise
	// Measured is called before the report is sealed and stored, and may change it; nil: not called.
	Measured func(*report.Document)
	// Store stores the finished report; nil: none.
	Store store.Store
	// Stored is called with the result of storing the sealed report, also without a store; may
	// be nil.
	Stored func(d *report.Document, err error)

	// Load runs the load, and returns its target, without secrets, and the result. It calls
	// began when the brokers were reached, so that connecting does not count.
	Load func(ctx context.Context, began func()) (target string, r *load.Result, err error)
}

// A TopicsSetting is one further setting of a load on topics.
type TopicsSetting struct {
	Name   string
	Type   protocol.Type
	Values []string // the last one counts, except in a list
	// Aside is for a setting that does not define the load: reports are not compared by it, and it
	// is not a flag.
	Aside bool
}

// value is the setting in a workload: as it is read from JSON.
func (s *TopicsSetting) value() any {
	switch last := s.Values[len(s.Values)-1]; s.Type {
	case protocol.Bool:
		return last == "true"
	case protocol.List:
		list := make([]any, len(s.Values))
		for i, v := range s.Values {
			list[i] = v
		}
		return list
	default:
		return last
	}
}

// TopicsFileHash is the SHA-256 of a file with names of topics, in hexadecimal digits: a report has
// it, so that a replay knows whether the file is the same.
func TopicsFileHash(path string) (string, error) {
	data, err := place.ReadFile(path)
	if err != nil {
		return "", err
	}
	return TopicsHash(data), nil
}

// TopicsHash is TopicsFileHash of the bytes in a file.
func TopicsHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Topics runs operations on topics and makes a report, judged like that of any run. There is a
// report unless Load fails, whose error is returned unchanged.
func Topics(ctx context.Context, job TopicsJob) (*report.Document, error) {
	sampler := host.NewSampler()
	where, r, err := job.Load(ctx, func() { sampler = host.NewSampler() })
	if err != nil {
		return nil, err
	}
	r.Usage = sampler.Sample()
	// An interrupt cancels requests in flight, so the run is complete only if there were none.
	r.Whole = r.Stopped == load.Interrupted && job.endless() && r.Measurement.Length() > 0 && r.Classes[load.Canceled.String()] == 0
	d := job.report(where, r)
	if job.Measured != nil {
		job.Measured(d)
	}
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

// report builds the document. Its workload are the settings of the command topics: see
// report.TopicsArgs.
func (job *TopicsJob) report(where string, r *load.Result) *report.Document {
	id := NewID()
	op := report.TopicsOp + job.Op
	in := report.Input{
		Version: job.Version, RunID: strconv.FormatUint(id, 16), ID: report.IDOf(id),
		Target: where, Op: op, Repetition: 1, Repetitions: 1, Labels: job.Labels, Note: job.Note,
		Result: r, Processors: load.Processors(),
		Host: host.Describe(),
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
			add(name, protocol.Int.String(), strconv.Itoa(n), n)
		}
	}
	add("op", protocol.String.String(), op, op)
	number("count", job.Count)
	number("per-request", job.PerRequest)
	number("concurrency", job.Concurrency)
	number("partitions", job.Partitions)
	number("replicas", job.Replicas)
	if job.Rate > 0 {
		text := strconv.FormatFloat(job.Rate, 'f', -1, 64) + "/s"
		add("rate", protocol.Rate.String(), text, text)
	}
	if job.For > 0 {
		add("for", protocol.Duration.String(), job.For.String(), job.For.String())
	}
	for _, s := range job.Settings {
		settings[s.Name] = s.value()
		in.Settings = append(in.Settings, report.Setting{
			Name: s.Name, Type: s.Type.String(), Value: strings.Join(s.Values, " "), Independent: !s.Aside, Minor: s.Aside,
		})
	}
	in.Workload = settings
	return report.Build(in)
}
