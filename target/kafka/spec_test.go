package kafka

import (
	"os"
	"testing"

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
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
