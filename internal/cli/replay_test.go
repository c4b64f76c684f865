package cli

import (
	"encoding/json"
	"slices"
	"testing"

	"carronade/internal/report"
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
