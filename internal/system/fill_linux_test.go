package system

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
)

func TestDiskFill(t *testing.T) {
	dir := testkit.Mount(t, "1m")
	assert.OK(t, CanFill(dir))
	write := func(bytes int) error { return os.WriteFile(filepath.Join(dir, "data"), make([]byte, bytes), 0o600) }
	assert.OK(t, write(100<<10))
	d, err := NewDiskFill(dir)
	assert.OK(t, err)
	n, err := d.Fill(t.Context())
	assert.Must(t, err == nil && n >= 900<<10, "%d bytes were taken: %v", n, err)
	if err := write(200 << 10); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want that the disk is full", err)
	}
	// What becomes free is taken, too.
	assert.OK(t, os.Remove(filepath.Join(dir, "data")))
	more, err := d.Fill(t.Context())
	assert.True(t, err == nil && more >= n+90<<10, "%d bytes are taken, before %d: %v", more, n, err)
	if err := write(4 << 10); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want that the disk is full", err)
	}
	_ = os.Remove(filepath.Join(dir, "data"))
	if all, err := os.ReadDir(dir); err != nil || len(all) != 0 {
		t.Errorf("there are %v, %v", all, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := write(900 << 10); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func TestDiskFillEnds(t *testing.T) {
	d, err := NewDiskFill(testkit.Mount(t, "1m"))
	assert.OK(t, err)
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := d.Fill(ctx); !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestCanFill(t *testing.T) {
	dir := testkit.Mount(t, "1m")
	file := filepath.Join(dir, "file")
	assert.OK(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct {
		name, folder string
		others       []string
		want         string
	}{
		{"a folder that does not exist", filepath.Join(dir, "none"), nil, "no such file"},
		{"a file", file, nil, "is not a folder"},
		{"the root", "/", nil, "the same filesystem as /: it must be mounted apart"},
		{"the folder for temporary files", os.TempDir(), nil, "it must be mounted apart"},
		{"a file of the run", dir, []string{filepath.Join(dir, "deep", "run.hdr")}, "run.hdr: it must be mounted apart"},
		{"a filesystem without files", "/proc", nil, "make a file in /proc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.ErrorHas(t, CanFill(tt.folder, tt.others...), tt.want)
		})
	}
	t.Chdir(dir)
	assert.ErrorHas(t, CanFill(dir), "it must be mounted apart", "the working folder")
	t.Chdir("/")
}

// TestCanFillPool: a filesystem that takes its space from another one is refused.
func TestCanFillPool(t *testing.T) {
	below, dir := testkit.Mount(t, "1m"), t.TempDir()
	for _, name := range []string{"lower", "upper", "work"} {
		assert.OK(t, os.Mkdir(filepath.Join(below, name), 0o700))
	}
	if err := unix.Mount("overlay", dir, "overlay", 0, "lowerdir="+below+"/lower,upperdir="+below+"/upper,workdir="+below+"/work"); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Unmount(dir, 0) }()
	assert.ErrorHas(t, CanFill(dir), "is on OverlayFS, whose filesystems share their space")
	assert.Equal(t, pooled[0x9123683e], "Btrfs", "Btrfs is not refused")
}
