package traffic

import (
	"bufio"
	"bytes"
	"carronade/internal/testkit/assert"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// A builder writes captures.
type builder struct {
	out  bytes.Buffer
	next bool // pcapng
}

func newBuilder(next bool) *builder {
	b := &builder{next: next}
	le := binary.LittleEndian
	if !next {
		head := le.AppendUint32(nil, 0xa1b2c3d4)
		head = append(head, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0)
		b.out.Write(le.AppendUint32(head, linkEthernet))
		return b
	}
	b.block(blockSection, append(le.AppendUint32(nil, 0x1a2b3c4d), 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255))
	b.block(blockInterface, append([]byte{linkEthernet, 0, 0, 0, 0, 0, 0, 0}, 9, 0, 1, 0, 9, 0, 0, 0)) // nanoseconds
	return b
}

func (b *builder) block(kind uint32, body []byte) {
	le := binary.LittleEndian
	size := uint32(len(body) + 12)
	b.out.Write(le.AppendUint32(le.AppendUint32(nil, kind), size))
	b.out.Write(body)
	b.out.Write(le.AppendUint32(nil, size))
}

// segment writes a packet of a connection.
func (b *builder) segment(time int64, from, to netip.AddrPort, seq uint32, flags byte, data []byte) {
	be, le := binary.BigEndian, binary.LittleEndian
	p := append(make([]byte, 12), 8, 0)
	if from.Addr().Is4() {
		p = append(p, 0x45, 0)
		p = be.AppendUint16(p, uint16(40+len(data)))
		p = append(p, 0, 0, 0, 0, 64, protocolTCP, 0, 0)
	} else {
		p = append(p[:12], 0x86, 0xdd, 0x60, 0, 0, 0)
		p = be.AppendUint16(p, uint16(20+len(data)))
		p = append(p, protocolTCP, 64)
	}
	p = append(append(p, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	p = be.AppendUint16(be.AppendUint16(p, from.Port()), to.Port())
	p = be.AppendUint32(be.AppendUint32(p, seq), 0)
	p = append(p, 5<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	p = append(p, data...)
	if !b.next {
		head := le.AppendUint32(le.AppendUint32(nil, uint32(time/1e9)), uint32(time%1e9/1000))
		b.out.Write(le.AppendUint32(le.AppendUint32(head, uint32(len(p))), uint32(len(p))))
		b.out.Write(p)
		return
	}
	body := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 0), uint32(time>>32)), uint32(time))
	body = le.AppendUint32(le.AppendUint32(body, uint32(len(p))), uint32(len(p)))
	body = append(body, p...)
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	b.block(blockEnhanced, body)
}

// kept keeps what a stream gives; a gap is a |.
type kept struct {
	data  []byte
	last  int64
	ended bool
}

func (k *kept) Data(time int64, b []byte) error {
	k.data, k.last = append(k.data, b...), time
	return nil
}
func (k *kept) Gap() { k.data = append(k.data, '|') }
func (k *kept) End() { k.ended = true }

func readAll(data []byte) (map[Flow]*kept, Counts, error) {
	streams := map[Flow]*kept{}
	counts, err := ReadConnections(bufio.NewReader(bytes.NewReader(data)), func(f Flow) Stream {
		streams[f] = &kept{}
		return streams[f]
	}, func() error { return nil })
	return streams, counts, err
}

var (
	client = netip.MustParseAddrPort("10.0.0.1:40000")
	server = netip.MustParseAddrPort("10.0.0.2:9092")
	flow   = Flow{client, server}
)

const at = int64(1767323045_000_000_000)

func TestConnectionsArePutTogether(t *testing.T) {
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 200))
	tests := []struct {
		name    string
		next    bool
		shuffle int // segments are moved by up to that many
		repeat  bool
		from    netip.AddrPort
		to      netip.AddrPort
	}{
		{"in order", false, 0, false, client, server},
		{"pcapng", true, 0, false, client, server},
		{"out of order", false, 5, false, client, server},
		{"repeated", true, 3, true, client, server},
		{"IPv6", false, 3, true, netip.MustParseAddrPort("[fd00::1]:1"), netip.MustParseAddrPort("[fd00::2]:2")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 1))
			b := newBuilder(test.next)
			const start = uint32(1<<32 - 500) // the numbers wrap around
			b.segment(at, test.from, test.to, start, 2, nil)
			type piece struct{ from, to int }
			var pieces []piece
			for i := 0; i < len(text); {
				n := min(1+rng.IntN(300), len(text)-i)
				pieces = append(pieces, piece{i, i + n})
				if test.repeat && rng.IntN(3) == 0 {
					pieces = append(pieces, piece{max(0, i-50), i + n})
				}
				i += n
			}
			for i := range pieces {
				j := min(len(pieces)-1, i+rng.IntN(test.shuffle+1))
				pieces[i], pieces[j] = pieces[j], pieces[i]
			}
			for i, p := range pieces {
				b.segment(at+int64(i)*1000, test.from, test.to, start+1+uint32(p.from), 16, text[p.from:p.to])
			}
			streams, counts, err := readAll(b.out.Bytes())
			assert.OK(t, err)
			got := streams[Flow{test.from, test.to}]
			if got == nil || !bytes.Equal(got.data, text) || counts.Gaps != 0 || got.last < at {
				t.Errorf("got %d bytes and %+v, want %d without gaps", len(got.data), counts, len(text))
			}
		})
	}
}

