package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"
)

// A script is read whole, or there is an error without its path.
func TestReadSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.js")
	for _, tt := range []struct {
		name string
		size int // of the file; below 0: there is none
		want error
	}{
		{"the largest", MostSource, nil},
		{"a larger one", MostSource + 1, ErrLarge},
		{"none", -1, syscall.ENOENT},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			source := strings.Repeat("x", max(tt.size, 0))
			if tt.size >= 0 {
				assert.OK(t, os.WriteFile(path, []byte(source), 0o600))
			}
			got, err := ReadSource(path)
			if !errors.Is(err, tt.want) || err == nil && got != source || err != nil && (got != "" || strings.Contains(err.Error(), path)) {
				t.Errorf("%d bytes, %v, want %v", len(got), err, tt.want)
			}
		})
	}
}
