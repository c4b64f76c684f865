package traffic

import (
	"bufio"
	"encoding/binary"
	"net/netip"
	"slices"
)

// A Flow is one direction of a TCP connection.
type Flow struct{ From, To netip.AddrPort }

// A Stream takes the bytes of one direction of a connection, in order.
type Stream interface {
	// Data takes the next bytes, with the time of their packet in nanoseconds since 1970. They
	// are valid during the call. An error ends the stream.
	Data(time int64, b []byte) error
	// Gap says that bytes are missing before the next ones, which begin a packet.
	Gap()
	// End says that no more bytes follow.
	End()
}

// Counts are what a capture had.
type Counts struct {
	Packets uint64
	TCP     uint64 // with bytes of a TCP connection
	Flows   int
	Gaps    uint64 // places where bytes of a connection are missing
	Cut     uint64 // packets of which the capture has only the beginning
	Ignored uint64 // packets of more connections than are kept at a time
}

const (
	// maxFlows limits the directions of connections that are followed at a time.
	maxFlows = 1 << 15
	// maxEarly limits the bytes of a direction that wait for those before them, and maxAllEarly
	// those of all. Each segment counts as perSegment more bytes: its own
	// memory.
	maxEarly    = 1 << 20
	maxAllEarly = 64 << 20
	perSegment  = 128
)

// A flowState is a direction of a connection.
type flowState struct {
	stream Stream    // nil: nothing wants it
	known  bool      // next is known
	next   uint32    // sequence number
	early  []segment // by seq
	bytes  int       // that early counts
}

type segment struct {
	seq  uint32
	time int64
	data []byte
}

// cost is what a segment counts while it waits.
func (s *segment) cost() int { return len(s.data) + perSegment }

// A reader puts connections together.
type assembler struct {
	open   func(Flow) Stream
	flows  map[Flow]*flowState
	early  int
	counts Counts
}

// ReadConnections reads a capture and gives the bytes of each direction of each connection to the stream
// that open returns for it; nil: to none. Connections that began before the capture begin with
// a gap.
func ReadConnections(in *bufio.Reader, open func(Flow) Stream, enough func() error) (Counts, error) {
	a := &assembler{open: open, flows: map[Flow]*flowState{}}
	err := read(in, func(p *packet) error {
		a.counts.Packets++
		if p.cut {
			a.counts.Cut++
		}
		if flow, t, ok := decode(p); ok {
			a.segment(flow, p.time, &t)
		}
		return enough()
	})
	for _, f := range a.flows {
		a.end(f)
	}
	return a.counts, err
}

// segment handles a packet of a connection.
func (a *assembler) segment(flow Flow, time int64, t *tcp) {
	f := a.flows[flow]
	if f == nil {
		if len(t.data) == 0 && !t.syn {
			return
		}
		if len(a.flows) >= maxFlows {
			a.counts.Ignored++
			return
		}
		f = &flowState{stream: a.open(flow)}
		a.flows[flow] = f
		a.counts.Flows++
		if f.stream != nil && !t.syn {
			f.stream.Gap()
		}
	}
	switch {
	case t.syn:
		f.known, f.next = true, t.seq+1
		a.drop(f)
	case len(t.data) > 0:
		a.counts.TCP++
		if f.stream == nil {
			break
		}
		if !f.known {
			f.known, f.next = true, t.seq
		}
		a.add(f, segment{t.seq, time, t.data})
	}
	if t.rst || t.fin && len(f.early) == 0 {
		a.end(f)
		delete(a.flows, flow)
	}
}

// add delivers a segment, or keeps it until those before it are there.
func (a *assembler) add(f *flowState, s segment) {
	if int32(s.seq-f.next) > 0 {
		s.data = append([]byte(nil), s.data...)
		i, _ := slices.BinarySearchFunc(f.early, s, func(a, b segment) int { return int(int32(a.seq - b.seq)) })
		f.early = slices.Insert(f.early, i, s)
		f.bytes += s.cost()
		a.early += s.cost()
		if f.bytes > maxEarly || a.early > maxAllEarly {
			a.skip(f)
		}
		return
	}
	a.deliver(f, s)
	a.release(f)
}

// deliver gives the part of a segment that is new.
func (a *assembler) deliver(f *flowState, s segment) {
	old := int32(f.next - s.seq)
	if old < 0 || int(old) >= len(s.data) {
		return // a repetition
	}
	data := s.data[old:]
	f.next += uint32(len(data))
	if f.stream != nil && f.stream.Data(s.time, data) != nil {
		f.stream = nil
		a.drop(f)
	}
}

