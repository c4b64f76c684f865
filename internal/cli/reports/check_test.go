package reports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// filled creates a store with n reports of that many intervals each.
func filled(t *testing.T, n, intervals int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reports.db")
	s := assert.Value(sqlite.Open(t.Context(), path))(t)
	for i := range n {
		assert.OK(t, s.Put(t.Context(), reporttest.Document(i+1, intervals)))
	}
	assert.OK(t, s.Close())
	return path
}

func wrecked(t *testing.T, n int, wreck func(b []byte) []byte) string {
	t.Helper()
	path := filled(t, n, 5)
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, wreck(b), 0o600)
	}
	assert.OK(t, err)
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ran is the result of a command line, with stores that are files.
type ran struct {
	code       int
	out, notes string
	words      string // of the error, with the hint
}

func runs(t *testing.T, args ...string) (r ran) {
	t.Helper()
	return runsOn(t, false, args...)
}

// runsOn is like runs, with results that go to a terminal or not.
func runsOn(t *testing.T, terminal bool, args ...string) (r ran) {
	t.Helper()
	var out, notes bytes.Buffer
	opened := func(open func(context.Context, string) (*sqlite.Store, error)) Stores {
		return func(ctx context.Context, place string) (store.Store, error) {
			s, err := open(ctx, place)
			if err != nil {
				return nil, err
			}
			return s, nil
		}
	}
	cmd := Command(Tools{
		Console: cmdutil.Console{
			Out: &out, Terminal: terminal,
			Note: func(format string, args ...any) { fmt.Fprintf(&notes, format+"\n", args...) },
			Warn: func(text string) { fmt.Fprintln(&notes, text) },
		},
		Stores: opened(sqlite.OpenExisting), Make: opened(sqlite.Open), Damaged: opened(sqlite.OpenDamaged),
		Aside: func(_ context.Context, place string) (string, error) { return sqlite.MoveAside(place) },
	})
	cmd.SetArgs(args)
	cmd.SetOut(&notes)
	cmd.SetErr(&notes)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetContext(t.Context())
	err := cmd.Execute()
	var exit cmdutil.Exit
	switch {
	case err == nil:
	case errors.As(err, &exit):
		r.code, err = exit.Code, exit.Err
	default:
		r.code = host.ExitFailed
	}
	if err != nil {
		r.words = err.Error()
	}
	if w, ok := errors.AsType[*protocol.Error](err); ok {
		r.words += " -> " + w.Hint
	}
	r.out, r.notes = out.String(), notes.String()
	return r
}

// The loss of a damaged store is not understated.
func TestLossOfADamagedStore(t *testing.T) {
	testkit.Need(t, "a second")
	const n = 60
	for _, tt := range []struct {
		name  string
		wreck func(b []byte) []byte
		some  bool   // some are saved
		words string // of the error of --move-aside
	}{
		{"cut in half", func(b []byte) []byte { return b[:len(b)/2] }, true, "the number of others is unknown"},
		{"cut near its beginning", func(b []byte) []byte { return b[:len(b)/20] }, false, "no report of the old one could be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := wrecked(t, n, tt.wreck)
			r := runs(t, "check", "--store", path)
			if r.code != host.ExitBroken || tt.some && !strings.Contains(r.out, "the number of others is unknown") {
				t.Errorf("check: got %d and %q (%s)", r.code, r.out, r.words)
			}
			r = runs(t, "check", "--store", path, "--move-aside")
			assert.True(t, r.code == host.ExitBroken && strings.Contains(r.words, tt.words),
				"--move-aside: got %d and %q, %q", r.code, r.out, r.words)
			again := runs(t, "check", "--store", path)
			assert.True(t, again.code == 0, "the new store: got %+v", again)
		})
	}
}

// An unreadable part may have listed more reports: a rescue that saved
// everything it found may still be incomplete.
func TestRescueOfAllThatWasFound(t *testing.T) {
	whole := []string{"a", "b"}
	for _, tt := range []struct {
		name        string
		found, read []string
		err         error
		code        int
		words       string
	}{
		{"all", whole, whole, nil, 0, ""},
		{"one cannot be read", whole, whole[:1], nil, 1, "1 report could not be read"},
		{"all that was found", whole, whole, store.ErrDamaged, 1, "the number of unreadable reports is unknown"},
		{"not all that was found", whole, whole[:1], store.ErrDamaged, 1, "at least 1 report could not be read, and the number of others is unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := missing("old.db", len(tt.found), len(tt.read), tt.err)
			var exit cmdutil.Exit
			if errors.As(err, &exit) != (tt.code != 0) || exit.Code != tt.code || err != nil && err.Error() != tt.words {
				t.Errorf("got %d and %v, want %d and %q", exit.Code, err, tt.code, tt.words)
			}
		})
	}
}

// If the source does not exist, no destination is created.
func TestPullFromNowhere(t *testing.T) {
	dir := t.TempDir()
	own, source := filepath.Join(dir, "own.db"), filled(t, 3, 1)
	for _, tt := range []struct {
		name string
		args []string
		code int
		own  bool
		want string
	}{
		{"a missing source", []string{"--from", filepath.Join(dir, "none.db")}, host.ExitFailed, false, "none.db"},
		{"no source", nil, host.ExitFailed, false, "--from is missing"},
		{"itself, which is missing", []string{"--from", own}, host.ExitFailed, false, "own.db"},
		{"a source", []string{"--from", source}, host.ExitOK, true, ""},
		{"once more", []string{"--from", source}, host.ExitOK, true, ""},
		{"itself", []string{"--from", own}, host.ExitFailed, true, "the store that is open"},
		{"a missing source, into an existing store", []string{"--from", filepath.Join(dir, "none.db")}, host.ExitFailed, true, "none.db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runs(t, append([]string{"pull", "--store", own}, tt.args...)...)
			if r.code != tt.code || !strings.Contains(r.words, tt.want) || exists(own) != tt.own {
				t.Errorf("got %+v, and a store: %v; want %d, %q and %v", r, exists(own), tt.code, tt.want, tt.own)
			}
		})
	}
	r := runs(t, "check", "--store", own)
	assert.True(t, strings.Contains(r.out, "3 reports, all intact"), "got %+v", r)
}
