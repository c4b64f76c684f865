package judge

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"carronade/internal/layout"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// golden compares a text with a file.
func golden(t *testing.T, name string, text func(io.Writer, layout.Style) error) {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, text(&b, layout.Style{}))
	testkit.Golden(t, filepath.Join("testdata", name), b.String())
}
