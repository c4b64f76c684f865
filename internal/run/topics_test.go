package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

const brokers = "null://brokers"

// loaded returns a Load function with a known result.
func loaded(r *load.Result) func(context.Context, func()) (string, *load.Result, error) {
	return func(_ context.Context, began func()) (string, *load.Result, error) {
		began()
		return brokers, r, nil
	}
}

// The report has the settings of the job, and no others.
func TestTopics(t *testing.T) {
	for _, tt := range []struct {
		name string
		job  TopicsJob
		want map[string]any
	}{
		{"by name", TopicsJob{Op: "delete", Count: 2}, map[string]any{"op": "topics delete", "count": 2}},
		{"without end", TopicsJob{Op: "read", Count: -1, For: time.Second}, map[string]any{"op": "topics read", "for": "1s"}},
		{
			"every setting",
			TopicsJob{Op: "create", Count: 7, PerRequest: 3, Concurrency: 2, Partitions: 5, Replicas: 1, Rate: 0.5},
			map[string]any{"op": "topics create", "count": 7, "per-request": 3, "concurrency": 2, "partitions": 5, "replicas": 1, "rate": "0.5/s"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.Load = loaded(&load.Result{})
			tt.job.Labels, tt.job.Note = map[string]string{"a": "b"}, "why"
			d := assert.Value(Topics(t.Context(), tt.job))(t)
			settings := d.Workload.(map[string]any)
			tt.want["target"] = brokers
			for name, want := range tt.want {
				assert.Equal(t, settings[name], want, "%s", name)
			}
			assert.Equal(t, len(settings), len(tt.want), "settings")
			if d.Op != tt.want["op"] || d.Target != brokers || d.Labels["a"] != "b" || d.Note != "why" || d.Hash == "" {
				t.Errorf("got op %q, target %q, labels %v, note %q, hash %q", d.Op, d.Target, d.Labels, d.Note, d.Hash)
			}
		})
	}
}

// The generator of such a load is judged like that of any other.
func TestTopicsAreJudged(t *testing.T) {
	slow, quick := measure.NewHistogram(), measure.NewHistogram()
	slow.RecordN(2*time.Second, 3)
	quick.RecordN(time.Millisecond, 3)
	late := &load.Result{Mode: load.OpenLoop, Measurement: measure.Tally{
		Name: measure.Measurement, End: time.Second, Answers: 3, Arrived: 3, Counts: measure.Counts{Offered: 3, Sent: 3, Acked: 3},
		Set: measure.Set{SendDelay: slow, Response: slow}, Lower: measure.Lower{Response: quick},
	}}
	d := assert.Value(Topics(t.Context(), TopicsJob{Op: "list", Rate: 1, Load: loaded(late)}))(t)
	assert.True(t, !d.Trust.OK && len(d.Trust.Reasons) == 1 && d.Totals.AnswersPerS == 3,
		"got %+v, %g answers/s", d.Trust, d.Totals.AnswersPerS)
}

// TestTopicsAreCited: the report of such a load, also after it was written and
// read, is cited as the command that makes it.
func TestTopicsAreCited(t *testing.T) {
	for _, tt := range []struct {
		job      TopicsJob
		at, want string
	}{
		{TopicsJob{Op: "create", Count: 7, PerRequest: 3, Concurrency: 2, Partitions: 5, Replicas: 1, Rate: 0.5}, "kafka://h:9092", "; topics create kafka://h:9092/TOPIC --count 7 --per-request 3 --concurrency 2 --partitions 5 --replicas 1 --rate 0.5/s; "},
		{TopicsJob{Op: "delete", Count: 2, PerRequest: 1}, "kafka://h:9092/old?x=1", "; topics delete 'kafka://h:9092/old?x=1' --count 2 --per-request 1; "},
		{TopicsJob{Op: "list", Count: 9, PerRequest: 1}, "kafka://h:9092", "; topics list kafka://h:9092 --times 9; "},
		{TopicsJob{Op: "read", Count: -1, For: time.Second, PerRequest: 1}, "kafka://h:9092/?x=1", "; topics read 'kafka://h:9092/TOPIC?x=1'; "},
	} {
		t.Run(tt.job.Op, func(t *testing.T) {
			tt.job.Load = func(context.Context, func()) (string, *load.Result, error) { return tt.at, &load.Result{}, nil }
			d := assert.Value(Topics(t.Context(), tt.job))(t)
			got := report.Cite(d)
			assert.True(t, strings.Contains(got, tt.want), "got  %s\nwant %s", got, tt.want)
			var text bytes.Buffer
			assert.OK(t, d.WriteJSON(&text))
			var read report.Document
			assert.OK(t, json.Unmarshal(text.Bytes(), &read))
			got = report.Cite(&read)
			assert.True(t, strings.Contains(got, tt.want), "after it was read: %s", got)
		})
	}
}

// TestTopicsAreWhole: an interruption is the normal end of a load without a
// limit, if it canceled no request.
func TestTopicsAreWhole(t *testing.T) {
	for _, tt := range []struct {
		name     string
		job      TopicsJob
		canceled uint64
		stopped  load.Reason
		partial  bool
	}{
		{"no limit", TopicsJob{Op: "list", Count: -1}, 0, load.Interrupted, false},
		{"no limit, and a request was canceled", TopicsJob{Op: "list", Count: -1}, 1, load.Interrupted, true},
		{"a number", TopicsJob{Op: "list", Count: 9}, 0, load.Interrupted, true},
		{"a time", TopicsJob{Op: "list", Count: -1, For: time.Hour}, 0, load.Interrupted, true},
		{"not interrupted", TopicsJob{Op: "list", Count: 9}, 0, load.ByEvents, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.Load = loaded(&load.Result{Stopped: tt.stopped, Measurement: measure.Tally{Name: measure.Measurement, End: time.Second}, Classes: map[string]uint64{load.Canceled.String(): tt.canceled}})
			assert.Equal(t, assert.Value(Topics(t.Context(), tt.job))(t).Partial, tt.partial, "partial")
		})
	}
}

// The report is stored, also if the load was interrupted. A load that failed
// has none.
func TestTopicsAreKept(t *testing.T) {
	kept := assert.Value(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "reports.db")))(t)
	defer kept.Close()
	calls := 0
	job := TopicsJob{Op: "list", Store: kept, Load: loaded(&load.Result{Started: time.Now(), Ended: time.Now()}), Stored: func(_ *report.Document, err error) {
		if calls++; err != nil {
			t.Error(err)
		}
	}}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	d, err := Topics(ctx, job)
	assert.Must(t, err == nil && calls == 1, "got %v and %d results of storing", err, calls)
	assert.Value(kept.Get(t.Context(), d.ID))(t)
	refused := errors.New("no broker")
	job.Load = func(context.Context, func()) (string, *load.Result, error) { return "", nil, refused }
	d, err = Topics(t.Context(), job)
	assert.True(t, d == nil && errors.Is(err, refused), "got %v and %v, want %v", d, err, refused)
	if rows, err := kept.Rows(t.Context(), store.Query{Fields: []string{}}); err != nil || len(rows) != 1 || calls != 1 {
		t.Errorf("the store has %d reports, %v, and there were %d results of storing", len(rows), err, calls)
	}
	job.Store, job.Load = nil, loaded(&load.Result{})
	_, err = Topics(t.Context(), job)
	assert.True(t, err == nil && calls == 2, "without a store: %v, and %d results of storing, want 2", err, calls)
}
