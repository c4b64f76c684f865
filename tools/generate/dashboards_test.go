package main

import (
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
)

const folder = "../../packaging/grafana"

// The dashboards in the folder are those of this program, and there are no others.
func TestDashboardsAreCurrent(t *testing.T) {
	found := assert.Value(filepath.Glob(filepath.Join(folder, "*.json")))(t)
	want := dashboardFiles()
	assert.Equal(t, len(found), len(want), "%s has %q dashboards", folder, found)
	for name, text := range want {
		got := assert.Value(os.ReadFile(filepath.Join(folder, name)))(t)
		if diff := cmp.Diff(string(got), string(text)); diff != "" {
			t.Errorf("%s is not current; go run ./tools/generate dashboards updates it (-file +program):\n%s", name, diff)
		}
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
					if other := taken[[2]int{x, y}]; other != nil || x >= 24 {
						t.Fatalf("%s: %v is at %d, %d, where %v is", s.title, p["title"], x, y, other)
					}
					taken[[2]int{x, y}] = p["title"]
				}
			}
		}
	}
}
