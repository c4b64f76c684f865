package testkit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"carronade/test/testkit/assert"
)

// Of several that need a file at once, one makes it.
func TestMakeOnce(t *testing.T) {
	dir := t.TempDir()
	var calls atomic.Int64
	const readers = 4
	errs := make(chan error)
	for range readers {
		go func() {
			path, err := makeIn(dir, "file", func(path string) error {
				calls.Add(1)
				return os.WriteFile(path, []byte("whole"), 0o600)
			})
			if err == nil {
				var text []byte
				if text, err = os.ReadFile(path); err == nil && string(text) != "whole" {
					err = errors.New("the file has the text " + string(text))
				}
			}
			errs <- err
		}()
	}
	for range readers {
		assert.Equal(t, <-errs, nil)
	}
	assert.Equal(t, calls.Load(), 1, "it was made times")
}

// A file that could not be made is absent, and is made again.
func TestMakeFails(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("no room")
	for _, tt := range []struct {
		name  string
		write func(path string) error
		want  error
	}{
		{"written in part", func(path string) error { return errors.Join(os.WriteFile(path, []byte("a"), 0o600), broken) }, broken},
		{"not written", func(string) error { return nil }, os.ErrNotExist},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := makeIn(dir, "file", tt.write); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "file*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != "file.lock" {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestJavaVersion(t *testing.T) {
	tests := []struct {
		name, text string
		want       int
	}{
		{"with an update", `openjdk version "17.0.15" 2025-04-15`, 17},
		{"without one", `openjdk version "26" 2026-03-17`, 26},
		{"very old", `java version "1.8.0_202"`, 8},
		{"none", `no java here`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, javaVersionIn(tt.text), tt.want)
		})
	}
}

// TestWithoutPip: the error says what is missing and how to get it.
func TestWithoutPip(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "python3")
	assert.OK(t, os.WriteFile(broken, []byte("#!/bin/sh\necho 'No module named venv' >&2\nexit 1\n"), 0o700))
	parent := t.TempDir()
	_, err := fetchPython(context.Background(), broken, parent, "x")
	assert.True(t, err != nil && strings.Contains(err.Error(), "python3-venv") &&
		strings.Contains(err.Error(), "No module named venv"), "got %v", err)
	left, _ := os.ReadDir(parent)
	assert.True(t, len(left) <= 0, "%v is left", left)
}
