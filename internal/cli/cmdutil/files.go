package cmdutil

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"carronade/internal/place"
)

// WriteFile writes a whole file. Devices and pipes are written in place; a regular file is
// replaced at the end, so readers never see a partial one. An existing file keeps its mode, a
// new one gets that of the umask, and others cannot write it in any case. Symbolic links are followed.
func WriteFile(path string, write func(io.Writer) error) error {
	path, err := destination(path)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0) // mode of an existing file
	if info, err := place.Stat(path); err == nil {
		f, err := place.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return errors.Join(write(f), f.Close())
		}
		if err := f.Close(); err != nil { // writable, so it may be replaced
			return err
		}
		mode = info.Mode().Perm()
	}
	f, err := place.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = write(f)
	if mode != 0 {
		err = errors.Join(err, f.Chmod(mode))
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = place.Rename(f.Name(), path)
	}
	if err != nil {
		_ = place.Remove(f.Name())
	}
	return err
}

// TryFile checks that a file can be written, without changing anything. It does not
// open a pipe: that would wait for its reader, who would then see the pipe's end.
func TryFile(path string) error {
	path, err := destination(path)
	if err != nil {
		return err
	}
	info, missing := place.Stat(path)
	if missing == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil
	}
	f, err := place.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	err = f.Close()
	if errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, place.Remove(path))
	}
	return err
}

// maxLinks is the limit of symbolic links to follow, as in Linux.
const maxLinks = 40

// destination resolves symbolic links; the file itself may be missing.
func destination(path string) (string, error) {
	at := path
	for range maxLinks {
		to, err := place.Readlink(at)
		if err != nil {
			return at, nil //nolint:nilerr // not a link: a file, or missing
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		at = to
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
}
