package standin

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// A Skimmer is the protocol of a connection to a server that discards. It finds the ends of
// the requests, in whatever pieces the bytes arrive, and makes the answers. It does no I/O:
// Skim or one of Threads passes it the bytes, from one goroutine at a time.
//
// After an error of Take, Skip or End, nothing more is read. The answers are still written,
// and then the connection ends with that error; io.EOF is an ordinary end.
type Skimmer interface {
	// Take processes received bytes and returns how many. It takes fewer than all only if
	// answers must be written first, or with an error.
	Take(p []byte) (int, error)
	// Skippable is the number of the next bytes that may be skipped unread.
	Skippable() int64
	// Skip notes that n of them were skipped.
	Skip(n int64) error
	// End is the error of a connection whose client sends nothing more.
	End() error
	// Answers returns the next answers to write, and is called until it returns none. They
	// do not change until the next call of Take or Skip.
	Answers() []byte
}

// minDrop is how many bytes are dropped inside the kernel. Fewer are cheaper to read together
// with the bytes after them.
const minDrop = 16 << 10

// Serve serves a connection on one of the threads, or where that is not possible, also with
// nil Threads, on a goroutine that reads window bytes at once, at most. ended is called once
// with the reason when the connection is over, and closes it.
func (r *Threads) Serve(nc net.Conn, k Skimmer, window int, ended func(error)) {
	if tc, ok := nc.(*net.TCPConn); ok {
		// A large receive buffer means fewer wake-ups per byte.
		_ = tc.SetReadBuffer(4 << 20)
	}
	if !r.adopt(nc, k, ended) {
		go func() { ended(Skim(nc, k, make([]byte, window))) }()
	}
}

// Skim serves a connection on the calling goroutine until it ends, and returns why. It reads
// as many bytes as buf has room for, and writes the answers to them before it reads on, so
// that pipelined requests share a write.
func Skim(nc net.Conn, k Skimmer, buf []byte) error {
	s := skimmed{nc: nc, k: k, rec: RecordedConnOf(nc)}
	dropper := NewDropper(nc)
	for {
		if n := k.Skippable(); n >= minDrop && dropper != nil {
			if err := dropper.Drop(n); err != nil {
				return err
			}
			if err := s.answer(k.Skip(n)); err != nil {
				return err
			}
			continue
		}
		n, broken := nc.Read(buf)
		for p := buf[:n]; len(p) > 0; {
			taken, err := k.Take(p)
			if err = s.answer(err); err != nil {
				return err
			}
			p = p[taken:]
		}
		if errors.Is(broken, io.EOF) {
			return k.End()
		}
		if broken != nil {
			return broken
		}
	}
}

// A skimmed is a connection that Skim serves.
type skimmed struct {
	nc  net.Conn
	k   Skimmer
	rec *RecordedConn // nil: nothing is recorded
}

// answer writes the answers, and returns the error that ends the connection: err, or that of
// the write.
func (s *skimmed) answer(err error) error {
	for out := s.k.Answers(); len(out) > 0; out = s.k.Answers() {
		if _, broken := s.nc.Write(out); broken != nil {
			return errors.Join(err, fmt.Errorf("writing an answer: %w", broken))
		}
		s.rec.Answered()
	}
	return err
}
