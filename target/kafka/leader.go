package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Leader implements target.Leading. Of brokers that lead as many partitions, it is the one with the
// lowest id.
func (s *session) Leader(ctx context.Context, partition int) (string, error) {
	meta, err := s.cl.metadata(ctx, s.cl.cfg.topic, false)
	if err != nil {
		return "", err
	}
	t := &meta.Topics[0]
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return "", fmt.Errorf("ask for the leaders of %s: %w", s.cl.cfg.topic, err)
	}
	leads := map[int32]int{}
	for _, p := range t.Partitions {
		if p.Leader >= 0 && (partition < 0 || int(p.Partition) == partition) {
			leads[p.Leader]++
		}
	}
	if partition >= len(t.Partitions) {
		return "", fmt.Errorf("%s has %d partitions: partition %d does not exist", s.cl.cfg.topic, len(t.Partitions), partition)
	}
	found, most := int32(-1), 0
	for id, n := range leads {
		if n > most || n == most && id < found {
			found, most = id, n
		}
	}
	for _, b := range meta.Brokers {
		if b.NodeID == found {
			return net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), nil
		}
	}
	return "", errors.New("the partition has no leader now")
}
