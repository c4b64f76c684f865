package kafka

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
)

// errBatch: the broker sent bytes that can never be read.
var errBatch = errors.New("unreadable batch")

// openTransactions tracks, for one partition read with the isolation level "committed",
// the producers whose transactions are being skipped: the broker reports where aborted
// transactions begin, and their abort markers show where they end.
type openTransactions struct {
	aborting map[int64]bool // by producer id
}

// A decoder makes arrivals from the record sets of fetch answers.
type decoder struct {
	decode      bool // decode every record, verify every checksum
	stamps      bool // look for stamps when decoding
	check       bool // verify every checksum
	committed   bool
	keys        bool  // hash keys
	recreations int32 // how often the topic was created again

	// inspect sees each batch with its plain records; with nil for one that cannot be read.
	// Nil: nothing does.
	inspect func(p *partition, b *wire.Batch, records []byte)

	plain []byte // decompressed records
	marks []load.Stamp

	skippedBatches, skippedEvents uint64 // of aborted transactions
}

func (d *decoder) init(c *cluster.Config, stamped bool) {
	d.stamps = stamped
	d.decode = c.Decode || stamped
	d.check = d.decode || c.Verify
	d.committed = c.Fetch.Committed
	d.keys = c.Compacted
}

// reset makes room for the next answer's stamps.
func (d *decoder) reset() { d.marks = d.marks[:0] }

