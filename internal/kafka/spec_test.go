package kafka

import (
	"os"
	"testing"

	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
)

// spec returns a spec as a workload makes it.
func spec(t testing.TB, rawURL string, given map[string][]string) protocol.Spec {
	t.Helper()
	return protocoltest.Spec(t, Kind{}.Options(), rawURL, given)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, []byte(text), 0o600))
}
