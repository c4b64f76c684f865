package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"carronade/internal/host"
)

// A folder is a data folder that this process has locked.
//
//	lock         locked by the server, with its holder
//	jobs.db      the jobs
//	output/N.log what job N printed
//	running/N    exists while job N runs, see leftover
//	files        the working directory of jobs that name no other
type folder struct {
	dir  string
	lock *os.File
}

// A holder is the server that uses a data folder.
type holder struct {
	host.Identity
	Machine string    `json:"machine"`
	Since   time.Time `json:"since"`
}

// openFolder makes the folder if needed, and locks it.
func openFolder(dir string) (*folder, error) {
	f := &folder{dir: dir}
	for _, d := range []string{dir, f.path("output"), f.path("running"), f.path("files")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	lock, err := os.OpenFile(f.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f.lock = lock
	if err := f.take(); err != nil {
		lock.Close()
		return nil, err
	}
	return f, nil
}

// take locks the folder and writes who has it.
func (f *folder) take() error {
	locked, err := host.TryLock(f.lock, false)
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.lock.Name(), err)
	}
	var h holder
	if b, err := io.ReadAll(io.LimitReader(f.lock, 4096)); err == nil && json.Unmarshal(b, &h) != nil {
		h = holder{}
	}
	// Some systems have no such locks. There the holder itself is the lock.
	if alive, _ := h.Alive(); !locked || alive && h.Identity != host.Self() {
		if h.PID == 0 {
			return ErrInUse
		}
		return fmt.Errorf("%w: process %d on %s, since %s", ErrInUse, h.PID, oneLine(h.Machine), h.Since.Format(time.DateTime))
	}
	h = holder{Identity: host.Self(), Since: time.Now()}
	h.Machine, _ = os.Hostname()
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.lock.Truncate(0); err != nil {
		return err
	}
	_, err = f.lock.WriteAt(b, 0)
	return err
}

// release unlocks the folder. The file stays: removing it could let two
// processes lock two files of that name.
func (f *folder) release() error {
	return errors.Join(f.lock.Truncate(0), f.lock.Close())
}

func (f *folder) path(names ...string) string {
	return filepath.Join(append([]string{f.dir}, names...)...)
}

func (f *folder) output(id int64) string { return f.path("output", strconv.FormatInt(id, 10)+".log") }

func (f *folder) running(id int64) string { return f.path("running", strconv.FormatInt(id, 10)) }

// ids returns the numbers of the jobs that have a file in a folder below.
func (f *folder) ids(below, ext string) ([]int64, error) {
	entries, err := os.ReadDir(f.path(below))
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ext)
		if id, err := strconv.ParseInt(name, 10, 64); ok && err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
