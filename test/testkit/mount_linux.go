package testkit

import (
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"

	"golang.org/x/sys/unix"
)

// Mount mounts a file system in memory for the test, of a size such as 4m. The test must have closed
// its files there when it ends.
func Mount(t testing.TB, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("needs permission to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Fill makes a file that takes all space of a mounted file system, and returns it.
func Fill(t testing.TB, dir string) (ballast string) {
	t.Helper()
	ballast = filepath.Join(dir, "ballast")
	f, err := os.OpenFile(ballast, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	assert.OK(t, err)
	defer f.Close()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			return ballast
		}
	}
}

// Seal makes a mounted file system read-only.
func Seal(t testing.TB, dir string) {
	t.Helper()
	assert.OK(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
}
