package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/cli/reports"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/internal/verdict/trust"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// Drift affects both workloads equally: each comes first equally often.
func TestAlternating(t *testing.T) {
	var tasks []task
	for _, name := range []string{"a", "b"} {
		for i := range 4 {
			tasks = append(tasks, task{file: name, i: i})
		}
	}
	var got []string
	for _, k := range alternating(tasks, 4) {
		got = append(got, k.file+string(rune('0'+k.i)))
	}
	want := "a0 b0 b1 a1 a2 b2 b3 a3"
	assert.Equal(t, strings.Join(got, " "), want)
}

func inProcess(t *testing.T, files map[string]string) (s *session, out *bytes.Buffer, path func(string) string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	path = func(name string) string { return filepath.Join(dir, name) }
	for name, text := range files {
		assert.OK(t, os.WriteFile(path(name), []byte(text), 0o600))
	}
	out = new(bytes.Buffer)
	p := &Program{Kinds: Kinds(), In: strings.NewReader(""), Out: out, Err: new(bytes.Buffer), Measured: untrusted(), Others: &trust.Others{}}
	return &session{Program: p, out: &stdout{w: out}, interrupt: func(error) {}}, out, path
}

// untrusted makes these runs of a session, from 1, not trusted, and all others trusted, however busy this machine is.
func untrusted(runs ...int) func(*report.Document) {
	n := 0
	return func(d *report.Document) {
		n++
		d.Trust = measure.Trust{OK: true, Level: measure.Trusted}
		if slices.Contains(runs, n) {
			d.Trust = measure.Trust{Level: measure.NotTrusted, Reasons: []string{"the test says so"}}
		}
	}
}

// interleaving runs two files this often each.
func interleaving(path func(string) string, base, candidate string, sizes ...int) reports.Interleaving {
	return reports.Interleaving{Place: path("reports.db"), Base: path(base), Candidate: path(candidate), Sizes: sizes}
}

// Two workloads run A B B A, and their ids are returned by side; the store has all reports, with the settings of their files.
func TestInterleave(t *testing.T) {
	s, out, path := inProcess(t, map[string]string{
		"a.yaml": "{target: 'null://', count: 300, label: [side=a, own=yes]}",
		"b.yaml": "{target: 'null://', count: 400}",
	})
	base, candidate, err := s.interleave(t.Context(), interleaving(path, "a.yaml", "b.yaml", 2))
	assert.OK(t, err)
	kept := assert.Value(sqlite.Open(t.Context(), path("reports.db")))(t)
	defer kept.Close()
	type run struct {
		side int
		d    *report.Document
	}
	var all []run
	for side, ids := range [][]string{base, candidate} {
		for i, id := range ids {
			d := assert.Value(kept.Get(t.Context(), id))(t)
			all = append(all, run{side, d})
			want := uint64(300 + 100*side)
			assert.True(t, d.Totals.Acked == want, "side %d: %d events, want %d", side, d.Totals.Acked, want)
			assert.True(t, d.Repetition == i+1 && d.Repetitions == 2,
				"side %d: repetition %d of %d, want %d of 2", side, d.Repetition, d.Repetitions, i+1)
			assert.Equal(t, d.Labels["own"] == "yes" && d.Labels["side"] == "a", (side == 0), "side %d: labels %v", side, d.Labels)
		}
	}
	slices.SortStableFunc(all, func(a, b run) int { return a.d.StartedAt.Compare(b.d.StartedAt) })
	order := ""
	for _, r := range all {
		order += string("AB"[r.side])
	}
	assert.Equal(t, order, "ABBA", "ran")
	rows, err := kept.Rows(t.Context(), store.Query{Fields: []string{}})
	assert.True(t, err == nil && len(rows) == 4, "the store has %d reports, %v; want 4", len(rows), err)
	assert.True(t, out.Len() <= 0, "it printed %q, but only its caller prints", out.String())
}

