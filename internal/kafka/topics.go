package kafka

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
)

// Topics makes a load of operations on topics. It returns when all are answered, or when the context
// ends, with the result so far. An error means that the load could not start.
func Topics(ctx context.Context, w cluster.TopicLoad) (*cluster.TopicResult, error) {
	return cluster.LoadTopics(ctx, w, readTopic)
}

// readTopic reads a topic completely, to the ends that it has when reading begins. It does not
// create a missing topic.
func readTopic(ctx context.Context, c *cluster.Config, client *kgo.Client, name string) (cluster.TopicReading, error) {
	began := time.Now()
	one := *c
	one.SetTopic(name)
	one.UntilEnd, one.From, one.Op, one.Group = true, cluster.FromStart, cluster.OpConsume, ""
	cl := cluster.New(&one, client)
	meta, err := cl.Metadata(ctx, false, name)
	if err != nil {
		return cluster.TopicReading{}, err
	}
	if err := kerr.ErrorForCode(meta.Topics[0].ErrorCode); err != nil {
		return cluster.TopicReading{}, err
	}
	cl.ApplyMetadata(meta)
	src, err := newWireSource(ctx, cl, false)
	if err != nil {
		return cluster.TopicReading{}, err
	}
	var events, bytes, wire atomic.Int64
	var packed atomic.Bool
	err = src.Receive(ctx, func() time.Duration { return time.Since(began) }, func(_ int, as []load.Arrival) {
		for i := range as {
			a := &as[i]
			events.Add(int64(a.Events))
			wire.Add(a.Wire)
			if a.Bytes < 0 {
				packed.Store(true)
			} else {
				bytes.Add(a.Bytes)
			}
		}
	})
	if err != nil {
		return cluster.TopicReading{}, err
	}
	r := cluster.TopicReading{
		Partitions: cl.Partitions(), Replicas: slices.Max(append(cl.Replicas, 0)),
		Events: uint64(events.Load()), Bytes: uint64(bytes.Load()), Wire: packed.Load(),
	}
	if r.Wire {
		r.Bytes = uint64(wire.Load())
	}
	return r, nil
}
