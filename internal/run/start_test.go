package run

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