// release delivers what waited for the bytes before it.
func (a *assembler) release(f *flowState) {
	for len(f.early) > 0 && int32(f.early[0].seq-f.next) <= 0 {
		s := f.early[0]
		f.early[0] = segment{}
		f.early = f.early[1:]
		f.bytes -= s.cost()
		a.early -= s.cost()
		a.deliver(f, s)
	}
}

// skip gives up what is missing, up to the first segment that waits.
func (a *assembler) skip(f *flowState) {
	if len(f.early) == 0 {
		return
	}
	f.next = f.early[0].seq
	a.counts.Gaps++
	if f.stream != nil {
		f.stream.Gap()
	}
	a.release(f)
}

// end delivers everything that waits, with gaps, and ends the stream.
func (a *assembler) end(f *flowState) {
	for len(f.early) > 0 {
		a.skip(f)
	}
	if f.stream != nil {
		f.stream.End()
	}
}

// drop forgets what waits.
func (a *assembler) drop(f *flowState) {
	a.early -= f.bytes
	f.early, f.bytes = nil, 0
}

// A tcp is a segment of TCP.
type tcp struct {
	seq           uint32
	syn, fin, rst bool
	data          []byte
}

// Link types (tcpdump.org/linktypes).
const (
	linkNull     = 0
	linkEthernet = 1
	linkRaw      = 101
	linkLoop     = 108
	linkSLL      = 113
	linkIPv4     = 228
	linkIPv6     = 229
	linkSLL2     = 276
)

// decode finds the segment of TCP in a packet.
func decode(p *packet) (flow Flow, t tcp, ok bool) {
	b := p.data
	cut := func(n int) bool {
		if len(b) < n {
			return false
		}
		b = b[n:]
		return true
	}
	switch p.link {
	case linkEthernet:
		if !cut(12) {
			return
		}
		for len(b) >= 4 && (binary.BigEndian.Uint16(b) == 0x8100 || binary.BigEndian.Uint16(b) == 0x88a8) { // VLAN
			b = b[4:]
		}
		ok = cut(2)
	case linkNull, linkLoop:
		ok = cut(4)
	case linkSLL:
		ok = cut(16)
	case linkSLL2:
		ok = cut(20)
	case linkRaw, 12, 14, linkIPv4, linkIPv6:
		ok = true
	}
	if !ok || len(b) == 0 {
		return flow, t, false
	}
	switch b[0] >> 4 {
	case 4:
		return ipv4(b)
	case 6:
		return ipv6(b)
	}
	return flow, t, false
}

const protocolTCP = 6

func ipv4(b []byte) (flow Flow, t tcp, ok bool) {
	if len(b) < 20 {
		return
	}
	header, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	fragment := binary.BigEndian.Uint16(b[6:]) & 0x3fff // more to come, or not the first
	if header < 20 || len(b) < header || b[9] != protocolTCP || fragment != 0 {
		return
	}
	from, to := netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	// A length of 0 is that of a packet that the sender's network card cuts later.
	if total >= header && total <= len(b) {
		b = b[:total]
	}
	return segmentOf(b[header:], from, to)
}

func ipv6(b []byte) (flow Flow, t tcp, ok bool) {
	if len(b) < 40 {
		return
	}
	length, next := int(binary.BigEndian.Uint16(b[4:])), b[6]
	from, to := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	b = b[40:]
	if length > 0 && length <= len(b) {
		b = b[:length]
	}
	for next == 0 || next == 43 || next == 60 { // options and routing
		if len(b) < 8 || len(b) < 8+int(b[1])*8 {
			return
		}
		next, b = b[0], b[8+int(b[1])*8:]
	}
	if next != protocolTCP {
		return
	}
	return segmentOf(b, from, to)
}

func segmentOf(b []byte, from, to netip.Addr) (flow Flow, t tcp, ok bool) {
	if len(b) < 20 {
		return
	}
	header := int(b[12]>>4) * 4
	if header < 20 || header > len(b) {
		return
	}
	flags := b[13]
	return Flow{netip.AddrPortFrom(from, binary.BigEndian.Uint16(b)), netip.AddrPortFrom(to, binary.BigEndian.Uint16(b[2:]))},
		tcp{seq: binary.BigEndian.Uint32(b[4:]), syn: flags&2 != 0, fin: flags&1 != 0, rst: flags&4 != 0, data: b[header:]}, true
}