// The configuration's collectors get metrics of these runs, as of any.
func TestInterleaveIsPublished(t *testing.T) {
	s, _, path := inProcess(t, map[string]string{
		"a.yaml":   "{target: 'null://', count: 10}",
		"own.yaml": "metrics-addr: 127.0.0.1:0\njson-file: unused.json\n",
	})
	t.Chdir(path("."))
	t.Setenv("CARRONADE_CONFIG", path("own.yaml"))
	_, _, err := s.interleave(t.Context(), interleaving(path, "a.yaml", "a.yaml", 1))
	assert.OK(t, err)
	said := s.Err.(*bytes.Buffer).String()
	assert.True(t, strings.Contains(said, "metrics for Prometheus at http://"), "it said %q", said)
	found, err := filepath.Glob(path("unused*"))
	assert.True(t, err == nil && len(found) == 0, "it left %v, %v", found, err)
}

// Reports that are not stored cannot be compared, which is an error before the first run.
func TestInterleaveWithoutAStore(t *testing.T) {
	s, _, path := inProcess(t, map[string]string{"a.yaml": "{target: 'null://', count: 10}"})
	t.Setenv("CARRONADE_CONFIG", path("own.yaml"))
	assert.OK(t, os.WriteFile(path("own.yaml"), []byte("no-store: true\n"), 0o600))
	base, candidate, err := s.interleave(t.Context(), reports.Interleaving{Base: path("a.yaml"), Candidate: path("a.yaml"), Sizes: []int{1}})
	assert.True(t, err != nil && strings.Contains(err.Error(), "would not be kept") && len(base)+len(candidate) <= 0,
		"got %v, %v and %v; want an error before any run", base, candidate, err)
	found, err := filepath.Glob(path("data/carronade/*"))
	assert.True(t, err == nil && len(found) == 0, "it left %v, %v", found, err)
}

// Mistakes are errors before anything runs, and an interrupted run ends the comparison: half of one is useless.
func TestInterleaveEndsEarly(t *testing.T) {
	s, _, path := inProcess(t, map[string]string{
		"one.yaml":   "{target: 'null://', count: 10}",
		"two.yaml":   "[{target: 'null://', count: 10}, {target: 'null://', count: 20}]",
		"other.yaml": "{target: 'null://', op: pipeline, count: 10}",
		"long.yaml":  "{target: 'null://', rate: 1k/s, for: 10m}",
	})
	for _, tt := range []struct{ file, want string }{
		{"two.yaml", "has 2 workloads, but a comparison takes one from each file"},
		{"none.yaml", "none.yaml"},
		{"other.yaml", "the sides are of different operations: "},
	} {
		_, _, err := s.interleave(t.Context(), interleaving(path, "one.yaml", tt.file, 1))
		assert.ErrorHas(t, err, tt.want, "%s", tt.file)
		_, err = os.Stat(path("reports.db"))
		assert.True(t, err != nil, "%s: a store was created, so something ran", tt.file)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.Err = onText{s.Err, "measurement", stop}
	base, candidate, err := s.interleave(ctx, interleaving(path, "long.yaml", "one.yaml", 3))
	var code exitCode
	assert.True(t, errors.As(err, &code) && code.Code == host.ExitInterrupted && len(base)+len(candidate) <= 0,
		"interrupted: got %v, %v and %v; want code %d", base, candidate, err, host.ExitInterrupted)
	want := "interrupted in run 1 of 6"
	assert.True(t, err != nil && strings.Contains(fmt.Sprint(err), want), "interrupted: got %v, want %q", err, want)
}

// An onText does something when a text is written.
type onText struct {
	io.Writer
	text string
	do   func()
}

func (w onText) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.text) {
		w.do()
	}
	return w.Writer.Write(b)
}

// sides returns the runs of each side in their order, with what they replace.
func sides(t *testing.T, place string, ids ...[]string) string {
	t.Helper()
	kept := assert.Value(sqlite.Open(t.Context(), place))(t)
	defer kept.Close()
	type run struct {
		name string
		d    *report.Document
	}
	var runs []run
	names := map[string]string{}
	for side, of := range ids {
		for _, id := range of {
			d := assert.Value(kept.Get(t.Context(), id))(t)
			name := fmt.Sprintf("%c%d", "AB"[side], d.Repetition)
			runs, names[id] = append(runs, run{name, d}), name
		}
	}
	slices.SortStableFunc(runs, func(a, b run) int { return a.d.StartedAt.Compare(b.d.StartedAt) })
	var out []string
	for _, r := range runs {
		if r.d.Replaces != "" {
			r.name += " for " + names[r.d.Replaces]
		}
		out = append(out, r.name)
	}
	return strings.Join(out, ", ")
}

