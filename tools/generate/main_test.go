package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carronade/test/testkit/assert"
)

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	assert.OK(t, os.WriteFile(file, nil, 0o644))
	for _, tt := range []struct {
		name string
		args []string
		code int
		errs string
	}{
		{"nothing", nil, 2, "hint: generate manuals"},
		{"an unknown kind", []string{"pictures"}, 2, "hint: generate manuals"},
		{"too many", []string{"manuals", "a", "b"}, 2, "hint: generate manuals"},
		{"manuals into a file", []string{"manuals", file}, 2, "error: write the manuals: "},
		{"dashboards into a file", []string{"dashboards", file}, 2, "error: write the dashboards: "},
		{"dashboards", []string{"dashboards", filepath.Join(t.TempDir(), "new")}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var errs strings.Builder
			if code := run(tt.args, &errs); code != tt.code || !strings.Contains(errs.String(), tt.errs) || tt.code == 0 && errs.Len() > 0 {
				t.Errorf("exit %d, %q; want exit %d, %q", code, errs.String(), tt.code, tt.errs)
			}
		})
	}
}

const folder = "../../packaging/grafana"

// The dashboards in the folder are those of this program, and there are no others.
func TestDashboardsAreCurrent(t *testing.T) {
	found := assert.Value(filepath.Glob(filepath.Join(folder, "*.json")))(t)
	want := dashboardFiles()
	assert.Equal(t, len(found), len(want), "%s has %q dashboards", folder, found)
	for name, text := range want {
		got := assert.Value(os.ReadFile(filepath.Join(folder, name)))(t)
		diff := cmp.Diff(string(got), string(text))
		assert.True(t, diff == "", "%s is not current; go run ./tools/generate dashboards updates it (-file +program):\n%s", name, diff)
	}
}

func TestDashboards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	assert.OK(t, writeDashboards(dir))
	for name, text := range dashboardFiles() {
		got, err := os.ReadFile(filepath.Join(dir, name))
		assert.True(t, err == nil && string(got) == string(text), "%s: %v, or another text", name, err)
	}
}

// Panels do not overlap, and all are within Grafana's 24 columns.
func TestPanelsDoNotOverlap(t *testing.T) {
	for _, s := range []*source{&scraped, &received} {
		taken := make(map[[2]int]any)
		for _, p := range dashboard(s)["panels"].(list) {
			p := p.(object)
			at := p["gridPos"].(object)
			for x := at["x"].(int); x < at["x"].(int)+at["w"].(int); x++ {
				for y := at["y"].(int); y < at["y"].(int)+at["h"].(int); y++ {
					other := taken[[2]int{x, y}]
					assert.Must(t, other == nil && x < 24, "%s: %v is at %d, %d, where %v is", s.title, p["title"], x, y, other)
					taken[[2]int{x, y}] = p["title"]
				}
			}
		}
	}
}

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
