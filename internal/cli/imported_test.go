package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

// TestImportedIDs: a report whose id is a path, or could not be found again, is not kept, although its hash is right.
func TestImportedIDs(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	made := filepath.Join(t.TempDir(), "made.json")
	run := &Program{Kinds: Kinds(), Args: []string{"run", "null://", "--count", "10", "--no-store", "--quiet", "--json-file", made}, In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	run.Main() // whether the run is trusted does not matter
	original := assert.Value(os.ReadFile(made))(t)
	file := filepath.Join(t.TempDir(), "report.json")
	for id, ok := range map[string]bool{"../../victim/x": false, "/etc/x": false, "": false, "last": false, "LAST~1": false, "Abc": false, "a b": false, "é": false, "abcd1234": true} {
		d := assert.Value(report.Read(bytes.NewReader(original)))(t)
		d.ID = id
		assert.OK(t, d.Seal())
		var text, out bytes.Buffer
		assert.OK(t, d.WriteJSON(&text))
		assert.OK(t, os.WriteFile(file, text.Bytes(), 0o600))
		p := &Program{Kinds: Kinds(), Args: []string{"report", "import", file}, In: strings.NewReader(""), Out: &out, Err: &out}
		code := p.Main()
		assert.True(t, (code == host.ExitOK) == ok && (ok || strings.Contains(out.String(), "is not the id of a report")), "%q: exit %d, %s", id, code, out.String())
	}
}
