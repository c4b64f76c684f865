package system

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ReplaceFile writes a file that only this user can read, in one step: a reader gets the
// old content or the new one, also after the machine lost its power. When it returns without an
// error, the new content is on the disk.
func ReplaceFile(path string, data []byte) error {
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
	if err := os.Rename(next.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
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
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name in a folder durable. Windows cannot do it for folders, and keeps names
// in a journal.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = errors.Join(d.Sync(), d.Close())
	if errors.Is(err, fs.ErrInvalid) || errors.Is(err, errors.ErrUnsupported) { // a file system without it
		return nil
	}
	return err
}
