package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"carronade/internal/place"
)

// Sizes of what waits for the disk.
const (
	listChunk      = 64 << 10
	mostListChunks = 16
)

// flushListEvery is how long a line waits before it is written.
const flushListEvery = time.Second

// A ListWriter writes a list, in the background. At most about 1 MiB waits for the disk; then
// Add waits, too. It is safe for concurrent use.
type ListWriter struct {
	path string
	file *os.File
	full chan []byte
	free chan []byte
	done chan struct{}

	mu     sync.Mutex
	last   ListRun // not in buf yet; Count 0: none
	buf    []byte
	closed bool

	written int64 // bytes; used by the goroutine that writes
	err     error // the first one; read when done is closed
}

// CreateList makes a list of records of a topic. It replaces an older file.
func CreateList(path, topic string) (*ListWriter, error) {
	f, err := place.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	w := &ListWriter{path: path, file: f, full: make(chan []byte, mostListChunks), free: make(chan []byte, mostListChunks), done: make(chan struct{})}
	// At once: a full disk is then found before the run.
	n, err := fmt.Fprintf(f, "%s%s\n# partition,offset[,count]\n", listTopic, topic)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w.written = int64(n)
	go w.write()
	return w, nil
}

// Add adds records. Those that continue the last ones share a line with them.
func (w *ListWriter) Add(r ListRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || r.Count <= 0 {
		return
	}
	if l := &w.last; l.Count > 0 {
		if l.Partition == r.Partition && l.Offset+l.Count == r.Offset {
			l.Count += r.Count
			return
		}
		w.putLast()
	}
	w.last = r
}

// Comment adds a comment of one line.
func (w *ListWriter) Comment(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.putLast()
		w.buf = append(append(append(w.buf, "# "...), text...), '\n')
	}
}

// putLast appends the line of the last run. The caller holds the lock.
func (w *ListWriter) putLast() {
	r := w.last
	w.last = ListRun{}
	if r.Count == 0 {
		return
	}
	b := strconv.AppendInt(w.buf, int64(r.Partition), 10)
	b = strconv.AppendInt(append(b, ','), r.Offset, 10)
	if r.Count > 1 {
		b = strconv.AppendInt(append(b, ','), r.Count, 10)
	}
	w.buf = append(b, '\n')
	if len(w.buf) >= listChunk {
		w.hand()
	}
}

// hand passes the lines so far to the goroutine that writes. The caller holds the lock.
func (w *ListWriter) hand() {
	if len(w.buf) == 0 {
		return
	}
	w.full <- w.buf
	select {
	case w.buf = <-w.free:
	default:
		w.buf = make([]byte, 0, listChunk+64)
	}
}

// write writes what is handed to it.
func (w *ListWriter) write() {
	defer close(w.done)
	t := time.NewTicker(flushListEvery)
	defer t.Stop()
	for {
		select {
		case b, ok := <-w.full:
			if !ok {
				return
			}
			w.put(b)
		case <-t.C:
			if w.mu.TryLock() { // its holder may wait for this goroutine
				if !w.closed && len(w.full) < mostListChunks {
					w.hand()
				}
				w.mu.Unlock()
			}
		}
	}
}

// put writes whole lines. After an error it writes nothing more, and removes the part of a
// line that was written.
func (w *ListWriter) put(b []byte) {
	if w.err == nil {
		n, err := w.file.Write(b)
		if err != nil {
			w.err = err
			w.file.Truncate(w.written) //nolint:errcheck // a device has no length; a list without its last line feed is recognized
		}
		w.written += int64(n)
	}
	select {
	case w.free <- b[:0]:
	default:
	}
}

// Close writes the rest and closes the file. It returns the first error of writing; the
// lines before it are in the file. Further calls return the same.
func (w *ListWriter) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		<-w.done
		return w.failure()
	}
	w.putLast()
	w.hand()
	w.closed = true
	close(w.full)
	w.mu.Unlock()
	<-w.done
	if err := w.file.Close(); w.err == nil {
		w.err = err
	}
	return w.failure()
}

// failure is the error with the file's name.
func (w *ListWriter) failure() error {
	err := w.err
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("the list %s is not complete: %w", w.path, err)
}
