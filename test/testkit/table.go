package testkit

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v4"

	"carronade/test/testkit/assert"
)

// Table returns the cases of a test, which a file has as YAML.
func Table[T any](t testing.TB, path string) (cases []T) {
	t.Helper()
	assert.OK(t, yaml.Unmarshal(assert.Value(os.ReadFile(path))(t), &cases), "%s", path)
	assert.Must(t, len(cases) > 0, "%s has no cases", path)
	return cases
}
