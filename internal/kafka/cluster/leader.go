package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Leader asks which broker leads a partition now, and returns its address; of all partitions (-1), the
// broker that leads most of them. Of brokers that lead as many, it is the one with the lowest id.
func (cl *Cluster) Leader(ctx context.Context, partition int) (string, error) {
	meta, err := cl.Metadata(ctx, cl.Config.Topic, false)
	if err != nil {
		return "", err
	}
	t := &meta.Topics[0]
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return "", fmt.Errorf("ask for the leaders of %s: %w", cl.Config.Topic, err)
	}
	leads := map[int32]int{}
	for _, p := range t.Partitions {
		if p.Leader >= 0 && (partition < 0 || int(p.Partition) == partition) {
			leads[p.Leader]++
		}
	}
	if partition >= len(t.Partitions) {
		return "", fmt.Errorf("%s has %d partitions: partition %d does not exist", cl.Config.Topic, len(t.Partitions), partition)
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
