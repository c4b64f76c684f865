package serve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// The limits of the folder of jobs, which users send files to. Files that jobs write count, too.
const (
	largestFile   = 64 << 20 // bytes of a file that is sent
	mostFiles     = 1000
	mostFileBytes = 1 << 30 // of all files
	longestName   = 255     // bytes of a name, with its folders
	mostFolders   = 8       // in a name: walking through very deep ones takes minutes
)

// partPrefix begins the name of a file while it is received. No user can give such a name.
const partPrefix = ".part-"

// removeParts removes what an earlier server did not receive to its end.
func removeParts(folder string) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return // requests for files say why
	}
	defer root.Close()
	fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error { //nolint:errcheck // what cannot be read stays
		if err == nil && d.Type().IsRegular() && strings.HasPrefix(d.Name(), partPrefix) {
			root.Remove(filepath.FromSlash(name)) //nolint:errcheck // it stays
		}
		return nil
	})
}

// inFolder returns the handler of a file. os.Root keeps its name in the folder, whatever links there
// are.
func (a *API) inFolder(handle func(w http.ResponseWriter, r *http.Request, root *os.Root, name string) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		name := r.PathValue("name")
		if !utf8.ValidString(name) || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || strings.HasPrefix(path.Base(name), ".") || strings.ContainsFunc(name, unicode.IsControl) {
			return &problem{http.StatusBadRequest, fmt.Sprintf("%q is not the name of a file in the folder of jobs", name), "such as load.yaml or fill/load.yaml"}
		}
		if len(name) > longestName || strings.Count(name, "/") > mostFolders {
			return &problem{http.StatusBadRequest, fmt.Sprintf("the name of a file may have %d bytes and %d folders", longestName, mostFolders), "give a shorter one"}
		}
		root, err := os.OpenRoot(a.Folder)
		if err != nil {
			return fileProblem(name, err)
		}
		defer root.Close()
		if err := handle(w, r, root, filepath.FromSlash(name)); err != nil {
			return fileProblem(name, err)
		}
		return nil
	}
}

func readFile(w http.ResponseWriter, r *http.Request, root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a named pipe would wait for a writer
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fs.ErrNotExist)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment")
	r.Header.Del("Range") // a wrong one would be answered with a text
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// writeFile replaces a file in one step, or leaves it unchanged.
func (a *API) writeFile(w http.ResponseWriter, r *http.Request, root *os.Root, name string) error {
	size := r.ContentLength
	if size < 0 { // it is not known
		size = largestFile
	}
	tooLarge := &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("a file may have %d MiB", largestFile>>20), ""}
	if size > largestFile {
		return tooLarge
	}
	if err := a.reserve(root, name, size); err != nil {
		return err
	}
	defer a.release(size)
	dir := filepath.Dir(name)
	defer a.removeEmpty(root, dir)
	part := filepath.Join(dir, partPrefix+strconv.FormatInt(time.Now().UnixNano(), 36))
	f, err := a.createPart(root, dir, part)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, &arriving{http.MaxBytesReader(w, r.Body, largestFile), http.NewResponseController(w), time.Now(), 0})
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		root.Remove(part) //nolint:errcheck // the first error counts
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return tooLarge
		}
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"name": filepath.ToSlash(name), "bytes": n})
}

// createPart creates a file with its folders.
func (a *API) createPart(root *os.Root, dir, part string) (*os.File, error) {
	a.files.Lock()
	defer a.files.Unlock()
	if err := root.MkdirAll(dir, 0o700); err != nil && dir != "." {
		return nil, err
	}
	return root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// removeEmpty removes a folder and those above it, as far as they are empty: an empty folder is not part of what a user stored.
func (a *API) removeEmpty(root *os.Root, dir string) {
	a.files.Lock()
	defer a.files.Unlock()
	for ; dir != "." && root.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
}

// leastRate is the rate at which a file must arrive, in bytes a second, after the first few seconds.
const leastRate = 64 << 10

// An arriving is the body of a request whose client must send something every few seconds, and all of it at a rate: a
// file that arrives has room that others then do not have.
type arriving struct {
	io.Reader
	c     *http.ResponseController
	began time.Time
	bytes int64
}

func (b *arriving) Read(p []byte) (int, error) {
	b.c.SetReadDeadline(b.deadline(time.Now())) //nolint:errcheck // not all connections have one
	n, err := b.Reader.Read(p)
	b.bytes += int64(n)
	return n, err
}

// deadline is when the next bytes must have come.
func (b *arriving) deadline(now time.Time) time.Time {
	all := b.began.Add(slowest + time.Duration(b.bytes)*time.Second/leastRate)
	if next := now.Add(slowest); next.Before(all) {
		return next
	}
	return all
}

// errCounted ends the count of files.
var errCounted = errors.New("counted")

// reserve takes room for a file that is received, unless the folder is full with it and the others that are.
func (a *API) reserve(root *os.Root, name string, bytes int64) error {
	a.files.Lock()
	defer a.files.Unlock()
	files, size := a.receiving, a.reserved+bytes
	err := fs.WalkDir(root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.FromSlash(at) == name || strings.HasPrefix(d.Name(), partPrefix) { // it is replaced, or reserved
			return nil //nolint:nilerr // it was removed since, or is not readable
		}
		if info, err := d.Info(); err == nil {
			files, size = files+1, size+info.Size()
		}
		if files >= mostFiles || size > mostFileBytes {
			return errCounted
		}
		return nil
	})
	switch {
	case errors.Is(err, errCounted), err == nil && (files >= mostFiles || size > mostFileBytes): // the folder may have no file
		return &problem{
			http.StatusInsufficientStorage, fmt.Sprintf("the folder of jobs is full: it may have %d files and %d MiB", mostFiles, mostFileBytes>>20),
			"DELETE /api/v1/files/NAME removes a file",
		}
	case err != nil:
		return err
	}
	a.receiving++
	a.reserved += bytes
	return nil
}

// release frees what reserve took.
func (a *API) release(bytes int64) {
	a.files.Lock()
	defer a.files.Unlock()
	a.receiving--
	a.reserved -= bytes
}

// removeFile removes a file. All users share the folder.
func (a *API) removeFile(w http.ResponseWriter, _ *http.Request, root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fs.ErrNotExist
	}
	if err := root.Remove(name); err != nil {
		return err
	}
	a.removeEmpty(root, filepath.Dir(name))
	return answer(w, http.StatusOK, map[string]any{"name": filepath.ToSlash(name)})
}

// fileProblem is the error of a file, without the paths of the folder.
func fileProblem(name string, err error) error {
	if _, ok := errors.AsType[*problem](err); ok {
		return err
	}
	name = filepath.ToSlash(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &problem{http.StatusNotFound, name + " does not exist in the folder of jobs", ""}
	case errors.Is(err, syscall.ENOSPC):
		return &problem{http.StatusInsufficientStorage, "the disk of the folder of jobs is full", "ask the operator of the server to free some space"}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return &problem{http.StatusBadRequest, fmt.Sprintf("%s: %v", name, err), ""}
}
