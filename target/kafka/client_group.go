package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// resetOffset is where a group starts that has committed nothing.
func (s *clientSource) resetOffset() kgo.Offset {
	switch c := s.cl.cfg; {
	case c.op != opConsume || c.from.kind == "latest":
		return kgo.NewOffset().AtEnd()
	case c.from.kind == "time":
		return kgo.NewOffset().AfterMilli(c.from.time.UnixMilli())
	case c.from.kind == "offset":
		return kgo.NewOffset().At(c.from.offset)
	}
	return kgo.NewOffset().AtStart()
}

func (r *clientReader) onAssigned(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.cl.eachAssigned(parts, func(log int32) { r.owned[log] = true })
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned++
	// An empty assignment counts, too: there may be more members than partitions.
	if !r.unassignedSince.IsZero() {
		if s.revoked > 0 { // the first assignment is not a rebalance
			s.cl.cfg.happened("rebalance", r.unassignedSince, time.Since(r.unassignedSince))
		}
		s.unassigned += time.Since(r.unassignedSince)
		r.unassignedSince = time.Time{}
	}
}

func (r *clientReader) onRevoked(ctx context.Context, cl *kgo.Client, parts map[string][]int32) {
	// The next owner must not deliver these events again. At the end of the run,
	// leave has tried to commit already.
	if !r.leaving.Load() {
		if err := cl.CommitMarkedOffsets(ctx); err != nil && ctx.Err() == nil {
			r.s.cl.cfg.logf("commit before a rebalance: %v", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.cl.eachAssigned(parts, func(log int32) { delete(r.owned, log) })
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.revoked++
	if !r.leaving.Load() {
		r.s.cl.cfg.happened("rebalance", time.Now(), 0)
	}
	if len(r.owned) == 0 && r.unassignedSince.IsZero() && !r.leaving.Load() {
		r.unassignedSince = time.Now()
	}
}

// Rebalancing implements load.Source: the time without an assignment, the mean over
// the clients.
func (s *clientSource) Rebalancing() time.Duration {
	if s.cl.cfg.group == "" {
		return 0
	}
	s.mu.Lock()
	total, clients := s.unassigned, s.clients
	s.mu.Unlock()
	for _, r := range clients {
		r.mu.Lock()
		if !r.unassignedSince.IsZero() {
			total += time.Since(r.unassignedSince)
		}
		r.mu.Unlock()
	}
	return total / time.Duration(max(1, len(clients)))
}

// resumeCommitted takes over the offsets that a group has committed: it resumes
// there, whatever the option from says.
func (s *clientSource) resumeCommitted(ctx context.Context) error {
	c := s.cl.cfg
	if c.group == "" {
		return nil
	}
	var committed kadm.OffsetResponses
	for deadline := time.Now().Add(c.requestTimeout); ; {
		var err error
		committed, err = s.cl.admin.FetchOffsets(ctx, c.group)
		if errors.Is(err, kerr.GroupIDNotFound) {
			return nil // a new group
		}
		if err == nil {
			break
		}
		// A cluster that has just started may have no coordinator yet.
		if !kerr.IsRetriable(err) || time.Now().After(deadline) {
			return c.explain("read the committed offsets of the group "+c.group, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(metadataPause):
		}
	}
	s.cl.eachLog(func(log int, topic string, partition int32) {
		if o, ok := committed.Lookup(topic, partition); ok && o.Err == nil && o.At >= 0 {
			s.starts[log] = o.At
			s.delivered[log].Store(o.At)
		}
	})
	return nil
}

// leaveTimeout bounds the commit at the end and the leaving of the group, each: a
// stuck coordinator must not delay the end of a run.
const leaveTimeout = 2 * time.Second

// release returns the records of the last poll to a share group, for other members:
// this run does not count them.
func (r *clientReader) release() {
	if r.s.cl.cfg.shareGroup != "" {
		r.client.MarkAcks(kgo.AckRelease)
	}
}

func (r *clientReader) leave() {
	r.s.traffic.closing.Store(true)
	if r.s.cl.cfg.shareGroup != "" {
		// Accept what was delivered. The client usually does so with the next poll,
		// but this was the last one.
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		r.client.MarkAcks(kgo.AckAccept)
		if err := r.client.FlushAcks(ctx); err != nil {
			r.s.cl.cfg.logf("acknowledge what was read: %v", err)
		}
		if err := r.client.LeaveGroupContext(ctx); err != nil {
			r.s.cl.cfg.logf("leave the share group %s: %v", r.s.cl.cfg.shareGroup, err)
		}
		cancel()
	}
	if r.s.cl.cfg.group != "" {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		if err := r.client.CommitMarkedOffsets(ctx); err != nil {
			r.s.cl.cfg.logf("commit at the end: %v", err)
		}
		cancel()
		r.leaving.Store(true)
		ctx, cancel = context.WithTimeout(context.Background(), leaveTimeout)
		r.client.AllowRebalance()
		if err := r.client.LeaveGroupContext(ctx); err != nil {
			r.s.cl.cfg.logf("leave the group %s: %v", r.s.cl.cfg.group, err)
		}
		cancel()
	}
	r.client.CloseAllowingRebalance()
}
