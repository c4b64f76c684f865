package reports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// rowOf returns the row of a report after a change.
func rowOf(t *testing.T, change func(d *report.Document)) store.Row {
	t.Helper()
	d := &report.Document{ID: "abcdefgh", Op: "produce", Target: "kafka://127.0.0.1:9092/orders-of-the-whole-company", Mode: load.OpenLoop, StartedAt: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)}
	d.Trust.OK = true
	change(d)
	return store.RowOf(d)
}

// A run is listed with the reason for its end; only a complete one with whether it was trusted.
func TestOutcome(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(d *report.Document)
		want   string
	}{
		{"a normal end", func(*report.Document) {}, ""},
		{"untrusted", func(d *report.Document) { d.Trust.OK = false }, "untrusted"},
		{"noisy", func(d *report.Document) { d.Trust.Level = measure.Noisy }, "noisy"},
		{"noisy, and over a limit", func(d *report.Document) { d.Trust.Level, d.Checks = measure.Noisy, []report.Check{{}} }, "broken limit"},
		{"untrusted, and over a limit", func(d *report.Document) { d.Trust.OK, d.Checks = false, []report.Check{{}} }, "broken limit, untrusted"},
		{"the system died, and it was untrusted", func(d *report.Document) {
			d.Trust.OK, d.Partial, d.System = false, true, &report.System{Died: true}
		}, "system died"},
		{"the system died, and that was a problem", func(d *report.Document) { d.Problems, d.System = []string{"it died"}, &report.System{Died: true} }, "system died"},
		{"cut short, and untrusted", func(d *report.Document) { d.Trust.OK, d.Partial = false, true }, "partial"},
		{"cut short, and over a limit", func(d *report.Document) { d.Checks, d.Partial = []report.Check{{}}, true }, "partial"},
		{"killed", func(d *report.Document) { d.Partial, d.Stopped = true, load.Killed }, "killed"},
		{"interrupted", func(d *report.Document) { d.Stopped, d.Partial = load.Interrupted, true }, "interrupted"},
		{"a limit", func(d *report.Document) { d.Checks = []report.Check{{}} }, "broken limit"},
		{"cannot tell", func(d *report.Document) { d.Checks = []report.Check{{CannotTell: true}} }, "cannot tell"},
		{"noisy, and cannot tell", func(d *report.Document) {
			d.Trust.Level, d.Checks = measure.Noisy, []report.Check{{CannotTell: true}}
		}, "cannot tell"},
		{"untrusted, and cannot tell", func(d *report.Document) { d.Trust.OK, d.Checks = false, []report.Check{{CannotTell: true}} }, "untrusted"},
		{"a problem", func(d *report.Document) { d.Problems = []string{"no"} }, "failed"},
	} {
		t.Run(tt.name, func(t *testing.T) { row := rowOf(t, tt.change); assert.Equal(t, outcome(&row), tt.want) })
	}
}

// A list in a file is uncut, and on a terminal as wide as the terminal; the
// target keeps the part that distinguishes it.
func TestListWidth(t *testing.T) {
	rows := []store.Row{
		rowOf(t, func(d *report.Document) {
			d.Op, d.Labels = "roundtrip", map[string]string{"tool": "kafka-producer-perf-test", "team": "ingest"}
		}),
		rowOf(t, func(d *report.Document) { d.Trust.OK = false; d.Note = strings.Repeat("words ", 30) }),
	}
	lines := func(columns int) []string {
		var out bytes.Buffer
		c := &commands{Tools{Console: cmdutil.Console{Out: &out, Columns: columns}}}
		assert.OK(t, c.usualTable(rows, time.Now()))
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	whole := strings.Join(lines(0), "\n")
	assert.Has(t, whole, "kafka orders-of-the-whole-company roundtrip", "tool=kafka-producer-perf-test", strings.TrimSpace(rows[1].Text("note")))
	for _, columns := range []int{80, 120, 160} {
		got := lines(columns)
		for _, line := range got {
			n := layout.Width(line)
			assert.True(t, n <= columns, "a line of %d columns in %d: %s", n, columns, line)
		}
		assert.True(t, strings.Contains(got[1], " kafka ord"), "got %s, want the topic's beginning in it", got[1])
	}
}

// On a narrow terminal, columns are left out one by one, and no line is wrapped.
func TestNarrowList(t *testing.T) {
	r := rowOf(t, func(d *report.Document) {
		d.Mode, d.Totals.EventsPerS, d.Totals.Acked, d.Partial, d.Stopped, d.Note = load.ClosedLoop, 8500, 1000, true, load.Interrupted, "of the evening"
		d.Trust.OK = false
	})
	for _, tt := range []struct {
		columns int
		want    string // the headings
	}{
		{0, "id started target load throughput"},
		{80, "id started target load throughput"},
		{72, "id started target load throughput"},
		{60, "id started target throughput"},
		{50, "id target throughput"},
		{40, "id target"},
	} {
		var out bytes.Buffer
		c := &commands{Tools{Console: cmdutil.Console{Out: &out, Columns: tt.columns}}}
		assert.OK(t, c.usualTable([]store.Row{r}, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)))
		lines := strings.Split(out.String(), "\n")
		assert.Equal(t, strings.Join(strings.Fields(lines[0]), " "), tt.want, "%d columns", tt.columns)
		for _, line := range lines {
			n := layout.Width(line)
			assert.True(t, tt.columns <= 0 || n <= tt.columns, "a line of %d columns in %d: %s", n, tt.columns, line)
		}
		assert.True(t, strings.Contains(out.String(), "abcdefgh") && strings.Contains(out.String(), "interrupted"),
			"%d columns: got\n%s", tt.columns, out.String())
	}
}

