package kafkatest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeMaven puts a mvn into PATH that leaves these jars and counts its calls.
func fakeMaven(t *testing.T, jars ...string) (calls func() int) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho >>" + filepath.Join(dir, "calls") + "\nmkdir jars\n"
	for _, j := range jars {
		script += "echo jar >jars/" + j + ".jar\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "mvn"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		data, _ := os.ReadFile(filepath.Join(dir, "calls"))
		return strings.Count(string(data), "\n")
	}
}

var allJars = []string{"kafka_2.13-" + Version, "kafka-tools-" + Version, "log4j-slf4j-impl-2.25.4"}

func TestFetchOnce(t *testing.T) {
	calls := fakeMaven(t, allJars...)
	cache := t.TempDir()
	const callers = 4
	errs := make(chan error)
	for range callers {
		go func() {
			_, err := fetch(t.Context(), cache, "kafka")
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := calls(); got != 1 {
		t.Errorf("Maven ran %d times, want 1", got)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*.part-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFetchRepairs(t *testing.T) {
	fakeMaven(t, allJars...)
	cache := t.TempDir()
	if err := os.MkdirAll(filepath.Join(cache, "kafka"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := fetch(t.Context(), cache, "kafka")
	if err != nil || !whole(dir) {
		t.Errorf("a broken cache is not mended: %v", err)
	}
}

func TestFetchFails(t *testing.T) {
	tests := []struct {
		name string
		path func(t *testing.T)
		want string
	}{
		{"no Maven", func(t *testing.T) { t.Setenv("PATH", t.TempDir()) }, "apt-get install maven"},
		{"Maven leaves too little", func(t *testing.T) { fakeMaven(t, allJars[0]) }, "left no Kafka"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.path(t)
			if _, err := fetch(t.Context(), t.TempDir(), "kafka"); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want one that says %q", err, tt.want)
			}
		})
	}
	t.Run("no Java", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if err := checkJava(context.Background()); err == nil || !strings.Contains(err.Error(), "apt-get install default-jre-headless") {
			t.Errorf("got %v", err)
		}
	})
}

func TestJavaVersion(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"new enough", `openjdk version "17.0.15" 2025-04-15`, ""},
		{"newer", `openjdk version "26" 2026-03-17`, ""},
		{"old", `openjdk version "11.0.2" 2019-01-15`, "too old"},
		{"very old", `java version "1.8.0_202"`, "Java 8 is too old"},
		{"none", `no java here`, "says nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkJavaVersion(tt.text)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
