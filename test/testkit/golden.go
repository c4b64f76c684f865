package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"
)

var update = flag.Bool("update", false, "write golden files, and what documents have from the code")

// Update reports whether tests write what they otherwise check, because of -update.
func Update() bool { return *update }

// Golden compares a text with that of a file, which -update writes.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	if Update() {
		assert.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the tree
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	assert.OK(t, err, "-update writes it")
	assert.Same(t, got, string(want), "%s (-want +got; -update writes it)", path)
}