// A list of chosen columns has each column once, also one without values, and the id where it was requested.
func TestListColumns(t *testing.T) {
	store := filled(t, 2, 2)
	for _, tt := range []struct {
		columns, head string
		row           string // a pattern
	}{
		{"id,response_p99", "id response_p99", `^[0-9a-z]{8} [0-9.]+ ms$`},
		{"response_p99,id", "response_p99 id", `^[0-9.]+ ms [0-9a-z]{8}$`},
		{"report_id,op", "report_id op", `^[0-9a-z]{8} produce$`},
		{"op,end_to_end_p99,op", "id op end_to_end_p99", `^[0-9a-z]{8} produce -$`},
		{"response_p99.9,response_p999", "id response_p99.9", `^[0-9a-z]{8} [0-9.]+ ms$`},
	} {
		got := runs(t, "list", "--store", store, "--columns", tt.columns)
		lines := strings.Split(strings.TrimSpace(got.out), "\n")
		if got.code != host.ExitOK || len(lines) != 3 {
			t.Errorf("%s: exit %d, %s\n%s", tt.columns, got.code, got.words, got.out)
			continue
		}
		assert.Equal(t, strings.Join(strings.Fields(lines[0]), " "), tt.head, "columns of %s", tt.columns)
		row := strings.Join(strings.Fields(lines[1]), " ")
		assert.True(t, regexp.MustCompile(tt.row).MatchString(row), "%s: got %q, want %s", tt.columns, row, tt.row)
	}
}

// With --fail-if-none an empty list is a failure that a script sees.
func TestFailIfNone(t *testing.T) {
	full, empty := filled(t, 1, 2), filled(t, 0, 2)
	for _, tt := range []struct {
		name, words string
		code        int
		args        []string
	}{
		{"a match", "", host.ExitOK, []string{"--store", full, "op=produce", "--fail-if-none"}},
		{"without the flag", "", host.ExitOK, []string{"--store", full, "op=consume"}},
		{"no match", "no report matches op=consume", host.ExitBroken, []string{"--store", full, "op=consume", "--fail-if-none"}},
		{"no match, as JSON", "no report matches op=consume", host.ExitBroken, []string{"--store", full, "op=consume", "--fail-if-none", "--json"}},
		{"an empty store", "holds no report -> carronade run makes one", host.ExitBroken, []string{"--store", empty, "--fail-if-none"}},
	} {
		got := runs(t, append([]string{"list"}, tt.args...)...)
		assert.True(t, got.code == tt.code && strings.Contains(got.words, tt.words) && (tt.words != "" || got.words == ""),
			"%s: exit %d, %q, want %d, %q", tt.name, got.code, got.words, tt.code, tt.words)
		assert.True(t, !strings.Contains(tt.name, "JSON") || strings.Contains(got.out, `"reports": []`), "%s: got %s", tt.name, got.out)
	}
}

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
		{"another column", []string{"tracing", "--column", "longest-stall", "--csv"}, host.ExitOK, ",stall,stall_spread,"},
		{"an unknown column", []string{"branch", "--column", "speed"}, host.ExitFailed, "no report has the field "},
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
