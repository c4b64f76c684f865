package cli_test

import (
	"path/filepath"
	"testing"

	"carronade/internal/workload"
	"carronade/target/all"
)

// The workloads in examples are valid.
func TestExampleWorkloads(t *testing.T) {
	files, err := filepath.Glob("../../examples/workloads/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v and %v, want some", files, err)
	}
	for _, path := range files {
		docs, err := workload.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		for _, doc := range docs {
			if _, err := workload.Resolve(all.Kinds(), nil, doc); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
