package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"man/carronade.1":             "CARRONADE",
		"man/carronade-run.1":         `system\-build`,
		"man/carronade-topics.1":      "topics",
		"completion/carronade.bash":   "carronade",
		"completion/_carronade":       "#compdef carronade",
		"completion/carronade.fish":   "carronade",
		"completion/carronade.ps1":    "carronade",
		"man/carronade-topics-read.1": "decode",
		"man/carronade-subjects.7":    "lognormal",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s does not contain %q", name, want)
		}
	}
}

func TestWriteNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(file); err == nil {
		t.Error("got no error for a folder that is a file")
	}
}
