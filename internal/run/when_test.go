package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestReadAfter(t *testing.T) {
	for _, tt := range []struct {
		name    string
		plan    load.Plan
		streams int
		want    bool
	}{
		{"a short run", load.Plan{Schedule: load.Constant(5000), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 30 * time.Second}}, 6, true},
		{"fast, in full batches", load.Plan{Schedule: load.Constant(1e6), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 20 * time.Second}}, 4, true},
		{"a day", load.Plan{Schedule: load.Constant(50_000), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 24 * time.Hour}}, 6, false},
		{"a day, but a limit of events", load.Plan{Schedule: load.Constant(50_000), Measurement: load.Limits{Time: 24 * time.Hour, Events: 1000}}, 6, true},
		{"no end", load.Plan{Schedule: load.Constant(1), Linger: 5 * time.Millisecond}, 1, false},
		{"a schedule that ends", load.Plan{Schedule: load.Until(load.Constant(100), time.Minute)}, 1, true},
		{"one event a batch", load.Plan{Schedule: load.Constant(1e6), BatchEvents: 1, Linger: time.Second, Measurement: load.Limits{Time: 20 * time.Second}}, 4, false},
		{"a hundred a batch", load.Plan{Schedule: load.Constant(1e6), BatchEvents: 100, Measurement: load.Limits{Time: 20 * time.Second}}, 4, true},
		{"nothing is batched", load.Plan{Schedule: load.Constant(1e6), Measurement: load.Limits{Time: 20 * time.Second}}, 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := readAfter(&tt.plan, tt.streams); got != tt.want {
				t.Errorf("at most %d batches: read afterwards %v, want %v", mostBatches(&tt.plan, tt.streams), got, tt.want)
			}
		})
	}
}

func TestUnique(t *testing.T) {
	got := unique([]string{"a", "b"}, nil, []string{"b", "c", "a"})
	want := []string{"a", "b", "c"}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
}

// TestMomentsLeftOut: of many moments of a name the longest are kept, and how many were not is said.
func TestMomentsLeftOut(t *testing.T) {
	var m moments
	began := time.Now()
	for i := range mostMoments + 234 {
		m.add("client", "connection lost", began, time.Duration(i))
	}
	m.add("client", "leader changed", began, 0)
	assert.Equal(t, len(m.kept[momentKey{"client", "connection lost"}]), mostMoments, "are kept")
	assert.Equal(t, fmt.Sprint(m.remarks()), `["connection lost" of the client happened 1,234 times: the report has the 1,000 longest]`)
}

// A run whose first seconds are slower gets a warning, which names the warm-up that covers
// them. With that warm-up there is none. The exit code stays.
func TestStartWarned(t *testing.T) {
	execute := func(t *testing.T, slow time.Duration, set ...string) *report.Document {
		t.Helper()
		var doc *report.Document
		synctest.Test(t, func(t *testing.T) {
			var err error
			m := &fakeKind{perBatch: 1, slowFor: slow}
			doc, err = Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, append(set, "rate=1k/s", "for=20s")...)})
			assert.OK(t, err)
		})
		return doc
	}
	const unlike = "of the measurement differ from the rest"
	warned := func(d *report.Document) bool {
		return slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, unlike) })
	}
	for _, slow := range []time.Duration{time.Second, 3 * time.Second}[:testkit.Cases(2, 1)] {
		doc := execute(t, slow)
		i := slices.IndexFunc(doc.Warnings, func(w string) bool { return strings.Contains(w, unlike) })
		assert.Must(t, i >= 0, "%v: got warnings %q", slow, doc.Warnings)
		assert.Equal(t, doc.ExitCode(), execute(t, 0).ExitCode(), "%v: the exit code", slow)
		if !slices.ContainsFunc(doc.Verdicts(), func(v report.Verdict) bool { return v.On == report.OnWarning && strings.Contains(v.Texts[0], unlike) }) {
			t.Errorf("%v: not in the report: %v", slow, doc.Verdicts())
		}
		_, advice, _ := strings.Cut(doc.Warnings[i], "--warmup ")
		warmup, _, _ := strings.Cut(advice, " ")
		again := execute(t, slow, "warmup="+warmup)
		assert.True(t, !warned(again), "%v: with --warmup %s: %q", slow, warmup, again.Warnings)
	}
	steady := execute(t, 0)
	assert.True(t, !warned(steady), "got warnings %q of a steady run", steady.Warnings)
}
