package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// FrameHead is the size of the head before each message of a stream: the
// message's length, big-endian (riemann, transport/tcp.clj).
const FrameHead = 4

// MaxFrame is the default limit for the length of a peer's message, in bytes. The
// real server is limited only by its memory.
const MaxFrame = 16 << 20

// ErrFrame is the error of a frame that is too long. Usually the peer speaks
// another protocol.
var ErrFrame = errors.New("not a frame of the riemann protocol, or too long a one")

// PutFrame writes the length of a message to the first four bytes of framed,
// which are reserved for it.
func PutFrame(framed []byte) {
	binary.BigEndian.PutUint32(framed, uint32(len(framed)-FrameHead))
}

// FrameSize returns the size of the first frame of b, head and message together,
// even if b is shorter; 0 if the head is incomplete.
func FrameSize(b []byte) int {
	if len(b) < FrameHead {
		return 0
	}
	return FrameHead + int(binary.BigEndian.Uint32(b))
}

// NextFrame splits the first complete message, which may be empty, from b. A nil
// rest without an error means that b has no complete one yet. A message longer
// than most is an ErrFrame.
func NextFrame(b []byte, most int) (msg, rest []byte, err error) {
	size := FrameSize(b)
	if size == 0 {
		return nil, nil, nil
	}
	if size-FrameHead > most {
		return nil, nil, fmt.Errorf("read frame: a length of %d, more than %d (bytes % x): %w",
			size-FrameHead, most, b[:min(len(b), 8)], ErrFrame)
	}
	if size > len(b) {
		return nil, nil, nil
	}
	return b[FrameHead:size:size], b[size:len(b):len(b)], nil
}

// Ack is the answer to an accepted message, as every server writes it: a message
// of two bytes, ok (2) = true.
const Ack = "\x00\x00\x00\x02\x10\x01"

// AckSize is the size of an ack with its frame.
const AckSize = len(Ack)

// AppendAcks appends n acks.
func AppendAcks(dst []byte, n int) []byte {
	if n <= 0 {
		return dst
	}
	at, end := len(dst), len(dst)+n*AckSize
	dst = append(dst, Ack...)
	for len(dst) < end {
		// Double what is there.
		dst = append(dst, dst[at:min(len(dst), at+end-len(dst))]...)
	}
	return dst
}

// Four acks are three words.
var ackWords = [3]uint64{
	binary.LittleEndian.Uint64([]byte("\x00\x00\x00\x02\x10\x01\x00\x00")),
	binary.LittleEndian.Uint64([]byte("\x00\x02\x10\x01\x00\x00\x00\x02")),
	binary.LittleEndian.Uint64([]byte("\x10\x01\x00\x00\x00\x02\x10\x01")),
}

// CountAcks returns how many acks b begins with. In a fast run nothing else is
// done with answers. So a buffer of only acks, the usual case, is compared with
// itself shifted by one ack, with the runtime's vectorised comparison of memory.
// Otherwise a loop over words finds where the acks end.
func CountAcks(b []byte) int {
	whole := len(b) - len(b)%AckSize
	if whole == 0 || string(b[:AckSize]) != Ack {
		return 0
	}
	if bytes.Equal(b[:whole-AckSize], b[AckSize:whole]) {
		return whole / AckSize
	}
	acks := 0
	for len(b) >= 4*AckSize &&
		(binary.LittleEndian.Uint64(b)^ackWords[0])|
			(binary.LittleEndian.Uint64(b[8:])^ackWords[1])|
			(binary.LittleEndian.Uint64(b[16:])^ackWords[2]) == 0 {
		acks += 4
		b = b[4*AckSize:]
	}
	for len(b) >= AckSize && string(b[:AckSize]) == Ack {
		acks++
		b = b[AckSize:]
	}
	return acks
}

// NextAnswers splits answers from b: a run of acks, which may be empty, and the
// next message after it, if that is complete and not an ack. With a nil msg, rest
// is at most the beginning of a frame. Otherwise it may contain more answers.
func NextAnswers(b []byte, most int) (acks int, msg, rest []byte, err error) {
	acks = CountAcks(b)
	b = b[acks*AckSize:]
	msg, rest, err = NextFrame(b, most)
	if rest == nil {
		rest = b
	}
	return acks, msg, rest, err
}

// CountFrames counts the complete frames that b begins with, and their bytes. It
// reads only the first byte of each message. It stops at a message that begins
// with a query, and at a frame that is incomplete or longer than most; NextFrame
// then says which.
func CountFrames(b []byte, most int) (frames, size int) {
	for at := 0; len(b)-at >= FrameHead; {
		next := at + FrameHead + int(binary.BigEndian.Uint32(b[at:]))
		if next > len(b) || next-at-FrameHead > most {
			break
		}
		if next > at+FrameHead && b[at+FrameHead] == tagQuery {
			break
		}
		at = next
		frames, size = frames+1, at
	}
	return frames, size
}
