package testkit

import (
	"encoding/csv"
	"os"
	"testing"

	"carronade/test/testkit/assert"
)

// CSV reads a file of comma-separated values. All its lines have the same number of fields.
func CSV(tb testing.TB, path string) [][]string {
	tb.Helper()
	f, err := os.Open(path)
	assert.OK(tb, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	assert.OK(tb, err, "%s", path)
	return rows
}
