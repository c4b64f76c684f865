package kafka

import (
	"fmt"
	"math"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/payload"
	"carronade/protocol"
	"carronade/units"
)

// A batchPool holds the record batches that are encoded before a run. Their
// records never change afterwards; only the 61 bytes of the batch header differ,
// and each batch gets a new header. So one batch pool serves all lanes and any
// number of batches in flight, stays in the processor's cache, and needs no
// bookkeeping of what is still being sent.
//
// The checksum that covers both is combined from two (see wire/kafka, Seal).
type batchPool struct {
	templates []template
	byPart    [][]template // by partition, where keys choose it; else nil
	memory    [][]byte     // off the heap
	stamped   bool         // every value has room for a stamp
	events    int
	rawBytes  int64 // bytes of records, uncompressed
	warning   string

	codec           wire.Codec
	compressedBytes int64 // bytes of all complete templates, compressed
}

// A template holds the encoded records of one batch. Any prefix of its records is
// a batch, too.
type template struct {
	id          int32
	recs        []byte   // off the heap
	ends        []uint32 // where each record ends in recs
	sums        []uint32 // CRC-32C of recs up to there
	bytes       []uint32 // event bytes up to there
	valueStarts []uint32 // where each value begins; nil unless stamps are wanted
	keyHashes   []uint64 // the hash of each key; nil unless they are wanted
	recsSum     wire.Sum

	compressed    []byte // all of recs, compressed
	compressedSum wire.Sum
}

// mostTemplates bounds the number of templates, and with it the tables next to the
// records, where events or batches are tiny.
const mostTemplates = 4096

// batchPoolConfig is what a batch pool is made from.
type batchPoolConfig struct {
	gen         *payload.Generator
	codec       wire.Codec
	batchSize   int   // bytes of a batch with its header, uncompressed
	batchEvents int   // 0: as many as fit
	pool        int64 // bytes of records
	stamps      bool  // keep where values begin
	hashes      bool  // keep hashes of keys
	cycle       *cluster.KeyCycle
	cut         func() error // why encoding must end; nil: never
}

