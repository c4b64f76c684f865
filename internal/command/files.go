package command

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile writes a file whole. Devices and pipes are written in place; a
// regular file is replaced at the end, so that a half one is never found. A file
// that was there keeps its mode, a new one has that of the umask, and of a symbolic
// link the file is written that it leads to.
func WriteFile(path string, write func(io.Writer) error) error {
	path, err := destination(path)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0) // of a file that is there
	if info, err := os.Stat(path); err == nil {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return errors.Join(write(f), f.Close())
		}
		if err := f.Close(); err != nil { // it may be written, so it may be replaced
			return err
		}
		mode = info.Mode().Perm()
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = write(f)
	if mode != 0 {
		err = errors.Join(err, f.Chmod(mode))
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// TryFile tells whether a file can be written, and leaves everything as it was.
func TryFile(path string) error {
	path, err := destination(path)
	if err != nil {
		return err
	}
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	err = f.Close()
	if errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// mostLinks is how many symbolic links are followed, as in Linux.
const mostLinks = 40

// destination is the file that a path leads to over symbolic links, whether there is
// one or not.
func destination(path string) (string, error) {
	at := path
	for range mostLinks {
		to, err := os.Readlink(at)
		if err != nil {
			return at, nil //nolint:nilerr // it is no link: a file, or nothing yet
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		at = to
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
}
