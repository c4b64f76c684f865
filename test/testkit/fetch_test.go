package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// fakeMaven puts a mvn into PATH that makes these jars and counts its calls.
func fakeMaven(t *testing.T, jars ...string) (calls func() int) {
	t.Helper()
	Program(t, "mkdir")
	dir := t.TempDir()
	script := "#!/bin/sh\ntest -s pom.xml || exit 1\necho >>" + filepath.Join(dir, "calls") + "\nmkdir jars\n"
	for _, j := range jars {
		script += "echo jar >jars/" + j + "\n"
	}
	assert.OK(t, os.WriteFile(filepath.Join(dir, "mvn"), []byte(script), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		data, _ := os.ReadFile(filepath.Join(dir, "calls"))
		return strings.Count(string(data), "\n")
	}
}

var testBundle = &Bundle{Name: "server-1", Project: []byte("<project/>"), Needs: []string{"server-1.jar", "tools-1.jar"}}

func TestFetchOnce(t *testing.T) {
	calls := fakeMaven(t, testBundle.Needs...)
	cache := t.TempDir()
	const readers = 4
	errs := make(chan error)
	for range readers {
		go func() {
			_, err := testBundle.fetch(t.Context(), cache)
			errs <- err
		}()
	}
	for range readers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	assert.Equal(t, calls(), 1, "Maven ran times")
	left, err := filepath.Glob(filepath.Join(cache, "*.part-*"))
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}

func TestFetchRepairs(t *testing.T) {
	fakeMaven(t, testBundle.Needs...)
	cache := t.TempDir()
	assert.OK(t, os.MkdirAll(filepath.Join(cache, testBundle.Name), 0o755))
	dir, err := testBundle.fetch(t.Context(), cache)
	assert.True(t, err == nil && testBundle.complete(dir), "an incomplete cache is not repaired: %v", err)
}

func TestFetchFails(t *testing.T) {
	tests := []struct {
		name string
		path func(t *testing.T)
		want string
	}{
		{"no Maven", func(t *testing.T) { t.Setenv("PATH", t.TempDir()) }, "apt-get install maven"},
		{"Maven makes too few jars", func(t *testing.T) { fakeMaven(t, testBundle.Needs[0]) }, "left no server-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.path(t)
			if _, err := testBundle.fetch(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}