// appendArrivals appends an arrival for each batch of a partition's record set, and
// advances the partition's offset.
func (d *decoder) appendArrivals(p *partition, fp *wire.FetchPartition, at time.Duration, to []load.Arrival) ([]load.Arrival, error) {
	// Brokers list them in the order of their ends.
	aborted := fp.Aborted
	slices.SortFunc(aborted, func(a, b wire.AbortedTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	from := p.offset
	rest, err := wire.ForEachBatch(fp.Records, func(b wire.Batch) error {
		last := b.BaseOffset + int64(b.LastOffsetDelta)
		if last < p.offset || p.done() {
			return nil // a broker may send from the start of a segment's index entry
		}
		before := p.offset
		if d.committed && d.skip(p, &b, &aborted) || b.Control() {
			p.offset = last + 1
			return nil
		}
		a, err := d.arrival(p, &b)
		if err != nil {
			return err
		}
		if a.Corrupt && d.inspect != nil {
			d.inspect(p, &b, nil)
		}
		a.At = at
		if a.Events > 0 {
			to = append(to, a)
		}
		p.offset = last + 1
		p.noteRead(d.recreations, b.LeaderEpoch, max(before, b.BaseOffset), p.offset, a.Events)
		return nil
	})
	switch {
	case errors.Is(err, wire.ErrMagic):
		return to, fmt.Errorf("%w: %w: --engine client reads record formats older than Kafka 0.11", errBatch, err)
	case err != nil:
		return to, fmt.Errorf("%w: %w", errBatch, err)
	case rest > 0 && p.offset == from && len(fp.Records) == rest:
		// Since KIP-74 the first batch is complete, however large.
		return to, fmt.Errorf("%w: the broker sent only a part of it", errBatch)
	}
	return to, nil
}

// skip tracks transactions and reports whether the batch belongs to an aborted one (as
// the Java client's CompletedFetch does).
func (d *decoder) skip(p *partition, b *wire.Batch, aborted *[]wire.AbortedTransaction) bool {
	last := b.BaseOffset + int64(b.LastOffsetDelta)
	for len(*aborted) > 0 && (*aborted)[0].FirstOffset <= last {
		if p.txn.aborting == nil {
			p.txn.aborting = map[int64]bool{}
		}
		p.txn.aborting[(*aborted)[0].ProducerID] = true
		*aborted = (*aborted)[1:]
	}
	if !b.Transactional() || !p.txn.aborting[b.ProducerID] {
		return false
	}
	if b.Control() {
		if isAbort(b) {
			delete(p.txn.aborting, b.ProducerID)
		}
		return false // control batches never count as events
	}
	d.skippedBatches++
	d.skippedEvents += uint64(b.NumRecords)
	return true
}

// isAbort reports whether a control batch aborts: the key of its one record is
// a version and a type, 0 for abort.
func isAbort(b *wire.Batch) bool {
	abort := false
	// A marker that cannot be decoded does not end a transaction.
	_ = wire.ForEachRecord(b.Records(), b.NumRecords, func(r *wire.Record) error {
		abort = len(r.Key) >= 4 && binary.BigEndian.Uint16(r.Key[2:]) == 0
		return nil
	})
	return abort
}

// arrival describes one batch: its events from the partition's offset on, and before
// the partition's end.
func (d *decoder) arrival(p *partition, b *wire.Batch) (load.Arrival, error) {
	a := load.Arrival{
		Log: p.id, Base: b.BaseOffset, Events: b.NumRecords, Wire: int64(len(b.Raw)), Bytes: -1,
		Sum: b.SentCRC(), ProducerID: b.ProducerID, Epoch: b.ProducerEpoch, Sequence: b.BaseSequence,
	}
	if d.check && b.Check() != nil {
		a.Corrupt = true
		if b.Codec() != wire.None {
			return d.estimate(p, b, a), nil // a decompressor must not get corrupt bytes
		}
	}
	complete := b.BaseOffset >= p.offset && b.BaseOffset+int64(b.LastOffsetDelta) < p.end
	switch {
	case d.decode || !complete:
		recs := b.Records()
		if c := b.Codec(); c != wire.None {
			plain, err := wire.Decompress(d.plain[:0], c, recs)
			if a.Corrupt = err != nil; a.Corrupt {
				return d.estimate(p, b, a), nil
			}
			d.plain, recs = plain, plain
		}
		a = d.records(p, b, recs, a)
		if d.inspect != nil && !a.Corrupt {
			d.inspect(p, b, recs)
		}
		return a, nil
	case b.Codec() == wire.None:
		n, err := eventBytes(b.Records(), b.NumRecords)
		if err != nil {
			a.Corrupt = true
			n = -1
		}
		a.Bytes = n
	}
	return a, nil
}

// estimate describes a batch whose records cannot be read: every offset in it that was
// asked for counts as an event.
func (d *decoder) estimate(p *partition, b *wire.Batch, a load.Arrival) load.Arrival {
	last := min(b.BaseOffset+int64(b.LastOffsetDelta), p.end-1)
	if b.BaseOffset < p.offset || last < b.BaseOffset+int64(b.LastOffsetDelta) {
		a.Base = max(b.BaseOffset, p.offset)
		a.Events = min(b.NumRecords, int32(last-a.Base+1))
		a.Sum = 0
	}
	return a
}

// records decodes every record of a batch and counts those asked for.
func (d *decoder) records(p *partition, b *wire.Batch, recs []byte, a load.Arrival) load.Arrival {
	first := len(d.marks)
	a.Events, a.Bytes = 0, 0
	all := true
	err := wire.ForEachRecord(recs, b.NumRecords, func(r *wire.Record) error {
		offset := b.BaseOffset + int64(r.OffsetDelta)
		if offset < p.offset || offset >= p.end {
			all = false
			return nil
		}
		if a.Events == 0 {
			a.Base = offset
		}
		a.Events++
		a.Bytes += int64(r.EventBytes())
		if d.stamps {
			s, ok := wire.ParseStamp(r.Value)
			m := load.Stamp{Run: s.Run, Stream: s.Stream, Index: s.Index, Offset: offset, Bad: !ok}
			if d.keys {
				m.Key = cluster.HashKey(r.Key)
			}
			d.marks = append(d.marks, m)
		}
		return nil
	})
	if err != nil {
		a.Corrupt = true
		a.Events, a.Bytes = b.NumRecords, -1
		return d.estimate(p, b, a)
	}
	if !all {
		a.Sum = 0 // it covers more records than those counted
	} else {
		a.Base = b.BaseOffset
	}
	a.Stamps = d.marks[first:len(d.marks):len(d.marks)]
	if len(a.Stamps) == 0 {
		a.Stamps = nil
	}
	return a
}

// eventBytes is the size of the keys, values and headers of n records that are not
// compressed. If the total size fits n records like the first one, it reads only the
// first: at 19 M records/s it cannot read each. Else it steps through all records, at
// about 5 ns each.
func eventBytes(recs []byte, n int32) (int64, error) {
	if n == 0 {
		return 0, nil
	}
	first, overhead, timestamp, err := recordLayout(recs)
	if err != nil {
		return 0, err
	}
	if uniformSize(n, first, timestamp, overhead) == int64(len(recs)) {
		return int64(n) * int64(first), nil
	}
	total := int64(0)
	for range n {
		length, k := binary.Varint(recs)
		if k <= 0 || length < 0 || length > int64(len(recs)-k) {
			return 0, wire.ErrShort
		}
		bytes, _, _, err := recordLayout(recs)
		if err != nil {
			return 0, err
		}
		total += int64(bytes)
		recs = recs[k+int(length):]
	}
	if len(recs) != 0 {
		return 0, wire.ErrLength
	}
	return total, nil
}

// recordLayout reads the record at the start of recs. It returns the size of its key,
// value and headers, the size of the rest of its body without the deltas, and the size
// of its timestamp delta.
func recordLayout(recs []byte) (bytes, overhead, timestamp int, err error) {
	length, k := binary.Varint(recs)
	if k <= 0 || length < 1 || length > int64(len(recs)-k) {
		return 0, 0, 0, wire.ErrShort
	}
	b := recs[k : k+int(length)][1:] // after the attributes
	if _, timestamp = binary.Varint(b); timestamp <= 0 {
		return 0, 0, 0, wire.ErrShort
	}
	b = b[timestamp:]
	_, delta := binary.Varint(b)
	if delta <= 0 {
		return 0, 0, 0, wire.ErrShort
	}
	b = b[delta:]
	take := func() bool {
		n, k := binary.Varint(b)
		if k <= 0 || n > int64(len(b)-k) {
			return false
		}
		n = max(0, n) // -1 is null
		bytes += int(n)
		b = b[k+int(n):]
		return true
	}
	for range 2 { // key and value
		if !take() {
			return 0, 0, 0, wire.ErrShort
		}
	}
	headers, k := binary.Varint(b)
	if k <= 0 || headers < 0 || headers > int64(len(b)) {
		return 0, 0, 0, wire.ErrShort
	}
	b = b[k:]
	for range 2 * headers {
		if !take() {
			return 0, 0, 0, wire.ErrShort
		}
	}
	return bytes, int(length) - bytes - timestamp - delta, timestamp, nil
}

// uniformSize is the size in bytes of n records like the first: only the offset delta
// grows, and with it the record's length.
func uniformSize(n int32, bytes, timestamp, overhead int) int64 {
	total := int64(0)
	for from := int64(0); from < int64(n); {
		size := varintSize(from)
		// Zigzag varints of 7 bits a byte: size bytes reach up to this delta.
		to := min(int64(n), int64(1)<<(7*size-1))
		body := int64(overhead + bytes + timestamp + size)
		total += (to - from) * (body + int64(varintSize(body)))
		from = to
	}
	return total
}

// varintSize is the size in bytes of a zigzag varint of v, which is not negative.
func varintSize(v int64) int { return (bits.Len64(uint64(v)<<1|1) + 6) / 7 }
