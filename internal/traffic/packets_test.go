package traffic

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
	"carronade/internal/wire/apm"
	"carronade/internal/wire/kafka"
)

// A dump is a capture of IP packets.
type dump struct {
	bytes.Buffer
	seq map[uint16]uint32
	at  int64
}

func newDump() *dump {
	d := &dump{seq: map[uint16]uint32{}, at: 1767323045_000_000}
	le := binary.LittleEndian
	head := append(le.AppendUint32(nil, 0xa1b2c3d4), 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0)
	d.Write(le.AppendUint32(head, 101))
	return d
}

// send writes bytes of a connection, by the client's port, in packets of up to size bytes, each
// a millisecond after the one before.
func (d *dump) send(port uint16, data []byte, size int) {
	for len(data) > 0 {
		n := min(size, len(data))
		d.packet(port, data[:n])
		data = data[n:]
	}
}

func (d *dump) packet(port uint16, data []byte) {
	be, le := binary.BigEndian, binary.LittleEndian
	p := be.AppendUint16([]byte{0x45, 0}, uint16(40+len(data)))
	p = append(p, 0, 0, 0, 0, 64, 6, 0, 0)
	p = append(p, netip.MustParseAddr("10.0.0.1").AsSlice()...)
	p = append(p, netip.MustParseAddr("10.0.0.2").AsSlice()...)
	p = be.AppendUint16(be.AppendUint16(p, port), 9092)
	p = be.AppendUint32(be.AppendUint32(p, d.seq[port]), 0)
	p = append(append(p, 5<<4, 16, 0xff, 0xff, 0, 0, 0, 0), data...)
	d.seq[port] += uint32(len(data))
	d.at += 1000
	head := le.AppendUint32(le.AppendUint32(nil, uint32(d.at/1e6)), uint32(d.at%1e6))
	d.Write(le.AppendUint32(le.AppendUint32(head, uint32(len(p))), uint32(len(p))))
	d.Write(p)
}

// produce is a produce request with a batch of records for a partition.
func produce(t testing.TB, version int16, codec kafka.Codec, partition int32, records int) []byte {
	t.Helper()
	var plain []byte
	for i := range records {
		plain = kafka.AppendRecord(plain, int32(i), fmt.Appendf(nil, "key %d", i), bytes.Repeat([]byte("v"), 50), kafka.AppendHeaders(nil, []kafka.RecordHeader{{Key: "h", Value: []byte("x")}}))
	}
	z, err := kafka.NewCompressor(codec)
	assert.OK(t, err)
	batch, err := z.Append(make([]byte, kafka.HeaderSize), plain)
	assert.OK(t, err)
	h := kafka.Header{Length: int32(len(batch) - 12), Attributes: int16(codec), LastOffsetDelta: int32(records - 1), BaseTimestamp: 1767323045000, MaxTimestamp: 1767323045000, ProducerID: -1, NumRecords: int32(records)}
	h.Put(batch)
	f := kafka.ProduceFormat{Version: version, ClientID: "client", Acks: 1, Topic: "orders"}
	out := f.AppendHead(nil, 7, 1)
	out = f.AppendPartition(out, partition, len(batch))
	out = append(out, batch...)
	out = f.AppendTail(f.AppendPartitionEnd(out))
	kafka.PutSize(out, len(out))
	return out
}

