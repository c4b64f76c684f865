package judge

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/testkit"
)

// golden compares a text with a file.
func golden(t *testing.T, name string, text func(io.Writer, layout.Style) error) {
	t.Helper()
	var b bytes.Buffer
	if err := text(&b, layout.Style{}); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, filepath.Join("testdata", name), b.String())
}
