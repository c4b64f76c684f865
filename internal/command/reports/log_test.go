package reports

import (
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/internal/store/sqlite"
	"carronade/internal/store/storetest"
)

// What a system printed cannot change the terminal; elsewhere it is written as it was.
func TestLogOnATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	const text = "\x1b[31mred\x1b[0m\n\x1b]0;a title\a\nthe last line\n"
	d := storetest.Document(1, 2)
	d.System = &report.System{Facts: map[string]any{}, LastLines: []string{}, Output: report.NewOutput(text, 0)}
	if err := d.Seal(); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r := runs(t, "log", "--store", path); r.out != text {
		t.Errorf("got %q (%s), want %q", r.out, r.words, text)
	}
	r := runsOn(t, true, "log", "--store", path)
	if strings.ContainsAny(r.out, "\x1b\a") || strings.Count(r.out, "\n") != 3 || !strings.HasSuffix(r.out, "\nthe last line\n") {
		t.Errorf("got %q on a terminal", r.out)
	}
}