// newBatchPool encodes the batches.
func newBatchPool(c batchPoolConfig) (*batchPool, error) {
	s := &batchPool{codec: c.codec, stamped: c.stamps && c.codec == wire.None}
	headers := wire.HeaderEncoder{Source: c.gen}
	if c.cycle == nil {
		n := uint64(0)
		if err := s.fill(c, &s.templates, &headers, c.pool, func() uint64 { n++; return n - 1 }); err != nil {
			return nil, err
		}
		return s, nil
	}
	// Keys choose the partition, so each partition has its own batches, at least
	// one. Together they may be more than the pool size asked for.
	if err := s.limitBatchSize(&c); err != nil {
		return nil, err
	}
	s.byPart = make([][]template, len(c.cycle.Events))
	for p, events := range c.cycle.Events {
		if len(events) == 0 {
			continue
		}
		n := 0
		next := func() uint64 { n++; return uint64(events[(n-1)%len(events)]) }
		if err := s.fill(c, &s.byPart[p], &headers, c.pool/int64(len(c.cycle.Events)), next); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// mostKeyedPool bounds the memory of batches that are encoded for each partition, at
// least one for each, unless the pool is larger.
const mostKeyedPool = 256 << 20

// limitBatchSize makes batches smaller where one for each partition would take too
// much memory. It returns an error where even the smallest ones do.
func (s *batchPool) limitBatchSize(c *batchPoolConfig) error {
	parts := int64(0)
	for _, events := range c.cycle.Events {
		if len(events) > 0 {
			parts++
		}
	}
	if s.codec != wire.None {
		parts *= 2 // each is also kept compressed
	}
	most := max(c.pool, mostKeyedPool)
	per := int(most/parts) + wire.HeaderSize
	headers := wire.HeaderEncoder{Source: c.gen}
	least := c.minBatchSize(len(headers.Encode(0)))
	full := max(c.batchSize, least) // one event is never cut
	if c.batchEvents > 0 {
		full = least // they never have more events
	}
	if per >= full {
		return nil
	}
	if per < least {
		return &protocol.Error{
			Doing: "encode batches ahead",
			Err: fmt.Errorf("keys choose the partition, so each partition needs its own batches: the smallest ones take %s, and the pool has %s",
				units.FormatSize(int64(least)*parts), units.FormatSize(most)),
			Hint: "add --fresh, which needs no pool, or --pool " + units.FlagSizeAbove(int64(least)*parts),
		}
	}
	s.warning = fmt.Sprintf("batches are limited to %s instead of --batch-size: keys choose the partition, so each partition needs its own batches, and the pool has %s; --pool %s fits full batches, and --fresh needs no pool",
		units.FormatSize(int64(per)), units.FormatSize(most), units.FlagSizeAbove(int64(c.batchSize)*parts))
	c.batchSize = per
	return nil
}

// minBatchSize is the mean size in bytes of the smallest batch that is allowed: of
// one event, or of as many as a batch has.
func (c *batchPoolConfig) minBatchSize(headersLen int) int {
	keys, n := 0, 0
	for _, events := range c.cycle.Events {
		if len(events) > 0 && c.gen.HasKey() {
			keys += len(c.gen.AppendKey(nil, uint64(events[0])))
			n++
		}
	}
	count := max(1, c.batchEvents)
	// An upper bound: the record's overhead varies with its number and sizes.
	record := wire.RecordSize(int32(min(count, math.MaxInt32)), keys/max(1, n)+1, int(math.Ceil(c.gen.MeanSize())), headersLen)
	return min(wire.HeaderSize+count*record, max(c.batchSize, wire.HeaderSize+record))
}

// fill makes templates of the events that next returns until they have as many
// bytes as asked for; at least one.
func (s *batchPool) fill(c batchPoolConfig, to *[]template, headers *wire.HeaderEncoder, bytes int64, next func() uint64) error {
	var z *wire.Compressor
	if s.codec != wire.None {
		var err error
		if z, err = wire.NewCompressor(s.codec); err != nil {
			return err
		}
	}
	limit := c.batchSize - wire.HeaderSize
	var buf []byte
	event, filled := next(), int64(0)
	for len(*to) == 0 || filled+int64(limit) <= bytes && s.events < math.MaxInt32 && len(*to) < mostTemplates {
		d := template{id: int32(len(*to))}
		buf = buf[:0]
		var key []byte
		sum, total := uint32(0), 0
		for {
			if c.cut != nil && len(d.ends)%1024 == 0 {
				if err := c.cut(); err != nil {
					return err
				}
			}
			if c.gen.HasKey() {
				key = c.gen.AppendKey(key[:0], event)
			}
			size := c.gen.Size(event)
			delta := int32(len(d.ends))
			encoded := headers.Encode(event)
			need := wire.RecordSize(delta, keyLen(key), size, len(encoded))
			if delta > 0 && len(buf)+need > limit {
				break
			}
			if len(buf)+need > math.MaxInt32/2 {
				return fmt.Errorf("encode batches: a record of %d bytes is more than Kafka's protocol can carry", need)
			}
			at := len(buf)
			buf = wire.OpenRecord(buf, delta, key, size, len(encoded))
			if c.stamps {
				d.valueStarts = append(d.valueStarts, uint32(len(buf)))
				s.stamped = s.stamped && size >= wire.StampSize
			}
			if c.hashes {
				d.keyHashes = append(d.keyHashes, cluster.HashKey(key))
			}
			buf = c.gen.AppendValue(buf, event)
			buf = append(buf, encoded...)
			sum = wire.UpdateCRC(sum, buf[at:])
			total += len(key) + size + headers.EventBytes
			d.ends = append(d.ends, uint32(len(buf)))
			d.sums = append(d.sums, sum)
			d.bytes = append(d.bytes, uint32(total))
			event = next()
			if len(d.ends) == c.batchEvents {
				break
			}
		}
		recs, err := s.copyOffHeap(buf)
		if err != nil {
			return fmt.Errorf("encode batches: %w", err)
		}
		d.recs, d.recsSum = recs, wire.SumAt(sum, len(recs))
		if z != nil {
			packed, err := z.Append(nil, recs)
			if err != nil {
				return fmt.Errorf("encode batches: %w", err)
			}
			if d.compressed, err = s.copyOffHeap(packed); err != nil {
				return fmt.Errorf("encode batches: %w", err)
			}
			d.compressedSum = wire.SumOf(d.compressed)
			s.compressedBytes += int64(len(d.compressed))
		}
		filled += int64(len(recs))
		s.rawBytes += int64(len(recs))
		s.events += len(d.ends)
		*to = append(*to, d)
	}
	return nil
}

// copyOffHeap copies b off the heap. Many such copies share one mapping.
func (s *batchPool) copyOffHeap(b []byte) ([]byte, error) {
	const mapping = 1 << 20
	var room []byte
	if n := len(s.memory); n > 0 {
		room = s.memory[n-1]
	}
	if cap(room)-len(room) < len(b) {
		m, err := offHeap(max(mapping, len(b)))
		if err != nil {
			return nil, fmt.Errorf("map memory: %w", err)
		}
		room = m[:0]
		s.memory = append(s.memory, room)
	}
	at := len(room)
	room = append(room, b...)
	s.memory[len(s.memory)-1] = room
	return room[at:len(room):len(room)], nil
}

// free returns the memory to the system. No batch may be in flight any more.
func (s *batchPool) free() error {
	var first error
	for _, m := range s.memory {
		if err := freeOffHeap(m[:cap(m)]); err != nil && first == nil {
			first = err
		}
	}
	s.memory, s.templates, s.byPart = nil, nil, nil
	return first
}

// pick returns the template for the batch of a stream that begins with its event
// first. It always returns the same one, so that the room which was reported for
// the batch is still right when the batch is sent. nil: the partition has no keys.
func (s *batchPool) pick(stream, partition int32, first uint64) *template {
	ds := s.templates
	if s.byPart != nil {
		ds = s.byPart[partition]
	}
	switch len(ds) {
	case 0:
		return nil
	case 1:
		return &ds[0]
	}
	// Fibonacci hashing, by its high bits.
	h := (first + uint64(uint32(stream))<<40 + 1) * 0x9e3779b97f4a7c15
	return &ds[(h>>32)*uint64(len(ds))>>32]
}

// eventSize is the size of the first record that was encoded ahead, with which those of others
// usually compare.
func (s *batchPool) eventSize() int {
	if len(s.templates) > 0 {
		return min(s.templates[0].size(1), smallRecords)
	}
	return 0
}

// events is the number of records in the template.
func (d *template) events() int { return len(d.ends) }

// size is the number of bytes of the first k records.
func (d *template) size(k int) int { return int(d.ends[k-1]) }

// sum is the checksum of the first k records.
func (d *template) sum(k int) wire.Sum {
	if k == len(d.ends) {
		return d.recsSum
	}
	return wire.SumAt(d.sums[k-1], int(d.ends[k-1]))
}

func keyLen(key []byte) int {
	if key == nil {
		return -1
	}
	return len(key)
}
