package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"carronade/test/testkit/assert"
)

// TestMakefile: the Makefile and its scripts name no package that is gone.
func TestMakefile(t *testing.T) {
	var all []byte
	for _, file := range []string{"Makefile", "scripts/conformance"} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		assert.OK(t, err)
		all = append(all, text...)
	}
	names := regexp.MustCompile(`(?:^|[\s/])((?:internal|target)/[a-z/]+[a-z])`).FindAllSubmatch(all, -1)
	assert.Must(t, len(names) >= 20, "found %d names of packages", len(names))
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("..", "..", string(name[1]))); err != nil {
			t.Error(err)
		}
	}
}
