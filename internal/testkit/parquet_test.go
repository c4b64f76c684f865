package testkit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/testkit/assert"

	"github.com/parquet-go/parquet-go"
)

func TestReadParquet(t *testing.T) {
	type row struct {
		N    int64   `parquet:"n"`
		Word *string `parquet:"word,optional"`
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	word := "a"
	assert.OK(t, parquet.WriteFile(path, []row{{1, &word}, {5, nil}, {-2, &word}}))
	duckdb, pandas := ReadParquet(t, path)
	want := ParquetFile{
		Rows: 3, Columns: []string{"n", "word"}, Sums: map[string]int64{"n": 4}, Nulls: map[string]int64{"n": 0, "word": 1},
		Values: map[string]map[string]int64{"word": {"a": 2}}, Least: map[string]int64{"n": -2}, Most: map[string]int64{"n": 5},
	}
	for name, got := range map[string]ParquetFile{"DuckDB": duckdb, "pandas": pandas} {
		assert.Same(t, got, want, "%s (-want, +got)", name)
	}
}

// TestWithoutPip: the error says what is missing and how to get it.
func TestWithoutPip(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "python3")
	assert.OK(t, os.WriteFile(broken, []byte("#!/bin/sh\necho 'No module named venv' >&2\nexit 1\n"), 0o700))
	parent := t.TempDir()
	_, err := fetchPython(context.Background(), broken, parent, "x")
	if err == nil || !strings.Contains(err.Error(), "python3-venv") || !strings.Contains(err.Error(), "No module named venv") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
