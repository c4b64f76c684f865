package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// ReplaceFile writes a file that only this user can read, in one step: a reader gets the
// old content or the new one, also after the machine lost its power. When it returns without an
// error, the new content is on the disk.
func ReplaceFile(path string, data []byte) error { return placeFile(path, data, os.Rename) }

// ReplaceFileAs is ReplaceFile for an administrator, too, who writes for another user: the file gets
// the owner of its folder.
func ReplaceFileAs(path string, data []byte) error {
	return placeFile(path, data, func(next, path string) error {
		if err := sameOwner(next, filepath.Dir(path)); err != nil {
			return err
		}
		return os.Rename(next, path)
	})
}

// MakeFile writes a file that only this user can read, unless there is one. It is complete as soon as
// it has its name, since another process may look for it now. One that another process made in between
// stays, except on a file system without links.
func MakeFile(path string, data []byte) error { return makeFile(path, data, os.Link) }

func makeFile(path string, data []byte, link func(next, path string) error) error {
	return placeFile(path, data, func(next, path string) error {
		if err := link(next, path); err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
		return os.Rename(next, path)
	})
}

// placeFile writes a file under another name, and then calls place to give it its own.
func placeFile(path string, data []byte, place func(next, path string) error) error {
	dir := filepath.Dir(path)
	next, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(data)
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	if err := place(next.Name(), path); err != nil {
		return err
	}
	return SyncFolder(dir)
}

// CreateFile writes a file that only this user can read, and does not replace one: fs.ErrExist.
// When it returns without an error, the content is on the disk; after an error the file does not exist.
func CreateFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes a new name in a folder durable. Windows cannot do it for folders, and keeps names
// in a journal.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = errors.Join(d.Sync(), d.Close())
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) { // a file system without it
		return nil
	}
	return err
}
