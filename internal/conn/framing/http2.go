package framing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// MessageHead is the number of bytes before a message of gRPC: whether it is compressed, and its length.
const MessageHead = 5

// HeadSize is the number of bytes before a frame's payload.
const HeadSize = 9

// Types of frames (RFC 9113, section 6).
const (
	Data         = 0
	Headers      = 1
	Reset        = 3
	Settings     = 4
	Push         = 5
	Ping         = 6
	GoAway       = 7
	Window       = 8
	Continuation = 9
)

// Flags of frames.
const (
	FlagEndStream  = 1
	FlagAck        = 1 // of settings and pings
	FlagEndHeaders = 4
	flagPadded     = 8
	flagPriority   = 0x20
)

// Settings.
const (
	SettingPush      = 2
	SettingStreams   = 3
	SettingWindow    = 4
	SettingFrameSize = 5
)

// What holds until the other side says something else.
const (
	DefaultWindow = 65535
	LeastFrame    = 16384 // bytes of a payload that every peer accepts
	MostWindow    = math.MaxInt32
)

// Codes of errors.
const (
	CodeRefused = 7
	CodeCancel  = 8
)

var codeNames = [...]string{"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"}

// CodeName is the name of an error's code.
func CodeName(code uint32) string {
	if int64(code) < int64(len(codeNames)) {
		return codeNames[code]
	}
	return fmt.Sprintf("code %d", code)
}

// A Frame is a frame that was received. Payload is without padding and priority.
type Frame struct {
	Type, Flags uint8
	Stream      uint32
	Payload     []byte
	Flow        int // bytes that count for flow control, padding included
}

// PutHead writes the head of a frame.
func PutHead(b *[HeadSize]byte, size int, typ, flags uint8, stream uint32) {
	b[0], b[1], b[2], b[3], b[4] = byte(size>>16), byte(size>>8), byte(size), typ, flags
	binary.BigEndian.PutUint32(b[5:], stream)
}

// Append appends a frame.
func Append(b []byte, typ, flags uint8, stream uint32, payload ...byte) []byte {
	var head [HeadSize]byte
	PutHead(&head, len(payload), typ, flags, stream)
	return append(append(b, head[:]...), payload...)
}

// AppendNumber appends a frame with a number: an increment of a window, or the code of a reset.
func AppendNumber(b []byte, typ uint8, stream, n uint32) []byte {
	return Append(b, typ, 0, stream, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// The windows for answers: of each stream, and of the connection.
const (
	ReceiveWindow    = 1 << 20
	ConnectionWindow = 16 << 20
)

// What a client sends first, before frames. Its beginning is as the head of a request of HTTP/1.1.
var (
	PrefaceHead = []byte("PRI * HTTP/2.0\r\n\r\n")
	PrefaceBody = []byte("SM\r\n\r\n")
)

// AppendPreface appends what a client sends first: no pushes, and room for answers.
func AppendPreface(b []byte) []byte {
	b = append(append(b, PrefaceHead...), PrefaceBody...)
	b = Append(b, Settings, 0, 0, 0, SettingPush, 0, 0, 0, 0, 0, SettingWindow, 0, ReceiveWindow>>16, ReceiveWindow>>8&0xff, ReceiveWindow&0xff)
	return AppendNumber(b, Window, 0, ConnectionWindow-DefaultWindow)
}

var errFrame = errors.New("a frame is not as HTTP/2 has it")

// Read reads the frame that b begins with; n is 0 if it has not come whole. After an error the
// connection is unusable.
func Read(b []byte) (f Frame, n int, err error) {
	if len(b) < HeadSize {
		return f, 0, nil
	}
	size := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	if size > LeastFrame {
		return f, 0, fmt.Errorf("%w: it has %d bytes (another protocol may answer)", errFrame, size)
	}
	if n = HeadSize + size; len(b) < n {
		return f, 0, nil
	}
	f = Frame{Type: b[3], Flags: b[4], Stream: binary.BigEndian.Uint32(b[5:]) & math.MaxInt32, Payload: b[HeadSize:n], Flow: size}
	return f, n, f.trim()
}

// trim removes padding and priority, and checks sizes.
func (f *Frame) trim() error {
	if f.Type == Data || f.Type == Headers {
		pad := 0
		if f.Flags&flagPadded != 0 {
			if len(f.Payload) == 0 {
				return errFrame
			}
			pad, f.Payload = int(f.Payload[0]), f.Payload[1:]
		}
		if f.Type == Headers && f.Flags&flagPriority != 0 {
			if len(f.Payload) < 5 {
				return errFrame
			}
			f.Payload = f.Payload[5:]
		}
		if pad > len(f.Payload) {
			return errFrame
		}
		f.Payload = f.Payload[:len(f.Payload)-pad]
	}
	ofStream := f.Type == Data || f.Type == Headers || f.Type == Reset || f.Type == Continuation
	ofConnection := f.Type == Settings || f.Type == Ping || f.Type == GoAway
	size, fixed := 4, f.Type == Reset || f.Type == Window
	if f.Type == Ping {
		size, fixed = 8, true
	}
	switch {
	case f.Type == Push, ofStream && f.Stream == 0, ofConnection && f.Stream != 0, fixed && len(f.Payload) != size,
		f.Type == GoAway && len(f.Payload) < 8, f.Type == Settings && (len(f.Payload)%6 != 0 || f.Flags&FlagAck != 0 && len(f.Payload) > 0):
		return errFrame
	}
	return nil
}

// Number is the number in the payload of a reset, a window update, or the first of a goaway.
func (f *Frame) Number() uint32 { return binary.BigEndian.Uint32(f.Payload) }

// EachSetting calls set with the settings in a frame.
func (f *Frame) EachSetting(set func(id uint16, value uint32)) {
	for b := f.Payload; len(b) >= 6; b = b[6:] {
		set(binary.BigEndian.Uint16(b), binary.BigEndian.Uint32(b[2:]))
	}
}
