package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestManuals(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, writeManuals(dir))
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
		assert.True(t, strings.Contains(string(got), want), "%s does not contain %q", name, want)
	}
}
