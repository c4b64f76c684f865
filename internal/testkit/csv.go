package testkit

import (
	"encoding/csv"
	"os"
	"testing"
)

// CSV reads a file of comma-separated values. All its lines have the same number of fields.
func CSV(tb testing.TB, path string) [][]string {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return rows
}
