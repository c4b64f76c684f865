package profile

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"carronade/internal/place"
)

// A waiting reader reads what may send nothing for long, such as a pipe: it ends when the context
// ends or the time is over, also while nothing arrives. Reading goes on in a goroutine until then,
// and until its last call returns.
type waiting struct {
	pieces <-chan piece
	end    <-chan struct{} // of the context
	over   <-chan time.Time
	cut    bool // it ended before its source did

	rest []byte
	err  error
}

// A piece is what a call of Read returned.
type piece struct {
	data []byte
	err  error
}

// newWaiting reads from in, until the context ends. length 0: the time has no end.
func newWaiting(ctx context.Context, in io.Reader, length time.Duration) *waiting {
	pieces := make(chan piece)
	go func() {
		for {
			buf := make([]byte, headSize)
			n, err := in.Read(buf)
			select {
			case pieces <- piece{buf[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	w := &waiting{pieces: pieces, end: ctx.Done()}
	if length > 0 {
		w.over = time.After(length)
	}
	return w
}

// Read implements io.Reader. The end of the time is the end of the file.
func (w *waiting) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		select {
		case one := <-w.pieces:
			w.rest, w.err = one.data, one.err
		case <-w.end:
			w.cut = true
			w.err = io.EOF
		case <-w.over:
			w.cut = true
			w.err = io.EOF
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// A namedPipe is a pipe with a path. Its first Read opens it, which waits for a program that writes.
type namedPipe struct {
	path string

	mu     sync.Mutex
	file   *os.File
	closed bool
}

// Read implements io.Reader.
func (p *namedPipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	file := p.file
	p.mu.Unlock()
	if file == nil {
		var err error
		if file, err = place.Open(p.path); err != nil {
			return 0, err
		}
		p.mu.Lock()
		closed := p.closed
		p.file = file
		p.mu.Unlock()
		if closed {
			file.Close()
			return 0, os.ErrClosed
		}
	}
	return file.Read(b)
}

// Close implements io.Closer, also while Read waits.
func (p *namedPipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// mayWait reports whether reading a file may have to wait: it is none with all its bytes there.
func mayWait(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err != nil || !info.Mode().IsRegular()
}
