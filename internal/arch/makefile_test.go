package arch

import (
	"carronade/internal/testkit/assert"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestMakefile: the Makefile names no package that is gone.
func TestMakefile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	assert.OK(t, err)
	names := regexp.MustCompile(`(?:^|[\s/])((?:internal|target)/[a-z/]+[a-z])`).FindAllSubmatch(text, -1)
	assert.Must(t, len(names) >= 20, "found %d names of packages", len(names))
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("..", "..", string(name[1]))); err != nil {
			t.Error(err)
		}
	}
}
