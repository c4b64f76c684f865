package cluster

import (
	"context"
	"errors"
	"fmt"
)

// Leader asks which broker leads a partition of the first topic now, and returns its address; of all partitions (-1), the
// broker that leads most of them. Of brokers that lead as many, it is the one with the lowest id.
func (cl *Cluster) Leader(ctx context.Context, partition int) (string, error) {
	c := cl.Config
	names := c.Names
	if partition >= 0 {
		names = names[:1]
	}
	meta, err := cl.Metadata(ctx, false, names...)
	if err != nil {
		return "", err
	}
	if name, err := topicError(meta); err != nil {
		return "", fmt.Errorf("ask for the leaders of %s: %w", name, err)
	}
	leads := map[int32]int{}
	for i := range meta.Topics {
		for _, p := range meta.Topics[i].Partitions {
			if p.Leader >= 0 && (partition < 0 || int(p.Partition) == partition) {
				leads[p.Leader]++
			}
		}
	}
	if n := len(meta.Topics[0].Partitions); partition >= n {
		return "", fmt.Errorf("%s has %d partitions: partition %d does not exist", c.Topic, n, partition)
	}
	found, most := int32(-1), 0
	for id, n := range leads {
		if n > most || n == most && id < found {
			found, most = id, n
		}
	}
	for _, b := range meta.Brokers {
		if b.NodeID == found {
			return JoinAddr(b.Host, b.Port), nil
		}
	}
	return "", errors.New("the partition has no leader now")
}
