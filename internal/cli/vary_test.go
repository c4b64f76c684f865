package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/command"
	"carronade/internal/host"
	"carronade/internal/judge"
	"carronade/internal/store/sqlite"
	"carronade/test/testkit/assert"
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
	kept := assert.Value(sqlite.Open(t.Context(), path("reports.db")))(t)
	defer kept.Close()
	again, said, err := varied(t, s, path, "--resume", series[1])
	assert.True(t, err == nil && strings.Contains(said, "6 of 6 runs are there") && again == out,
		"when all are there: %v, it said %s, and printed\n%s\nbefore\n%s", err, said, again, out)

	rows, err := command.RowsWithLabel(t.Context(), kept, judge.SeriesLabel, series[1], judge.VaryFields()...)
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
	rows, err = command.RowsWithLabel(t.Context(), kept, judge.SeriesLabel, series[1], judge.VaryFields()...)
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
