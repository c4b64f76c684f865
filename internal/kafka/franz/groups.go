package franz

import (
	"context"
	"time"

	"carronade/internal/kafka/cluster"
)

// NewGroup returns the source of one of several groups, which reads from starts on whatever the group has committed
// before. It has a number of members for each topic. The members of a topic are a group of their own, as in
// OpenMessaging Benchmark: with several topics its name ends in the topic's.
func NewGroup(cl *cluster.Cluster, stamped bool, starts []int64, name string, members int) *Source {
	s := newSource(cl, stamped, starts)
	s.apart = true
	for i := range cl.Topics {
		topic, group := cl.Topics[i].Name, name
		if len(cl.Topics) > 1 {
			group += "-" + topic
		}
		for range members {
			s.members = append(s.members, membership{group, []string{topic}})
		}
	}
	for log, end := range starts { // a poll without events says nothing
		s.Reported(int32(log), end, end) //nolint:gosec // few logs
	}
	return s
}

// Names are the groups that the members join.
func (s *Source) Names() []string {
	var names []string
	for _, m := range s.members {
		if n := len(names); n == 0 || names[n-1] != m.group {
			names = append(names, m.group)
		}
	}
	return names
}

// lookForAssignment is how often ready looks.
const lookForAssignment = 10 * time.Millisecond

// ready implements load.SourceCapabilities.Ready: every partition has a member. It waits for as long as a request may
// take, since a member that joins waits for the answer to a request.
func (s *Source) ready(ctx context.Context) error {
	limit := time.NewTimer(s.cl.Config.RequestTimeout)
	defer limit.Stop()
	tick := time.NewTicker(lookForAssignment)
	defer tick.Stop()
	for {
		left := s.unowned()
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return s.neverAssigned(left)
		case <-tick.C:
		}
	}
}

// unowned returns how many partitions have no member.
func (s *Source) unowned() int {
	s.mu.Lock()
	clients := s.clients
	s.mu.Unlock()
	left := s.cl.Partitions()
	for _, r := range clients {
		r.mu.Lock()
		left -= len(r.owned)
		r.mu.Unlock()
	}
	return left
}

func (s *Source) neverAssigned(left int) error {
	last := ""
	if text := s.lastErr.Load(); text != nil {
		last = *text
	}
	return s.cl.NeverAssigned(s.Names()[0], left, last)
}

// membersFacts describes a group and its members.
func (s *Source) membersFacts(name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"name": name, "members": len(s.members), "assignments": s.assigned, "revocations": s.revoked}
}

// GroupFacts describes one of several groups.
func (s *Source) GroupFacts(name string) map[string]any {
	f := s.membersFacts(name)
	if names := s.Names(); len(names) > 1 {
		f["consumer_groups"] = len(names)
	}
	return f
}
