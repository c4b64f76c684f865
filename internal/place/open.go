package place

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// limits are the files that this process may open.
type limits struct{ folders, files []string }

// confined are the limits; nil: all files.
var confined atomic.Pointer[limits]

// Confine limits the functions of this package to files in some folders and to a few others, for the
// rest of this process. Links that lead out of the folders are refused. Names without a leading /
// begin in the first folder. A folder may be missing.
func Confine(folders []string, files ...string) { confined.Store(&limits{folders, files}) }

// Here is the folder in which names without a leading / begin.
func Here() (string, error) {
	if l := confined.Load(); l != nil {
		return l.folders[0], nil
	}
	return os.Getwd()
}

// in calls one of two functions: outside for a process that may open all files, and else inside
// with the folder of a path and its name in it.
func in[T any](op, path string, outside func(path string) (T, error), inside func(root *os.Root, name string) (T, error)) (T, error) {
	var none T
	p, err := Path(path)
	if err != nil {
		return none, &fs.PathError{Op: op, Path: path, Err: err}
	}
	if p.Kind == Stream {
		p.Value = path
	}
	l := confined.Load()
	if l == nil || slices.Contains(l.files, p.Value) {
		return outside(p.Value)
	}
	for i, folder := range l.folders {
		name := p.Value
		if filepath.IsAbs(name) {
			if name, err = filepath.Rel(folder, name); err != nil {
				continue
			}
		} else if i > 0 {
			break
		}
		if !filepath.IsLocal(name) {
			continue
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return none, err
		}
		defer root.Close()
		return inside(root, name)
	}
	return none, &fs.PathError{Op: op, Path: path, Err: fs.ErrPermission}
}

// do is in for functions without a result.
func do(op, path string, outside func(path string) error, inside func(root *os.Root, name string) error) error {
	_, err := in(op, path,
		func(path string) (struct{}, error) { return struct{}{}, outside(path) },
		func(root *os.Root, name string) (struct{}, error) { return struct{}{}, inside(root, name) })
	return err
}

// Open is os.Open for a file that a user named.
func Open(path string) (*os.File, error) { return in("open", path, os.Open, (*os.Root).Open) }

// Create is os.Create for a file that a user named, which others may read but not write.
func Create(path string) (*os.File, error) {
	return OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
}

// OpenFile is os.OpenFile for a file that a user named.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	return in("open", path,
		func(path string) (*os.File, error) { return os.OpenFile(path, flag, mode) },
		func(root *os.Root, name string) (*os.File, error) { return root.OpenFile(name, flag, mode) })
}

// ReadFile is os.ReadFile for a file that a user named.
func ReadFile(path string) ([]byte, error) {
	return in("open", path, os.ReadFile, (*os.Root).ReadFile)
}

// WriteFile is os.WriteFile for a file that a user named.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return do("open", path,
		func(path string) error { return os.WriteFile(path, data, mode) },
		func(root *os.Root, name string) error { return root.WriteFile(name, data, mode) })
}

// Stat is os.Stat for a file that a user named.
func Stat(path string) (fs.FileInfo, error) { return in("stat", path, os.Stat, (*os.Root).Stat) }

// Same reports whether two paths of a user name one file that exists.
func Same(a, b string) bool {
	x, err := Stat(a)
	y, err2 := Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// Readlink is os.Readlink for a file that a user named.
func Readlink(path string) (string, error) {
	return in("readlink", path, os.Readlink, (*os.Root).Readlink)
}

// MkdirAll is os.MkdirAll for a folder that a user named.
func MkdirAll(path string, mode fs.FileMode) error {
	return do("mkdir", path,
		func(path string) error { return os.MkdirAll(path, mode) },
		func(root *os.Root, name string) error { return root.MkdirAll(name, mode) })
}

// Remove is os.Remove for a file that a user named.
func Remove(path string) error { return do("remove", path, os.Remove, (*os.Root).Remove) }

// Rename is os.Rename within the folder of a file that a user named: both names are in it.
func Rename(from, to string) error {
	return do("rename", from,
		func(from string) error { return os.Rename(from, to) },
		func(root *os.Root, name string) error {
			return root.Rename(name, filepath.Join(filepath.Dir(name), filepath.Base(to)))
		})
}
