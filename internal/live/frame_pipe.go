package live

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// FramesVariable is the environment variable that makes the program write the events of its
// runs, as JSON lines, to the file descriptor that it names.
const FramesVariable = "CARRONADE_FRAMES"

// mostQueued is how many events may wait for a slow reader. Then frames are left out for
// which a merged one waits.
const mostQueued = 600

// pipeCloseTimeout is how long a FrameWriter waits for its reader at the end.
const pipeCloseTimeout = 2 * time.Second

// A FrameWriter writes events as JSON lines on its own goroutine, so that a slow reader delays
// no one. It is safe for concurrent use. A nil FrameWriter writes nothing.
type FrameWriter struct {
	w      io.Writer
	mu     sync.Mutex
	queue  []Event
	closed bool
	wake   chan struct{}
	done   chan struct{}
	err    error // of writing; guarded by done
}

// NewFrameWriter starts a writer.
func NewFrameWriter(w io.Writer) *FrameWriter {
	out := &FrameWriter{w: w, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go out.run()
	return out
}

// Write queues an event. It does not block.
func (w *FrameWriter) Write(e Event) {
	if w == nil {
		return
	}
	w.mu.Lock()
	if !w.closed {
		w.queue = append(w.queue, e)
		if len(w.queue) > mostQueued {
			w.queue = thin(w.queue)
		}
	}
	w.mu.Unlock()
	w.signal()
}

func (w *FrameWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// thin removes the frames that a longer one among the events replaces, the shortest
// first, until half of the events are left. Others stay: none of what was counted may be
// lost.
func thin(queue []Event) []Event {
	type key struct {
		run          string
		number, span int64
	}
	longer := map[key]bool{}
	for _, e := range queue {
		if f := e.Frame; f != nil && f.Span > 1 {
			longer[key{e.ID, f.Number, f.Span}] = true
		}
	}
	replaced := func(run string, f *Frame) bool {
		for span := f.Span * tenfold; span <= maxSpan; span *= tenfold {
			if longer[key{run, (f.Number + span - 1) / span * span, span}] {
				return true
			}
		}
		return false
	}
	for span := int64(1); len(queue) > mostQueued/2 && span < maxSpan; span *= tenfold {
		queue = slices.DeleteFunc(queue, func(e Event) bool {
			return e.Frame != nil && e.Frame.Span == span && replaced(e.ID, e.Frame)
		})
	}
	return queue
}

const maxSpan = tenfold * tenfold * tenfold // the longest of the spans

func (w *FrameWriter) run() {
	defer close(w.done)
	for range w.wake {
		for {
			w.mu.Lock()
			closed := w.closed
			var e Event
			some := len(w.queue) > 0
			if some {
				e = w.queue[0]
				w.queue = slices.Delete(w.queue, 0, 1)
			}
			w.mu.Unlock()
			if !some {
				if closed {
					return
				}
				break
			}
			line, err := json.Marshal(e)
			if err == nil {
				_, err = w.w.Write(append(line, '\n'))
			}
			if err != nil {
				w.err = err
				w.mu.Lock()
				w.closed, w.queue = true, nil
				w.mu.Unlock()
				return
			}
		}
	}
}

// errSlow: the reader did not take everything in time.
var errSlow = errors.New("the reader is too slow")

// Close waits until everything was written, for two seconds at most. The error says why
// the reader did not get everything.
func (w *FrameWriter) Close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	select {
	case <-w.done:
		return w.err
	case <-time.After(pipeCloseTimeout):
		return errSlow
	}
}

// longestLine limits a line that ReadFrames takes, in bytes.
const longestLine = 1 << 16

// ReadFrames calls take with each event of a stream of JSON lines, up to its end. Fields that
// it does not know are ignored, so that versions of the program can be mixed. An error of
// take ends it.
func ReadFrames(r io.Reader, take func(Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("line %d of the frames: %w", n, err)
		}
		if err := take(e); err != nil {
			return fmt.Errorf("line %d of the frames: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read frames: %w", err)
	}
	return nil
}