func TestGaps(t *testing.T) {
	b := newBuilder(false)
	b.segment(at, client, server, 100, 16, []byte("abc")) // the connection began before
	b.segment(at, client, server, 110, 16, []byte("def"))
	b.segment(at, client, server, 113, 17, []byte("ghi"))
	streams, counts, err := readAll(b.out.Bytes())
	assert.True(t, streams[flow].ended, "the stream of a connection that was closed did not end")
	if err != nil || string(streams[flow].data) != "|abc|defghi" || counts.Gaps != 1 {
		t.Errorf("got %q, %+v and %v, want |abc|defghi with one gap", streams[flow].data, counts, err)
	}
}

func TestEarlyBytesAreBounded(t *testing.T) {
	b := newBuilder(false)
	b.segment(at, client, server, 0, 2, nil)
	for i := range 100 {
		b.segment(at, client, server, 1_000_000+uint32(i)*60_000, 16, make([]byte, 30_000))
	}
	_, counts, err := readAll(b.out.Bytes())
	assert.True(t, err == nil && counts.Gaps >= 30, "got %+v and %v, want gaps", counts, err)
}

// Many small segments do not cost much more than their bytes, nor the time to search all of them.
func TestEarlySegmentsAreBounded(t *testing.T) {
	b := newBuilder(false)
	b.segment(at, client, server, 0, 2, nil)
	const segments = 100_000
	for i := range segments {
		b.segment(at, client, server, 10+uint32(i)*2, 16, []byte("x"))
	}
	streams, counts, err := readAll(b.out.Bytes())
	if got := bytes.Count(streams[flow].data, []byte("x")); err != nil || got != segments || counts.Gaps != segments {
		t.Errorf("got %d bytes, %+v and %v, want %d of each", got, counts, err, segments)
	}
}

func TestReadRefuses(t *testing.T) {
	b := newBuilder(false)
	b.segment(at, client, server, 0, 2, nil)
	b.segment(at, client, server, 1, 16, []byte("abc"))
	good := b.out.Bytes()
	n := newBuilder(true)
	n.segment(at, client, server, 1, 16, []byte("abc"))
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "packet 1"},
		{"another file", []byte("not a capture"), "not a capture"},
		{"cut in its header", good[:20], "packet 1: the capture is truncated"},
		{"cut in a packet", good[:len(good)-1], "packet 2: the capture is truncated"},
		{"cut in a packet's header", good[:30], "packet 1: the capture is truncated"},
		{"pcapng cut", n.out.Bytes()[:n.out.Len()-3], "packet 1: the capture is truncated"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := readAll(test.data)
			var where *PacketError
			assert.True(t, errors.As(err, &where) && strings.Contains(err.Error(), test.want), "got %v, want %q", err, test.want)
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, next := range []bool{false, true} {
		b := newBuilder(next)
		b.segment(at, client, server, 0, 2, nil)
		b.segment(at, client, server, 5, 16, []byte("late"))
		b.segment(at, client, server, 1, 17, []byte("abcd"))
		f.Add(b.out.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		IsPCAP(data)
		streams, counts, _ := readAll(data)
		total := 0
		for _, s := range streams {
			total += len(s.data)
		}
		assert.True(t, total <= len(data)+len(streams)+int(counts.Gaps), "got %d bytes of %d", total, len(data))
	})
}
