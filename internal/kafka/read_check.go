package kafka

import (
	"fmt"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/payload"
	"carronade/protocol"
)

// openCheck prepares the check of the values that are read; nil: none was requested.
func openCheck(c *cluster.Config, list *items) (*payload.Check, error) {
	if c.CheckValues == "" {
		return nil, nil
	}
	check, err := payload.ParseCheck(c.CheckValues)
	if err == nil && list != nil && check.Items() > 0 && uint64(check.Items()) != list.n {
		err = fmt.Errorf("the list of check-values has %d items, and %d are read", check.Items(), list.n)
	}
	if err != nil {
		return nil, &protocol.Error{Doing: "prepare to check values", Err: err, Hint: "give the ring and the list with which the records were written"}
	}
	return check, nil
}

// itemOf is the number of the item that is at an offset of a read.
func (r *itemReader) itemOf(p *itemRead, offset int64) uint64 {
	k := uint64(offset - (p.to - int64(p.batch.Events)))
	if r.items == nil { // of a pipeline: the streams are those of the producer
		return r.partitioner.Event(p.batch.Stream, p.batch.First+k)
	}
	return (r.partitioner.Event(p.batch.Stream, p.batch.First) + k) % r.items.n
}

// checkedWithin counts the records of a batch with offsets in [from, to) whose values are
// right, and their bytes, and appends where they are. It reports whether the values of
// others are wrong. The records are not compressed.
func (r *itemReader) checkedWithin(dst []wire.ListRun, p *itemRead, b *wire.Batch, records []byte, from, to int64) (_ []wire.ListRun, n int32, bytes int64, altered bool, err error) {
	err = wire.ForEachRecord(records, b.NumRecords, func(rec *wire.Record) error {
		offset := b.BaseOffset + int64(rec.OffsetDelta)
		switch {
		case offset < from || offset >= to:
		case !r.check.Value(r.itemOf(p, offset), rec.Key, rec.Value):
			altered = true
		default:
			n++
			bytes += int64(rec.EventBytes())
			if r.list != nil {
				dst = append(dst, wire.ListRun{Offset: offset, Count: 1})
			}
		}
		return nil
	})
	return dst, n, bytes, altered, err
}
