package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Make returns the path of a file of this name in the user's cache. The first call on a
// machine makes it: write gets a path in a directory of its own, and a rename makes the file
// appear, so it is complete or absent. Several processes may call Make at once.
func Make(name string, write func(path string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("testkit: find the user's cache directory: %w", err)
	}
	return makeIn(filepath.Join(cache, "carronade"), name, write)
}

// Collector is the name of the OpenTelemetry Collector, which BuildGo makes of the module in internal/otlp/testdata.
const Collector = "otelcol-0.165.0"

// BuildGo returns what Make needs to build the program of a Go module in a directory.
func BuildGo(dir string) func(path string) error {
	return func(path string) error {
		build := exec.Command("go", "build", "-o", path, ".")
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
}

func makeIn(parent, name string, write func(path string) error) (string, error) {
	file := filepath.Join(parent, name)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("testkit: make the cache: %w", err)
	}
	unlock, err := lock(filepath.Join(parent, name+".lock"))
	if err != nil {
		return "", fmt.Errorf("testkit: lock the cache: %w", err)
	}
	defer unlock()
	if _, err := os.Stat(file); err == nil { // another process was first
		return file, nil
	}
	stage, err := os.MkdirTemp(parent, name+".part-*")
	if err != nil {
		return "", fmt.Errorf("testkit: make room in the cache: %w", err)
	}
	defer os.RemoveAll(stage)
	part := filepath.Join(stage, name)
	if err := write(part); err != nil {
		return "", fmt.Errorf("testkit: make %s: %w", name, err)
	}
	if err := os.Rename(part, file); err != nil {
		return "", fmt.Errorf("testkit: put %s into the cache: %w", name, err)
	}
	return file, nil
}
