package host

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestDataDir(t *testing.T) {
	given := filepath.Join(t.TempDir(), "data")
	t.Setenv("XDG_DATA_HOME", given)
	got, err := DataDir()
	assert.True(t, err == nil && got == given, "got %s, %v; want %s, which is given", got, err, given)
	if runtime.GOOS != "linux" {
		return
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, no := range []string{"", "not/absolute"} {
		t.Setenv("XDG_DATA_HOME", no)
		if got, err := DataDir(); err != nil || got != home+"/.local/share" {
			t.Errorf("got %s, %v with XDG_DATA_HOME=%q; want the home's", got, err, no)
		}
	}
	t.Setenv("HOME", "")
	got, err = DataDir()
	assert.True(t, err != nil, "got %s without a home, want an error", got)
}

func TestShell(t *testing.T) {
	words := Shell("echo one && echo two")
	out, err := exec.Command(words[0], words[1:]...).Output()
	if got := strings.Fields(string(out)); err != nil || len(got) != 2 || got[0] != "one" || got[1] != "two" {
		t.Errorf("got %q, %v; want both words", out, err)
	}
}
