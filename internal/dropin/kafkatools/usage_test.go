package kafkatools

import (
	"os"
	"regexp"
	"testing"

	"carronade/test/testkit/assert"
)

// allTested checks that the cases in a file use every option.
func allTested[T any](t *testing.T, file string, options []T, name func(T) string) {
	t.Helper()
	data := assert.Value(os.ReadFile(file))(t)
	for _, o := range options {
		assert.True(t, regexp.MustCompile(`--`+regexp.QuoteMeta(name(o))+`\b`).Match(data), "--%s is not tested", name(o))
	}
}
