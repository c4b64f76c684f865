package traffic

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// A PacketError says in which packet a capture is invalid.
type PacketError struct {
	Packet int // from 1
	Err    error
}

// Error implements error.
func (e *PacketError) Error() string { return fmt.Sprintf("packet %d: %v", e.Packet, e.Err) }

// Unwrap returns the cause.
func (e *PacketError) Unwrap() error { return e.Err }

const (
	maxPacket = 1 << 20
	// maxInterfaces limits the interfaces of a pcapng file.
	maxInterfaces = 4096
)

// IsPCAP reports whether a file with this beginning is a capture.
func IsPCAP(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	_, _, classic := classicOrder(head)
	return classic || binary.LittleEndian.Uint32(head) == blockSection
}

func classicOrder(head []byte) (order binary.ByteOrder, unit int64, ok bool) {
	switch binary.LittleEndian.Uint32(head) {
	case 0xa1b2c3d4:
		return binary.LittleEndian, 1000, true
	case 0xa1b23c4d:
		return binary.LittleEndian, 1, true
	case 0xd4c3b2a1:
		return binary.BigEndian, 1000, true
	case 0x4d3cb2a1:
		return binary.BigEndian, 1, true
	}
	return nil, 0, false
}

// A packet is a captured packet. Its data are valid until the next one.
type packet struct {
	time int64 // nanoseconds since 1970
	link uint32
	data []byte
	cut  bool // the capture has only its beginning
}

// read calls f with every packet.
func read(in *bufio.Reader, f func(*packet) error) error {
	head, err := in.Peek(4)
	if err != nil {
		return &PacketError{Packet: 1, Err: truncated("its header", err)}
	}
	if order, unit, ok := classicOrder(head); ok {
		return classic(in, order, unit, f)
	}
	if binary.LittleEndian.Uint32(head) == blockSection {
		return sections(in, f)
	}
	return &PacketError{Packet: 1, Err: errors.New("the file is not a capture of packets")}
}

// truncated makes an error of the end of a file within something.
func truncated(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return incomplete{fmt.Errorf("the capture is truncated: it ends in %s", what)}
	}
	return err
}

// classic reads the format pcap.
func classic(in *bufio.Reader, order binary.ByteOrder, unit int64, f func(*packet) error) error {
	var header [24]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return &PacketError{Packet: 1, Err: truncated("its header", err)}
	}
	p := packet{link: order.Uint32(header[20:]) & 0xffff}
	var buffer []byte
	for n := 1; ; n++ {
		var head [16]byte
		switch _, err := io.ReadFull(in, head[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &PacketError{n, truncated("a packet's header", err)}
		}
		size, whole := order.Uint32(head[8:]), order.Uint32(head[12:])
		if size > maxPacket {
			return &PacketError{n, fmt.Errorf("%d bytes are more than %d", size, maxPacket)}
		}
		if cap(buffer) < int(size) {
			buffer = make([]byte, size)
		}
		p.data = buffer[:size]
		if _, err := io.ReadFull(in, p.data); err != nil {
			return &PacketError{n, truncated("a packet", err)}
		}
		p.time = int64(order.Uint32(head[0:]))*1e9 + int64(order.Uint32(head[4:]))*unit
		p.cut = size < whole
		if err := f(&p); err != nil {
			return err
		}
	}
}

// Types of blocks of pcapng.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockSimple    = 3
	blockEnhanced  = 6
)

// An iface is an interface of a section.
type iface struct {
	link  uint32
	units float64 // nanoseconds
	snap  uint32
}

// sections reads the format pcapng.
func sections(in *bufio.Reader, f func(*packet) error) error {
	var (
		order      binary.ByteOrder = binary.LittleEndian
		interfaces []iface
		buffer     []byte
		p          packet
	)
	for n := 1; ; {
		var head [8]byte
		switch _, err := io.ReadFull(in, head[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &PacketError{n, truncated("a block's header", err)}
		}
		kind := order.Uint32(head[:])
		if kind == blockSection {
			magic, err := in.Peek(4)
			if err != nil {
				return &PacketError{n, truncated("a section's header", err)}
			}
			order, interfaces = binary.LittleEndian, nil
			if binary.BigEndian.Uint32(magic) == 0x1a2b3c4d {
				order = binary.BigEndian
			} else if binary.LittleEndian.Uint32(magic) != 0x1a2b3c4d {
				return &PacketError{n, errors.New("a section's byte order is not known")}
			}
		}
		size := order.Uint32(head[4:])
		if size < 12 || size%4 != 0 || size > maxPacket+4096 {
			return &PacketError{n, fmt.Errorf("a block of %d bytes is invalid", size)}
		}
		if cap(buffer) < int(size-8) {
			buffer = make([]byte, size-8)
		}
		body := buffer[:size-8]
		if _, err := io.ReadFull(in, body); err != nil {
			return &PacketError{n, truncated("a block", err)}
		}
		body = body[:len(body)-4] // the length again
		var ok bool
		switch kind {
		case blockInterface:
			if len(body) < 8 || len(interfaces) >= maxInterfaces {
				return &PacketError{n, errors.New("an interface is invalid, or one too many")}
			}
			interfaces = append(interfaces, iface{uint32(order.Uint16(body)), resolution(body[8:], order), order.Uint32(body[4:])})
			continue
		case blockEnhanced:
			ok = enhanced(&p, body, order, interfaces)
		case blockSimple:
			ok = simple(&p, body, order, interfaces)
		default:
			continue
		}
		if !ok {
			return &PacketError{n, errors.New("its block is invalid")}
		}
		if err := f(&p); err != nil {
			return err
		}
		n++
	}
}

// resolution reads the option if_tsresol: the unit of times in nanoseconds.
func resolution(options []byte, order binary.ByteOrder) float64 {
	for len(options) >= 4 {
		code, size := order.Uint16(options), int(order.Uint16(options[2:]))
		options = options[4:]
		if code == 0 || size > len(options) {
			break
		}
		if code == 9 && size >= 1 {
			v := options[0]
			if v&0x80 != 0 {
				return 1e9 / math.Pow(2, float64(v&0x7f))
			}
			return 1e9 / math.Pow(10, float64(v))
		}
		options = options[min(len(options), (size+3)&^3):]
	}
	return 1000
}

func enhanced(p *packet, body []byte, order binary.ByteOrder, interfaces []iface) bool {
	if len(body) < 20 {
		return false
	}
	i, size := order.Uint32(body), order.Uint32(body[12:])
	if uint64(i) >= uint64(len(interfaces)) || uint64(size) > uint64(len(body)-20) {
		return false
	}
	at := float64(uint64(order.Uint32(body[4:]))<<32|uint64(order.Uint32(body[8:]))) * interfaces[i].units
	if at >= math.MaxInt64 {
		at = 0
	}
	*p = packet{int64(at), interfaces[i].link, body[20 : 20+size], size < order.Uint32(body[16:])}
	return true
}

func simple(p *packet, body []byte, order binary.ByteOrder, interfaces []iface) bool {
	if len(body) < 4 || len(interfaces) == 0 {
		return false
	}
	whole := order.Uint32(body)
	size := min(whole, uint32(len(body)-4))
	if s := interfaces[0].snap; s > 0 {
		size = min(size, s)
	}
	*p = packet{0, interfaces[0].link, body[4 : 4+size], size < whole}
	return true
}
