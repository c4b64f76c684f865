package host

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// hostFiles are the files of this machine. They are read without the Go runtime's poller,
// which os.ReadFile asks about each file and which a file of /proc wakes: some of them are
// read every second of a run.
type hostFiles struct{ fs.FS }

func hostRoot() fs.FS { return hostFiles{os.DirFS("/")} }

// Stat implements fs.StatFS.
func (hostFiles) Stat(name string) (fs.FileInfo, error) { return os.Stat("/" + name) }

// ReadDir implements fs.ReadDirFS.
func (hostFiles) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir("/" + name) }

// ReadFile implements fs.ReadFileFS.
func (hostFiles) ReadFile(name string) ([]byte, error) {
	fd, err := unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 1<<10)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
}
