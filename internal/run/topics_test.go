package run

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/load"
	"carronade/measure"
)

const brokers = "null://brokers"

// loaded is a load that was made already.
func loaded(r *load.Result) func(context.Context, func()) (string, *load.Result, error) {
	return func(_ context.Context, began func()) (string, *load.Result, error) {
		began()
		return brokers, r, nil
	}
}

// The report says what was asked for, and nothing that was not.
func TestTopics(t *testing.T) {
	for _, tt := range []struct {
		name string
		job  TopicsJob
		want map[string]any
	}{
		{"by name", TopicsJob{Op: "delete", Count: 2}, map[string]any{"op": "topics delete", "count": 2}},
		{"without end", TopicsJob{Op: "read", Count: -1, For: time.Second}, map[string]any{"op": "topics read", "for": "1s"}},
		{
			"all of it",
			TopicsJob{Op: "create", Count: 7, PerRequest: 3, Concurrency: 2, Partitions: 5, Replicas: 1, Rate: 0.5},
			map[string]any{"op": "topics create", "count": 7, "per-request": 3, "concurrency": 2, "partitions": 5, "replicas": 1, "rate": "0.5/s"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.Load = loaded(&load.Result{})
			tt.job.Labels, tt.job.Note = map[string]string{"a": "b"}, "why"
			d, err := Topics(t.Context(), tt.job)
			if err != nil {
				t.Fatal(err)
			}
			settings := d.Workload.(map[string]any)
			tt.want["target"] = brokers
			for name, want := range tt.want {
				if settings[name] != want {
					t.Errorf("%s: got %v, want %v", name, settings[name], want)
				}
			}
			if len(settings) != len(tt.want) {
				t.Errorf("got %v, want %v", settings, tt.want)
			}
			if d.Op != tt.want["op"] || d.Target != brokers || d.Labels["a"] != "b" || d.Note != "why" || d.Hash == "" {
				t.Errorf("got op %q, target %q, labels %v, note %q, hash %q", d.Op, d.Target, d.Labels, d.Note, d.Hash)
			}
		})
	}
}

// The generator of such a load is judged like that of any other.
func TestTopicsAreJudged(t *testing.T) {
	slow := measure.NewHistogram()
	slow.Record(2 * time.Second)
	late := &load.Result{Mode: load.OpenLoop, Hold: measure.Tally{Name: measure.Hold, End: time.Second, Answers: 3, Set: measure.Set{Lag: slow}}}
	d, err := Topics(t.Context(), TopicsJob{Op: "list", Rate: 1, Load: loaded(late)})
	if err != nil {
		t.Fatal(err)
	}
	if d.Trust.OK || len(d.Trust.Reasons) != 1 || d.Totals.AnswersPerS != 3 {
		t.Errorf("got %+v, %g answers/s", d.Trust, d.Totals.AnswersPerS)
	}
}

// The report is kept, also when the load was interrupted, and a load that was
// not made leaves none.
func TestTopicsAreKept(t *testing.T) {
	kept, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "reports.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	told := 0
	job := TopicsJob{Op: "list", Store: kept, Load: loaded(&load.Result{Started: time.Now(), Ended: time.Now()}), Kept: func(_ *report.Document, err error) {
		if told++; err != nil {
			t.Error(err)
		}
	}}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	d, err := Topics(ctx, job)
	if err != nil || told != 1 {
		t.Fatalf("got %v, told %d times", err, told)
	}
	if _, err := kept.Get(t.Context(), d.ID); err != nil {
		t.Error(err)
	}
	refused := errors.New("no broker")
	job.Load = func(context.Context, func()) (string, *load.Result, error) { return "", nil, refused }
	if d, err := Topics(t.Context(), job); d != nil || !errors.Is(err, refused) {
		t.Errorf("got %v and %v, want %v", d, err, refused)
	}
	if rows, err := kept.Rows(t.Context(), store.Query{Fields: []string{}}); err != nil || len(rows) != 1 || told != 1 {
		t.Errorf("the store has %d reports, %v, told %d times", len(rows), err, told)
	}
}
