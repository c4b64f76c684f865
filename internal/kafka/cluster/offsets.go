package cluster

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
)

// StartText describes where reading starts, for the report.
func (c *Config) StartText() string {
	if c.Op == OpConsume {
		return c.From.String()
	}
	return "the end at the start of the run"
}

// Starts finds, per partition, the offset where reading starts: for consuming, the one
// of the option from, else the current end of the log.
func (cl *Cluster) Starts(ctx context.Context) ([]int64, error) {
	c := cl.Config
	if c.Op != OpConsume {
		return cl.Offsets(ctx, FromEnd)
	}
	if c.From.Kind != "offset" {
		return cl.Offsets(ctx, c.From)
	}
	first, err := cl.Offsets(ctx, FromStart)
	if err != nil {
		return nil, err
	}
	last, err := cl.Offsets(ctx, FromEnd)
	if err != nil {
		return nil, err
	}
	starts := make([]int64, len(first))
	outside := 0
	for i := range starts {
		starts[i] = min(max(c.From.Offset, first[i]), last[i])
		if starts[i] != c.From.Offset {
			outside++
		}
	}
	if outside > 0 {
		cl.Warnings = append(cl.Warnings, fmt.Sprintf("offset %d is out of range in %d of %d partitions; they are read from the nearest end", c.From.Offset, outside, len(starts)))
	}
	return starts, nil
}

// highWatermark is the end of a log, whatever the isolation level is.
var highWatermark = Position{Kind: "high watermark"}

// Ends asks, per partition, for the current end of what may be read.
func (cl *Cluster) Ends(ctx context.Context) ([]int64, error) {
	return cl.Offsets(ctx, FromEnd)
}

// Heads asks, per partition, for the current beginning.
func (cl *Cluster) Heads(ctx context.Context) ([]int64, error) {
	return cl.Offsets(ctx, FromStart)
}

// Offsets asks the leaders, per partition, for the offset of a position. With
// the isolation level "committed" the end is the last stable offset.
func (cl *Cluster) Offsets(ctx context.Context, at Position) ([]int64, error) {
	c := cl.Config
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	doing := fmt.Sprintf("ask for the offsets (%s) of %s", at, c.TopicText())
	for {
		listed, err := cl.listOffsets(ctx, at)
		if err == nil {
			var o []int64
			if o, err = cl.offsetsByLog(listed); err == nil {
				return o, nil
			}
		}
		if Pause(ctx, MetadataPause) != nil {
			return nil, c.Explain(doing, err)
		}
	}
}

func (cl *Cluster) listOffsets(ctx context.Context, at Position) (kadm.ListedOffsets, error) {
	topics := cl.Config.Names
	switch {
	case at.Kind == "earliest":
		return cl.Admin.ListStartOffsets(ctx, topics...)
	case at.Kind == "time":
		return cl.Admin.ListOffsetsAfterMilli(ctx, at.Time.UnixMilli(), topics...)
	case cl.Config.Fetch.Committed && at != highWatermark:
		return cl.Admin.ListCommittedOffsets(ctx, topics...)
	}
	return cl.Admin.ListEndOffsets(ctx, topics...)
}

func (cl *Cluster) offsetsByLog(listed kadm.ListedOffsets) ([]int64, error) {
	o := make([]int64, cl.Partitions())
	var err error
	cl.EachLog(func(log int, topic string, partition int32) {
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
