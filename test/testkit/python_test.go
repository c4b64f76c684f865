package testkit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWithoutPip: the error says what is missing and how to get it.
func TestWithoutPip(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho 'No module named venv' >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	_, err := fetchPython(context.Background(), broken, parent, "x")
	if err == nil || !strings.Contains(err.Error(), "python3-venv") || !strings.Contains(err.Error(), "No module named venv") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
