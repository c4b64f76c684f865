package kafka

import (
	"os"
	"testing"

	"carronade/internal/testkit/assert"
	"carronade/target"
	"carronade/target/targettest"
)

// spec returns a spec as a workload makes it.
func spec(t testing.TB, rawURL string, given map[string][]string) target.Spec {
	t.Helper()
	return targettest.Spec(t, Kind{}.Options(), rawURL, given)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, []byte(text), 0o600))
}
