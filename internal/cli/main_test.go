package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"carronade/internal/cli"
	"carronade/target/all"
)

// The tests run the whole program, in a process of its own: the binary of the
// tests under the name of carronade.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"carronade": func() { os.Exit(cli.OS(all.Kinds()).Main()) },
	})
}

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d scripts and %v, want some", len(files), err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("LANG", "C.UTF-8")
			return nil
		},
	})
}
