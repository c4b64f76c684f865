package traffic

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"carronade/internal/wire/riemann"
)

// A RiemannMessage is a message of a client.
type RiemannMessage struct {
	Events []riemann.Event
	Bytes  int   // encoded
	Time   int64 // nanoseconds since 1970 when it was sent; 0: not known
}

// A RiemannSink takes messages. It returns ErrEnough to end reading.
type RiemannSink func(*RiemannMessage) error

// maxRiemann limits a message.
const maxRiemann = 16 << 20

// IsRiemann reports whether a file with this beginning has messages of Riemann, each with its
// length before it.
func IsRiemann(head []byte) bool {
	msg, rest, err := riemann.NextFrame(head, maxRiemann)
	if err != nil {
		return false
	}
	if rest == nil { // longer than what is known of it
		return len(head) > 6 && riemann.FrameSize(head) > len(head) && head[4] == 0x32
	}
	_, err = riemann.DecodeMsg(msg)
	return err == nil && len(msg) > 0
}

// Riemann reads messages with their lengths before them, as clients send them over TCP.
func Riemann(in *bufio.Reader, to RiemannSink) error {
	var head [riemann.FrameHead]byte
	var body []byte
	for at := int64(0); ; {
		where := func(err error) error { return &Error{Where: fmt.Sprintf("byte %d", at), Err: err} }
		switch _, err := io.ReadFull(in, head[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return where(incomplete{fmt.Errorf("the file ends in the length of a message: %w", err)})
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > maxRiemann {
			return where(fmt.Errorf("a message of %d bytes is longer than %d MiB", n, maxRiemann>>20))
		}
		body = append(body[:0], make([]byte, n)...)
		if _, err := io.ReadFull(in, body); err != nil {
			return where(incomplete{fmt.Errorf("the file ends in a message: %w", err)})
		}
		m, err := riemann.DecodeMsg(body)
		if err != nil {
			return where(err)
		}
		if len(m.Events) > 0 {
			if err := to(&RiemannMessage{Events: m.Events, Bytes: len(body)}); err != nil {
				return err
			}
		}
		at += int64(len(head)) + int64(n)
	}
}
