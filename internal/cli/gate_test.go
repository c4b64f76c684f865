package cli_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
)

// The script for CI in docs/reports.md ends at the first command that fails. It
// reaches the gate if some repetitions were not trusted and were replaced, and
// ends before it if not enough are left.
func TestGateOfCI(t *testing.T) {
	t.Parallel()
	text := assert.Value(os.ReadFile(root + "/docs/reports.md"))(t)
	script := ""
	for _, b := range examples(string(text)) {
		if b.command == "cat gate.sh" {
			script = strings.Join(b.want, "\n")
		}
	}
	assert.Must(t, strings.Contains(script, "set -e\n") && strings.Contains(script, "--repeat 8 "), "the script is %q", script)
	for _, tt := range []struct {
		name      string
		untrusted string // runs
		code      int
		files     []string
	}{
		{"all trusted", "none", 0, []string{"gate.xml", "nightly.txt"}},
		{"one is not", "3", 0, []string{"gate.xml", "nightly.txt"}},
		{"nor is its replacement", "3,9", 0, []string{"gate.xml", "nightly.txt"}},
		{"none is", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", 3, []string{"nightly.txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			swap := strings.NewReplacer(append([]string{"--for 30s", "--for 100ms"}, addresses(t, script)...)...)
			cmd := exec.CommandContext(t.Context(), "bash", "-c", swap.Replace(script))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_CONFIG_HOME="+dir, "NO_COLOR=1", "CARRONADE_TEST_UNTRUSTED="+tt.untrusted)
			var words bytes.Buffer
			cmd.Stderr = &words
			code := 0
			if err := cmd.Run(); err != nil {
				var exit *exec.ExitError
				assert.Must(t, errors.As(err, &exit), "%v", err)
				code = exit.ExitCode()
			}
			assert.True(t, code == tt.code, "got %d, want %d\n%s", code, tt.code, words.String())
			found := assert.Value(filepath.Glob(filepath.Join(dir, "*.*")))(t)
			for i := range found {
				found[i] = filepath.Base(found[i])
			}
			diff := cmp.Diff(tt.files, found)
			assert.True(t, diff == "", "it wrote (-want +got):\n%s\n%s", diff, words.String())
		})
	}
}
