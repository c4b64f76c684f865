package command

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

// with sets a flag of a report's system.
func with(name, value string) func(*report.Document) {
	return func(d *report.Document) { d.System.Facts["flags"] = map[string]any{name: value} }
}

func TestCollate(t *testing.T) {
	s := newTestStore(t)
	s.keep("main", "0123456789bb", 3*day, 50e3, with("tracing", "false"))
	s.keep("main", "0123456789bb", 3*day-time.Hour, 40e3, with("tracing", "true"))
	s.keep("pr", "0123456789cc", time.Hour, 60e3, with("tracing", "false"))
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // part of the output, or of the error
	}{
		{"by a flag", []string{"tracing"}, host.ExitOK, "tracing\n"},
		{"by branch", []string{"branch", "branch=pr"}, host.ExitOK, "revision"},
		{"of the last day", []string{"branch", "-n", "24h"}, host.ExitOK, "pr"},
		{"without VAR", nil, host.ExitFailed, "needs the field that differs"},
		{"two forms", []string{"branch", "--csv", "--json"}, host.ExitFailed, "cannot be combined"},
		{"neither a number nor an age", []string{"branch", "-n", "soon"}, host.ExitFailed, "--last"},
		{"not a filter", []string{"branch", "main"}, host.ExitFailed, "contains no comparison"},
		{"VAR mistyped", []string{"brnch"}, host.ExitFailed, "no report has the field "},
		{"a filter mistyped", []string{"branch", "tracin=false"}, host.ExitFailed, "no report has the field "},
		{"no report matches all filters", []string{"tracing", "rate=1/s", "branch=pr"}, host.ExitFailed, "no report of 3 matches all filters"},
		{"sorted by an unknown field", []string{"branch", "--sort", "speed"}, host.ExitFailed, "no report has the field "},
		{"VAR does not vary", []string{"for"}, host.ExitOK, "for does not vary"},
		{"one repetition", []string{"tracing"}, host.ExitOK, "one repetition of each"},
	} {
		code, words := s.run(append([]string{"collate"}, tt.args...)...)
		if text := s.out.String() + words; code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s: exit %d, want %d and %q in:\n%s", tt.name, code, tt.code, tt.want, text)
		}
	}

	code, words := s.run("collate", "tracing", "--csv")
	assert.Must(t, code == host.ExitOK, "%v", words)
	lines, err := csv.NewReader(&s.out).ReadAll()
	assert.True(t, err == nil && len(lines) == 3, "%d lines of CSV (%v), want a head and two rows", len(lines), err)
	code, words = s.run("collate", "tracing", "--all", "--json")
	assert.Must(t, code == host.ExitOK, "%v", words)
	var doc struct {
		Schema string
		Groups []struct{ Rows []struct{ Value any } }
	}
	if err := json.Unmarshal(s.out.Bytes(), &doc); err != nil || len(doc.Groups) != 2 || len(doc.Groups[1].Rows) != 2 || doc.Groups[1].Rows[0].Value != false {
		t.Errorf("as JSON: %v\n%s", err, s.out.String())
	}
}

// Pictures show throughput and p99 of each row: on its interval, if there are enough runs.
func TestCollatePictures(t *testing.T) {
	s := newTestStore(t)
	for i := range 6 {
		s.keep("main", "0123456789bb", 3*day-time.Duration(i)*time.Minute, 50e3+100*float64(i), with("tracing", "false"))
	}
	s.keep("main", "0123456789bb", 3*day-time.Hour, 40e3, with("tracing", "true"))
	dir := filepath.Join(t.TempDir(), "pictures")
	if code, words := s.run("collate", "tracing", "--pictures", dir); code != host.ExitOK || !strings.Contains(s.notes.String(), "collate-throughput.svg") {
		t.Fatalf("exit %d: %s", code, words)
	}
	for name, wants := range map[string][]string{
		"collate-throughput.svg":   {"Throughput by ", "tracing", "More is better.", "median, on its 95% interval: ", "median of too few runs for an interval: true 40 k/s."},
		"collate-response-p99.svg": {"Response p99 by ", "Less is better."},
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range wants {
			assert.True(t, strings.Contains(string(data), want), "%s lacks %q:\n%.3000s", name, want, data)
		}
	}
	if code, words := s.run("collate", "tracing", "--png"); code != host.ExitFailed || !strings.Contains(words, "--png belongs to --pictures") {
		t.Errorf("exit %d: %s", code, words)
	}
}
