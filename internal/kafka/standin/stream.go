package standin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// windowSize is the size of a stream's window: the largest piece that must be
// contiguous in memory (a frame's head, a topic's name, a batch's header).
const windowSize = 64 << 10

// shortRead is the size of a read after a batch that exceeded the window. Only the
// next head is needed then, and any more bytes would be copied for nothing.
const shortRead = 512

var (
	errFrame  = errors.New("malformed frame")
	errTooBig = fmt.Errorf("%w: piece larger than %d bytes", errFrame, windowSize)
)

// A source supplies the bytes of a stream.
type source interface {
	// read puts at least one byte into p.
	read(p []byte) (int, error)
	// discard drops up to n bytes, at least one, without returning them.
	discard(n int) (int, error)
}

// A stream is a window on the bytes of one connection or of one frame. It
// belongs to one goroutine.
//
// left is the number of remaining bytes of the current frame. No method reads
// beyond it, so that a wrong length inside a frame is an error and does not
// consume the next frame.
type stream struct {
	src  source
	buf  []byte
	r, w int
	left int
	want int
	name []byte // the topic's name last read
}

func newStream(src source) *stream {
	return &stream{src: src, buf: make([]byte, windowSize), want: windowSize}
}

// frameStream returns a stream over a complete frame in memory.
func frameStream(frame []byte) stream {
	return stream{src: eofSource{}, buf: frame, w: len(frame), left: len(frame)}
}

type eofSource struct{}

func (eofSource) read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func (eofSource) discard(int) (int, error) { return 0, io.ErrUnexpectedEOF }

func (s *stream) buffered() int         { return s.w - s.r }
func (s *stream) take(n int) (b []byte) { b = s.buf[s.r : s.r+n]; s.r += n; s.left -= n; return b }
func (s *stream) frame(n int)           { s.left = n }
func (s *stream) int16() (int16, error) { b, err := s.next(2); return int16(at16(b)), err }
func (s *stream) int32() (int32, error) { b, err := s.next(4); return int32(at32(b)), err }

// at16 and at32 are 0 if b is too short, after an error.
func at16(b []byte) (v uint16) {
	if len(b) > 1 {
		v = binary.BigEndian.Uint16(b)
	}
	return v
}

func at32(b []byte) (v uint32) {
	if len(b) > 3 {
		v = binary.BigEndian.Uint32(b)
	}
	return v
}

// next reads n bytes of the frame. They stay valid until the next call.
func (s *stream) next(n int) ([]byte, error) {
	if err := s.peek(n); err != nil {
		return nil, err
	}
	return s.take(n), nil
}

// peek reads the next n bytes of the frame into the window without consuming
// them.
func (s *stream) peek(n int) error {
	if n < 0 || n > s.left {
		return errFrame
	}
	if s.buffered() >= n {
		return nil
	}
	return s.fill(n)
}

func (s *stream) fill(n int) error {
	if n > len(s.buf) {
		return errTooBig
	}
	if s.r == s.w {
		s.r, s.w = 0, 0
	} else if len(s.buf)-s.r < max(n, s.want) {
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
	for s.w-s.r < n {
		room := len(s.buf) - s.w
		m, err := s.src.read(s.buf[s.w : s.w+min(room, max(s.want, n-(s.w-s.r)))])
		s.w += m
		if err != nil {
			return err
		}
	}
	return nil
}

// skip drops n bytes of the frame, without reading them if the source can.
func (s *stream) skip(n int) error {
	if n < 0 || n > s.left {
		return errFrame
	}
	s.left -= n
	if n <= s.buffered() {
		s.r += n
		// All of it was in the window: events are small, so one read gets
		// many heads.
		s.want = windowSize
		return nil
	}
	n -= s.buffered()
	s.r, s.w = 0, 0
	s.want = shortRead
	for n > 0 {
		m, err := s.src.discard(n)
		if err != nil {
			return err
		}
		n -= m
	}
	return nil
}

// uvarint reads a Kafka unsigned varint of at most 32 bits.
func (s *stream) uvarint() (uint32, error) {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b, err := s.next(1)
		if err != nil {
			return 0, err
		}
		v |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			if v > 1<<32-1 {
				return 0, errFrame
			}
			return uint32(v), nil
		}
	}
	return 0, errFrame
}

// length reads the length of a nullable string, bytes or array; -1 is null. A
// compact length is encoded as one more than the length, with 0 for null.
func (s *stream) length(compact bool, wide bool) (int, error) {
	if compact {
		v, err := s.uvarint()
		return int(v) - 1, err
	}
	if wide {
		v, err := s.int32()
		return int(v), err
	}
	v, err := s.int16()
	return int(v), err
}

// text reads a nullable string; its bytes stay valid until the next call.
func (s *stream) text(compact bool) ([]byte, error) {
	n, err := s.length(compact, false)
	if err != nil || n < 0 {
		return nil, err
	}
	return s.next(n)
}

// tags skips a section of tagged fields.
func (s *stream) tags() error {
	n, err := s.uvarint()
	for ; err == nil && n > 0; n-- {
		if _, err = s.uvarint(); err != nil {
			break
		}
		var size uint32
		if size, err = s.uvarint(); err != nil {
			break
		}
		if int64(size) > int64(s.left) {
			return errFrame
		}
		err = s.skip(int(size))
	}
	return err
}
