package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/franz"
)

// A group is one of several consumer groups that read what a round trip sends.
type group struct {
	name string
	in   consumerEngine
}

// openGroups opens the readers of all groups. They begin where the logs end now.
//
// With the wire engine a group is a set of readers, its members, without a coordinator: each reads an equal share of
// the partitions, of all topics, so that the generator has few connections. With the client engine members join.
func openGroups(ctx context.Context, cl *cluster.Cluster, stamped bool) ([]group, error) {
	c := cl.Config
	starts, err := cl.Starts(ctx)
	if err != nil {
		return nil, err
	}
	client := c.Engine == cluster.EngineClient
	share := cl.Partitions() // of what the members divide
	if client {
		for i := range cl.Topics {
			share = min(share, cl.Topics[i].Partitions)
		}
	}
	members := min(c.Members, share)
	if members < c.Members {
		cl.Warnings = append(cl.Warnings, fmt.Sprintf("%d of %d members of each group read nothing: they divide %d partitions", c.Members-members, c.Members, share))
	}
	var all []group
	for i := range c.Groups {
		g := group{name: fmt.Sprintf("%s-%d", groupPrefix(c), i+1)}
		if client {
			g.in = franz.NewGroup(cl, stamped, slices.Clone(starts), g.name, c.Members)
		} else {
			g.in = newWireSourceAt(cl, stamped, slices.Clone(starts), members)
		}
		all = append(all, g)
	}
	return all, nil
}

// groupPrefix is what the names of groups begin with. Real groups of different runs have different names.
func groupPrefix(c *cluster.Config) string {
	switch {
	case c.Group != "":
		return c.Group
	case c.Engine == cluster.EngineClient:
		return fmt.Sprintf("carronade-%08x", uint32(c.RunID)) //nolint:gosec // its low bits
	}
	return "group"
}

// deleteTimeout bounds the deletion of groups at the end.
const deleteTimeout = 2 * time.Second

// deleteGroups deletes the groups that the run has named: they have no members any more, and nothing uses their
// positions again.
func (s *session) deleteGroups() {
	if s.cl.Config.Group != "" {
		return
	}
	var names []string
	for _, g := range s.groups {
		if src, ok := g.in.(*franz.Source); ok {
			names = append(names, src.Names()...)
		}
	}
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	if _, err := s.cl.Admin.DeleteGroups(ctx, names...); err != nil {
		s.cl.Config.Logf("delete the groups of the run: %v", err)
	}
}

// groupFacts describes the groups for the report.
func groupFacts(c *cluster.Config, all []group) map[string]any {
	f := map[string]any{"members": c.Members, "assigned_by": "the generator: partitions are divided evenly, without a coordinator"}
	var each []map[string]any
	for _, g := range all {
		of := map[string]any{"name": g.name}
		if src, ok := g.in.(*franz.Source); ok {
			f["assigned_by"] = "the group's coordinator: members join and commit"
			of = src.GroupFacts(g.name)
		}
		each = append(each, of)
	}
	f["groups"] = each
	return f
}
