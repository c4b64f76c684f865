package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/command"
	"carronade/internal/judge"
	"carronade/internal/store/sqlite"
	"carronade/internal/system"
	"carronade/internal/testkit/assert"
)

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
	kept, err := sqlite.Open(t.Context(), path("reports.db"))
	assert.OK(t, err)
	defer kept.Close()
	again, said, err := varied(t, s, path, "--resume", series[1])
	if err != nil || !strings.Contains(said, "6 of 6 runs are there") || again != out {
		t.Errorf("when all are there: %v, it said %s, and printed\n%s\nbefore\n%s", err, said, again, out)
	}

	rows, err := command.RowsWithLabel(t.Context(), kept, judge.SeriesLabel, series[1], judge.VaryFields()...)
	assert.Must(t, err == nil && len(rows) == 6, "%d rows, %v", len(rows), err)
	if plan := rows[0].Text("label." + judge.PlanLabel); !regexp.MustCompile(`^p[0-9a-f]{11}$`).MatchString(plan) {
		t.Errorf("the plan %q is not a letter and a hash", plan)
	}
	var missing []string
	for i := range rows[:2] {
		cell, round, _ := judge.CellOf(&rows[i])
		missing = append(missing, strings.Join([]string{"seed=" + string(rune('1'+cell)), "repetition " + string(rune('1'+round)) + " of 2"}, ", "))
	}
	assert.OK(t, kept.Delete(t.Context(), rows[0].ID, rows[1].ID))
	_, said, err = varied(t, s, path, "--resume", series[1])
	if err != nil || !strings.Contains(said, "4 of 6 runs are there") || strings.Count(said, "kept as") != 2 {
		t.Errorf("%v, it said %s", err, said)
	}
	for _, m := range missing {
		assert.True(t, strings.Contains(said, m), "it did not run %s again: %s", m, said)
	}
	if rows, err = command.RowsWithLabel(t.Context(), kept, judge.SeriesLabel, series[1], judge.VaryFields()...); err != nil || len(rows) != 6 {
		t.Errorf("%d rows, %v", len(rows), err)
	}

	slow := []string{"--slo", "throughput>1T/s"}
	if _, said, err = varied(t, s, path, slow...); exitCodeOf(err) != system.ExitBroken {
		t.Fatalf("with a limit: %v: %s", err, said)
	}
	broken := regexp.MustCompile(`--resume (s[a-z0-9]{7}) `).FindStringSubmatch(said)[1]
	if _, said, err = varied(t, s, path, append(slow, "--resume", broken)...); exitCodeOf(err) != system.ExitBroken || strings.Contains(said, "kept as") {
		t.Errorf("with a limit, when all are there: %v: %s", err, said)
	}

	for _, other := range [][]string{{"--size", "77"}, {"--repeat", "3"}, {"--vary", "size=1,2"}} {
		if _, _, err := varied(t, s, path, append(other, "--resume", series[1])...); err == nil || !strings.Contains(err.Error(), "that series ran something else") {
			t.Errorf("with %v: %v", other, err)
		}
	}
}
