package kafka

import (
	"context"
	"fmt"
	"slices"

	"carronade/internal/kafka/cluster"
	"carronade/protocol"
)

// A group is one of several consumer groups that read what a round trip sends.
type group struct {
	name string
	in   consumerEngine
}

// openGroups opens the readers of all groups. They begin where the logs end now.
//
// With the wire engine a group is a set of readers, its members, without a coordinator: each reads an equal share of
// the partitions, of all topics, so that the generator has few connections.
func openGroups(ctx context.Context, cl *cluster.Cluster, stamped bool) ([]group, error) {
	c := cl.Config
	if c.Engine == cluster.EngineClient {
		return nil, &protocol.Error{Doing: "open the groups", Err: fmt.Errorf("the client engine has one group"), Hint: "leave out --engine client or --groups"}
	}
	starts, err := cl.Starts(ctx)
	if err != nil {
		return nil, err
	}
	members := min(c.Members, cl.Partitions())
	if members < c.Members {
		cl.Warnings = append(cl.Warnings, fmt.Sprintf("%d of %d members of each group read nothing: there are %d partitions", c.Members-members, c.Members, members))
	}
	var all []group
	for i := range c.Groups {
		all = append(all, group{fmt.Sprintf("group-%d", i+1), newWireSourceAt(cl, stamped, slices.Clone(starts), members)})
	}
	return all, nil
}

// groupFacts describes the groups for the report.
func groupFacts(c *cluster.Config, all []group) map[string]any {
	f := map[string]any{"number": len(all), "members": c.Members, "kind": "assigned readers"}
	var each []map[string]any
	for _, g := range all {
		of := g.in.Facts()
		of["name"] = g.name
		each = append(each, of)
	}
	f["groups"] = each
	return f
}
