package franz

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
)

// resetOffset is where a group starts that has committed nothing.
func (s *Source) resetOffset() kgo.Offset {
	switch c := s.cl.Config; {
	case c.Op != cluster.OpConsume || c.From.Kind == "latest":
		return kgo.NewOffset().AtEnd()
	case c.From.Kind == "time":
		return kgo.NewOffset().AfterMilli(c.From.Time.UnixMilli())
	case c.From.Kind == "offset":
		return kgo.NewOffset().At(c.From.Offset)
	}
	return kgo.NewOffset().AtStart()
}

// fromStarts has a group that has committed nothing start at the ends that the logs had when the run began, unless it
// only consumes. The ends when it gets its partitions are later: the events sent until then would never be read.
func (s *Source) fromStarts(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	const end = -1
	if s.cl.Config.Op == cluster.OpConsume {
		return offsets, nil
	}
	starts := s.Starts()
	for topic, parts := range offsets {
		for p, at := range parts {
			log := s.cl.LogOf(topic, p)
			if log < 0 {
				continue
			}
			// What a group of several has committed before the start is of an earlier run.
			if from := at.EpochOffset().Offset; from == end || s.apart && from < starts[log] {
				parts[p] = kgo.NewOffset().At(starts[log])
			}
		}
	}
	return offsets, nil
}

func (r *reader) onAssigned(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.cl.EachAssigned(parts, func(log int32) { r.owned[log] = true })
	r.most = max(r.most, len(r.owned))
	r.assignments++
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned++
	// An empty assignment counts, too: there may be more members than partitions.
	if !r.unassignedSince.IsZero() {
		if s.revoked > 0 { // the first assignment is not a rebalance
			s.cl.Config.Happened("rebalance", r.unassignedSince, time.Since(r.unassignedSince))
		}
		r.unassigned += time.Since(r.unassignedSince)
		r.unassignedSince = time.Time{}
	}
}

func (r *reader) onRevoked(ctx context.Context, cl *kgo.Client, parts map[string][]int32) {
	// The next owner must not deliver these events again. At the end of the run,
	// leave has tried to commit already.
	if !r.leaving.Load() {
		if err := cl.CommitMarkedOffsets(ctx); err != nil && ctx.Err() == nil {
			r.s.cl.Config.Logf("commit before a rebalance: %v", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.cl.EachAssigned(parts, func(log int32) { delete(r.owned, log) })
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.revoked++
	if !r.leaving.Load() {
		r.revocations++
		r.s.cl.Config.Happened("rebalance", time.Now(), 0)
	}
	if len(r.owned) == 0 && r.unassignedSince.IsZero() && !r.leaving.Load() {
		r.unassignedSince = time.Now()
	}
}

// Rebalancing implements load.Source: the time without an assignment, the mean over
// the clients.
func (s *Source) Rebalancing() time.Duration {
	if s.cl.Config.Group == "" && !s.apart {
		return 0
	}
	s.mu.Lock()
	clients := s.clients
	s.mu.Unlock()
	total := time.Duration(0)
	for _, r := range clients {
		total += r.withoutAssignment()
	}
	return total / time.Duration(max(1, len(clients)))
}

// withoutAssignment is how long a member had no assignment so far.
func (r *reader) withoutAssignment() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := r.unassigned
	if !r.unassignedSince.IsZero() {
		total += time.Since(r.unassignedSince)
	}
	return total
}

// divided are the members, which are the clients. Those of other generators read nothing here.
func (s *Source) divided() load.Members {
	return load.Members{Number: s.cl.Config.Clients, Of: func(lane int, _ int32) int { return lane }, State: func(member int) (m load.MemberResult) {
		s.mu.Lock()
		clients := s.clients
		s.mu.Unlock()
		for _, r := range clients {
			if r.id != member {
				continue
			}
			m.UnassignedS = r.withoutAssignment().Seconds()
			r.mu.Lock()
			m.Partitions = r.most
			m.Rebalances = max(r.revocations, max(r.assignments, 1)-1)
			r.mu.Unlock()
		}
		return m
	}}
}

// resumeCommitted takes over the offsets that a group has committed: it resumes
// there, whatever the option from says.
func (s *Source) resumeCommitted(ctx context.Context) error {
	c := s.cl.Config
	if c.Group == "" || s.apart {
		return nil
	}
	var committed kadm.OffsetResponses
	err := c.AwaitCoordinator(ctx, "read the committed offsets of the group "+c.Group, func() (err error) {
		if committed, err = s.cl.Admin.FetchOffsets(ctx, c.Group); errors.Is(err, kerr.GroupIDNotFound) {
			committed, err = nil, nil // a new group
		}
		return err
	})
	if err != nil {
		return err
	}
	s.cl.EachLog(func(log int, topic string, partition int32) {
		if o, ok := committed.Lookup(topic, partition); ok && o.Err == nil && o.At >= 0 {
			s.Begin(log, o.At)
		}
	})
	return nil
}

// leaveTimeout bounds the commit at the end and the leaving of the group, each: a
// stuck coordinator must not delay the end of a run.
const leaveTimeout = 2 * time.Second

// release returns the records of the last poll to a share group, for other members:
// this run does not count them.
func (r *reader) release() {
	if r.s.cl.Config.ShareGroup != "" {
		r.client.MarkAcks(kgo.AckRelease)
	}
}

func (r *reader) leave() {
	r.s.traffic.closing.Store(true)
	if r.s.cl.Config.ShareGroup != "" {
		// Accept what was delivered. The client usually does so with the next poll,
		// but this was the last one.
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		r.client.MarkAcks(kgo.AckAccept)
		if err := r.client.FlushAcks(ctx); err != nil {
			r.s.cl.Config.Logf("acknowledge what was read: %v", err)
		}
		if err := r.client.LeaveGroupContext(ctx); err != nil {
			r.s.cl.Config.Logf("leave the share group %s: %v", r.s.cl.Config.ShareGroup, err)
		}
		cancel()
	}
	if r.group != "" {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		if err := r.client.CommitMarkedOffsets(ctx); err != nil {
			r.s.cl.Config.Logf("commit at the end: %v", err)
		}
		cancel()
		r.leaving.Store(true)
		ctx, cancel = context.WithTimeout(context.Background(), leaveTimeout)
		r.client.AllowRebalance()
		if err := r.client.LeaveGroupContext(ctx); err != nil {
			r.s.cl.Config.Logf("leave the group %s: %v", r.group, err)
		}
		cancel()
	}
	r.client.CloseAllowingRebalance()
}
