package reports

import (
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/internal/store/sqlite"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// What a system printed cannot change the terminal; elsewhere it is written as it was.
func TestLogOnATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.db")
	s := assert.Value(sqlite.Open(t.Context(), path))(t)
	const made = "\x1b[31mmaking\x1b[0m\nmade\n"
	const text = "\x1b[31mred\x1b[0m\n\x1b]0;a title\a\nthe last line\n"
	d := reporttest.Document(1, 2)
	d.System = &report.System{Facts: map[string]any{}, LastLines: []string{}, Output: report.NewOutput(text, 0), BuildOutput: report.NewOutput(made, 9)}
	assert.OK(t, d.Seal())
	assert.OK(t, s.Put(t.Context(), d))
	assert.OK(t, s.Close())
	if r := runs(t, "log", "--store", path); r.out != text {
		t.Errorf("got %q (%s), want %q", r.out, r.words, text)
	}
	if r := runs(t, "log", "--store", path, "--build"); r.out != made || !strings.Contains(r.notes, "the first 9 B were not kept") {
		t.Errorf("got %q (%s, %s), want %q", r.out, r.words, r.notes, made)
	}
	if r := runsOn(t, true, "log", "--store", path, "--build"); strings.Contains(r.out, "\x1b") || strings.Count(r.out, "\n") != 2 || !strings.HasSuffix(r.out, "\nmade\n") {
		t.Errorf("got %q of the build on a terminal", r.out)
	}
	r := runsOn(t, true, "log", "--store", path)
	assert.True(t, !strings.ContainsAny(r.out, "\x1b\a") && strings.Count(r.out, "\n") == 3 &&
		strings.HasSuffix(r.out, "\nthe last line\n"), "got %q on a terminal", r.out)
}
