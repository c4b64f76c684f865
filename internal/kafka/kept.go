package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"carronade/internal/kafka/cluster"
)

// Records that were read may be lost later: a broker's disk is wiped, a leader without
// the end of the log is elected, the topic is created again. New records then get the
// same offsets, so the log's end does not show the loss. The leader epochs do: each
// batch has the epoch of the leader that appended it, and a leader reports where an
// epoch ended in its log (KIP-101, KIP-320).

// A readRange is what was read of a partition in one epoch of its leader.
type readRange struct {
	recreations int32 // how often the topic had been created again
	epoch       int32
	from, to    int64 // offsets
	events      int64
}

// mostReadRanges bounds the ranges of each partition: beyond that, later epochs are not
// checked.
const mostReadRanges = 1000

// noteRead adds a batch that was read.
func (p *partition) noteRead(made, epoch int32, from, to int64, events int32) {
	if n := len(p.readRanges); n > 0 {
		if last := &p.readRanges[n-1]; last.recreations == made && last.epoch == epoch && last.to <= from {
			last.to = to
			last.events += int64(events)
			return
		}
	}
	if len(p.readRanges) < mostReadRanges {
		p.readRanges = append(p.readRanges, readRange{made, epoch, from, to, int64(events)})
	}
}

const (
	// For a moment, a new leader may report an earlier end than what was read
	// (KIP-207), so missing events are looked for again.
	goneAttempts = 4
	gonePause    = 500 * time.Millisecond
)

// Gone counts the records that were read and have been removed since.
func (s *wireSource) Gone(ctx context.Context) ([]uint64, error) {
	var gone []uint64
	var err error
	for look := range goneAttempts {
		if look > 0 {
			if ended := cluster.Pause(ctx, gonePause); ended != nil {
				return nil, cmp.Or(err, ended)
			}
		}
		var now []uint64
		if now, err = s.countGone(ctx); err != nil {
			continue
		}
		missing := false
		for i := range now {
			if gone != nil {
				now[i] = min(now[i], gone[i])
			}
			missing = missing || now[i] > 0
		}
		if gone = now; !missing {
			break
		}
	}
	if gone == nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goneWarnings = nil
	for i, n := range gone {
		if n > 0 {
			s.goneWarnings = append(s.goneWarnings, fmt.Sprintf("%s: its log no longer holds %d events that had been read (it was truncated, deleted or created again)", s.nameOf(s.parts[i]), n))
		}
	}
	return gone, nil
}

func (s *wireSource) countGone(ctx context.Context) ([]uint64, error) {
	if err := s.refresh(ctx); err != nil {
		return nil, fmt.Errorf("look up the partitions' leaders: %w", err)
	}
	ends, err := s.cl.Ends(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	made := s.recreations
	s.mu.Unlock()
	gone := make([]uint64, len(s.parts))
	rounds := 0
	for _, p := range s.parts {
		rounds = max(rounds, len(p.readRanges))
	}
	for round := range rounds {
		lowered := slices.Clone(ends)
		if err := s.epochEnds(ctx, round, made, lowered); err != nil {
			return nil, err
		}
		for i, p := range s.parts {
			if round < len(p.readRanges) {
				gone[i] += p.readRanges[round].eventsBeyond(made, lowered[i])
			}
		}
	}
	return gone, nil
}

// epochEnds asks where the epoch of each partition's range with the index round ends, and
// lowers the ends to that.
func (s *wireSource) epochEnds(ctx context.Context, round int, made int32, ends []int64) error {
	var ask kadm.OffsetForLeaderEpochRequest
	for _, p := range s.parts {
		if round < len(p.readRanges) && p.readRanges[round].recreations == made && p.readRanges[round].epoch >= 0 {
			ask.Add(s.topics[p.place.Topic].Name, p.place.Partition, p.readRanges[round].epoch)
		}
	}
	if ask == nil {
		return nil
	}
	answers, err := s.cl.Admin.OffsetForLeaderEpoch(ctx, ask)
	if err != nil {
		return fmt.Errorf("look up where epochs end: %w", err)
	}
	for topic, partitions := range answers {
		for id, end := range partitions {
			log := s.cl.LogOf(topic, id)
			switch {
			case log < 0:
			case end.Err != nil:
				return fmt.Errorf("look up where an epoch of partition %d of %s ends: %w", id, topic, end.Err)
			case end.EndOffset < 0 || end.LeaderEpoch < 0: // the leader does not know the epoch
			default:
				ends[log] = min(ends[log], end.EndOffset)
			}
		}
	}
	return nil
}

// eventsBeyond is an upper bound of the events of a range from an offset on; all of them
// if the topic was created again since.
func (x *readRange) eventsBeyond(made int32, end int64) uint64 {
	if x.recreations != made {
		end = x.from
	}
	return uint64(max(0, min(x.events, x.to-max(x.from, end))))
}
