package system

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"carronade/internal/testkit"
)

func TestDiskFill(t *testing.T) {
	dir := testkit.Mount(t, "1m")
	if err := CanFill(dir); err != nil {
		t.Fatal(err)
	}
	write := func(bytes int) error { return os.WriteFile(filepath.Join(dir, "data"), make([]byte, bytes), 0o600) }
	if err := write(100 << 10); err != nil {
		t.Fatal(err)
	}
	d, err := NewDiskFill(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, err := d.Fill(t.Context())
	if err != nil || n < 900<<10 {
		t.Fatalf("%d bytes were taken: %v", n, err)
	}
	if err := write(200 << 10); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want that the disk is full", err)
	}
	// What becomes free is taken, too.
	if err := os.Remove(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	more, err := d.Fill(t.Context())
	if err != nil || more < n+90<<10 {
		t.Errorf("%d bytes are taken, before %d: %v", more, n, err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
			if err := CanFill(tt.folder, tt.others...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	t.Chdir(dir)
	if err := CanFill(dir); err == nil || !strings.Contains(err.Error(), "it must be mounted apart") {
		t.Errorf("the working folder: got %v", err)
	}
	t.Chdir("/")
}

// TestCanFillPool: a filesystem that takes its space from another one is refused.
func TestCanFillPool(t *testing.T) {
	below, dir := testkit.Mount(t, "1m"), t.TempDir()
	for _, name := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(below, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("overlay", dir, "overlay", 0, "lowerdir="+below+"/lower,upperdir="+below+"/upper,workdir="+below+"/work"); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Unmount(dir, 0) }()
	if err := CanFill(dir); err == nil || !strings.Contains(err.Error(), "is on OverlayFS, whose filesystems share their space") {
		t.Errorf("got %v", err)
	}
	if pooled[0x9123683e] != "Btrfs" {
		t.Error("Btrfs is not refused")
	}
}
