package cli

import (
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"
)

// TestAbsoluteStore: jobs run in another folder than the server, so the path of its store is made
// absolute.
func TestAbsoluteStore(t *testing.T) {
	t.Chdir(t.TempDir())
	here := assert.Value(filepath.Abs("reports.db"))(t)
	for place, want := range map[string]string{
		"reports.db": here, "./reports.db": here, here: here, "sqlite://reports.db": here,
		"elasticsearch://127.0.0.1:9200": "elasticsearch://127.0.0.1:9200",
	} {
		got, err := absoluteStore(place)
		assert.True(t, got == want && err == nil, "%s: got %s and %v, want %s", place, got, err, want)
	}
}
