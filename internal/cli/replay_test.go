package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// A replay is not part of the search, the variation or the scenario of which the first run was part.
func TestReplayLabels(t *testing.T) {
	for _, tt := range []struct {
		name string
		give string // labels, JSON
		want []string
	}{
		{"a trial", `["find=f1", "find-role=search", "find-search=2", "team=a"]`, []string{"team=a"}},
		{"a run of a variation", `["vary=v1", "vary-plan=0a", "vary-cell=3", "team=a"]`, []string{"team=a"}},
		{"a trial of a variation, without labels of the user", `["find=f1", "find-role=probe", "vary=v1", "vary-plan=0a", "vary-cell=3"]`, nil},
		{"a step", `["scenario=s1", "scenario-step=2", "team=a"]`, []string{"team=a"}},
		{"the user's, with similar names", `["finder=x", "variant=find", "a=find=1"]`, []string{"finder=x", "variant=find", "a=find=1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := replayed(&report.Document{ID: "r1", Workload: json.RawMessage(`{"target": "null://", "for": "1s", "label": ` + tt.give + `}`)})
			assert.OK(t, err)
			var got []string
			for _, e := range doc.Entries {
				if e.Name == "label" {
					got = append(got, e.Values...)
				}
			}
			assert.True(t, slices.Equal(got, tt.want), "got %q, want %q", got, tt.want)
			w := assert.Value(workload.Resolve(Kinds(), nil, doc))(t)
			assert.True(t, len(w.Labels()) == len(tt.want), "got %v", w.Labels())
		})
	}
}

// The command that closes an open answer has its rate as people write it.
func TestFindAgainCommand(t *testing.T) {
	for _, tt := range []struct {
		holds, fails float64
		want         string
	}{
		{20_000, 0, " --from 20k/s"},
		{1_000_000, 0, " --from 1M/s"},
		{12_345.678, 0, " --from 12350/s"},
		{0, 3, " --from 1.5/s"},
	} {
		f := &searching{again: "abcdefgh"}
		d := &report.Document{Target: "null://", Search: &report.Search{Answer: &find.Answer{Holds: tt.holds, Fails: tt.fails}}}
		rows := f.notKept(d)
		if last := rows[len(rows)-1]; last.Name != "to decide" || !strings.HasSuffix(last.Text, tt.want) {
			t.Errorf("holds %v, fails %v: got %+v, want a command that ends with %q", tt.holds, tt.fails, last, tt.want)
		}
	}
}

// A step that could not run did so also while it is stopped.
func TestWithoutReport(t *testing.T) {
	broken, canceled := errors.New("it is broken"), fmt.Errorf("open: %w", context.Canceled)
	for _, tt := range []struct {
		name                 string
		err                  error
		stopped, interrupted bool
		code                 int
		text                 string
	}{
		{"failed", broken, false, false, host.ExitFailed, "it is broken"},
		{"failed while it is stopped", broken, true, false, host.ExitFailed, "it is broken"},
		{"failed while it is interrupted", broken, true, true, host.ExitFailed, "it is broken"},
		{"stopped", canceled, true, false, host.ExitOK, "it was stopped before it began to measure"},
		{"interrupted", canceled, true, true, host.ExitInterrupted, "it was stopped before it began to measure"},
		{"canceled by itself", canceled, false, false, host.ExitFailed, "open: context canceled"},
	} {
		code, err := withoutReport(tt.err, tt.stopped, tt.interrupted)
		assert.True(t, code == tt.code && err.Error() == tt.text, "%s: got %d, %v", tt.name, code, err)
	}
}
