package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/internal/command"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/target/all"
)

// turning is a session that runs in this process, and files for it.
func turning(t *testing.T, files map[string]string) (s *session, out *bytes.Buffer, path func(string) string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	path = func(name string) string { return filepath.Join(dir, name) }
	for name, text := range files {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out = new(bytes.Buffer)
	p := &Program{Kinds: all.Kinds(), In: strings.NewReader(""), Out: out, Err: new(bytes.Buffer)}
	return &session{Program: p, out: &stdout{w: out}, interrupt: func() {}}, out, path
}

// Two workloads run A B B A, and come back by side, with what was asked to stand
// in their reports, which the store has.
func TestTurns(t *testing.T) {
	s, out, path := turning(t, map[string]string{
		"a.yaml": "{target: 'null://', count: 300, label: [side=a, own=yes]}",
		"b.yaml": "{target: 'null://', count: 400}",
	})
	kept, err := sqlite.Open(t.Context(), path("reports.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	docs, err := s.turns(t.Context(), command.TurnsOf{
		Files: [2]string{path("a.yaml"), path("b.yaml")}, Repeat: 2, Store: kept, Labels: []string{"try=1"}, Note: "in turns", Quiet: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	type run struct {
		side int
		d    *report.Document
	}
	var all []run
	for side, ds := range docs {
		for i, d := range ds {
			all = append(all, run{side, d})
			if want := uint64(300 + 100*side); d.Totals.Acked != want {
				t.Errorf("side %d: %d events, want %d", side, d.Totals.Acked, want)
			}
			if d.Repetition != i+1 || d.Repetitions != 2 {
				t.Errorf("side %d: repetition %d of %d, want %d of 2", side, d.Repetition, d.Repetitions, i+1)
			}
			if d.Labels["try"] != "1" || side == 0 && (d.Labels["own"] != "yes" || d.Labels["side"] != "a") || d.Note != "in turns" {
				t.Errorf("side %d: labels %v, note %q", side, d.Labels, d.Note)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b run) int { return cmp.Compare(a.d.StartedAt.UnixNano(), b.d.StartedAt.UnixNano()) })
	order := ""
	for _, r := range all {
		order += string("AB"[r.side])
	}
	if order != "ABBA" {
		t.Errorf("ran %s, want ABBA", order)
	}
	rows, err := kept.Rows(t.Context(), store.Query{Fields: []string{}}) // it is open still
	if err != nil || len(rows) != 4 {
		t.Errorf("the store has %d reports, %v; want 4", len(rows), err)
	}
	if out.Len() > 0 {
		t.Errorf("it printed %q, and its caller tells", out.String())
	}
}

// Nobody keeps what no store was given for, least of all the user's own.
func TestTurnsWithoutAStore(t *testing.T) {
	s, _, path := turning(t, map[string]string{"a.yaml": "{target: 'null://', count: 10}"})
	docs, err := s.turns(t.Context(), command.TurnsOf{Files: [2]string{path("a.yaml"), path("a.yaml")}, Quiet: true})
	if err != nil || len(docs[0]) != 1 || len(docs[1]) != 1 { // no repeat is one
		t.Fatalf("got %d and %d reports, %v", len(docs[0]), len(docs[1]), err)
	}
	if found, err := filepath.Glob(path("data/carronade/*")); err != nil || len(found) > 0 {
		t.Errorf("it left %v, %v", found, err)
	}
}

// Mistakes are told before anything runs, and a run that ends early keeps what
// there is until then.
func TestTurnsEndEarly(t *testing.T) {
	s, _, path := turning(t, map[string]string{
		"one.yaml":  "{target: 'null://', count: 10}",
		"two.yaml":  "[{target: 'null://', count: 10}, {target: 'null://', count: 20}]",
		"long.yaml": "{target: 'null://', rate: 1k/s, for: 10m}",
	})
	for _, tt := range []struct{ file, want string }{
		{"two.yaml", "holds 2 workloads, and here it is one"},
		{"none.yaml", "none.yaml"},
	} {
		docs, err := s.turns(t.Context(), command.TurnsOf{Files: [2]string{path("one.yaml"), path(tt.file)}, Quiet: true})
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(docs[0]) > 0 {
			t.Errorf("%s: got %v after %d runs, want %q before any", tt.file, err, len(docs[0]), tt.want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	docs, err := s.turns(ctx, command.TurnsOf{Files: [2]string{path("long.yaml"), path("one.yaml")}, Repeat: 3, Quiet: true})
	var code exitCode
	if err == nil || errors.As(err, &code) && code.Code != exitInterrupted || len(docs[0]) > 1 || len(docs[1]) > 0 {
		t.Errorf("interrupted: got %v after %d and %d runs", err, len(docs[0]), len(docs[1]))
	}
}
