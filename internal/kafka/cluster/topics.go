package cluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"carronade/protocol"
)

// findTopics finds the topics whose names match, which replace the target's. Topics that are created
// during the run are not read.
func (cl *Cluster) findTopics(ctx context.Context) error {
	c := cl.Config
	doing := fmt.Sprintf("find the topics %s", c.Topics)
	for began := time.Now(); ; {
		known, names, err := cl.matchTopics(ctx)
		switch {
		case err != nil:
			return c.Explain(doing, err)
		case len(names) > 0:
			c.Names, c.Topic, c.topicText = names, names[0], c.Topics.String()
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
func (cl *Cluster) matchTopics(ctx context.Context) (known int, names []string, err error) {
	listed, err := cl.Admin.ListTopics(ctx)
	if err != nil {
		return 0, nil, err
	}
	for _, t := range listed.Sorted() {
		switch {
		case !cl.Config.Topics.MatchString(t.Topic) || t.IsInternal:
		case t.Err != nil:
			return 0, nil, fmt.Errorf("topic %s: %w", t.Topic, t.Err)
		default:
			names = append(names, t.Topic)
		}
	}
	return len(listed), names, nil
}

// LogOf is a partition's number among all logs, -1 for one that was created later.
func (cl *Cluster) LogOf(topic string, partition int32) int32 {
	if t := cl.byName[topic]; t != nil && partition >= 0 && int(partition) < t.Partitions {
		return int32(t.Base) + partition //nolint:gosec // few logs
	}
	return -1
}

// LogOfAnswer is LogOf for an answer, which names a topic by its name or by its id.
func (cl *Cluster) LogOfAnswer(topic string, id [16]byte, partition int32) int32 {
	if topic != "" {
		return cl.LogOf(topic, partition)
	}
	if t := cl.byID[id]; t != nil && partition >= 0 && int(partition) < t.Partitions {
		return int32(t.Base) + partition //nolint:gosec // few logs
	}
	return -1
}

// A Place is where a log is: a partition of one of the topics.
type Place struct{ Topic, Partition int32 }

// Places returns the places of all logs of topics.
func Places(topics []TopicLogs) (all []Place) {
	for i := range topics {
		for p := range topics[i].Partitions {
			all = append(all, Place{int32(i), int32(p)}) //nolint:gosec // few of both
		}
	}
	return all
}

// EachLog calls f with every log, in the order of their numbers.
func (cl *Cluster) EachLog(f func(log int, topic string, partition int32)) {
	for i := range cl.Topics {
		t := &cl.Topics[i]
		for p := range t.Partitions {
			f(t.Base+p, t.Name, int32(p)) //nolint:gosec // few partitions
		}
	}
}

// Logs names the partitions.
func (cl *Cluster) Logs() []string {
	names := make([]string, cl.Partitions())
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
