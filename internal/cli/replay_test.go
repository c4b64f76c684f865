package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/cli/reports"
	"carronade/internal/host"
	"carronade/internal/judge"
	"carronade/internal/report"
	"carronade/internal/store/sqlite"
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
			doc := assert.Value(replayed(&report.Document{ID: "r1", Workload: json.RawMessage(`{"target": "null://", "for": "1s", "label": ` + tt.give + `}`)}))(t)
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

// A trial that does not fit the fleet says nothing about the system, also after others.
func TestTrialBeyondAFleet(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds(), Err: new(bytes.Buffer)}}
	base := &workload.Document{}
	base.Add("target", "target", "null://")
	f := &searching{base: base, searches: make([]*find.Answer, 1), Options: find.Options{Over: find.OverConcurrency}}
	out, err := s.trial(t.Context(), f, &outputs{quiet: true, fleet: &fleetRuns{}}, &find.Trial{Concurrency: 1, Measure: time.Second, Slot: time.Second})
	assert.ErrorHas(t, err, "no agent is left that sends")
	assert.Equal(t, out.Dead, "")
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

// varied runs null:// with several values, and returns what went to stdout and stderr.
func varied(t *testing.T, s *session, path func(string) string, args ...string) (out, said string, err error) {
	t.Helper()
	s.out.w.(*bytes.Buffer).Reset()
	s.Err.(*bytes.Buffer).Reset()
	root := s.root()
	root.SetArgs(append([]string{"run", "null://", "--count", "100", "--no-calibrate", "--store", path("reports.db"), "--repeat", "2", "--vary", "seed=1,2,3"}, args...))
	err = root.ExecuteContext(t.Context())
	return s.out.w.(*bytes.Buffer).String(), s.Err.(*bytes.Buffer).String(), err
}

// A series goes on where it ended: only the runs whose reports are missing run, in any state of
// the series, and another series is refused.
func TestResume(t *testing.T) {
	s, _, path := inProcess(t, nil)
	out, said, err := varied(t, s, path)
	assert.OK(t, err, "%s", said)
	series := regexp.MustCompile(`--resume (s[a-z0-9]{7}) `).FindStringSubmatch(said)
	assert.Must(t, series != nil, "it does not name the series: %s", said)
	kept := assert.Value(sqlite.Open(t.Context(), path("reports.db")))(t)
	defer kept.Close()
	again, said, err := varied(t, s, path, "--resume", series[1])
	assert.True(t, err == nil && strings.Contains(said, "6 of 6 runs are there") && again == out,
		"when all are there: %v, it said %s, and printed\n%s\nbefore\n%s", err, said, again, out)
	rows, err := reports.RowsWithLabel(t.Context(), kept, judge.SeriesLabel, series[1], judge.VaryFields()...)
	assert.Must(t, err == nil && len(rows) == 6, "%d rows, %v", len(rows), err)
	plan := rows[0].Text("label." + judge.PlanLabel)
	assert.True(t, regexp.MustCompile(`^p[0-9a-f]{11}$`).MatchString(plan), "the plan %q is not a letter and a hash", plan)
	var missing []string
	for i := range rows[:2] {
		cell, round, _ := judge.CellOf(&rows[i])
		missing = append(missing, strings.Join([]string{"seed=" + string(rune('1'+cell)), "repetition " + string(rune('1'+round)) + " of 2"}, ", "))
	}
	assert.OK(t, kept.Delete(t.Context(), rows[0].ID, rows[1].ID))
	_, said, err = varied(t, s, path, "--resume", series[1])
	assert.True(t, err == nil && strings.Contains(said, "4 of 6 runs are there") && strings.Count(said, "kept as") == 2,
		"%v, it said %s", err, said)
	assert.Has(t, said, missing...)
	rows, err = reports.RowsWithLabel(t.Context(), kept, judge.SeriesLabel, series[1], judge.VaryFields()...)
	assert.True(t, err == nil && len(rows) == 6, "%d rows, %v", len(rows), err)
	slow := []string{"--slo", "throughput>1T/s"}
	_, said, err = varied(t, s, path, slow...)
	assert.Must(t, exitCodeOf(err) == host.ExitBroken, "with a limit: %v: %s", err, said)
	broken := regexp.MustCompile(`--resume (s[a-z0-9]{7}) `).FindStringSubmatch(said)[1]
	if _, said, err = varied(t, s, path, append(slow, "--resume", broken)...); exitCodeOf(err) != host.ExitBroken || strings.Contains(said, "kept as") {
		t.Errorf("with a limit, when all are there: %v: %s", err, said)
	}
	for _, other := range [][]string{{"--size", "77"}, {"--repeat", "3"}, {"--vary", "size=1,2"}} {
		_, _, err := varied(t, s, path, append(other, "--resume", series[1])...)
		assert.ErrorHas(t, err, "that series ran something else", "with %v", other)
	}
}

// TestImportedIDs: a report whose id is a path, or could not be found again, is not kept, although its hash is right.
func TestImportedIDs(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	made := filepath.Join(t.TempDir(), "made.json")
	run := &Program{Kinds: Kinds(), Args: []string{"run", "null://", "--count", "10", "--no-store", "--quiet", "--json-file", made}, In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	run.Main() // whether the run is trusted does not matter
	original := assert.Value(os.ReadFile(made))(t)
	file := filepath.Join(t.TempDir(), "report.json")
	for id, ok := range map[string]bool{"../../victim/x": false, "/etc/x": false, "": false, "last": false, "LAST~1": false, "Abc": false, "a b": false, "é": false, "abcd1234": true} {
		d := assert.Value(report.Read(bytes.NewReader(original)))(t)
		d.ID = id
		assert.OK(t, d.Seal())
		var text, out bytes.Buffer
		assert.OK(t, d.WriteJSON(&text))
		assert.OK(t, os.WriteFile(file, text.Bytes(), 0o600))
		p := &Program{Kinds: Kinds(), Args: []string{"report", "import", file}, In: strings.NewReader(""), Out: &out, Err: &out}
		code := p.Main()
		assert.True(t, (code == host.ExitOK) == ok && (ok || strings.Contains(out.String(), "is not the id of a report")), "%q: exit %d, %s", id, code, out.String())
	}
}
