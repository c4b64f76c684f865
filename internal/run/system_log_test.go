package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// The log has the newest lines, and never more than the limit.
func TestSystemLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "system.log")
	assert.OK(t, os.WriteFile(path+".1", []byte("of an earlier run\n"), 0o600))
	l := assert.Value(openSystemLog(path))(t)
	shown := 0
	add := l.beside(func(string) { shown++ })
	add("first")
	if data, _ := os.ReadFile(path); string(data) != "first\n" {
		t.Errorf("while it runs: %q", data)
	}
	_, err := os.Stat(path + ".1")
	assert.True(t, err != nil, "the log of an earlier run is still there")
	line := strings.Repeat("x", 1<<20-1)
	for range 17 {
		add(line)
	}
	add("last")
	l.close()
	l.close()
	add("after")
	old := assert.Value(os.ReadFile(path + ".1"))(t)
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(data), "\nlast\n") || len(old)+len(data) > mostSystemLog || len(old) != mostSystemLog/2 {
		t.Errorf("%v: %d and %d bytes", err, len(old), len(data))
	}
	assert.Equal(t, shown, 20, "lines shown")
	_, err = openSystemLog(filepath.Join(path, "x"))
	assert.ErrorHas(t, err, "write --system-log", "a folder that is a file")
}
