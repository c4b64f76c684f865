package run

import (
	"fmt"
	"os"
	"sync"

	"carronade/internal/host"
	"carronade/internal/place"
	"carronade/protocol"
)

// mostSystemLog limits the two files of a system's log together, in bytes.
const mostSystemLog = 10 << 20

// A systemLog is a file with what a system prints while it runs. When the file is as
// large as half of the limit, it is renamed to FILE.1, and a new one begins. Safe for
// concurrent use.
type systemLog struct {
	path string

	mu   sync.Mutex
	file *os.File // nil after close, or if it could not be written
	size int
}

// openSystemLog makes the file anew. Only the user can read it.
func openSystemLog(path string) (*systemLog, error) {
	_ = place.Remove(path + ".1") // of an earlier run
	l := &systemLog{path: path}
	if err := l.begin(); err != nil {
		return nil, &protocol.Error{Doing: "write --system-log " + path, Err: host.Reason(err), Hint: "give a file in a folder that exists and is writable"}
	}
	return l, nil
}

func (l *systemLog) begin() (err error) {
	l.size = 0
	l.file, err = place.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	return err
}

// tee returns a function that adds lines to the log and passes them to show, which
// may be nil.
func (l *systemLog) tee(show func(line string)) func(line string) {
	return func(line string) {
		l.add(line)
		if show != nil {
			show(line)
		}
	}
}

// add writes a line. An error ends the log, but not the run, whose report keeps the
// output, too.
func (l *systemLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	n, err := fmt.Fprintln(l.file, line)
	l.size += n
	if err == nil && l.size < mostSystemLog/2 {
		return
	}
	l.file.Close()
	l.file = nil
	if err == nil && place.Rename(l.path, l.path+".1") == nil {
		if l.begin() != nil {
			l.file = nil
		}
	}
}

// close may be called twice, and on nil.
func (l *systemLog) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}
