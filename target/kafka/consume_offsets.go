package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// startText describes where reading starts, for the report.
func (c *config) startText() string {
	if c.op == opConsume {
		return c.from.String()
	}
	return "the end at the start of the run"
}

// starts finds, per partition, the offset where reading starts: for consuming, the one
// of the option from, else the current end of the log.
func (cl *cluster) starts(ctx context.Context) ([]int64, error) {
	c := cl.cfg
	if c.op != opConsume {
		return cl.offsets(ctx, fromEnd)
	}
	if c.from.kind != "offset" {
		return cl.offsets(ctx, c.from)
	}
	first, err := cl.offsets(ctx, fromStart)
	if err != nil {
		return nil, err
	}
	last, err := cl.offsets(ctx, fromEnd)
	if err != nil {
		return nil, err
	}
	starts := make([]int64, len(first))
	outside := 0
	for i := range starts {
		starts[i] = min(max(c.from.offset, first[i]), last[i])
		if starts[i] != c.from.offset {
			outside++
		}
	}
	if outside > 0 {
		cl.warnings = append(cl.warnings, fmt.Sprintf("offset %d is out of range in %d of %d partitions; they are read from the nearest end", c.from.offset, outside, len(starts)))
	}
	return starts, nil
}

// ends asks, per partition, for the current end of what may be read.
func (cl *cluster) ends(ctx context.Context) ([]int64, error) {
	return cl.offsets(ctx, fromEnd)
}

// heads asks, per partition, for the current beginning.
func (cl *cluster) heads(ctx context.Context) ([]int64, error) {
	return cl.offsets(ctx, fromStart)
}

// offsets asks the leaders, per partition, for the offset of a position. With
// the isolation level "committed" the end is the last stable offset.
func (cl *cluster) offsets(ctx context.Context, at position) ([]int64, error) {
	c := cl.cfg
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	doing := fmt.Sprintf("ask for the offsets (%s) of %s", at, c.topic)
	for {
		listed, err := cl.listOffsets(ctx, at)
		if err == nil {
			var o []int64
			if o, err = cl.offsetsByLog(listed); err == nil {
				return o, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, c.explain(doing, err)
		case <-time.After(metadataPause):
		}
	}
}

func (cl *cluster) listOffsets(ctx context.Context, at position) (kadm.ListedOffsets, error) {
	topics := cl.topicNames()
	switch {
	case at.kind == "earliest":
		return cl.admin.ListStartOffsets(ctx, topics...)
	case at.kind == "time":
		return cl.admin.ListOffsetsAfterMilli(ctx, at.time.UnixMilli(), topics...)
	case cl.cfg.fetch.committed:
		return cl.admin.ListCommittedOffsets(ctx, topics...)
	}
	return cl.admin.ListEndOffsets(ctx, topics...)
}

func (cl *cluster) offsetsByLog(listed kadm.ListedOffsets) ([]int64, error) {
	o := make([]int64, cl.logCount())
	var err error
	cl.eachLog(func(log int, topic string, partition int32) {
		l, ok := listed.Lookup(topic, partition)
		switch {
		case err != nil:
		case !ok:
			err = fmt.Errorf("the answer lacks partition %d of %s", partition, topic)
		case l.Err != nil:
			err = fmt.Errorf("partition %d of %s: %w", partition, topic, l.Err)
		default:
			o[log] = l.Offset
		}
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}
