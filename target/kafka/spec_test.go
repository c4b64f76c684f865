package kafka

import (
	"errors"
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

func hintOf(err error) string {
	if e, ok := errors.AsType[*target.Error](err); ok {
		return e.Hint
	}
	return ""
}
