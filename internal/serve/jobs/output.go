package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"carronade/internal/host"
	"carronade/units"
)

// An output is the file with what a running job prints. One goroutine adds to
// it; any number read what it has.
//
// The file holds a limited number of bytes. When it has more, the text between
// its first quarter and its last half is replaced by a line that says so. So
// the file has the beginning and the newest text at any time.
type output struct {
	file  *os.File
	limit int64

	// shift is locked while text moves within the file. Readers do not block the
	// writer otherwise.
	shift sync.RWMutex

	mu    sync.Mutex
	size  int64 // of the file
	head  int64 // bytes at the start that stay; 0 until the first cut
	note  int64 // length of the line after them
	cut   int64 // bytes that the line stands for
	ended bool
	wake  chan struct{} // closed at the next change; nil if none waits
	users int           // the writer, and those that read

	lost int64 // bytes that could not be written since the last that could; only for the writer
}

// createOutput makes the file.
func createOutput(path string, limit int64) (*output, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &output{file: f, limit: limit, users: 1}, nil
}

// add appends text. A full disk loses it, which a line says as soon as there is
// space again: the job does not wait.
func (o *output) add(p []byte) {
	if !o.noteLoss() {
		o.lost += int64(len(p))
		return
	}
	o.lost += int64(len(p) - o.append(p))
	if o.size > o.limit {
		o.shorten()
	}
}

// noteLoss writes a line about lost text, if there is any. It reports whether
// none is left.
func (o *output) noteLoss() bool {
	if o.lost == 0 {
		return true
	}
	line := fmt.Sprintf("[... %s bytes of output could not be stored here ...]\n", units.FormatCount(uint64(o.lost)))
	if o.append([]byte(line)) < len(line) {
		return false
	}
	o.lost = 0
	return true
}

// append writes to the end of the file and returns how much was written.
func (o *output) append(p []byte) int {
	if o.size > 2*o.limit {
		return 0 // it could not be shortened
	}
	n, err := o.file.WriteAt(p, o.size)
	if err != nil { // it does not count what it wrote in part, which would follow the next text
		_ = o.file.Truncate(o.size + int64(n))
	}
	o.change(func() { o.size += int64(n) })
	return n
}

// change changes what readers see.
func (o *output) change(do func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	do()
	if o.wake != nil {
		close(o.wake)
		o.wake = nil
	}
}

// shorten replaces text in the middle of the file. If this process is killed
// while it does, some text is in the file twice.
func (o *output) shorten() {
	o.shift.Lock()
	defer o.shift.Unlock()
	window := o.limit / 8 // in which it looks for the end of a line
	head := o.head
	if o.cut == 0 {
		head = o.limit/4 - window
		head += o.lastLine(head, window)
	}
	from := o.size - o.limit/2
	from += o.firstLine(from, window)
	gone := from - head - o.note
	line := missing(o.cut + gone)
	if _, err := o.file.WriteAt([]byte(line), head); err != nil {
		return
	}
	buf := make([]byte, 256<<10)
	to := head + int64(len(line))
	for at := from; at < o.size; {
		n, err := o.file.ReadAt(buf[:min(int64(len(buf)), o.size-at)], at)
		if n > 0 {
			n, err = o.file.WriteAt(buf[:n], to)
		}
		at, to = at+int64(n), to+int64(n)
		if err != nil || n == 0 {
			o.lost += o.size - at
			break
		}
	}
	_ = o.file.Truncate(to) // the bytes after it are overwritten later
	o.change(func() { o.size, o.head, o.note, o.cut = to, head, int64(len(line)), o.cut+gone })
}

// missing is the line in place of removed output.
func missing(n int64) string {
	return fmt.Sprintf("[... %s bytes of output were removed here ...]\n", units.FormatCount(uint64(n)))
}

// lastLine returns the length of a piece of the file up to its last line break,
// or its length if there is none.
func (o *output) lastLine(at, length int64) int64 {
	b := make([]byte, length)
	n, _ := o.file.ReadAt(b, at)
	if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
		return int64(i) + 1
	}
	return length
}

// firstLine returns the length of a piece of the file up to its first line
// break, or 0 if there is none.
func (o *output) firstLine(at, length int64) int64 {
	b := make([]byte, length)
	n, _ := o.file.ReadAt(b, at)
	return int64(bytes.IndexByte(b[:n], '\n') + 1)
}

// finish says that nothing will be added, and that the text is on disk.
func (o *output) finish() {
	o.noteLoss()
	_ = o.file.Sync() // without it, only a power loss could lose text
	o.change(func() { o.ended = true })
}

// use keeps the file open until release.
func (o *output) use() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users++
}

func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.users--; o.users == 0 {
		o.file.Close()
	}
}

// end returns the number of bytes that were printed, without those lost.
func (o *output) end() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size - o.note + o.cut
}

// read reads at an offset of what was printed, and returns where to go on. If
// there is nothing, wake is closed when that changes, or is nil after the end.
// Where text was removed, it reads a line that says so.
func (o *output) read(p []byte, at int64) (n int, next int64, wake <-chan struct{}, err error) {
	o.shift.RLock()
	defer o.shift.RUnlock()
	o.mu.Lock()
	size, head, note, cut := o.size, o.head, o.note, o.cut
	if at >= size-note+cut {
		if !o.ended {
			if o.wake == nil {
				o.wake = make(chan struct{})
			}
			wake = o.wake
		}
		o.mu.Unlock()
		return 0, at, wake, nil
	}
	o.mu.Unlock()
	switch {
	case cut > 0 && at < head:
		p = p[:min(int64(len(p)), head-at)]
		n, err = o.file.ReadAt(p, at)
	case cut > 0 && at < head+cut:
		return copy(p, missing(head+cut-at)), head + cut, nil, nil
	default:
		from := at - cut + note
		p = p[:min(int64(len(p)), size-from)]
		n, err = o.file.ReadAt(p, from)
	}
	if n > 0 {
		err = nil
	}
	return n, at + int64(n), nil, err
}

// copyTo writes what the job printed to w: what there is, or with follow what
// there will be, until the job has ended or ctx is done.
func (o *output) copyTo(ctx context.Context, w io.Writer, follow bool) error {
	end := o.end()
	buf := make([]byte, 32<<10)
	for at := int64(0); follow || at < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, next, wake, err := o.read(buf, at)
		if err != nil {
			return fmt.Errorf("read the output: %w", host.Reason(err))
		}
		at = next
		switch {
		case n > 0:
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		case wake == nil || !follow:
			return nil
		default:
			select {
			case <-wake:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// lastError returns the last error message of carronade in the newest output;
// "" if there is none.
func (o *output) lastError() string {
	const most, label = 16 << 10, "error: "
	b := make([]byte, most)
	n, _ := o.file.ReadAt(b, max(0, o.size-most))
	text := "\n" + string(b[:n])
	i := strings.LastIndex(text, "\n"+label)
	if i < 0 {
		return ""
	}
	line, _, _ := strings.Cut(text[i+1+len(label):], "\n")
	return oneLine(line)
}

// oneLine makes text safe for lists: one line without control characters, and
// not too long.
func oneLine(text string) string {
	const most = 300
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.TrimSpace(text)
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "..."
	}
	return text
}
