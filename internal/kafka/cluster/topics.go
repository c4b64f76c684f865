package cluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"carronade/protocol"
)

// findTopics finds the topics whose names match. The first of them replaces the
// target's topic, the others are read as well; topics created during the run are not.
func (cl *Cluster) findTopics(ctx context.Context) error {
	c := cl.Config
	doing := fmt.Sprintf("find the topics %s", c.Topics)
	for began := time.Now(); ; {
		known, found, err := cl.matchTopics(ctx)
		switch {
		case err != nil:
			return c.Explain(doing, err)
		case found:
			return nil
		case c.pauseForTopic(ctx, began):
			continue
		case ctx.Err() != nil:
			return c.Explain(doing, ctx.Err())
		case c.WaitTopic > 0:
			cl.Absent = true
			return nil
		}
		return &protocol.Error{
			Doing: doing, Err: fmt.Errorf("no name of the %d topics matches", known),
			Hint: "a whole name must match, such as orders-.*; carronade topics list shows them",
		}
	}
}

// matchTopics looks for matching topics once. known is the number of all topics.
func (cl *Cluster) matchTopics(ctx context.Context) (known int, found bool, err error) {
	c := cl.Config
	listed, err := cl.Admin.ListTopics(ctx)
	if err != nil {
		return 0, false, err
	}
	for _, t := range listed.Sorted() {
		switch {
		case !c.Topics.MatchString(t.Topic) || t.IsInternal:
		case t.Err != nil:
			return 0, false, fmt.Errorf("topic %s: %w", t.Topic, t.Err)
		case !found:
			c.Topic, found = t.Topic, true
		default:
			cl.otherTopics = append(cl.otherTopics, otherTopic{name: t.Topic, partitions: len(t.Partitions)})
		}
	}
	return len(listed), found, nil
}

// LogCount is the number of partitions that are read, of all topics.
func (cl *Cluster) LogCount() int {
	n := cl.Partitions()
	for _, t := range cl.otherTopics {
		n += t.partitions
	}
	return n
}

// TopicNames are the topics that are read, the main one first.
func (cl *Cluster) TopicNames() []string {
	names := []string{cl.Config.Topic}
	for _, t := range cl.otherTopics {
		names = append(names, t.name)
	}
	return names
}

// LogOf is a partition's number among all that are read, -1 for one that was created
// later.
func (cl *Cluster) LogOf(topic string, partition int32) int32 {
	if topic == cl.Config.Topic {
		if int(partition) < cl.Partitions() {
			return partition
		}
		return -1
	}
	for _, t := range cl.otherTopics {
		if t.name == topic && int(partition) < t.partitions {
			return int32(t.base) + partition
		}
	}
	return -1
}

// EachLog calls f with every partition that is read, in the order of their
// numbers.
func (cl *Cluster) EachLog(f func(log int, topic string, partition int32)) {
	for p := range cl.Partitions() {
		f(p, cl.Config.Topic, int32(p))
	}
	for _, t := range cl.otherTopics {
		for p := range t.partitions {
			f(t.base+p, t.name, int32(p))
		}
	}
}

// Logs names the partitions.
func (cl *Cluster) Logs() []string {
	names := make([]string, cl.LogCount())
	cl.EachLog(func(log int, topic string, partition int32) {
		names[log] = topic + "-" + strconv.Itoa(int(partition))
	})
	return names
}

// EachAssigned calls f with the number of each partition of an assignment, if it is
// one that is read.
func (cl *Cluster) EachAssigned(parts map[string][]int32, f func(log int32)) {
	for topic, ps := range parts {
		for _, p := range ps {
			if log := cl.LogOf(topic, p); log >= 0 {
				f(log)
			}
		}
	}
}

// pauseForTopic pauses before the next look for a missing topic. It reports
// whether to look again: not once the time of wait-topic, which started at began,
// is over.
func (c *Config) pauseForTopic(ctx context.Context, began time.Time) bool {
	left := c.WaitTopic - time.Since(began)
	return left > 0 && Pause(ctx, min(left, MetadataPause)) == nil
}