// Runs that are not trusted are run again after the others, at most as many of a
// side as were requested. With --untrusted all of them count.
func TestInterleaveReplacesUntrustedRuns(t *testing.T) {
	for _, tt := range []struct {
		name       string
		bad        []int
		untrusted  bool
		want, says string
	}{
		{"all trusted", nil, false, "A1, B1, B2, A2", ""},
		{"two are not", []int{2, 4}, false, "A1, B1, B2, A2, B1 for B1, A2 for A2", "repetition 2 of 2"},
		{"nor is one in their place", []int{2, 5}, false, "A1, B1, B2, A2, B1 for B1, B1 for B1", "it will be run again"},
		{"none ever", []int{1, 2, 3, 4, 5, 6, 7, 8}, false, "A1, B1, B2, A2, A1 for A1, B1 for B1, B2 for B2, A2 for A2", "is not run again, because 2 repetitions were replaced already"},
		{"all count", []int{1, 2}, true, "A1, B1, B2, A2", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _, path := inProcess(t, map[string]string{"a.yaml": "{target: 'null://', count: 10}", "b.yaml": "{target: 'null://', count: 20}"})
			s.Measured = untrusted(tt.bad...)
			j := interleaving(path, "a.yaml", "b.yaml", 2)
			j.Untrusted = tt.untrusted
			base, candidate, err := s.interleave(t.Context(), j)
			assert.OK(t, err)
			assert.Equal(t, sides(t, j.Place, base, candidate), tt.want, "runs")
			said := s.Err.(*bytes.Buffer).String()
			assert.True(t, strings.Contains(said, tt.says) && (tt.says != "" || !strings.Contains(said, "not trusted")),
				"it said %q, want %q", said, tt.says)
		})
	}
}

// Without a fixed number the runs go on until they are enough, or the budget is spent.
func TestInterleaveUntilThereIsAVerdict(t *testing.T) {
	for _, tt := range []struct {
		name        string
		enough      int // runs of each side
		bad         []int
		budget      time.Duration
		want, asked string
	}{
		{"at the first look", 1, nil, 0, "A1, B1", "1+1"},
		{"at the second look", 3, nil, time.Hour, "A1, B1, B2, A2, A3, B3", "1+1 3+3"},
		{"never", 9, nil, 0, "A1, B1, B2, A2, A3, B3, B4, A4", "1+1 3+3"},
		{"replaced before a look", 9, []int{1}, 0, "A1, B1, A1 for A1, B2, A2, A3, B3, B4, A4", "2+1 4+3"},
		{"no time", 9, nil, time.Nanosecond, "A1, B1", "1+1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _, path := inProcess(t, map[string]string{"a.yaml": "{target: 'null://', count: 10}", "b.yaml": "{target: 'null://', count: 20}"})
			s.Measured = untrusted(tt.bad...)
			j := interleaving(path, "a.yaml", "b.yaml", 1, 3, 4)
			j.Budget = tt.budget
			var asked []string
			j.Enough = func(_ context.Context, kept store.Store, base, candidate []string) (bool, error) {
				asked = append(asked, fmt.Sprintf("%d+%d", len(base), len(candidate)))
				rows, err := kept.Rows(t.Context(), store.Query{Fields: []string{}})
				assert.True(t, err == nil && len(rows) == len(base)+len(candidate), "the store has %d reports, %v", len(rows), err)
				return len(base) >= tt.enough, nil
			}
			base, candidate, err := s.interleave(t.Context(), j)
			assert.OK(t, err)
			got := sides(t, j.Place, base, candidate)
			assert.True(t, got == tt.want && strings.Join(asked, " ") == tt.asked, "ran %s, asked %q\nwant %s, %q", got, asked, tt.want, tt.asked)
			spent := strings.Contains(s.Err.(*bytes.Buffer).String(), "the budget of 1 ns is spent after 1 and 1 runs")
			assert.Equal(t, spent, (tt.budget == time.Nanosecond), "it said %q", s.Err)
		})
	}
}
