package profile

import (
	"carronade/internal/kafka/wire"
)

// A KafkaBatches gives the records of Kafka's record batches to a Sink. It keeps memory for
// the next batch, so it belongs to one goroutine.
type KafkaBatches struct {
	To     Sink
	record Record
}

// Add takes the records of a batch, which are not compressed, from offset from on and before
// offset to.
func (k *KafkaBatches) Add(partition int32, b *wire.Batch, records []byte, from, to int64) error {
	events, oneTime := 0, true
	appended := b.Attributes&wire.AttrLogAppendTime != 0
	r := &k.record
	err := wire.ForEachRecord(records, b.NumRecords, func(in *wire.Record) error {
		if offset := b.BaseOffset + int64(in.OffsetDelta); offset < from || offset >= to {
			return nil
		}
		at := b.BaseTimestamp + in.TimestampDelta
		if appended {
			at = b.MaxTimestamp
		}
		oneTime = oneTime && (appended || in.TimestampDelta == 0)
		events++
		*r = Record{Log: partition, Keyed: in.Key != nil, Key: in.Key, Value: in.Value, Null: in.Value == nil, Headers: r.Headers[:0]}
		if at > 0 && at < maxMillis {
			r.Time = at * 1e6
		}
		if err := in.Headers(func(name, value []byte) { r.Headers = append(r.Headers, Header{Name: name, Value: value}) }); err != nil {
			return err
		}
		k.To.Record(r)
		return nil
	})
	if err != nil {
		return err
	}
	if events > 0 {
		k.To.Batch(Batch{Codec: b.Codec().String(), Events: int(b.NumRecords), Plain: int64(len(records)), Wire: int64(len(b.Records())), OneTime: oneTime})
	}
	return nil
}

// maxMillis is the last time that is taken for one: in nanoseconds it fits 63 bits.
const maxMillis = 1 << 63 / 1_000_000
