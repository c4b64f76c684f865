package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	assert.OK(t, os.WriteFile(file, nil, 0o644))
	for _, tt := range []struct {
		name string
		args []string
		code int
		errs string
	}{
		{"nothing", nil, 2, "hint: generate manuals"},
		{"an unknown kind", []string{"pictures"}, 2, "hint: generate manuals"},
		{"too many", []string{"manuals", "a", "b"}, 2, "hint: generate manuals"},
		{"manuals into a file", []string{"manuals", file}, 2, "error: write the manuals: "},
		{"dashboards into a file", []string{"dashboards", file}, 2, "error: write the dashboards: "},
		{"dashboards", []string{"dashboards", filepath.Join(t.TempDir(), "new")}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var errs strings.Builder
			if code := run(tt.args, &errs); code != tt.code || !strings.Contains(errs.String(), tt.errs) || tt.code == 0 && errs.Len() > 0 {
				t.Errorf("exit %d, %q; want exit %d, %q", code, errs.String(), tt.code, tt.errs)
			}
		})
	}
}