// post is a request of an agent.
func post(t testing.TB, encoding string, chunked bool, body []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	switch encoding {
	case "gzip":
		w := gzip.NewWriter(&packed)
		w.Write(body)
		w.Close()
	case "deflate":
		w := zlib.NewWriter(&packed)
		w.Write(body)
		w.Close()
	default:
		packed.Write(body)
	}
	head := "POST /intake/v2/events?flushed=true HTTP/1.1\r\nHost: apm\r\n"
	if encoding != "" {
		head += "Content-Encoding: " + encoding + "\r\n"
	}
	if !chunked {
		return append(fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n", head, packed.Len()), packed.Bytes()...)
	}
	out := []byte(head + "Transfer-Encoding: chunked\r\n\r\n")
	for data := packed.Bytes(); len(data) > 0; {
		n := min(1000, len(data))
		out = fmt.Appendf(out, "%x\r\n%s\r\n", n, data[:n])
		data = data[n:]
	}
	return append(out, "0\r\n\r\n"...)
}

// packets is what a capture had.
type packets struct {
	found
	Packets
	requests []APMRequest
	messages int
}

func readPackets(data []byte, most int) (*packets, error) {
	p := &packets{}
	p.most = most
	p.Packets = Packets{
		Records: KafkaBatches{To: &p.found},
		APM:     func(r *APMRequest, _ []byte) error { p.requests = append(p.requests, *r); return nil },
		Riemann: func(*RiemannMessage) error { p.messages++; return nil },
	}
	return p, p.Read(bufio.NewReader(bytes.NewReader(data)))
}

func TestPacketsOfKafka(t *testing.T) {
	for _, version := range []int16{3, 8, 9, 13} {
		for _, codec := range []kafka.Codec{kafka.None, kafka.Gzip, kafka.LZ4, kafka.Zstd} {
			d := newDump()
			for i := range 10 {
				d.send(1000, produce(t, version, codec, int32(i%3), 20), 1+37*(i+1))
				d.send(2000, produce(t, version, codec, 1, 5), 1400)
				d.send(9092, []byte("\x00\x00\x00\x10\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 1400) // an answer
			}
			p, err := readPackets(d.Bytes(), 0)
			if err != nil || len(p.records) != 250 || len(p.batches) != 20 || p.KafkaConns != 2 || p.Unreadable != 0 || p.Topics != 1 {
				t.Fatalf("v%d, %v: got %d records in %d batches of %d connections, %d unreadable, and %v, want 250 in 20 of 2", version, codec, len(p.records), len(p.batches), p.KafkaConns, p.Unreadable, err)
			}
			r, b := p.records[0], p.batches[0]
			if string(r.Key) != "key 0" || len(r.Value) != 50 || r.Time != 1767323045e9 || len(r.Headers) != 1 || b.Codec != codec.String() || b.Events != 20 {
				t.Fatalf("v%d, %v: got %+v in %+v", version, codec, r, b)
			}
		}
	}
}

func TestPacketsOfAgents(t *testing.T) {
	body := recorded(t, apm.Makeup{Events: apm.Range{Min: 5, Max: 5}, Spans: apm.Range{Min: 1, Max: 1}}, 1)
	for _, encoding := range []string{"", "gzip", "deflate"} {
		for _, chunked := range []bool{false, true} {
			d := newDump()
			for range 4 {
				d.send(1000, post(t, encoding, chunked, body), 777)
				d.send(1000, []byte("GET /config/v1/agents HTTP/1.1\r\nHost: apm\r\n\r\n"), 777)
			}
			p, err := readPackets(d.Bytes(), 0)
			if err != nil || len(p.requests) != 4 || p.APMConns != 1 || p.Unreadable != 0 {
				t.Fatalf("%q, chunked %v: got %d requests, %d unreadable and %v, want 4", encoding, chunked, len(p.requests), p.Unreadable, err)
			}
			r := p.requests[0]
			if len(r.Events) != 10 || r.Time == 0 || r.Packed != (encoding != "") || r.Packed && r.Wire >= r.Bytes {
				t.Errorf("%q, chunked %v: got %d events, at %d, %d bytes of %d", encoding, chunked, len(r.Events), r.Time, r.Wire, r.Bytes)
			}
		}
	}
}

// A large body in small chunks and small packets is not looked at again from its beginning for each
// packet, and chunks without an end are refused.
func TestPacketsOfManyChunks(t *testing.T) {
	testkit.Need(t, "a second")
	body := recorded(t, apm.Makeup{Events: apm.Range{Min: 20_000, Max: 20_000}, Frames: apm.Range{Min: 1, Max: 1}}, 1)
	c := &conversation{p: &Packets{}}
	var got int
	c.p.APM = func(r *APMRequest, _ []byte) error { got += len(r.Events); return nil }
	request := post(t, "", true, body)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for rest := request; len(rest) > 0; {
		n := min(len(rest), 1400)
		assert.OK(t, c.Data(1, rest[:n]))
		rest = rest[n:]
	}
	runtime.ReadMemStats(&after)
	if most := uint64(len(request)) * 100; got != 20_000 || after.TotalAlloc-before.TotalAlloc > most {
		t.Errorf("got %d events, with %d MiB for a request of %d KiB", got, (after.TotalAlloc-before.TotalAlloc)>>20, len(request)>>10)
	}
	head := request[:bytes.Index(request, []byte("\r\n\r\n"))+4]
	if err := c.Data(1, append(bytes.Clone(head), bytes.Repeat([]byte("0"), maxChunkHead)...)); err != nil || c.p.Unreadable != 1 {
		t.Errorf("got %v and %d unreadable requests, want 1", err, c.p.Unreadable)
	}
}

func TestPacketsOfRiemann(t *testing.T) {
	d := newDump()
	d.send(1000, frames(50), 333)
	d.send(5555, bytes.Repeat([]byte{0, 0, 0, 2, 0x10, 1}, 50), 333) // acks
	p, err := readPackets(d.Bytes(), 0)
	if err != nil || p.messages != 50 || p.RieConns != 1 || p.Unreadable != 0 {
		t.Errorf("got %d messages, %d unreadable and %v, want 50", p.messages, p.Unreadable, err)
	}
}

// A connection that began before the capture is read from the first packet that begins a
// request, and again after a gap.
func TestPacketsAfterAGap(t *testing.T) {
	d := newDump()
	request := produce(t, 9, kafka.None, 0, 20)
	d.send(1000, request, 1000)
	d.send(1000, request[:500], 1000)
	d.seq[1000] += 2 << 20 // lost
	d.send(1000, request[700:], 1000)
	for range 3 {
		d.send(1000, request, 1000)
	}
	p, err := readPackets(d.Bytes(), 0)
	if err != nil || len(p.records) != 80 {
		t.Errorf("got %d records and %v, want 80", len(p.records), err)
	}
}

// What a connection leaves when it ends, or after a large request, takes no memory from others.
func TestPacketsEndedConnections(t *testing.T) {
	p := &Packets{}
	c := &conversation{p: p}
	request := produce(t, 9, kafka.None, 0, 2000)
	p.Records.To = &found{}
	p.topics, p.logs = map[string]int32{}, map[logID]int32{}
	if err := c.Data(1, request); err != nil || cap(c.buffer) > smallBuffer {
		t.Errorf("got %v, and %d bytes after a request", err, cap(c.buffer))
	}
	if err := c.Data(1, request[:len(request)-1]); err != nil || p.kept != len(request)-1 {
		t.Errorf("got %v, and %d bytes that wait, want %d", err, p.kept, len(request)-1)
	}
	c.End()
	if p.kept != 0 || c.buffer != nil {
		t.Errorf("got %d bytes that wait after the end", p.kept)
	}
}

func TestPacketsEnough(t *testing.T) {
	d := newDump()
	for range 10 {
		d.send(1000, produce(t, 9, kafka.None, 0, 20), 1000)
	}
	if p, err := readPackets(d.Bytes(), 30); !errors.Is(err, ErrEnough) || len(p.records) >= 200 {
		t.Errorf("got %d records and %v, want an early end", len(p.records), err)
	}
}

func FuzzPackets(f *testing.F) {
	f.Add(produce(f, 9, kafka.None, 0, 2), uint16(100))
	f.Add(produce(f, 3, kafka.Zstd, 0, 2), uint16(50))
	f.Add(post(f, "gzip", true, recorded(f, apm.Makeup{Events: apm.Range{Min: 1, Max: 1}}, 1)), uint16(200))
	f.Add(frames(3), uint16(20))
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		d := newDump()
		d.send(1000, data, max(int(size), 1))
		if _, err := readPackets(d.Bytes(), 100_000); err != nil && !errors.Is(err, ErrEnough) {
			t.Errorf("got %v of a valid capture", err)
		}
	})
}
