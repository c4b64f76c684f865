package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"carronade/units"
)

// A DiskFill takes the free space of a filesystem, in a file that has no name: it is gone when the
// fill is closed, and when this program ends, in whatever way.
type DiskFill struct {
	file *os.File
	size int64
}

// mostPiece is the most that is taken at once, so that an end of the context is noticed.
const mostPiece = 1 << 30

// CanFill returns why the filesystem of a folder must not or cannot be filled; nil if it can. It must
// be mounted apart from those that this machine and this program need, and from those of the files
// and folders in others. On success it leaves nothing.
func CanFill(folder string, others ...string) error {
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", folder, errors.Unwrap(err))
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", folder)
	}
	dev, ok := filesystemOf(folder)
	if !ok {
		return fmt.Errorf("%s: its filesystem is not known", folder)
	}
	needed := append([]string{"/", os.TempDir()}, others...)
	if dir, err := os.Getwd(); err == nil {
		needed = append(needed, dir)
	}
	if dir, err := DataDir(); err == nil {
		needed = append(needed, dir)
	}
	for _, path := range needed {
		if d, ok := filesystemOf(path); ok && d == dev {
			return fmt.Errorf("%s is on the same filesystem as %s: it must be mounted apart", folder, path)
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	if name, ok := pooled[uint32(st.Type)]; ok {
		return fmt.Errorf("%s is on %s, whose filesystems share their space: others on this machine would be full, too", folder, name)
	}
	if name, ok := shared[uint32(st.Type)]; ok {
		return fmt.Errorf("%s is a filesystem of other machines, too (%s)", folder, name)
	}
	if free := int64(st.Bavail) * blockOf(&st); uint32(st.Type) == unix.TMPFS_MAGIC {
		var memory unix.Sysinfo_t
		if unix.Sysinfo(&memory) == nil && free > int64(memory.Freeram)*int64(memory.Unit)/2 {
			return fmt.Errorf("%s is in memory and has %s free, which is more than half of the free memory: mount it with a smaller size", folder, units.FormatSize(free))
		}
	}
	d, err := NewDiskFill(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.take(blockOf(&st)); err != nil && !isFull(err) {
		return fmt.Errorf("take space on %s: %w", folder, err)
	}
	return nil
}

// shared are filesystems whose space other machines use, too.
var shared = map[uint32]string{unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.SMB2_SUPER_MAGIC: "SMB", unix.CEPH_SUPER_MAGIC: "Ceph", unix.FUSE_SUPER_MAGIC: "FUSE"}

// pooled are filesystems whose space others of this machine use, too, although they look like others: in
// one pool, or of a filesystem below.
var pooled = map[uint32]string{unix.BTRFS_SUPER_MAGIC: "Btrfs", zfsMagic: "ZFS", unix.BCACHEFS_SUPER_MAGIC: "bcachefs", unix.OVERLAYFS_SUPER_MAGIC: "OverlayFS"}

const zfsMagic = 0x2fc12fc1

// filesystemOf identifies the filesystem of a path, or of the nearest folder above it that exists.
func filesystemOf(path string) (dev uint64, ok bool) {
	for {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		if err == nil {
			return st.Dev, true
		}
		up := filepath.Dir(path)
		if up == path {
			return 0, false
		}
		path = up
	}
}

// blockOf is the size of a block. Its type depends on the processor.
func blockOf(st *unix.Statfs_t) int64 { return max(int64(st.Bsize), 1) } //nolint:unconvert // see there

// NewDiskFill opens a file without a name in a folder. It takes no space yet.
func NewDiskFill(folder string) (*DiskFill, error) {
	file, err := os.CreateTemp(folder, ".carronade-fill-*")
	if err != nil {
		return nil, fmt.Errorf("make a file in %s: %w", folder, errors.Unwrap(err))
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, fmt.Errorf("remove the name of %s: %w", file.Name(), errors.Unwrap(err))
	}
	return &DiskFill{file: file}, nil
}

// Fill takes all space that is free now, until the end of the context. It returns how many bytes the
// file takes in all.
func (d *DiskFill) Fill(ctx context.Context) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(d.file.Fd()), &st); err != nil {
		return d.size, fmt.Errorf("look at the free space: %w", err)
	}
	block := blockOf(&st)
	for piece := max(min(int64(st.Bfree)*block, mostPiece), block); piece >= block; {
		if ctx.Err() != nil {
			return d.size, context.Cause(ctx)
		}
		switch err := d.take(piece); {
		case err == nil:
		case isFull(err):
			if piece == block {
				return d.size, nil
			}
			piece = max(piece/2/block*block, block)
		default:
			return d.size, fmt.Errorf("take the free space: %w", err)
		}
	}
	return d.size, nil
}

// take makes the file longer.
func (d *DiskFill) take(bytes int64) error {
	for {
		err := unix.Fallocate(int(d.file.Fd()), 0, d.size, bytes)
		switch {
		case err == nil:
			d.size += bytes
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP):
			return errors.New("its filesystem cannot reserve space (fallocate)")
		default:
			return err
		}
	}
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// Close frees the space.
func (d *DiskFill) Close() error { return d.file.Close() }
